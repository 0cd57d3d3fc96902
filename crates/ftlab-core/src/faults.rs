//! Faults on demand: which requests of a device fail, wait or are lied about.
//!
//! # Model
//! A fault is `KIND[=VALUE][@CONDITION,...]`. Kinds:
//! * `eio`: the request fails and reaches nothing. `enospc` the same by its name.
//! * `stall=TIME`: the answer comes so much later (`stall=50ms`).
//! * `stuck`: there is no answer until the fault is cleared; then the request is carried out. A run has nobody who clears it.
//! * `drop-flush`: a flush, or the FUA of a write, is acknowledged and not carried out.
//! * `torn-write`: the first half of a write's sectors is written, and the whole acknowledged.
//! * `readonly`: writes, trims and write-zeroes are refused.
//! * `die-fails`: once, before a request; then requests fail with EIO that need what lay on the die.
//!
//! Conditions, of which all must hold: `op=read|write|trim|flush`; `lba=A-B` (sectors of 512 bytes that the request touches, both ends
//! included, or `lba=A`); `p=SHARE` of the requests, drawn from a stream of the fault's own; `after=N`: not the first N that the other
//! conditions hold for; `count=N`: N times at most; `t=TIME`: not before this device time; `wear=SHARE`: not before the blocks have been
//! through this share of the P/E cycles that they are rated for, in the mean since the drive was new (1: all of them). Wear is looked at
//! every 64 requests. `die-fails` takes `t`, `wear` and `after`, and `die=N`, without which the die is drawn.
//!
//! A write-zeroes is a trim here, as it is one for the drive.
//!
//! # Not modelled
//! A request that fails takes no time. Faults of channels, blocks and pages.

mod fault;

use serde_json::{Value, json};

use crate::{Error, OpKind, Result, Stream};
use fault::{Fault, Kind};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// As what a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// EIO.
    Io,
    /// ENOSPC.
    NoSpace,
    /// EPERM: the drive takes no writes.
    ReadOnly,
}

impl Failure {
    pub const ALL: [Failure; 3] = [Failure::Io, Failure::NoSpace, Failure::ReadOnly];

    /// The name of its error number.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Io => "EIO",
            Failure::NoSpace => "ENOSPC",
            Failure::ReadOnly => "EPERM",
        }
    }
}

/// So many requests pass between looks at the wear.
const LOOK: u32 = 64;

/// A request as faults see it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub op: OpKind,
    pub offset: u64,
    pub length: u64,
    /// Whether the request itself is to be durable when it is answered.
    pub fua: bool,
    pub now_ns: u64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub failure: Option<Failure>,
    pub stall_ns: u64,
    /// The number of the fault that holds it.
    pub stuck_by: Option<u64>,
    pub drop_flush: bool,
    pub torn: bool,
    /// A die that fails before the request.
    pub failed_die: Option<FailedDie>,
}

/// Which die failed, by which fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedDie {
    pub fault: u64,
    pub die: u32,
}

struct Active {
    number: u64,
    fault: Fault,
    random: Stream,
    met: u64,
    struck: u64,
}

/// The faults of a drive.
pub struct Faults {
    seed: u64,
    /// Dies of the drive; 0: it has none that fail.
    dies: u32,
    active: Vec<Active>,
    /// Those that were cleared: they stay in the report.
    cleared: Vec<(u64, String, u64)>,
    /// Dies that failed, each with the units that could not be read then.
    failed_dies: Vec<(FailedDie, u64)>,
    made: u64,
    /// The wear when it was last looked at, and how many requests ago that was.
    wear: f64,
    unseen: u32,
}

impl Faults {
    pub fn new(seed: u64, texts: &[String]) -> Result<Self> {
        let mut faults = Faults {
            seed,
            dies: 0,
            active: Vec::new(),
            cleared: Vec::new(),
            failed_dies: Vec::new(),
            made: 0,
            wear: 0.0,
            unseen: LOOK,
        };
        for text in texts {
            faults.add(text)?;
        }
        Ok(faults)
    }

