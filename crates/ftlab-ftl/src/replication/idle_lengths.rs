//! How long a lane's idle periods are, and when in one a further write disturbs little.

use super::Load;

/// Times are in units of a page read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Of a write.
    pub write: usize,
    /// Delay that normal accesses may suffer, per access.
    pub delta: f64,
}

/// The thresholds of an epoch: `thresholds(h, c)[n]` is how long the rest of an idle period must have lasted before its n-th write.
/// `lengths[i]` counts idle periods of i units, `lengths[0]` the accesses.
///
/// Each is the smallest t for which the delays `Σ lengths[i] (t + w − i)`, over the idle periods that end while a write begun at t
/// goes on, are at most `delta` an access. Writes are foreseen until they reach the end of the longest idle period.
pub(super) fn thresholds(lengths: &[u64], costs: Costs) -> Vec<usize> {
    let longest = lengths.iter().rposition(|&count| count > 0).unwrap_or(0);
    let most = costs.delta * lengths.first().copied().unwrap_or(0) as f64;
    let write = costs.write;
    let delay = |begin: usize| -> u64 {
        let ends = begin.max(1)..(begin + write).min(lengths.len());
        ends.map(|i| lengths[i] * (begin + write - i) as u64).sum()
    };
    let mut found = Vec::new();
    let mut elapsed = 0;
    while elapsed < longest || found.is_empty() {
        let threshold = (0..=longest).find(|&t| delay(elapsed + t) as f64 <= most);
        let threshold = threshold.unwrap_or(longest + 1);
        found.push(threshold);
        elapsed += (threshold + write).max(1);
    }
    found
}

/// The idle periods of one lane, as they are seen by looking at it every unit of time.
pub(super) struct IdleLengths {
    lengths: Vec<u64>,
    thresholds: Vec<usize>,
    /// The present period: since when, and when it was last seen.
    period: Option<(u64, u64)>,
    /// Since when the die has been idle, as it said last.
    since_ns: u64,
    writes: usize,
    /// When the last write of this period was ordered.
    ordered_ns: Option<u64>,
}

impl IdleLengths {
    pub fn new(buckets: usize) -> Self {
        IdleLengths {
            lengths: vec![0; buckets + 1],
            thresholds: vec![1],
            period: None,
            since_ns: 0,
            writes: 0,
            ordered_ns: None,
        }
    }

    pub fn access(&mut self) {
        self.lengths[0] += 1;
    }

    /// A new epoch: its thresholds follow from the last one's lengths.
    pub fn next_epoch(&mut self, costs: Costs) {
        self.thresholds = thresholds(&self.lengths, costs);
        self.lengths.fill(0);
    }

    /// The lane as it is now. An idle period goes on through the further writes that fill it (`write_ns` each).
    #[inline]
    pub fn look(&mut self, load: &Load, now_ns: u64, unit_ns: u64, write_ns: u64) {
        let own = self.ordered_ns.is_some_and(|ordered| now_ns <= ordered + 2 * write_ns);
        match (load.idle_since_ns, self.period) {
            (Some(since), Some((began, _))) if since == self.since_ns => self.period = Some((began, now_ns)),
            (Some(since), Some((began, _))) if self.ordered_ns.is_some_and(|at| since <= at + 2 * write_ns) => {
                self.since_ns = since;
                self.ordered_ns = None;
                self.period = Some((began, now_ns));
            }
            (Some(since), _) => {
                self.end(unit_ns);
                (self.period, self.since_ns) = (Some((since, now_ns)), since);
            }
            (None, _) if own => {}
            (None, _) => self.end(unit_ns),
        }
    }

    /// An idle lane has been idle until `now_ns`.
    pub fn rested(&mut self, now_ns: u64) {
        if let Some((_, seen)) = &mut self.period {
            *seen = now_ns;
        }
    }

    fn end(&mut self, unit_ns: u64) {
        if let Some((began, seen)) = self.period.take() {
            let units = ((seen - began) / unit_ns) as usize;
            let last = self.lengths.len() - 1;
            if units > 0 {
                self.lengths[units.min(last)] += 1;
            }
        }
        (self.writes, self.ordered_ns) = (0, None);
    }

    /// Whether the lane has been idle for long enough that a further write may begin.
    pub fn may_write(&self, load: &Load, now_ns: u64, unit_ns: u64) -> bool {
        load.idle_since_ns
            .is_some_and(|since| self.has_waited(since, now_ns, unit_ns))
    }

    /// The same of a lane that has been idle since it was looked at.
    pub fn may_write_at_rest(&self, now_ns: u64, unit_ns: u64) -> bool {
        self.has_waited(self.since_ns, now_ns, unit_ns)
    }

    fn has_waited(&self, since_ns: u64, now_ns: u64, unit_ns: u64) -> bool {
        let threshold = self.thresholds.get(self.writes);
        threshold.is_some_and(|&units| now_ns >= since_ns + units as u64 * unit_ns)
    }

    pub fn ordered(&mut self, now_ns: u64) {
        self.writes += 1;
        self.ordered_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_by_hand() {
        // 100 accesses, 10 idle periods of one unit, 2 of ten units; a write takes 3. At most 5 units of delay.
        let mut lengths = vec![0; 20];
        (lengths[0], lengths[1], lengths[10]) = (100, 10, 2);
        let costs = Costs { write: 3, delta: 0.05 };
        // t = 0 delays the short ones by 2 each, t = 1 by 3 each: 20 and 30; t = 2 none. Then 5 units have gone; a write
        // begun at 5 ends before 10. The next would begin at 8: 2 × 1 ≤ 5, and reaches the end of the longest.
        assert_eq!(thresholds(&lengths, costs), [2, 0, 0]);
        let strict = Costs { write: 3, delta: 0.0 };
        // Nothing may be delayed: a write at 8, 9 or 10 would delay the long ones, so that one begins after them.
        assert_eq!(thresholds(&lengths, strict), [2, 0, 3]);
        assert_eq!(thresholds(&[0; 20], costs), [0], "nothing is known: at once");
    }

    #[test]
    fn periods_end_with_an_access_and_go_on_through_own_writes() {
        let idle = |since| Load {
            idle_since_ns: Some(since),
            ..Load::default()
        };
        let mut lane = IdleLengths::new(10);
        for now in [1000, 1100, 1250] {
            lane.look(&idle(1000), now, 100, 400);
        }
        lane.look(&Load::default(), 1300, 100, 400);
        assert_eq!(lane.lengths[2], 1, "seen for 250 ns");
        lane.look(&idle(2000), 2100, 100, 400);
        assert!(lane.may_write(&idle(2000), 2100, 100) && !lane.may_write(&idle(2000), 2099, 100));
        lane.ordered(2100);
        lane.look(&Load::default(), 2200, 100, 400);
        lane.look(&idle(2500), 2600, 100, 400);
        assert!(!lane.may_write(&idle(2500), 9000, 100), "one write was foreseen");
        lane.look(&idle(2500), 2700, 100, 400);
        lane.look(&Load::default(), 2800, 100, 400);
        assert_eq!(lane.lengths[7], 1, "from 2000 to 2700");
    }
}
