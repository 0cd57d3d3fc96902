//! Touched units are renumbered without gaps.
//!
//! # Model
//! The units that reads and writes touch are numbered in the order of their addresses; distances within touched ranges
//! stay. A trim keeps the touched units in its range, and vanishes if there are none. The stream is read once
//! beforehand, after the filters in front.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `unit` | size of the units that are renumbered | a power of two from 256 B to 16 MiB | the drive's mapping unit, else `4KiB` |
//! # Not modelled
//! Untouched space between ranges, which a drive could use as over-provisioning. One bit a touched unit is kept in
//! memory.
//! # Source
//! What `--fit compact` does to a trace that is larger than the drive.

use ftlab_core::{Batch, Result, Source, units};

use super::frame::{Edit, Stage};
use super::{Context, Keys};
use crate::{Touched, fit};

pub fn new(keys: &mut Keys, context: &Context) -> Result<Stage> {
    let unit = keys.bytes("unit", u64::from(context.unit_bytes))?;
    let power = u32::try_from(unit)
        .ok()
        .filter(|u| u.is_power_of_two() && (256..=16 << 20).contains(u));
    let unit = power.ok_or_else(|| keys.wrong("unit", &format!("{unit}B"), "a power of two from 256 B to 16 MiB"))?;
    Ok(Box::new(move |upstream| {
        let touched = upstream.survey(unit)?.touched.clone();
        upstream.note(format!(
            "{} units of {}: {}",
            touched.units(),
            units::show_bytes(u64::from(unit)),
            units::show_bytes(touched.units() * u64::from(unit))
        ));
        upstream.edited(Compact { touched })
    }))
}

struct Compact {
    touched: Touched,
}

impl Edit for Compact {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        fit::compact(batch, &self.touched);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{filtered, places, requests};

    #[test]
    fn the_survey_sees_what_the_filters_in_front_let_through() {
        let all = requests("0,write,40960,4096\n1,read,0,4096\n2,write,81920,8192\n");
        assert_eq!(
            places(&filtered(&["compact"], all.clone())),
            [(4096, 4096), (0, 4096), (8192, 8192)]
        );
        assert_eq!(
            places(&filtered(&["only:op=write", "compact"], all)),
            [(0, 4096), (4096, 8192)]
        );
    }
}
