//! Another trace at the same time: both in order of time, as one stream.
//!
//! # Model
//! The other trace is read as if it were opened by itself, and its clock begins at 0 together with this one's. At equal
//! times this stream goes first. With `side_by_side`, its addresses begin behind all of this stream's, at a multiple of
//! 512 units. Its volumes get its name in front of theirs (`NAME:VOLUME`; those of this stream are `this:VOLUME`). With
//! `shared`, volumes of the same name are one volume. The filter may be given several times, for several traces.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `trace` | file of the other trace, in any format | | required |
//! | `format` | its format, if it cannot be detected | a name of `ftlab list formats` | by content |
//! | `addresses` | where it lies | `side_by_side` or `shared` | `side_by_side` |
//! # Not modelled
//! Mutual slowdown: each trace keeps its own arrivals.
//! # Source
//! Several servers consolidated on one drive.

use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result, Source, error};

use super::frame::Stage;
use super::merge::{Merge, Part};
use super::{Context, Keys};
use crate::touched::CHUNK_UNITS;
use crate::{ReadOptions, Volumes, is_stream, open};

pub fn new(keys: &mut Keys, context: &Context) -> Result<Stage> {
    let Some(path) = keys.text("trace").map(PathBuf::from) else {
        return Err(Error::input(
            "filter `interleave` needs the key `trace`: expected the file of another trace",
        ));
    };
    let format = keys.text("format");
    let addresses = keys.text("addresses").unwrap_or_else(|| "side_by_side".to_owned());
    let shared = match addresses.as_str() {
        "side_by_side" => false,
        "shared" => true,
        other => return Err(error::unknown("addresses", other, &["side_by_side", "shared"])),
    };
    let unit = context.unit_bytes;
    Ok(Box::new(move |upstream| {
        let base = match shared {
            true => 0,
            false => {
                let end = upstream.survey(unit)?.report.end_byte;
                end.next_multiple_of(CHUNK_UNITS * u64::from(unit))
            }
        };
        let this = Part {
            name: "this".to_owned(),
            source: upstream.source()?,
            base: 0,
        };
        let other = Part {
            name: path
                .file_stem()
                .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
            source: other(&path, format, shared, unit)?,
            base,
        };
        Ok(Box::new(Merge::new(vec![this, other])))
    }))
}

fn other(path: &Path, as_format: Option<String>, shared: bool, unit_bytes: u32) -> Result<Box<dyn Source>> {
    if is_stream(path) {
        return Err(Error::input(format!(
            "filter `interleave`: {} can be read once only: expected a file",
            path.display()
        )));
    }
    let options = ReadOptions {
        as_format,
        unit_bytes,
        volumes: if shared { Volumes::Merge } else { Volumes::SideBySide },
        ..ReadOptions::default()
    };
    Ok(Box::new(open(&[path.to_owned()], &options)?))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::super::testing::{filtered, places, requests};

    /// Times 0 and 2 us, at 0 and 8192.
    const OTHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interleaved.csv");

    #[test]
    fn both_come_in_order_of_time() {
        let this = requests("0,write,4096,4096\n1000,read,0,512\n3000,write,40960,8192\n");
        let shared = filtered(&[&format!("interleave:trace={OTHER},addresses=shared")], this.clone());
        assert_eq!(
            places(&shared),
            [(4096, 4096), (0, 4096), (0, 512), (8192, 4096), (40960, 8192)]
        );
        // This stream ends at 49152; 512 units of 4 KiB are 2 MiB.
        let apart = filtered(&[&format!("interleave:trace={OTHER}")], this);
        let base = 2 << 20;
        assert_eq!(
            places(&apart),
            [(4096, 4096), (base, 4096), (0, 512), (base + 8192, 4096), (40960, 8192)]
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        let refused = |spec: &str| check(&[spec.to_owned()]).unwrap_err().to_string();
        assert!(refused("interleave").contains("needs the key `trace`"));
        assert!(refused("interleave:trace=x,addresses=both").contains("side_by_side"));
    }
}
