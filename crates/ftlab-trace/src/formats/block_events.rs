//! What the forms of Linux block-layer traces share: RWBS letters, and which event stands for a request.
//!
//! # RWBS letters
//! As blkparse and the kernel write them (`blk_fill_rwbs`): an optional `F` in front (flush before), then `R` read,
//! `W` write, `D` discard (`DE` secure erase), `F` flush or `N` no data, then any of `F` force unit access, `A` ahead,
//! `B` barrier, `S` synchronous, `M` metadata. A read ahead is nobody's to wait for, so its `S` does not count. `B`, of
//! kernels before 2.6.37, means: flush before, and durable when done.

use ftlab_core::{Batch, Error, OpKind, Result, flags};

use super::Sample;
use crate::health::{Defect, Parsed};
use crate::report::Skipped;
use crate::settings::{Setting, Settings};

/// What a line is expected to have, in errors.
pub const AN_ACTION: &str = "an action such as Q, D or C";
pub const LETTERS: &str = "RWBS letters such as R, WS or FWS";

/// The letter of the event that stands for a request.
pub fn event(settings: &Settings) -> Result<u8> {
    match settings.event {
        Some(event @ ('Q' | 'D' | 'C')) => Ok(event as u8),
        other => {
            let event = other.unwrap_or('?');
            Err(Error::input(format!("event `{event}`: expected Q, D or C")))
        }
    }
}

/// What RWBS letters ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rwbs {
    /// `None`: no data (`N`).
    pub op: Option<OpKind>,
    /// The device's buffer is to be flushed before.
    pub flush_before: bool,
    pub flags: u8,
}

/// Reads RWBS letters; `None` for anything else.
#[inline]
pub fn rwbs(letters: &[u8]) -> Option<Rwbs> {
    let (mut at, mut op) = (1, op_letter(*letters.first()?)?);
    let mut flush_before = false;
    // Two operation letters in a row: the first is the flush before (`FWS`, `FF`, `FN`).
    if op == Some(OpKind::Flush)
        && let Some(next) = letters.get(1).and_then(|&letter| op_letter(letter))
    {
        at = 2;
        op = match next {
            Some(OpKind::Flush) | None => Some(OpKind::Flush),
            data => data,
        };
        flush_before = op != Some(OpKind::Flush);
    }
    let (mut bits, mut ahead) = (0, false);
    for letter in &letters[at..] {
        match letter {
            b'F' => bits |= flags::FUA,
            b'S' => bits |= flags::SYNC,
            b'M' => bits |= flags::METADATA,
            b'A' => ahead = true,
            b'B' => {
                bits |= flags::FUA;
                flush_before = true;
            }
            b'E' => {}
            _ => return None,
        }
    }
    if ahead && op == Some(OpKind::Read) {
        bits &= !flags::SYNC;
    }
    Some(Rwbs {
        op,
        flush_before,
        flags: bits,
    })
}

#[inline]
fn op_letter(letter: u8) -> Option<Option<OpKind>> {
    match letter {
        b'R' => Some(Some(OpKind::Read)),
        b'W' => Some(Some(OpKind::Write)),
        b'D' => Some(Some(OpKind::Trim)),
        b'F' => Some(Some(OpKind::Flush)),
        b'N' => Some(None),
        _ => None,
    }
}

impl Rwbs {
    /// Appends the request, with its flush in front where it has data as well; the number of requests appended, 0 where
    /// there is nothing to ask of a device.
    #[inline]
    pub fn push(self, batch: &mut Batch, time_ns: u64, offset: u64, length: u32, volume: u16) -> usize {
        let flush = self.flush_before || self.op == Some(OpKind::Flush);
        if flush {
            // What is said of the data is not said of the flush before it, but that somebody waits.
            let bits = if self.flush_before { flags::SYNC } else { u8::MAX };
            batch.push(time_ns, OpKind::Flush, 0, 0, volume, self.flags & bits);
        }
        match self.op {
            Some(op) if op != OpKind::Flush && length > 0 => {
                batch.push(time_ns, op, offset, length, volume, self.flags);
                1 + usize::from(flush)
            }
            _ => usize::from(flush),
        }
    }
}

