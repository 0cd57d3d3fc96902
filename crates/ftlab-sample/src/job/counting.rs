//! What the records of a partition add to the totals.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use ftlab_core::{Error, Result, Stream};

use super::joined::joined_key;
use super::keyed;
use super::words;
use super::{Engine, Part, locked};
use crate::block::Block;
use crate::expression::{Expression, Value, Wrong};
use crate::frames::Unpacker;
use crate::read;
use crate::record::{self, Explode, Form};
use crate::row_groups::RowGroups;
use crate::sql::Kind;
use crate::totals::{Totals, summable};

/// Room that a thread uses again.
#[derive(Default)]
pub(super) struct Room {
    /// Number of the thread.
    thread: usize,
    lower: Vec<u8>,
    block: Block,
    words: words::Room,
    unpacker: Unpacker,
}

impl Room {
    pub(super) fn of(thread: usize) -> Room {
        Room {
            thread,
            ..Room::default()
        }
    }
}

impl Engine<'_> {
    /// Counts the records of a partition.
    pub(super) fn count(
        &self,
        disk: usize,
        partition: u64,
        part: &mut Part,
        totals: &mut Totals,
        room: &mut Room,
    ) -> Result<()> {
        let place = self.dataset.place(disk, partition);
        if let Some(groups) = &place.piece.row_groups {
            let columns = std::mem::take(&mut part.buffer);
            return self
                .row_group(disk, (partition, place.number), groups, columns, totals, room)
                .map_err(|(row, wrong)| {
                    Error::input(format!("{}, row {row}: {}", place.piece.path.display(), wrong.0))
                });
        }
        read::unpack(place, &mut part.loaded, &mut part.buffer, &mut room.unpacker)?;
        let bytes = &part.buffer[part.loaded.records.clone()];
        let quoted = place.piece.is_quoted();
        let form = &self.dataset.form;
        if let Some(tables) = self.words.get(disk) {
            totals.begin(0, 0);
            let ends = memchr::memchr_iter(b'\n', bytes).count();
            totals.records(ends as u64 + u64::from(!bytes.is_empty() && !bytes.ends_with(b"\n")));
            // Its own first: that may still be in the core's cache.
            let tables = tables
                .iter()
                .cycle()
                .skip(room.thread % tables.len())
                .take(tables.len());
            let free = tables.clone().find_map(|table| table.try_lock().ok());
            if let Some(mut words) = free.or_else(|| tables.clone().next().map(locked)) {
                words.count(bytes, &mut room.words);
            }
            return Ok(());
        }
        let mut slots = vec![Value::Null; self.plan.picks.len() + self.plan.joined.len()];
        let done = if self.spec.records < 1.0 {
            let mut lines: Vec<(usize, &[u8])> = Vec::new();
            let listed = record::records(form, quoted, bytes, |at, line| {
                lines.push((at, line));
                Ok(())
            });
            let all = lines.len() as u64;
            let wanted = self.wanted(all);
            let mut random = self.records_of(disk, partition);
            totals.begin(all, wanted);
            let mut left = wanted;
            listed.and_then(|()| {
                for (number, &(at, line)) in lines.iter().enumerate() {
                    if random.below(all - number as u64) < left {
                        left -= 1;
                        self.record(line, &mut slots, totals, room)
                            .map_err(|wrong| (at, wrong))?;
                    }
                }
                Ok(())
            })
        } else {
            totals.begin(0, 0);
            let counted = record::records(form, quoted, bytes, |_, line| {
                self.record(line, &mut slots, totals, room)
            });
            room.block.flush(totals);
            counted
        };
        done.map_err(|(at, wrong)| {
            let byte = part.loaded.offset + (part.loaded.records.start + at) as u64;
            Error::input(format!(
                "{}, record at byte {byte}{}: {}",
                place.piece.path.display(),
                place.piece.of_what(),
                wrong.0
            ))
        })
    }

    /// Counts the rows of a row group, which is a partition of its disk and has a number in its file.
    fn row_group(
        &self,
        disk: usize,
        (partition, number): (u64, u64),
        groups: &RowGroups,
        columns: Vec<u8>,
        totals: &mut Totals,
        room: &mut Room,
    ) -> std::result::Result<(), (u64, Wrong)> {
        let all = groups.rows(number);
        let mut left = all;
        let mut random = None;
        if self.spec.records < 1.0 {
            left = self.wanted(all);
            random = Some(self.records_of(disk, partition));
        }
        totals.begin(all, left);
        let joined = self.plan.joined.len();
        let counted = groups.each_row(number, &self.plan.picks, columns, |row, slots| {
            if let Some(random) = &mut random {
                if random.below(all - row) >= left {
                    return Ok(());
                }
                left -= 1;
            }
            totals.record();
            if self.lookup.is_none() {
                return self.row(slots, None, totals, &mut room.block);
            }
            let mut own: Vec<Value<'_>> = std::mem::take(slots);
            own.resize(own.len() + joined, Value::Null);
            self.rows(&mut own, totals, &mut room.block)
        });
        room.block.flush(totals);
        counted
    }

    /// How many records of a partition of `all` are taken.
    fn wanted(&self, all: u64) -> u64 {
        ((self.spec.records * all as f64).round() as u64).max(2).min(all)
    }

    /// What decides which.
    fn records_of(&self, disk: usize, partition: u64) -> Stream {
        Stream::new(
            self.spec.seed,
            &format!(
                "records of partition {partition} of disk {}",
                self.first_disk + disk as u64
            ),
        )
    }

    /// Whether only how often each word comes is asked for.
    pub(super) fn counts_words(&self) -> bool {
        self.spec.records >= 1.0
            && self.explode == Some(Explode::Words)
            && self.plan.condition.is_none()
            && self.lookup.is_none()
            && self.plan.groups == [Expression::Slot(0)]
            && self.plan.quantiles.is_empty()
            && self.plan.aggregates.iter().all(|aggregate| aggregate.of.is_none())
    }

    fn record<'r>(
        &'r self,
        line: &'r [u8],
        slots: &mut Vec<Value<'r>>,
        totals: &mut Totals,
        room: &mut Room,
    ) -> std::result::Result<(), Wrong> {
        totals.record();
        match self.explode {
            Some(explode) => {
                let Room { lower, block, .. } = room;
                explode.pieces(line, lower, |piece| {
                    let mut own = vec![Value::Null; slots.len()];
                    if let Some(first) = own.first_mut().filter(|_| !self.plan.picks.is_empty()) {
                        *first = Value::Text(Cow::Borrowed(piece));
                    }
                    self.rows(&mut own, totals, block)
                })
            }
            None => {
                record::fields(&self.dataset.form, &self.plan.picks, &self.dataset.columns, line, slots)?;
                if self.dataset.form == Form::Json {
                    for (slot, has_value) in slots.iter().zip(&self.has_value) {
                        if !slot.is_null() {
                            has_value.store(true, Ordering::Relaxed);
                        }
                    }
                }
                self.rows(slots, totals, &mut room.block)
            }
        }
    }

    /// A record, and what it is joined with.
    fn rows<'r>(
        &'r self,
        slots: &mut [Value<'r>],
        totals: &mut Totals,
        block: &mut Block,
    ) -> std::result::Result<(), Wrong> {
        let (Some(lookup), Some((ours, _))) = (&self.lookup, &self.plan.keys) else {
            return self.row(slots, None, totals, block);
        };
        let Some(on) = joined_key(&ours.evaluate(slots)?) else {
            return Ok(());
        };
        for &number in lookup.of.get(&on[..]).into_iter().flatten() {
            for (slot, value) in slots[self.plan.picks.len()..]
                .iter_mut()
                .zip(&lookup.rows[number as usize])
            {
                *slot = value.borrowed();
            }
            self.row(slots, self.taken.as_ref().map(|_| &on[..]), totals, block)?;
        }
        Ok(())
    }

    /// A row, counted with the key `on` of its join if keys are sampled.
    fn row(
        &self,
        slots: &[Value<'_>],
        on: Option<&[u8]>,
        totals: &mut Totals,
        block: &mut Block,
    ) -> std::result::Result<(), Wrong> {
        let counted = self.values(slots, on, block);
        // The rows in front of a wrong one are whole.
        if counted.is_err() {
            block.abandon(self.plan.aggregates.len());
        }
        // Records within partitions are kept apart as they come.
        if counted? && (block.end_row() || self.spec.records < 1.0) {
            block.flush(totals);
        }
        Ok(())
    }

    /// Puts a row into the block, but for its end; false where the condition leaves it out.
    fn values(&self, slots: &[Value<'_>], on: Option<&[u8]>, block: &mut Block) -> std::result::Result<bool, Wrong> {
        if let Some(condition) = &self.plan.condition
            && condition.evaluate(slots)?.truth()? != Some(true)
        {
            return Ok(false);
        }
        if let Some(on) = on {
            keyed::write(on, block.key());
        }
        for group in &self.plan.groups {
            group.evaluate(slots)?.write_key(block.key());
        }
        for (number, quantile) in self.plan.quantiles.iter().enumerate() {
            if let Some(value) = quantile.of.evaluate(slots)?.number()? {
                block.keep(number, value);
            }
        }
        for aggregate in &self.plan.aggregates {
            let Some(of) = &aggregate.of else {
                block.value(1.0, 0.0);
                continue;
            };
            let value = of.evaluate(slots)?;
            let (t, z) = match aggregate.kind {
                Kind::Count => (f64::from(u8::from(!value.is_null())), 0.0),
                Kind::Sum | Kind::Average => match value.number()? {
                    Some(value) => {
                        summable(value)?;
                        (value, 1.0)
                    }
                    None => (0.0, 0.0),
                },
                Kind::Proportion => match value.truth()? {
                    Some(truth) => (f64::from(u8::from(truth)), 1.0),
                    None => (0.0, 0.0),
                },
            };
            block.value(t, z);
        }
        Ok(true)
    }
}
