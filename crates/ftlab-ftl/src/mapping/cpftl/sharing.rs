//! How many of the loads that misses ask for are reads: with many requests under way a load that is on its way already is shared.
//!
//! A page that is asked for at a rate `r`, and whose loads take `t`, is read `r / (1 + r t)` times. That is the share
//! `u = 1 / (1 + r t)` of the misses, and one miss less saves the derivative by `r`, `u²` reads. So what avoids a share `w` of the misses
//! saves the share `w u` of the reads. Which loads are shared depends on when each request completes; a change however small moves the
//! reads of a run by a tenth of what is shared, either way. What would save less is left alone, and then nothing changes at all.

/// Of the share of the loads that is shared: what deferring writes must save of the reads to be done.
const WORTH: f64 = 0.1;
/// Loads after which what is known loses half its weight.
const FADES: f64 = 1024.0;
/// Loads that are seen before what saves loads is tried: as long a drive may look as if it shared none.
const KNOWN: u32 = 128;

#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    /// Loads still to be seen before it is known how many are shared.
    unknown: u32,
    /// Loads asked for, those of them that were under way, misses of writes that may do without, and those of them that did.
    asked: f64,
    shared: f64,
    avoidable: f64,
    avoided: f64,
}

impl Sharing {
    /// From now on loads may be shared.
    pub fn may_share(&mut self) {
        self.unknown = KNOWN;
    }

    /// Whether enough loads have been seen, or none is ever shared.
    pub fn is_known(&self) -> bool {
        self.unknown == 0
    }

    /// A miss asks for a load.
    pub fn ask(&mut self) {
        self.asked += 1.0;
        self.unknown = self.unknown.saturating_sub(1);
        if self.asked + self.avoided > FADES {
            self.asked /= 2.0;
            self.shared /= 2.0;
            self.avoidable /= 2.0;
            self.avoided /= 2.0;
        }
    }

    /// The load is under way already.
    pub fn share(&mut self) {
        self.shared += 1.0;
    }

    /// A write misses that may do without a load. Whether it does.
    pub fn defers(&mut self) -> bool {
        self.avoidable += 1.0;
        let misses = self.asked + self.avoided + 1.0;
        let (read, share) = (self.read(), self.avoidable / misses);
        let defers = share * read >= WORTH * (1.0 - read);
        self.avoided += f64::from(u8::from(defers));
        defers
    }

    /// Share of the loads for which something is read: the `u` above.
    pub fn read(&self) -> f64 {
        match self.asked > 0.0 {
            true => (1.0 - self.shared / self.asked).max(0.0),
            false => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many loads every second one is shared, and so many misses in between are of writes.
    fn after(loads: u32, writes: u32) -> (Sharing, u32) {
        let mut sharing = Sharing::default();
        let mut deferred = 0;
        for load in 0..loads {
            sharing.ask();
            if load % 2 == 1 {
                sharing.share();
            }
            if writes > 0 && load % (loads / writes) == 0 {
                deferred += u32::from(sharing.defers());
            }
        }
        (sharing, deferred)
    }

    #[test]
    fn writes_are_deferred_where_that_saves_more_than_chance_moves() {
        // Half of the loads are read: writes that are a fifth of the misses save a tenth of the reads, a twentieth saves a fortieth.
        let (sharing, deferred) = after(400, 100);
        assert_eq!((sharing.read(), deferred), (0.5, 100));
        let (_, deferred) = after(400, 20);
        assert!(
            deferred <= 1,
            "{deferred}: none but the first, before which no load was shared"
        );
    }

    #[test]
    fn as_long_as_no_load_is_shared_every_write_is_deferred() {
        let mut sharing = Sharing::default();
        for _ in 0..4000 {
            sharing.ask();
        }
        assert!(sharing.defers() && sharing.read() == 1.0);
    }

    #[test]
    fn how_many_are_shared_is_known_after_some_loads_or_from_the_start() {
        let mut sharing = Sharing::default();
        assert!(sharing.is_known(), "no load takes time");
        sharing.may_share();
        for _ in 1..KNOWN {
            sharing.ask();
            assert!(!sharing.is_known());
        }
        sharing.ask();
        assert!(sharing.is_known());
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let (mut sharing, _) = after(1000, 0);
        for _ in 0..8192 {
            sharing.ask();
        }
        assert!(sharing.read() > 0.99);
    }
}
