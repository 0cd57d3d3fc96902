//! Watching a run: progress for the observer, and the condition on which the user wants it to stop.

use std::time::{Duration, Instant};

use ftlab_core::{Error, Result, error};

use crate::{Observer, Progress};

/// Wall time between two reports of progress.
const PERIOD: Duration = Duration::from_millis(200);

/// Reports progress and remembers whether the observer asked to stop.
pub struct Watch<'a> {
    observer: &'a mut (dyn Observer + Send),
    started: Instant,
    last: Instant,
    pub stopped: bool,
}

impl<'a> Watch<'a> {
    pub fn new(observer: &'a mut (dyn Observer + Send)) -> Self {
        let now = Instant::now();
        Watch {
            observer,
            started: now,
            last: now,
            stopped: false,
        }
    }

    /// Whether a report is due. Asks the clock, so not for every request.
    pub fn due(&self) -> bool {
        self.last.elapsed() >= PERIOD
    }

    /// False if the run should stop.
    pub fn report(&mut self, mut progress: Progress) -> bool {
        self.last = Instant::now();
        progress.wall_s = self.started.elapsed().as_secs_f64();
        self.stopped |= !self.observer.progress(&progress);
        !self.stopped
    }
}

/// A condition such as `waf>3`, looked at whenever a point of the time series is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakAt {
    quantity: Quantity,
    above: bool,
    limit: f64,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Waf,
    Free,
    Erases,
    Retired,
    HostWrites,
    ReadMean,
    WriteMean,
}

const QUANTITIES: [(&str, Quantity); 7] = [
    ("waf", Quantity::Waf),
    ("free", Quantity::Free),
    ("erases", Quantity::Erases),
    ("retired", Quantity::Retired),
    ("host_writes", Quantity::HostWrites),
    ("read_us", Quantity::ReadMean),
    ("write_us", Quantity::WriteMean),
];

/// The present values of what a condition may name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Present {
    pub waf: f64,
    pub free: u32,
    pub erases: u64,
    pub retired: u64,
    pub host_writes: u64,
    pub read_us: f64,
    pub write_us: f64,
}

impl BreakAt {
    /// Parses `QUANTITY>NUMBER` or `QUANTITY<NUMBER`.
    pub fn parse(text: &str) -> Result<Self> {
        let expected = || {
            let known = QUANTITIES.map(|(name, _)| name).join(", ");
            Error::input(format!(
                "break `{text}`: expected NAME>NUMBER or NAME<NUMBER with a finite NUMBER and NAME one of {known}"
            ))
        };
        let at = text.find(['<', '>']).ok_or_else(expected)?;
        let (name, rest) = text.split_at(at);
        let names = QUANTITIES.map(|(name, _)| name);
        let known = QUANTITIES.iter().find(|(known, _)| *known == name.trim());
        let quantity = known
            .ok_or_else(|| error::unknown("quantity in --break", name.trim(), &names))?
            .1;
        let limit = rest[1..].trim().parse().ok().filter(|limit: &f64| limit.is_finite());
        Ok(BreakAt {
            quantity,
            above: rest.starts_with('>'),
            limit: limit.ok_or_else(expected)?,
            text: text.trim().to_owned(),
        })
    }

    pub fn holds(&self, present: &Present) -> bool {
        let value = match self.quantity {
            Quantity::Waf => present.waf,
            Quantity::Free => f64::from(present.free),
            Quantity::Erases => present.erases as f64,
            Quantity::Retired => present.retired as f64,
            Quantity::HostWrites => present.host_writes as f64,
            Quantity::ReadMean => present.read_us,
            Quantity::WriteMean => present.write_us,
        };
        if self.above {
            value > self.limit
        } else {
            value < self.limit
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_names_a_quantity_and_a_limit() {
        let at = BreakAt::parse("waf > 3").unwrap();
        assert!(at.holds(&Present {
            waf: 3.1,
            ..Present::default()
        }));
        assert!(!at.holds(&Present {
            waf: 3.0,
            ..Present::default()
        }));
        let low = BreakAt::parse("free<4").unwrap();
        assert!(low.holds(&Present {
            free: 3,
            ..Present::default()
        }));
        for bad in ["waf", "waf>x", ">3", "wav>3", "waf>nan", "waf<inf"] {
            assert!(BreakAt::parse(bad).is_err(), "{bad}");
        }
    }
}
