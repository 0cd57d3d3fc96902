//! Counting the contents that a trace writes.
//!
//! Every value (content id) has a record; when records and known places take more than the memory allowed, only values of a
//! share of all hashes are followed, half as many each time, and counts stand for so many more.

use ftlab_core::{Batch, OpKind};
use ftlab_trace::inspect::{Stack, mix};
use rustc_hash::FxHashMap;

use super::curve::Depths;
use super::frequent::Frequent;
use super::live::{Live, Span};

/// Bytes that one content id stands for, at most.
const UNIT: u64 = ftlab_core::request::CONTENT_BYTES as u64;
/// Bytes of memory for each value, and for each place with a known value: hash tables half full.
const VALUE_BYTES: u64 = 112;
const PLACE_BYTES: u64 = 40;
/// Contexts of a kind with figures of their own; what comes later is counted together.
const MOST_CONTEXTS: usize = 1 << 16;

/// What is known of a value.
#[derive(Clone, Copy, Default)]
struct Value {
    id: u64,
    /// Units of it that lie on the device.
    copies: u32,
    /// Writes at which it did not lie on the device.
    stored: u32,
    was_read: bool,
    was_written: bool,
    /// Its first write was preceded by no read.
    new: bool,
    /// At its first write it lay on the device.
    first_live: bool,
    /// Of its last write.
    tick: u64,
    time_ns: u64,
}

/// Units counted, those of a sample by what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    pub all: u64,
    /// Written before.
    pub before: u64,
    /// Somewhere on the device when written.
    pub live: u64,
    /// Just there.
    pub rewritten: u64,
}

impl Counts {
    fn merge(&mut self, other: &Counts) {
        self.all += other.all;
        self.before += other.before;
        self.live += other.live;
        self.rewritten += other.rewritten;
    }
}

/// Units of one context: all of them, and those of the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Context {
    pub units: u64,
    pub sampled: Counts,
}

/// Contexts of one kind.
#[derive(Default)]
pub struct Contexts {
    places: FxHashMap<u64, usize>,
    pub rows: Vec<(u64, Context)>,
    pub other: Context,
}

impl Contexts {
    fn of(&mut self, id: u64) -> &mut Context {
        let next = self.rows.len();
        if next >= MOST_CONTEXTS && !self.places.contains_key(&id) {
            return &mut self.other;
        }
        let at = *self.places.entry(id).or_insert(next);
        if at == next {
            self.rows.push((id, Context::default()));
        }
        &mut self.rows[at].1
    }
}

/// Counts by powers of two: of 0, 1, 2 and 3, 4 to 7, ...
#[derive(Clone, Default)]
pub struct Octaves(pub Vec<u64>);

impl Octaves {
    fn add(&mut self, value: u64, weight: u64) {
        let at = (u64::BITS - value.leading_zeros()) as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += weight;
    }
}

/// An estimate and its standard deviation: 0 when it is exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub error: f64,
}

/// Everything that is counted.
pub struct Written {
    memory: u64,
    merge_volumes: bool,
    places: FxHashMap<u64, u32>,
    values: Vec<Value>,
    free: Vec<u32>,
    live: Live,
    stack: Stack,
    /// One value in 2^level is followed.
    level: u32,
    frequent: Frequent,
    pub depths: Depths,
    pub sampled: Counts,
    /// Units written with an id; without one; and their bytes.
    pub known: u64,
    pub unknown: u64,
    pub known_bytes: u64,
    pub unknown_bytes: u64,
    pub ids_read: u64,
    pub contexts: Contexts,
    pub labels: Contexts,
    has_contexts: bool,
    has_labels: bool,
    pub ticks: Octaves,
    pub times: Octaves,
}

/// Who writes, and when.
#[derive(Clone, Copy)]
struct Who {
    op: OpKind,
    time_ns: u64,
    pc: Option<u64>,
    label: Option<u16>,
}

impl Written {
    pub fn new(memory: u64, merge_volumes: bool) -> Self {
        Written {
            memory,
            merge_volumes,
            places: FxHashMap::default(),
            values: Vec::new(),
            free: Vec::new(),
            live: Live::default(),
            stack: Stack::default(),
            level: 0,
            frequent: Frequent::default(),
            depths: Depths::default(),
            sampled: Counts::default(),
            known: 0,
            unknown: 0,
            known_bytes: 0,
            unknown_bytes: 0,
            ids_read: 0,
            contexts: Contexts::default(),
            labels: Contexts::default(),
            has_contexts: false,
            has_labels: false,
            ticks: Octaves::default(),
            times: Octaves::default(),
        }
    }

