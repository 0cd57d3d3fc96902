//! A fault as it is written: `KIND[=VALUE][@CONDITION,...]`.

use std::str::FromStr;

use super::{Failure, SECTOR};
use crate::{Error, OpKind, Result, error, units};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fail(Failure),
    Stall(u64),
    Stuck,
    DropFlush,
    TornWrite,
    ReadOnly,
    DieFails,
}

impl Kind {
    /// Whether it may strike such a request.
    pub fn suits(self, op: OpKind) -> bool {
        match self {
            Kind::Fail(_) | Kind::Stall(_) | Kind::Stuck | Kind::DieFails => true,
            // The FUA of a write is a flush of its own.
            Kind::DropFlush => matches!(op, OpKind::Flush | OpKind::Write | OpKind::Trim),
            Kind::TornWrite => op == OpKind::Write,
            Kind::ReadOnly => matches!(op, OpKind::Write | OpKind::Trim),
        }
    }
}

const KINDS: [&str; 8] = [
    "eio",
    "enospc",
    "stall",
    "stuck",
    "drop-flush",
    "torn-write",
    "readonly",
    "die-fails",
];
const CONDITIONS: [&str; 8] = ["op", "lba", "p", "after", "count", "t", "wear", "die"];
/// Those of the failure of a die, which happens to the drive and not to a request.
const CONDITIONS_OF_DIES: [&str; 4] = ["after", "t", "wear", "die"];

/// A fault as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub text: String,
    pub kind: Kind,
    pub op: Option<OpKind>,
    /// First byte and the one after the last.
    pub bytes: Option<(u64, u64)>,
    pub share: f64,
    pub after: u64,
    pub count: u64,
    pub from_ns: u64,
    pub from_wear: f64,
    pub die: Option<u32>,
}

impl FromStr for Fault {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |what: String| Error::input(format!("fault `{text}`: {what}"));
        let (kind, conditions) = match text.split_once('@') {
            Some((_, conditions)) if conditions.trim().is_empty() => {
                return Err(wrong(format!(
                    "expected a condition after `@` ({})",
                    CONDITIONS.join(", ")
                )));
            }
            Some((kind, conditions)) => (kind, conditions.split(',').collect()),
            None => (text, Vec::new()),
        };
        let (name, value) = kind
            .split_once('=')
            .map_or((kind, None), |(name, value)| (name, Some(value)));
        let kind = match (name, value) {
            ("eio", None) => Kind::Fail(Failure::Io),
            ("enospc", None) => Kind::Fail(Failure::NoSpace),
            ("stall", Some(time)) => Kind::Stall(units::nanoseconds(time).map_err(|e| wrong(e.to_string()))?),
            ("stuck", None) => Kind::Stuck,
            ("drop-flush", None) => Kind::DropFlush,
            ("torn-write", None) => Kind::TornWrite,
            ("readonly", None) => Kind::ReadOnly,
            ("die-fails", None) => Kind::DieFails,
            ("stall", None) => return Err(wrong("expected stall=TIME, such as stall=50ms".to_owned())),
            (name, Some(_)) if KINDS.contains(&name) => return Err(wrong(format!("`{name}` takes no value"))),
            _ => return Err(error::unknown("fault", name, &KINDS)),
        };
        let mut fault = Fault {
            text: text.to_owned(),
            kind,
            op: None,
            bytes: None,
            share: 1.0,
            after: 0,
            count: if kind == Kind::DieFails { 1 } else { u64::MAX },
            from_ns: 0,
            from_wear: 0.0,
            die: None,
        };
        let mut given = Vec::new();
        for condition in conditions {
            let Some((name, value)) = condition.split_once('=') else {
                return Err(wrong(format!("condition `{condition}`: expected NAME=VALUE")));
            };
            let reason = |what: &str| wrong(format!("{name} `{value}`: expected {what}"));
            if given.contains(&name) {
                return Err(wrong(format!("`{name}` is given twice")));
            }
            given.push(name);
            let suits = if kind == Kind::DieFails {
                CONDITIONS_OF_DIES.contains(&name)
            } else {
                name != "die"
            };
            if CONDITIONS.contains(&name) && !suits {
                return Err(wrong(format!("`{name}` has no meaning here")));
            }
            match name {
                "op" => {
                    let op = OpKind::ALL.into_iter().find(|op| op.name() == value);
                    fault.op = Some(op.ok_or_else(|| reason("read, write, trim or flush"))?);
                }
                "lba" => fault.bytes = Some(sectors(value).ok_or_else(|| reason("A-B or A, in sectors below 2^55"))?),
                "p" => {
                    let share = value.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                    fault.share = share.ok_or_else(|| reason("a share from 0 to 1"))?;
                }
                "after" => fault.after = units::count(value).map_err(|_| reason("a whole number"))?,
                "count" => fault.count = units::count(value).map_err(|_| reason("a whole number"))?,
                "t" => fault.from_ns = units::nanoseconds(value).map_err(|_| reason("a time, such as 60s"))?,
                "die" => fault.die = Some(value.parse().map_err(|_| reason("the number of a die"))?),
                "wear" => {
                    let share = value.parse().ok().filter(|share| (0.0..=1e6).contains(share));
                    fault.from_wear = share.ok_or_else(|| reason("a share of the rated P/E cycles, such as 0.9"))?;
                }
                other => return Err(error::unknown("condition of a fault", other, &CONDITIONS)),
            }
        }
        if let Some(op) = fault.op.filter(|&op| !kind.suits(op)) {
            return Err(wrong(format!("`{name}` never strikes a {}", op.name())));
        }
        if fault.op == Some(OpKind::Flush) && fault.bytes.is_some() {
            return Err(wrong("a flush has no sectors that `lba` could mean".to_owned()));
        }
        Ok(fault)
    }
}

fn sectors(text: &str) -> Option<(u64, u64)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    let end = last.checked_add(1)?.checked_mul(SECTOR)?;
    (first <= last).then_some((first * SECTOR, end))
}

impl Fault {
    /// # Errors
    /// A die that a drive of so many does not have.
    pub fn fits(&self, dies: u32) -> Result<()> {
        match self.die {
            Some(die) if die >= dies => Err(Error::input(format!(
                "fault `{}`: die `{die}`: expected 0 to {}",
                self.text,
                dies.saturating_sub(1)
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_fault_is_refused_with_a_reason() {
        for (text, words) in [
            ("", "unknown fault ``"),
            ("eoi", "did you mean `eio`?"),
            ("eio=3", "takes no value"),
            ("stall", "stall=TIME"),
            ("stall=50", "fault `stall=50`"),
            ("eio@p=2", "p `2`: expected a share from 0 to 1"),
            ("eio@p=nan", "expected a share"),
            ("eio@lba=9-3", "in sectors"),
            ("eio@op=reed", "read, write, trim or flush"),
            ("eio@when=1", "unknown condition"),
            ("eio@", "expected a condition after `@`"),
            ("die-fails@op=read", "`op` has no meaning here"),
            ("die-fails@die=x", "the number of a die"),
            ("eio@die=1", "`die` has no meaning here"),
            ("eio@op=read,", "condition ``: expected NAME=VALUE"),
            ("eio@lba=0-18446744073709551615", "in sectors below 2^55"),
            ("eio@p=0.1,p=0.2", "`p` is given twice"),
            ("torn-write@op=read", "`torn-write` never strikes a read"),
            ("readonly@op=flush", "`readonly` never strikes a flush"),
            ("eio@op=flush,lba=3", "a flush has no sectors"),
            ("eio@lba", "expected NAME=VALUE"),
        ] {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
