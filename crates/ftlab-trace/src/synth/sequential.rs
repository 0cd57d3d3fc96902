//! Requests one after the other in address order.
//!
//! # Model
//! The span is divided into `streams` equal parts. Each stream goes through its part from start to end and begins
//! again; requests are dealt to the streams in turn. Reads, writes and trims share one position.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `streams` | sequential streams | 1 to 65535 | 1 |
//! # Not modelled
//! Streams of unequal speed.
//! # Source
//! fio's `rw=write` and its like, with one job per stream.

use ftlab_core::{Batch, Result, Stream};
use serde_json::{Map, Value};

use super::{Keys, Pattern, Space};

pub fn new(keys: &mut Keys, space: Space) -> Result<Box<dyn Pattern>> {
    let streams = keys.count("streams")?.unwrap_or(1);
    let part = space.span / streams.max(1) / space.align * space.align;
    let largest = space.span - (space.positions - 1) * space.align;
    if streams == 0 || streams > 65535 || part < largest {
        let expected = "1 to 65535 streams, each with room for a request";
        return Err(keys.wrong("streams", &streams.to_string(), expected));
    }
    let cursors: Vec<u64> = (0..streams).map(|stream| stream * part).collect();
    Ok(Box::new(Sequential {
        cursors,
        part,
        align: space.align,
        turn: 0,
    }))
}

struct Sequential {
    cursors: Vec<u64>,
    part: u64,
    align: u64,
    turn: usize,
}

impl Pattern for Sequential {
    fn place(&mut self, batch: &mut Batch, _random: &mut Stream) {
        for &length in &batch.length {
            let start = self.turn as u64 * self.part;
            let cursor = &mut self.cursors[self.turn];
            if *cursor + u64::from(length) > start + self.part {
                *cursor = start;
            }
            batch.offset.push(*cursor);
            *cursor += u64::from(length).next_multiple_of(self.align);
            self.turn = (self.turn + 1) % self.cursors.len();
        }
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("streams".to_owned(), self.cursors.len().into());
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use ftlab_core::{Batch, Source};

    fn offsets(spec: &str) -> Vec<u64> {
        let mut batch = Batch::default();
        parse(spec, 32768, 4096, 0).unwrap().next_batch(&mut batch).unwrap();
        batch.offset.iter().map(|o| o / 4096).collect()
    }

    #[test]
    fn the_span_is_gone_through_again_and_again() {
        assert_eq!(offsets("sequential:requests=10"), [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert_eq!(offsets("sequential:requests=5,size=12KiB,align=4KiB"), [0, 3, 0, 3, 0]);
    }

    #[test]
    fn streams_take_turns_in_parts_of_their_own() {
        assert_eq!(offsets("sequential:requests=9,streams=2"), [0, 4, 1, 5, 2, 6, 3, 7, 0]);
    }
}
