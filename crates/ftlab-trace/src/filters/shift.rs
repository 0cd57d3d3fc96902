//! Addresses are moved.
//!
//! # Model
//! `offset` is added to the address of every read, write and trim. An address below 0 or beyond 2^62 ends the stream with
//! an error.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `offset` | bytes to add, such as `1GiB` or `-512B` | | 0 |
//! # Not modelled
//! Nothing.
//! # Source
//! Our own.

use ftlab_core::{Batch, Error, OpKind, Result, Source, units};

use super::frame::{Edit, Stage, editing};
use super::{Context, Keys};

const HIGHEST: i128 = 1 << 62;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let text = keys.text("offset").unwrap_or_else(|| "0B".to_owned());
    let (sign, amount) = match text.strip_prefix('-') {
        Some(amount) => (-1, amount),
        None => (1, text.as_str()),
    };
    let bytes = units::bytes(amount).map_err(|e| keys.wrong_as("offset", &e))?;
    Ok(editing(Shift {
        by: sign * i128::from(bytes),
        passed: 0,
    }))
}

struct Shift {
    by: i128,
    passed: u64,
}

impl Edit for Shift {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        for i in 0..batch.len() {
            if batch.op[i] == OpKind::Flush {
                continue;
            }
            let moved = i128::from(batch.offset[i]) + self.by;
            if !(0..=HIGHEST).contains(&moved) {
                let end = if moved < 0 { "below address 0" } else { "beyond 2^62" };
                return Err(Error::input(format!(
                    "filter `shift`: request {} at offset {} would lie {end}: expected another `offset`",
                    self.passed + i as u64 + 1,
                    batch.offset[i]
                )));
            }
            batch.offset[i] = moved as u64;
        }
        self.passed += batch.len() as u64;
        Ok(())
    }

    fn remaining(&self, coming: u64) -> Option<u64> {
        Some(coming)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{failure, filtered, places, requests};

    #[test]
    fn addresses_move_and_never_below_zero() {
        let all = requests("0,write,4096,512\n1,flush,,\n2,trim,8192,4096\n");
        assert_eq!(
            places(&filtered(&["shift:offset=1KiB"], all.clone())),
            [(5120, 512), (0, 0), (9216, 4096)]
        );
        assert_eq!(
            places(&filtered(&["shift:offset=-4KiB"], all.clone())),
            [(0, 512), (0, 0), (4096, 4096)]
        );
        let error = failure(&["shift:offset=-4097B"], all);
        assert!(
            error.contains("request 1 at offset 4096 would lie below address 0"),
            "{error}"
        );
    }
}
