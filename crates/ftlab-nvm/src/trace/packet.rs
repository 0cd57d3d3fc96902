//! Packets of gem5 as its `decode_packet_trace.py` prints them: `[ID,]r|w|u,ADDRESS,SIZE,[FLAGS,]TICK[,PC]`.
//!
//! # Model
//! The number, flags and the program counter are there only where the trace has them. Of two fields after the size it does not say itself whether they
//! are flags and tick or tick and program counter; the whole trace does: packets with three fields have flags, packets with one have none; ticks never go back,
//! and flags that are always the same are no ticks.
//!
//! # Errors
//! Two fields that can be either: flags and program counters that both never go back. A tick that never changes beside program counters that go back.
//!
//! # Source
//! gem5, `util/decode_packet_trace.py` and `src/proto/packet.proto`.

use super::Line;
use crate::{LATEST, Ps};

/// What comes after the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The tick alone.
    One,
    /// Flags and tick, or tick and program counter; the first, if it is a number.
    Two(Option<u64>),
    /// Flags, tick and program counter.
    Three,
}

/// A packet; of two fields the time is the second.
pub(super) fn read(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(',').map(str::trim).collect();
    let words = match words.as_slice() {
        [id, rest @ ..] if id.parse::<u64>().is_ok() => rest,
        all => all,
    };
    let [op, address, bytes, rest @ ..] = words else {
        return None;
    };
    let write = match *op {
        "r" => Some(false),
        "w" => Some(true),
        "u" => None,
        _ => return None,
    };
    let (after, time) = match rest {
        [tick] => (After::One, tick.parse().ok()?),
        [first, second] => (After::Two(first.parse().ok()), super::number(second)?),
        [_, tick, _] => (After::Three, tick.parse().ok()?),
        _ => return None,
    };
    let bytes = bytes.parse().ok()?;
    let is_sound = write.is_none() || (1..=1 << 20).contains(&bytes);
    is_sound.then_some(Line {
        address: super::number(address)?,
        write,
        bytes,
        time,
        after: Some(after),
    })
}

/// What a trace says of its two fields.
#[derive(Debug, Default)]
pub(super) struct TwoFields {
    /// The last time with the second field as tick, and with the first.
    last: [u64; 2],
    /// Where a time first went back or is beyond all times, by the second field and by the first: line, from, to.
    wrong: [Option<(usize, u64, u64)>; 2],
    /// First fields, one for each access of the trace.
    pub firsts: Vec<Ps>,
    first: Option<u64>,
    has_one: bool,
    has_three: bool,
    has_two: bool,
    is_constant: bool,
    has_words: bool,
}

/// How two fields are read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Flags,
    ProgramCounter,
    Either,
}

impl TwoFields {
    pub fn note_form(&mut self, after: After) {
        match after {
            After::One => self.has_one = true,
            After::Three => self.has_three = true,
            After::Two(first) => {
                self.is_constant = !self.has_two || (self.is_constant && first == self.first);
                self.has_words |= first.is_none();
                (self.has_two, self.first) = (true, first);
            }
        }
    }

    /// Of a packet that reads or writes; its time by the first field.
    pub fn note_time(&mut self, line: usize, after: After, time: u64) -> u64 {
        let first = match after {
            After::Two(Some(first)) => first,
            _ => time,
        };
        for (at, time) in [time, first].into_iter().enumerate() {
            if time < self.last[at] || time >= LATEST {
                self.wrong[at].get_or_insert((line, self.last[at], time));
            } else {
                self.last[at] = time;
            }
        }
        first
    }

    pub fn reading(&self) -> Reading {
        let by_flags = self.wrong[0].is_none();
        let by_tick = self.wrong[1].is_none();
        match (self.has_three, self.has_one) {
            _ if !self.has_two || self.has_words || self.is_constant => Reading::Flags,
            (true, false) => Reading::Flags,
            (false, true) => Reading::ProgramCounter,
            _ if by_flags && by_tick => Reading::Either,
            _ if by_tick => Reading::ProgramCounter,
            _ => Reading::Flags,
        }
    }

    /// Whether the first of two fields, although read as flags, could be a tick that never changes.
    pub fn could_be_a_tick(&self) -> bool {
        self.has_two && self.is_constant && !self.has_words && !self.has_three && self.wrong[1].is_none()
    }

    /// Where the time that is read is wrong: line, from, to.
    pub fn wrong(&self, reading: &Reading) -> Option<(usize, u64, u64)> {
        self.wrong[usize::from(*reading == Reading::ProgramCounter)]
    }
}
