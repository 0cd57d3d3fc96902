//! Arrival times from gaps that are no whole nanoseconds.

/// The time of the next arrival.
#[derive(Default)]
pub struct Time {
    now_ns: u64,
    /// The part of a nanosecond by which the time is late, so that rates are exact in the long run.
    carry: f64,
}

impl Time {
    /// The time; moves on by `gap` nanoseconds.
    #[inline]
    pub fn advance(&mut self, gap: f64) -> u64 {
        let arrival = self.now_ns;
        let exact = gap + self.carry;
        let whole = exact as u64;
        self.carry = exact - whole as f64;
        self.now_ns = self.now_ns.saturating_add(whole);
        arrival
    }
}