    /// The same of a drive with so many dies.
    ///
    /// # Errors
    /// A die that it does not have.
    pub fn of_drive(mut self, dies: u32) -> Result<Self> {
        self.active.iter().try_for_each(|active| active.fault.fits(dies))?;
        self.dies = dies;
        Ok(self)
    }

    /// Adds a fault; its number.
    pub fn add(&mut self, text: &str) -> Result<u64> {
        let fault: Fault = text.parse()?;
        if self.dies > 0 {
            fault.fits(self.dies)?;
        }
        self.made += 1;
        self.unseen = LOOK;
        self.active.push(Active {
            number: self.made,
            fault,
            random: Stream::new(self.seed, &format!("fault-{}", self.made)),
            met: 0,
            struck: 0,
        });
        Ok(self.made)
    }

    /// Whether a request may be acknowledged that was not carried out, or not all of it.
    pub fn deceive(&self) -> bool {
        let deceives = |active: &Active| matches!(active.fault.kind, Kind::DropFlush | Kind::TornWrite);
        self.active.iter().any(deceives)
    }

    /// Takes away one fault, or all; how many there were.
    pub fn clear(&mut self, number: Option<u64>) -> usize {
        let gone = |active: &Active| number.is_none_or(|number| number == active.number);
        let before = self.active.len();
        for active in self.active.iter().filter(|active| gone(active)) {
            self.cleared
                .push((active.number, active.fault.text.clone(), active.struck));
        }
        self.active.retain(|active| !gone(active));
        before - self.active.len()
    }

    /// Refuses what only somebody beside a live drive could end.
    pub fn without_operator(self) -> Result<Self> {
        match self.active.iter().find(|active| active.fault.kind == Kind::Stuck) {
            Some(stuck) => Err(Error::input(format!(
                "fault `{}`: nobody clears it in a run, so that the run would never end; expected another kind",
                stuck.fault.text
            ))),
            None => Ok(self),
        }
    }

    pub fn is_active(&self, number: u64) -> bool {
        self.active.iter().any(|active| active.number == number)
    }

    /// `wear` measures the mean P/E cycles of the device's blocks since it was new, over those that they are rated for.
    pub fn judge(&mut self, target: &Target, wear: impl FnOnce() -> f64) -> Verdict {
        let waits = |active: &Active| active.fault.from_wear > self.wear;
        if self.unseen >= LOOK && self.active.iter().any(waits) {
            (self.wear, self.unseen) = (wear(), 0);
        }
        self.unseen = self.unseen.saturating_add(1);
        let mut verdict = Verdict::default();
        for active in &mut self.active {
            if active.fault.from_wear > self.wear || !active.strikes(target) {
                continue;
            }
            match active.fault.kind {
                Kind::Fail(failure) => verdict.failure = verdict.failure.or(Some(failure)),
                Kind::ReadOnly => verdict.failure = verdict.failure.or(Some(Failure::ReadOnly)),
                Kind::Stall(ns) => verdict.stall_ns += ns,
                Kind::Stuck => verdict.stuck_by = verdict.stuck_by.or(Some(active.number)),
                Kind::DropFlush => verdict.drop_flush = true,
                Kind::TornWrite => verdict.torn = true,
                // Of several at one request the first; the others follow at the next.
                Kind::DieFails if verdict.failed_die.is_some() => active.struck = 0,
                Kind::DieFails => {
                    let dies = u64::from(self.dies.max(1));
                    let die = active.fault.die.unwrap_or_else(|| active.random.below(dies) as u32);
                    verdict.failed_die = Some(FailedDie {
                        fault: active.number,
                        die,
                    });
                }
            }
        }
        verdict
    }

    /// A die has failed, after which so many units can't be read.
    pub fn die_failed(&mut self, failed: FailedDie, lost_units: u64) {
        self.failed_dies.push((failed, lost_units));
    }

    /// Whether requests may need what is lost.
    pub fn has_failed_dies(&self) -> bool {
        !self.failed_dies.is_empty()
    }