    pub fn add(&mut self, batch: &Batch) {
        self.has_contexts |= batch.pc.iter().any(|&pc| pc != 0);
        self.has_labels |= !batch.label.is_empty();
        for i in 0..batch.len() {
            let start = batch.offset[i];
            let span = Span {
                volume: if self.merge_volumes { 0 } else { batch.volume[i] },
                start,
                end: start.saturating_add(u64::from(batch.length[i])),
            };
            match batch.op[i] {
                OpKind::Flush => {}
                OpKind::Trim => self.trim(span),
                op => {
                    let who = Who {
                        op,
                        time_ns: batch.time_ns[i],
                        pc: Some(batch.pc_of(i)),
                        label: batch.label_of(i),
                    };
                    self.request(span, who, batch.content_of(i));
                }
            }
        }
    }

    /// A chunk of less than 4 KiB whose id is known, or not, read or written.
    pub fn chunk(&mut self, op: OpKind, span: Span, time_ns: u64, id: Option<u64>) {
        let who = Who {
            op,
            time_ns,
            pc: None,
            label: None,
        };
        match id {
            Some(id) => self.unit(span, who, id),
            None => self.request(span, who, &[]),
        }
    }

    pub fn trim(&mut self, span: Span) {
        let values = &mut self.values;
        self.live.trim(span, |value| values[value as usize].copies -= 1);
    }

    fn request(&mut self, span: Span, who: Who, ids: &[u64]) {
        let mut at = span.start;
        for &id in ids {
            let unit = Span {
                start: at,
                end: span.end.min(at.saturating_add(UNIT)),
                ..span
            };
            if unit.end <= unit.start {
                break;
            }
            self.unit(unit, who, id);
            at = unit.end;
        }
        if who.op == OpKind::Write && at < span.end {
            self.unknown += (span.end - at).div_ceil(UNIT);
            self.unknown_bytes += span.end - at;
            self.overwrite(Span { start: at, ..span });
        }
    }

    fn overwrite(&mut self, span: Span) {
        let values = &mut self.values;
        self.live.overwrite(span, |value| values[value as usize].copies -= 1);
    }

    /// Whether a value belongs to the sample.
    fn belongs(&self, id: u64) -> bool {
        self.level == 0 || mix(id) >> (u64::BITS - self.level) == 0
    }

    fn unit(&mut self, span: Span, who: Who, id: u64) {
        let writes = who.op == OpKind::Write;
        if writes {
            self.frequent.add(id);
            self.known += 1;
            self.known_bytes += span.end - span.start;
        } else {
            self.ids_read += 1;
        }
        if self.belongs(id) && self.used() >= self.memory && !self.places.contains_key(&id) {
            self.thin();
        }
        let mut counted = Counts::default();
        if self.belongs(id) {
            let at = self.place_of(id);
            let same = self.live.holds(span, at);
            match writes {
                true => counted = self.written(at, who.time_ns, same),
                false => self.values[at as usize].was_read = true,
            }
            if !same {
                self.overwrite(span);
                self.live.put(span, at);
                self.values[at as usize].copies += 1;
            }
        } else {
            self.overwrite(span);
        }
        if writes {
            self.sampled.merge(&counted);
            let ids = [who.pc, who.label.map(u64::from)];
            for (contexts, id) in [&mut self.contexts, &mut self.labels].into_iter().zip(ids) {
                if let Some(id) = id {
                    let context = contexts.of(id);
                    context.units += 1;
                    context.sampled.merge(&counted);
                }
            }
        }
    }

    fn place_of(&mut self, id: u64) -> u32 {
        let (values, free) = (&mut self.values, &mut self.free);
        *self.places.entry(id).or_insert_with(|| {
            let value = Value { id, ..Value::default() };
            match free.pop() {
                Some(at) => {
                    values[at as usize] = value;
                    at
                }
                None => {
                    values.push(value);
                    values.len() as u32 - 1
                }
            }
        })
    }

