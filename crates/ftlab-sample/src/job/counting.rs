//! What the records of a partition add to the totals.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use ftlab_core::{Error, Result, Stream};

use super::joined::joined_key;
use super::{Engine, Part};
use crate::expression::{Value, Wrong};
use crate::record::{self, Form};
use crate::sql::Kind;
use crate::totals::Totals;

/// Sizes of numbers that are averaged or summed: their squares, and those of many of them together, are numbers of 64 bits.
const SQUARED: std::ops::RangeInclusive<f64> = 1e-100..=1e70;

/// Room that a thread uses again.
#[derive(Default)]
pub(super) struct Room {
    lower: Vec<u8>,
    key: Vec<u8>,
}

impl Engine<'_> {
    /// Counts the records of a partition.
    pub(super) fn count(
        &self,
        disk: usize,
        partition: u64,
        part: &Part,
        totals: &mut Totals,
        room: &mut Room,
    ) -> Result<()> {
        let bytes = &part.buffer[part.loaded.records.clone()];
        let place = self.dataset.place(disk, partition);
        let quoted = place.piece.index.is_some();
        let form = &self.dataset.form;
        let mut slots = vec![Value::Null; self.plan.picks.len() + self.plan.joined.len()];
        let done = if self.spec.records < 1.0 {
            let mut lines: Vec<(usize, &[u8])> = Vec::new();
            let listed = record::records(form, quoted, bytes, |at, line| {
                lines.push((at, line));
                Ok(())
            });
            let all = lines.len() as u64;
            let wanted = ((self.spec.records * all as f64).round() as u64).max(2).min(all);
            let mut random = Stream::new(
                self.spec.seed,
                &format!("records of partition {partition} of disk {disk}"),
            );
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
            record::records(form, quoted, bytes, |_, line| {
                self.record(line, &mut slots, totals, room)
            })
        };
        done.map_err(|(at, wrong)| {
            let byte = part.loaded.offset + (part.loaded.records.start + at) as u64;
            Error::input(format!(
                "{}, record at byte {byte}: {}",
                place.piece.path.display(),
                wrong.0
            ))
        })
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
                let Room { lower, key } = room;
                let plain = self.plan.condition.is_none()
                    && self.lookup.is_none()
                    && self.plan.groups == [crate::expression::Expression::Slot(0)]
                    && self.plan.quantiles.is_empty()
                    && self.plan.aggregates.iter().all(|aggregate| aggregate.of.is_none());
                explode.pieces(line, lower, |piece| {
                    if plain {
                        // Most words are counted this way, without going through expressions.
                        key.clear();
                        key.extend((piece.len() as u32 + 1).to_be_bytes());
                        key.push(b't');
                        key.extend(piece);
                        let group = totals.group(key);
                        for aggregate in 0..self.plan.aggregates.len() {
                            totals.add(group, aggregate, 1.0, 0.0);
                        }
                        return Ok(());
                    }
                    let mut own = vec![Value::Null; slots.len()];
                    if let Some(first) = own.first_mut().filter(|_| !self.plan.picks.is_empty()) {
                        *first = Value::Text(Cow::Borrowed(piece));
                    }
                    self.rows(&mut own, totals, key)
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
                self.rows(slots, totals, &mut room.key)
            }
        }
    }

    /// A record, and what it is joined with.
    fn rows<'r>(
        &'r self,
        slots: &mut [Value<'r>],
        totals: &mut Totals,
        key: &mut Vec<u8>,
    ) -> std::result::Result<(), Wrong> {
        let (Some(lookup), Some((ours, _))) = (&self.lookup, &self.plan.keys) else {
            return self.row(slots, totals, key);
        };
        let Some(on) = joined_key(&ours.evaluate(slots)?) else {
            return Ok(());
        };
        for &number in lookup.of.get(&on[..]).into_iter().flatten() {
            for (slot, value) in slots[self.plan.picks.len()..]
                .iter_mut()
                .zip(&lookup.rows[number as usize])
            {
                *slot = match value {
                    Value::Text(text) => Value::Text(Cow::Borrowed(text)),
                    Value::Number(number) => Value::Number(*number),
                    Value::Bool(truth) => Value::Bool(*truth),
                    Value::Null => Value::Null,
                };
            }
            self.row(slots, totals, key)?;
        }
        Ok(())
    }

    fn row(&self, slots: &[Value<'_>], totals: &mut Totals, key: &mut Vec<u8>) -> std::result::Result<(), Wrong> {
        if let Some(condition) = &self.plan.condition
            && condition.evaluate(slots)?.truth()? != Some(true)
        {
            return Ok(());
        }
        key.clear();
        for group in &self.plan.groups {
            group.evaluate(slots)?.write_key(key);
        }
        let group = totals.group(key);
        for (number, quantile) in self.plan.quantiles.iter().enumerate() {
            if let Some(value) = quantile.of.evaluate(slots)?.number()? {
                totals.keep(group, number, value);
            }
        }
        for (number, aggregate) in self.plan.aggregates.iter().enumerate() {
            let Some(of) = &aggregate.of else {
                totals.add(group, number, 1.0, 0.0);
                continue;
            };
            let value = of.evaluate(slots)?;
            match aggregate.kind {
                Kind::Count if !value.is_null() => totals.add(group, number, 1.0, 0.0),
                Kind::Count => {}
                Kind::Sum | Kind::Average => {
                    if let Some(value) = value.number()? {
                        if value != 0.0 && !SQUARED.contains(&value.abs()) {
                            return Err(Wrong(format!(
                                "{value:e}: expected 0, or {:e} to {:e} in size, of which squares can be summed",
                                SQUARED.start(),
                                SQUARED.end()
                            )));
                        }
                        totals.add(group, number, value, 1.0);
                    }
                }
                Kind::Proportion => {
                    if let Some(truth) = value.truth()? {
                        totals.add(group, number, f64::from(u8::from(truth)), 1.0);
                    }
                }
            }
        }
        Ok(())
    }
}