/// Why an event was chosen, for the reason of a claim; nothing where an option names the event.
pub fn clause(sample: &Sample<'_>, why: &str) -> String {
    match sample.leaves_open(Setting::Event) {
        true => format!("; {why}"),
        false => String::new(),
    }
}

/// Flushes that requests ask for, for the reason that a report gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flushes {
    before_data: u64,
    alone: u64,
}

impl Flushes {
    pub fn count(&mut self, rwbs: Rwbs, has_data: bool) {
        let data = has_data && rwbs.op.is_some_and(|op| op != OpKind::Flush);
        self.before_data += u64::from(rwbs.flush_before && data);
        self.alone += u64::from(!data && (rwbs.flush_before || rwbs.op == Some(OpKind::Flush)));
    }

    /// A clause that begins with `; `, or nothing.
    pub fn clause(self) -> String {
        let mut text = String::new();
        if self.before_data > 0 {
            text += &format!(
                "; {} of them ask for a flush before their data, which is read as another request",
                self.before_data
            );
        }
        if self.alone > 0 {
            text += &format!("; {} of them without data are flushes", self.alone);
        }
        text
    }
}

/// Lines per event, by its letter.
#[derive(Clone, Debug)]
pub struct Events {
    counts: [u64; 128],
}

/// Letters of blkparse's actions, and what they are.
const ACTIONS: [(u8, &str); 18] = [
    (b'Q', "queued"),
    (b'D', "issued to the driver"),
    (b'C', "completed"),
    (b'A', "remapped from another device"),
    (b'B', "bounced"),
    (b'F', "merged in front of another request"),
    (b'G', "request allocated"),
    (b'I', "inserted into the scheduler"),
    (b'M', "merged behind another request"),
    (b'P', "plugged"),
    (b'R', "requeued"),
    (b'S', "waited for a request"),
    (b'T', "unplugged by a timer"),
    (b'U', "unplugged"),
    (b'X', "split"),
    (b'a', "aborted"),
    (b'd', "driver data"),
    (b'm', "message"),
];

/// Whether a letter, by its number, is one of [`ACTIONS`].
const IS_ACTION: [bool; 128] = {
    let mut known = [false; 128];
    let mut i = 0;
    while i < ACTIONS.len() {
        known[ACTIONS[i].0 as usize] = true;
        i += 1;
    }
    known
};

impl Default for Events {
    fn default() -> Self {
        Events { counts: [0; 128] }
    }
}

impl Events {
    /// Counts a line of this action; false if there is no such action.
    #[inline]
    pub fn count(&mut self, action: &[u8]) -> bool {
        let Some(&letter) = action.first() else {
            return false;
        };
        // Only the timer's unplug has two letters.
        let letter = usize::from(letter);
        if (action.len() > 1 && action != b"UT") || IS_ACTION.get(letter) != Some(&true) {
            return false;
        }
        self.counts[letter] += 1;
        true
    }

    /// Counts a line of this action, which is not the one that stands for a request.
    #[inline]
    pub fn left_out_line(&mut self, action: &[u8], defect: impl FnOnce() -> Defect) -> Parsed {
        self.count(action).then_some(()).ok_or_else(defect)
    }

    pub fn of(&self, letter: char) -> u64 {
        self.counts.get(letter as usize).copied().unwrap_or(0)
    }

    /// The event that stands for a request, and why.
    ///
    /// What is issued is what the device saw, so it is taken as long as it is not far less than what was queued: where
    /// fewer than half as many are issued as queued, the traced machine's scheduler merged most, and the queued ones are
    /// what the host asked for. Completions are taken where nothing else is there.
    pub fn choose(&self) -> (char, String) {
        let (queued, issued, completed) = (self.of('Q'), self.of('D'), self.of('C'));
        if issued > 0 && issued * 2 >= queued {
            let why = match queued {
                0 => format!("D events, what the device saw: {issued} at the beginning, no Q"),
                _ => format!("D events, what the device saw: {issued} for {queued} Q at the beginning"),
            };
            ('D', why)
        } else if queued > 0 {
            let merged = self.of('M') + self.of('F');
            let why = format!(
                "Q events, what the host asked for: {queued} at the beginning, but only {issued} D ({merged} were merged)"
            );
            ('Q', why)
        } else if completed > 0 {
            ('C', format!("C events: {completed} at the beginning, neither Q nor D"))
        } else {
            ('D', "D events, though none is at the beginning".to_owned())
        }
    }