    /// Every fault with how often it struck.
    pub fn report(&self) -> Value {
        let active = self.active.iter();
        let active =
            active.map(|a| json!({"number": a.number, "fault": a.fault.text, "struck": a.struck, "active": true}));
        let cleared = self
            .cleared
            .iter()
            .map(|(number, text, struck)| json!({"number": number, "fault": text, "struck": struck, "active": false}));
        let mut all: Vec<Value> = active.chain(cleared).collect();
        all.sort_by_key(|fault| fault["number"].as_u64());
        for (failed, lost_units) in &self.failed_dies {
            if let Some(fault) = all.iter_mut().find(|fault| fault["number"] == failed.fault) {
                (fault["die"], fault["lost_units"]) = (failed.die.into(), (*lost_units).into());
            }
        }
        Value::Array(all)
    }
}

impl Target {
    /// Mapping units whose data the request needs: of a read all that it touches, of a write those that it covers in part.
    pub fn needs(&self, unit_bytes: u64) -> impl Iterator<Item = u64> + use<> {
        let (start, end) = (self.offset, self.offset + self.length);
        let (first, last) = (start / unit_bytes, end.saturating_sub(1) / unit_bytes);
        let touched = match self.op {
            OpKind::Read | OpKind::Write if self.length > 0 => first..last + 1,
            _ => 0..0,
        };
        let writes = self.op == OpKind::Write;
        let starts_inside = !start.is_multiple_of(unit_bytes);
        let ends_inside = !end.is_multiple_of(unit_bytes);
        let covered = move |unit| !(unit == first && starts_inside || unit == last && ends_inside);
        touched.filter(move |&unit| !(writes && covered(unit)))
    }

    /// Bytes of a write that reach the device of one that is torn: the first half of its sectors.
    pub fn torn(length: u64) -> u64 {
        length / 2 / SECTOR * SECTOR
    }
}

