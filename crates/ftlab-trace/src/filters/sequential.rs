//! Addresses follow one another: what the same work would cost if it were sequential.
//!
//! # Model
//! Each read, write and trim begins where the one before it ended, rounded up to `unit`; the first begins at address 0.
//! A request that would reach beyond `span` begins at address 0 again. Times, operations and lengths stay. With
//! `pointer=operation` reads, writes and trims are three such sequences, each from address 0 on: written data then has
//! no holes where reads were, so that whole blocks become invalid.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `span` | where the addresses end | 512 B to 2^62 B | the end of what the stream reads and writes |
//! | `pointer` | what follows one another: all requests (`shared`), or those of each operation | `shared`, `operation` | `shared` |
//! | `unit` | every request begins at a multiple of this | a power of two from 256 B to 16 MiB | the drive's mapping unit, else `4KiB` |
//! # Not modelled
//! Several sequential streams of one operation side by side. A request that is longer than `span` reaches beyond it.
//! # Source
//! The motivation of correlation-aware page-level mapping (CPFTL) runs a workload as it is and "converted to a sequential
//! workload": "we make the logical addresses always been sequential". It says neither where such addresses end nor whether
//! reads and writes follow one sequence.

use ftlab_core::{Batch, OpKind, Result, Source, units};

use super::frame::{Edit, Stage};
use super::{Context, Keys};

const HIGHEST: u64 = 1 << 62;

pub fn new(keys: &mut Keys, context: &Context) -> Result<Stage> {
    let unit = keys.bytes("unit", u64::from(context.unit_bytes))?;
    if !unit.is_power_of_two() || !(256..=16 << 20).contains(&unit) {
        return Err(keys.wrong("unit", &format!("{unit}B"), "a power of two from 256 B to 16 MiB"));
    }
    let given = keys.bytes("span", 0)?;
    if given != 0 && !(512..=HIGHEST).contains(&given) {
        return Err(keys.wrong("span", &format!("{given}B"), "512 B to 2^62 B"));
    }
    let shared = match keys.text("pointer").as_deref() {
        None | Some("shared") => true,
        Some("operation") => false,
        Some(other) => return Err(keys.wrong("pointer", other, "shared or operation")),
    };
    Ok(Box::new(move |upstream| {
        let mut span = given;
        if span == 0 {
            let report = &upstream.survey(4096)?.report;
            span = report.first_byte.saturating_add(report.span_bytes);
            upstream.note(format!("addresses end at {}", units::show_bytes(span)));
        }
        upstream.edited(Sequential {
            unit,
            span,
            shared,
            next: [0; 3],
        })
    }))
}

struct Sequential {
    unit: u64,
    span: u64,
    shared: bool,
    /// Where the next read, write and trim begins; the first alone counts if they share it.
    next: [u64; 3],
}

impl Edit for Sequential {
    fn edit(&mut self, batch: &mut Batch, _: &dyn Source) -> Result<()> {
        for i in 0..batch.len() {
            let pointer = match batch.op[i] {
                OpKind::Flush => continue,
                _ if self.shared => 0,
                OpKind::Read => 0,
                OpKind::Write => 1,
                OpKind::Trim => 2,
            };
            let next = &mut self.next[pointer];
            let length = u64::from(batch.length[i]);
            if *next + length > self.span {
                *next = 0;
            }
            batch.offset[i] = *next;
            *next = (*next + length).next_multiple_of(self.unit);
        }
        Ok(())
    }

    fn remaining(&self, coming: u64) -> Option<u64> {
        Some(coming)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{failure, filtered, places, requests};

    const ALL: &str = "0,write,40960,4096\n1,read,512,6144\n2,flush,,\n3,trim,81920,8192\n4,write,0,4096\n";

    #[test]
    fn requests_lie_one_behind_the_other_and_begin_at_units() {
        // 6144 bytes from 4096 on end at 10240: the next begins at 12288, and after its 8192 bytes at 20480.
        assert_eq!(
            places(&filtered(&["sequential:span=1MiB"], requests(ALL))),
            [(0, 4096), (4096, 6144), (0, 0), (12288, 8192), (20480, 4096)]
        );
        // By sectors nothing lies between them.
        assert_eq!(
            places(&filtered(&["sequential:span=1MiB,unit=512B"], requests(ALL))),
            [(0, 4096), (4096, 6144), (0, 0), (10240, 8192), (18432, 4096)]
        );
    }

    #[test]
    fn at_the_end_of_the_span_they_begin_again() {
        // Trims are no part of the stream's own end, which is that of the write at 40960.
        let places = places(&filtered(&["sequential", "sequential:span=16KiB"], requests(ALL)));
        assert_eq!(places, [(0, 4096), (4096, 6144), (0, 0), (0, 8192), (8192, 4096)]);
    }

    #[test]
    fn operations_have_pointers_of_their_own() {
        // The second write, of 4096 bytes, follows the first; the read and the trim begin theirs.
        assert_eq!(
            places(&filtered(&["sequential:span=1MiB,pointer=operation"], requests(ALL))),
            [(0, 4096), (0, 6144), (0, 0), (0, 8192), (4096, 4096)]
        );
        assert_eq!(
            places(&filtered(
                &["sequential:span=6KiB,pointer=operation"],
                requests("0,write,0,4096\n1,read,0,4096\n2,write,0,4096\n")
            )),
            [(0, 4096), (0, 4096), (0, 4096)]
        );
    }

    #[test]
    fn wrong_keys_are_refused() {
        assert!(failure(&["sequential:pointer=both"], requests(ALL)).contains("`pointer` = both"));
        assert!(failure(&["sequential:unit=3000B"], requests(ALL)).contains("`unit` = 3000B"));
        assert!(failure(&["sequential:span=100B"], requests(ALL)).contains("`span` = 100B"));
        // Whatever else is given.
        for (key, value) in [("span", "100B"), ("unit", "3KiB"), ("span", "wide"), ("unit", "wide")] {
            let refusal = failure(&[&format!("sequential:pointer=operation,{key}={value}")], requests(ALL));
            assert!(refusal.contains(&format!("filter `sequential`: `{key}`")), "{refusal}");
        }
    }
}