    /// The counts as a report shows them.
    pub fn left_out(&self) -> Vec<Skipped> {
        let counted = ACTIONS.iter().map(|&(letter, what)| Skipped {
            reason: format!("event {}: {what}", letter as char),
            count: self.counts[usize::from(letter)],
        });
        counted.filter(|s| s.count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_mean_what_the_kernel_writes() {
        use OpKind::{Flush, Read, Trim, Write};
        const NONE: u8 = 0;
        let cases: [(&str, Option<OpKind>, bool, u8); 17] = [
            ("R", Some(Read), false, NONE),
            ("RA", Some(Read), false, NONE),
            ("RAS", Some(Read), false, NONE),
            ("RSM", Some(Read), false, flags::SYNC | flags::METADATA),
            ("WS", Some(Write), false, flags::SYNC),
            ("WAS", Some(Write), false, flags::SYNC),
            ("WFSM", Some(Write), false, flags::FUA | flags::SYNC | flags::METADATA),
            ("FWS", Some(Write), true, flags::SYNC),
            ("FWFSM", Some(Write), true, flags::FUA | flags::SYNC | flags::METADATA),
            ("WBS", Some(Write), true, flags::FUA | flags::SYNC),
            ("D", Some(Trim), false, NONE),
            ("DE", Some(Trim), false, NONE),
            ("F", Some(Flush), false, NONE),
            ("FF", Some(Flush), false, NONE),
            ("FN", Some(Flush), false, NONE),
            ("FS", Some(Flush), false, flags::SYNC),
            ("N", None, false, NONE),
        ];
        for (letters, op, flush_before, flags) in cases {
            let wanted = Rwbs {
                op,
                flush_before,
                flags,
            };
            assert_eq!(rwbs(letters.as_bytes()), Some(wanted), "{letters}");
        }
        for bad in ["", "S", "WX", "read", "W1", "RW"] {
            assert_eq!(rwbs(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_flush_before_data_is_a_request_of_its_own() {
        let mut batch = Batch::default();
        let mut push = |letters: &[u8], length| rwbs(letters).unwrap().push(&mut batch, 5, 512, length, 0);
        assert_eq!((push(b"FWFS", 4096), push(b"FWS", 0), push(b"WS", 0)), (2, 1, 0));
        assert_eq!((push(b"N", 0), push(b"FF", 0), push(b"R", 512)), (0, 1, 1));
        assert_eq!(
            batch.op,
            [OpKind::Flush, OpKind::Write, OpKind::Flush, OpKind::Flush, OpKind::Read]
        );
        assert_eq!(batch.length, [0, 4096, 0, 0, 512]);
    }

    #[test]
    fn the_event_is_the_issued_one_unless_most_were_merged() {
        let events = |pairs: &[(&str, u64)]| {
            let mut events = Events::default();
            for (action, count) in pairs {
                (0..*count).for_each(|_| assert!(events.count(action.as_bytes())));
            }
            events.choose().0
        };
        assert_eq!(events(&[("Q", 10), ("D", 5)]), 'D');
        assert_eq!(events(&[("Q", 11), ("D", 5), ("M", 6)]), 'Q');
        assert_eq!(
            (events(&[("D", 1)]), events(&[("C", 1)]), events(&[("UT", 1)])),
            ('D', 'C', 'D')
        );
        let mut none = Events::default();
        assert!(!none.count(b"") && !none.count(b"Z") && !none.count(b"QQ") && !none.count(b"\xff"));
    }
}