    /// A value of the sample is written.
    fn written(&mut self, at: u32, time_ns: u64, same: bool) -> Counts {
        let tick = self.known + self.unknown;
        let weight = 1 << self.level;
        let value = &mut self.values[at as usize];
        let (before, live) = (value.was_written, value.copies > 0);
        if before {
            self.ticks.add(tick - value.tick, weight);
            self.times.add(time_ns.saturating_sub(value.time_ns), weight);
        } else {
            value.new = !value.was_read;
            value.first_live = live;
        }
        value.stored += u32::from(!live);
        value.was_written = true;
        (value.tick, value.time_ns) = (tick, time_ns);
        let others = self.stack.access(at);
        self.depths.add(self.level, live, others);
        let if_so = |so: bool| if so { weight } else { 0 };
        Counts {
            all: weight,
            before: if_so(before),
            live: if_so(live),
            rewritten: if_so(same),
        }
    }

    fn used(&self) -> u64 {
        self.places.len() as u64 * VALUE_BYTES + self.live.len() as u64 * PLACE_BYTES
    }

    /// Follows half of the values, as often as it takes.
    fn thin(&mut self) {
        while self.used() >= self.memory && self.level < 60 {
            self.level += 1;
            let shift = u64::BITS - self.level;
            let (free, stack) = (&mut self.free, &mut self.stack);
            self.places.retain(|&id, at| {
                let stays = mix(id) >> shift == 0;
                if !stays {
                    stack.remove(*at);
                    free.push(*at);
                }
                stays
            });
            // The order in a hash table does not tell results apart, but it should not even tell numbers apart.
            self.free.sort_unstable_by(|a, b| b.cmp(a));
            let values = &self.values;
            self.live.retain(|value| mix(values[value as usize].id) >> shift == 0);
        }
    }

    /// Values followed, and what part of all values they are.
    pub fn sampling(&self) -> (u64, f64) {
        (self.places.len() as u64, 1.0 / (1u64 << self.level) as f64)
    }

    fn followed(&self) -> impl Iterator<Item = &Value> {
        self.places.values().map(|&at| &self.values[at as usize])
    }

    /// Different values written.
    pub fn distinct(&self) -> Estimate {
        self.sum(|value| u64::from(value.was_written))
    }

    /// Writes of values that did not lie on the device.
    pub fn stored(&self) -> Estimate {
        self.with_missed(self.sum(|value| u64::from(value.stored)))
    }

    /// Values written before they were written or read.
    pub fn new_values(&self) -> Estimate {
        self.sum(|value| u64::from(value.new))
    }

    /// Values that lay on the device, as a read has told, when they were written first.
    pub fn first_live(&self) -> Estimate {
        self.sum(|value| u64::from(value.first_live))
    }

    /// Units whose value is known at the end, and different values among them.
    pub fn at_end(&self) -> [Estimate; 2] {
        let copies = self.with_missed(self.sum(|value| u64::from(value.copies)));
        [copies, self.sum(|value| u64::from(value.copies > 0))]
    }

    /// A sum over all values from those followed: each belongs to the sample by itself, with the same probability.
    fn sum(&self, of: impl Fn(&Value) -> u64) -> Estimate {
        let (mut sum, mut squares) = (0u64, 0.0);
        for value in self.followed() {
            let count = of(value);
            sum += count;
            squares += (count as f64) * (count as f64);
        }
        let weight = (1u64 << self.level) as f64;
        Estimate {
            value: sum as f64 * weight,
            error: (squares * (1.0 - 1.0 / weight)).sqrt() * weight,
        }
    }

    /// A sum of what a value can have as often as it is written. Of a frequent value that is not followed it may have any part, which
    /// those followed do not tell.
    fn with_missed(&self, of: Estimate) -> Estimate {
        let missed = self.frequent.iter().filter(|&(id, _)| !self.belongs(id));
        let squares: f64 = missed.map(|(_, count)| (count as f64) * (count as f64)).sum();
        Estimate {
            error: (of.error * of.error + squares).sqrt(),
            ..of
        }
    }

    pub fn has_contexts(&self) -> bool {
        self.has_contexts
    }