impl Active {
    fn strikes(&mut self, target: &Target) -> bool {
        let fault = &self.fault;
        let forces = target.fua || target.op == OpKind::Flush;
        let suits = fault.kind.suits(target.op) && (forces || fault.kind != Kind::DropFlush);
        let there = fault.bytes.is_none_or(|(first, end)| {
            target.op != OpKind::Flush && target.offset < end && first < target.offset + target.length
        });
        if !suits || !there || fault.op.is_some_and(|op| op != target.op) || target.now_ns < fault.from_ns {
            return false;
        }
        let drawn = fault.share >= 1.0 || (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 <= fault.share;
        if !drawn || fault.share == 0.0 {
            return false;
        }
        self.met += 1;
        if self.met <= fault.after || self.struck >= fault.count {
            return false;
        }
        self.struck += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, now_ns: u64) -> Target {
        Target {
            op: OpKind::Write,
            offset,
            length: 4096,
            fua: false,
            now_ns,
        }
    }

    fn one(text: &str) -> Faults {
        Faults::new(1, &[text.to_owned()]).unwrap()
    }

    #[test]
    fn a_fault_strikes_where_and_when_it_was_asked_to() {
        let mut faults = one("eio@op=write,lba=8-15,after=1,count=1,t=1us");
        let struck: Vec<bool> = [
            (4096, 0),
            (4096, 2000),
            (0, 2000),
            (8192, 2000),
            (4096, 2000),
            (4096, 2000),
        ]
        .map(|(offset, now)| faults.judge(&write(offset, now), || 0.0).failure.is_some())
        .into();
        // Too early, the first, left of it, right of it, struck, more than once.
        assert_eq!(struck, [false, false, false, false, true, false]);
        assert_eq!(faults.report()[0]["struck"], 1);
    }

    #[test]
    fn only_what_is_to_be_durable_loses_its_flush() {
        let mut faults = one("drop-flush");
        let plain = write(0, 0);
        assert_eq!(faults.judge(&plain, || 0.0), Verdict::default());
        assert!(faults.judge(&Target { fua: true, ..plain }, || 0.0).drop_flush);
        assert!(
            faults
                .judge(
                    &Target {
                        op: OpKind::Flush,
                        ..plain
                    },
                    || 0.0
                )
                .drop_flush
        );
        assert_eq!(faults.report()[0]["struck"], 2);
    }

    #[test]
    fn draws_repeat_by_seed() {
        let draws = |seed| {
            let mut faults = Faults::new(seed, &["stall=1ms@p=0.25".to_owned()]).unwrap();
            (0..4000)
                .map(|_| faults.judge(&write(0, 0), || 0.0).stall_ns)
                .collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        // 1000 expected, with a standard deviation of 27: a correct draw fails once in 10^8.
        let count = draws(1).iter().filter(|&&ns| ns == 1_000_000).count();
        assert!((840..1160).contains(&count), "{count}");
        // `after` counts those that are drawn as well.
        let mut late = Faults::new(1, &["stall=1ms@p=0.25,after=900".to_owned()]).unwrap();
        let late = (0..4000)
            .filter(|_| late.judge(&write(0, 0), || 0.0).stall_ns > 0)
            .count();
        assert_eq!(late, count - 900);
        assert!((0..100).all(|_| one("eio@p=0").judge(&write(0, 0), || 0.0).failure.is_none()));
    }

    #[test]
    fn a_die_fails_once() {
        let mut faults = one("die-fails@t=1us,die=3").of_drive(4).unwrap();
        let mut dies = [0, 2000, 3000].map(|now| faults.judge(&write(0, now), || 0.0).failed_die);
        assert_eq!(dies, [None, Some(FailedDie { fault: 1, die: 3 }), None]);
        faults.die_failed(dies[1].take().unwrap(), 17);
        let report = faults.report();
        assert_eq!((&report[0]["die"], &report[0]["lost_units"]), (&json!(3), &json!(17)));
        let wrong = one("die-fails@die=4").of_drive(4).err().unwrap().to_string();
        assert!(wrong.contains("expected 0 to 3"), "{wrong}");
        assert!(faults.add("die-fails@die=4").is_err());
        // Each fault has its own draw, and two that are due come one after the other.
        let texts = ["die-fails".to_owned(), "die-fails".to_owned()];
        let mut both = Faults::new(5, &texts).unwrap().of_drive(1 << 20).unwrap();
        let [first, second, none] = [0; 3].map(|now| both.judge(&write(0, now), || 0.0).failed_die);
        assert_eq!((first.unwrap().fault, second.unwrap().fault, none), (1, 2, None));
        assert_ne!(first.unwrap().die, second.unwrap().die);
    }

    #[test]
    fn a_write_needs_what_it_covers_in_part() {
        let needs = |op, offset, length| {
            let target = Target {
                op,
                offset,
                length,
                ..write(0, 0)
            };
            target.needs(4096).collect::<Vec<_>>()
        };
        assert_eq!(needs(OpKind::Read, 4095, 4098), [0, 1, 2]);
        assert_eq!(needs(OpKind::Read, 4096, 4096), [1]);
        assert!(needs(OpKind::Write, 4096, 8192).is_empty());
        assert_eq!(needs(OpKind::Write, 512, 12288), [0, 3]);
        assert_eq!(needs(OpKind::Write, 0, 512), [0]);
        assert!(needs(OpKind::Trim, 0, 512).is_empty());
        assert!(needs(OpKind::Read, 0, 0).is_empty());
    }

    #[test]
    fn a_cleared_fault_stays_in_the_report() {
        let mut faults = one("readonly");
        assert_eq!(faults.judge(&write(0, 0), || 0.0).failure, Some(Failure::ReadOnly));
        assert_eq!((faults.clear(Some(7)), faults.clear(Some(1))), (0, 1));
        assert_eq!(faults.judge(&write(0, 0), || 0.0), Verdict::default());
        assert_eq!(faults.report()[0]["active"], false);
    }

    /// Wear is looked at every 64 requests, and no longer once every fault that waits for it has seen its share.
    #[test]
    fn a_fault_may_wait_for_wear() {
        let mut faults = one("readonly@wear=0.5,after=1");
        let mut looks = 0;
        let struck = (0..300).filter(|&number| {
            let wear = || {
                looks += 1;
                if number < 100 { 0.4 } else { 0.5 }
            };
            faults.judge(&write(0, 0), wear).failure.is_some()
        });
        // From request 128 on it is known, and the first of them passes.
        assert_eq!(struck.min(), Some(129));
        assert_eq!(looks, 3);
    }
}
