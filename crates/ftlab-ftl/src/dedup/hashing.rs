//! Engines that compute fingerprints.

use ftlab_core::{Error, Result};

use super::{After, Work};

/// Engines side by side; each fingerprint goes to the next of them.
#[derive(Clone, Debug)]
pub struct Hashing {
    ns: u64,
    engines: u16,
    next: u16,
    /// Fingerprints computed since the drive was new.
    pub count: u64,
}

impl Hashing {
    /// `us` microseconds for a fingerprint on each of `engines`, which are numbered from `first`.
    ///
    /// # Errors
    /// No engine; a time that is no finite number of at least 0.
    pub fn new(policy: &str, us: f64, engines: u16) -> Result<Self> {
        if engines == 0 {
            let fault = format!("dedup policy `{policy}`: hash_units = 0, expected at least 1");
            return Err(Error::input(fault));
        }
        Ok(Hashing {
            ns: nanoseconds(policy, "hash_us", us)?,
            engines,
            next: 0,
            count: 0,
        })
    }

    /// One more fingerprint.
    #[inline]
    pub fn hash(&mut self, works: &mut Vec<Work>) {
        self.hash_after(After::Nothing, works);
    }

    /// One more fingerprint, which is computed when `after` has ended.
    #[inline]
    pub fn hash_after(&mut self, after: After, works: &mut Vec<Work>) {
        self.count += 1;
        works.push(Work {
            engine: self.next,
            ns: self.ns,
            after,
        });
        self.next = if self.next + 1 == self.engines {
            0
        } else {
            self.next + 1
        };
    }

    /// One more fingerprint where no time passes, so that it does not matter which engine computes it. Its time, in nanoseconds.
    #[inline]
    pub fn hash_alone(&mut self) -> u64 {
        self.count += 1;
        self.ns
    }

    /// One that is computed when nobody waits for it.
    pub fn hash_later(&mut self) {
        self.count += 1;
    }

    /// The engine after those that compute fingerprints.
    pub fn engine_after(&self) -> u16 {
        self.engines
    }
}

/// Microseconds of a parameter as whole nanoseconds.
///
/// # Errors
/// No finite number of at least 0, or more than a minute.
pub fn nanoseconds(policy: &str, key: &str, us: f64) -> Result<u64> {
    if !(0.0..=60e6).contains(&us) {
        return Err(Error::input(format!(
            "dedup policy `{policy}`: {key} = {us:?}, expected 0 to 60000000 microseconds"
        )));
    }
    Ok((us * 1000.0).round() as u64)
}