    pub fn has_labels(&self) -> bool {
        self.has_labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OpKind::{Read, Trim, Write};

    fn batch(requests: &[(OpKind, u64, u32, &[u64])]) -> Batch {
        let mut batch = Batch::default();
        for &(op, offset, length, ids) in requests {
            batch.push(0, op, offset, length, 0, 0);
            batch.content.extend_from_slice(ids);
            batch.content_end.push(batch.content.len() as u32);
        }
        batch
    }

    fn counted(requests: &[(OpKind, u64, u32, &[u64])]) -> Written {
        let mut written = Written::new(1 << 30, false);
        written.add(&batch(requests));
        written
    }

    #[test]
    fn what_is_overwritten_or_trimmed_is_live_no_more() {
        let written = counted(&[
            (Write, 0, 8192, &[1, 2]),
            (Write, 8192, 4096, &[1]),  // before, live at 0
            (Write, 0, 4096, &[3]),     // 1 lives at 8192 only
            (Trim, 8192, 4096, &[]),    // and now nowhere
            (Write, 16384, 4096, &[1]), // before, but not live
            (Write, 4096, 4096, &[2]),  // the same at the same place: live and rewritten
            (Write, 4096, 4096, &[]),   // unknown: 2 is gone
            (Write, 20480, 4096, &[2]), // before, not live
            (Read, 40960, 4096, &[9]),  // 9 lies there
            (Write, 4096, 4096, &[9]),  // live, though never written before
            (Trim, 16384, 4095, &[]),   // a part only: 1 stays
            (Write, 24576, 4096, &[1]), // live
        ]);
        let counts = Counts {
            all: 9,
            before: 5,
            live: 4,
            rewritten: 1,
        };
        assert_eq!(written.sampled, counts);
        assert_eq!((written.known, written.unknown, written.ids_read), (9, 1, 1));
        assert_eq!(written.stored().value, 5.0);
        // 1, 2, 3 and 9 were written; 9 was read before.
        assert_eq!((written.distinct().value, written.new_values().value), (4.0, 3.0));
        // 3 at 0, 9 at 4096 and 40960, 1 at 16384 and 24576, 2 at 20480.
        assert_eq!(written.at_end().map(|e| e.value), [6.0, 4.0]);
    }

    #[test]
    fn distances_count_units_written_between() {
        // Three units between the first write of 1 and the second, of which one has no id.
        let written = counted(&[
            (Write, 0, 8192, &[1, 2]),
            (Write, 8192, 8192, &[3]),
            (Write, 0, 4096, &[1]),
        ]);
        // 1 to 1: four writes on, counted with itself: from 4 to 7.
        assert_eq!(written.ticks.0, [0, 0, 0, 1]);
    }

    /// Every second write is of one value, to the address of the write before; the others come once. So nothing is ever live, which
    /// a sample without that value cannot know.
    #[test]
    fn a_frequent_value_that_is_not_followed_is_in_the_error() {
        let mut missed = 0;
        for hot in 0..8u64 {
            let mut written = Written::new(1 << 17, false);
            for write in 0..20_000u64 {
                let id = if write % 2 == 0 { u64::MAX - hot } else { write };
                written.add(&batch(&[(Write, 0, 4096, &[id])]));
            }
            assert!(written.level > 0);
            let (stored, [at_end, _]) = (written.stored(), written.at_end());
            missed += u32::from(!written.belongs(u64::MAX - hot));
            assert!((stored.value - 20_000.0).abs() < 3.0 * stored.error, "{stored:?}");
            assert!((at_end.value - 1.0).abs() < 3.0 * at_end.error, "{at_end:?}");
        }
        assert!(missed > 0, "each value was followed");
    }

    #[test]
    fn a_sample_agrees_within_its_error() {
        let (mut whole, mut part) = (Written::new(1 << 30, false), Written::new(200_000, false));
        let mut state = 7u64;
        for i in 0..100_000u64 {
            state = mix(state);
            let value = if state & 3 == 0 {
                i
            } else {
                i.saturating_sub(state >> 8 & 4095)
            };
            let request = batch(&[(Write, (state >> 40) % 9000 * 4096, 4096, &[value])]);
            whole.add(&request);
            part.add(&request);
        }
        assert_eq!(whole.sampling().1, 1.0);
        let (values, rate) = part.sampling();
        assert!(values < 2000 && rate < 0.1, "{values} of {rate}");
        assert!(part.used() <= 200_000);
        for (exact, estimate) in [
            (whole.distinct(), part.distinct()),
            (whole.stored(), part.stored()),
            (whole.at_end()[0], part.at_end()[0]),
        ] {
            assert_eq!(exact.error, 0.0);
            assert!(
                (exact.value - estimate.value).abs() < 3.0 * estimate.error,
                "{exact:?} {estimate:?}"
            );
            assert!(estimate.error < 0.2 * exact.value);
        }
    }
}
