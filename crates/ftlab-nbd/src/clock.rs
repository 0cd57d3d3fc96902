//! The clock of a live device: the wall's, faster, or none.
//!
//! # Model
//! With a wall clock the device's time is the time since the start, times the factor. Waiting sleeps until shortly before the moment and
//! spins the rest, as long as this machine wakes up late from a short sleep, which is measured at the start, but at most
//! [`MOST_SPIN`]; the slack of the thread's timers is set to a nanosecond, as the usual 50 microseconds
//! would be the error of every completion. Without one, the device's time stands still while it has nothing to do, and goes on to
//! the next completion while it has.

use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::{Duration, Instant};

use ftlab_core::Error;

/// How a device's time goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many times as fast as the wall's.
    Wall(f64),
    /// Every request is answered at once; the device's time is what its work takes.
    None,
}

impl FromStr for Pace {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "real" => Ok(Pace::Wall(1.0)),
            "none" => Ok(Pace::None),
            other => match other.parse::<f64>() {
                Ok(factor) if (1e-6..=1e6).contains(&factor) => Ok(Pace::Wall(factor)),
                _ => Err(Error::input(format!(
                    "pace `{other}`: expected real, none, or a factor from 1e-6 to 1e6"
                ))),
            },
        }
    }
}

/// What is left of a wait is spun away when it is shorter than sleeps are late here, which is between these.
const LEAST_SPIN: Duration = Duration::from_micros(20);
const MOST_SPIN: Duration = Duration::from_micros(100);
/// Sleeps from which their lateness is known.
const SLEEPS: usize = 31;
const SLEEP: Duration = Duration::from_micros(50);
/// Longest wait at once: somebody may want the service to end.
const LONGEST: Duration = Duration::from_millis(100);

pub struct Clock {
    pace: Pace,
    started: Instant,
    spin: Duration,
    /// The time without a wall clock.
    virtual_ns: u64,
}

impl Clock {
    /// Starts now, on the thread that will wait.
    pub fn start(pace: Pace) -> Self {
        // Where it is refused, completions are late by the slack, which the report tells.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let spin = match pace {
            Pace::Wall(_) => lateness_of_sleep().clamp(LEAST_SPIN, MOST_SPIN),
            Pace::None => LEAST_SPIN,
        };
        Clock {
            pace,
            spin,
            started: Instant::now(),
            virtual_ns: 0,
        }
    }

    pub fn is_virtual(&self) -> bool {
        self.pace == Pace::None
    }

    pub fn now_ns(&self) -> u64 {
        match self.pace {
            Pace::Wall(factor) => (self.started.elapsed().as_nanos() as f64 * factor) as u64,
            Pace::None => self.virtual_ns,
        }
    }

    /// The time at which `instant` of the wall is or was, with a wall clock.
    pub fn at(&self, instant: Instant) -> u64 {
        match self.pace {
            Pace::Wall(factor) => (instant.saturating_duration_since(self.started).as_nanos() as f64 * factor) as u64,
            Pace::None => self.virtual_ns,
        }
    }

    /// Time without a wall clock goes on to `now_ns`.
    pub fn reach(&mut self, now_ns: u64) {
        self.virtual_ns = self.virtual_ns.max(now_ns);
    }

    /// Waits until something comes, but not beyond `until_ns`. `look` waits at most so long for it, and says whether it has come.
    pub fn wait(&self, until_ns: Option<u64>, mut look: impl FnMut(Duration) -> bool) {
        let left = || match (self.pace, until_ns) {
            (Pace::Wall(factor), Some(until)) => {
                Duration::from_nanos((until.saturating_sub(self.now_ns()) as f64 / factor) as u64).min(LONGEST)
            }
            _ => LONGEST,
        };
        let wait = left();
        if wait > self.spin {
            look(wait - self.spin);
            return;
        }
        while !look(Duration::ZERO) && left() > Duration::ZERO {
            std::hint::spin_loop();
        }
    }
}

/// By how much three of four short sleeps are late at most.
fn lateness_of_sleep() -> Duration {
    let mut late: Vec<Duration> = (0..SLEEPS)
        .map(|_| {
            let before = Instant::now();
            std::thread::sleep(SLEEP);
            before.elapsed().saturating_sub(SLEEP)
        })
        .collect();
    late.sort_unstable();
    late[SLEEPS * 3 / 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_named_or_counted() {
        assert_eq!("real".parse::<Pace>().unwrap(), Pace::Wall(1.0));
        assert_eq!("none".parse::<Pace>().unwrap(), Pace::None);
        assert_eq!("0.5".parse::<Pace>().unwrap(), Pace::Wall(0.5));
        for wrong in ["", "fast", "0", "-1", "nan", "inf"] {
            assert!(wrong.parse::<Pace>().is_err(), "{wrong}");
        }
    }
}
