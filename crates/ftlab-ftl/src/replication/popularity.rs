//! How often values are read: a counter of six bits for each, which stops at its greatest.

use ftlab_core::Lpn;
use serde::{Deserialize, Serialize};

use crate::indirection::{Of, Vpn};

/// The greatest count: 64 chips, so six bits.
pub(super) const MOST: u8 = 63;
/// Beside the count: it was read the day before.
const BEFORE: u8 = 128;

/// Reads by the host. A unit that lies directly is counted by its LPN, and taken over when it becomes a value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Popularity {
    units: Vec<u8>,
    values: Vec<u8>,
}

impl Popularity {
    fn counter(&mut self, of: Of) -> &mut u8 {
        let (table, at) = match of {
            Of::Lpn(lpn) => (&mut self.units, lpn.0 as usize),
            Of::Vpn(vpn) => (&mut self.values, vpn.0 as usize),
        };
        if table.len() <= at {
            table.resize(at + 1, 0);
        }
        &mut table[at]
    }

    fn known(&self, of: Of) -> u8 {
        let (table, at) = match of {
            Of::Lpn(lpn) => (&self.units, lpn.0),
            Of::Vpn(vpn) => (&self.values, vpn.0),
        };
        table.get(at as usize).copied().unwrap_or(0)
    }

    #[cfg(test)]
    fn of(&self, of: Of) -> u8 {
        self.known(of) & !BEFORE
    }

    /// Whether it has been read today or the day before ([`Popularity::next_day`]).
    pub fn is_read(&self, of: Of) -> bool {
        self.known(of) > 0
    }

    /// Counts a read; the count before and after.
    pub fn read(&mut self, of: Of) -> (u8, u8) {
        let counter = self.counter(of);
        let before = *counter & !BEFORE;
        let after = (before + 1).min(MOST);
        *counter = after | *counter & BEFORE;
        (before, after)
    }

    pub fn gone(&mut self, of: Of) {
        if self.is_read(of) {
            *self.counter(of) = 0;
        }
    }

    pub fn became(&mut self, lpn: Lpn, vpn: Vpn) {
        let count = self.known(Of::Lpn(lpn));
        self.gone(Of::Lpn(lpn));
        *self.counter(Of::Vpn(vpn)) = count;
    }

    /// A new day: all counters are zero.
    pub fn clear(&mut self) {
        self.units.fill(0);
        self.values.fill(0);
    }

    /// As [`Popularity::clear`], but what was read is remembered for another day.
    pub fn next_day(&mut self) {
        for counter in self.units.iter_mut().chain(&mut self.values) {
            *counter = if *counter & !BEFORE > 0 { BEFORE } else { 0 };
        }
    }

    /// Everything that has been read today, the most popular first; of equal ones values before units, lower numbers first.
    pub fn ranking(&self) -> Vec<(u8, Of)> {
        let today = |count: &u8| count & !BEFORE;
        let values = (0..)
            .zip(&self.values)
            .map(|(vpn, count)| (today(count), Of::Vpn(Vpn(vpn))));
        let units = (0..)
            .zip(&self.units)
            .map(|(lpn, count)| (today(count), Of::Lpn(Lpn(lpn))));
        let mut read: Vec<_> = values.chain(units).filter(|&(count, _)| count > 0).collect();
        read.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_stops_at_63_and_goes_with_its_unit() {
        let (unit, value) = (Of::Lpn(Lpn(3)), Of::Vpn(Vpn(0)));
        let mut counts = Popularity::default();
        for read in 0..70_u8 {
            assert_eq!(counts.read(unit), (read.min(63), (read + 1).min(63)));
        }
        counts.read(Of::Lpn(Lpn(1)));
        counts.became(Lpn(3), Vpn(0));
        assert_eq!((counts.of(unit), counts.of(value)), (0, 63));
        assert_eq!(counts.ranking(), [(63, value), (1, Of::Lpn(Lpn(1)))]);
        counts.gone(value);
        assert_eq!(counts.ranking().len(), 1);
        counts.clear();
        assert!(counts.ranking().is_empty());
    }

    #[test]
    fn what_was_read_yesterday_is_told_from_what_was_not() {
        let (unit, other) = (Of::Lpn(Lpn(3)), Of::Lpn(Lpn(4)));
        let mut counts = Popularity::default();
        counts.read(unit);
        counts.next_day();
        assert_eq!(
            (counts.of(unit), counts.is_read(unit), counts.is_read(other)),
            (0, true, false)
        );
        assert!(counts.ranking().is_empty());
        assert_eq!(counts.read(unit), (0, 1), "a day's count begins at zero");
        counts.became(Lpn(3), Vpn(0));
        counts.next_day();
        counts.next_day();
        assert!(!counts.is_read(Of::Vpn(Vpn(0))), "the day before that is forgotten");
    }
}
