//! How often values are read: a counter of six bits for each, which stops at its greatest.

use ftlab_core::Lpn;
use serde::{Deserialize, Serialize};

use crate::indirection::{Of, Vpn};

/// The greatest count: 64 chips, so six bits.
pub(super) const MOST: u8 = 63;

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

    pub fn of(&self, of: Of) -> u8 {
        let (table, at) = match of {
            Of::Lpn(lpn) => (&self.units, lpn.0),
            Of::Vpn(vpn) => (&self.values, vpn.0),
        };
        table.get(at as usize).copied().unwrap_or(0)
    }

    /// Counts a read; the count before and after.
    pub fn read(&mut self, of: Of) -> (u8, u8) {
        let counter = self.counter(of);
        let before = *counter;
        *counter = (before + 1).min(MOST);
        (before, *counter)
    }

    pub fn gone(&mut self, of: Of) {
        if self.of(of) > 0 {
            *self.counter(of) = 0;
        }
    }

    pub fn became(&mut self, lpn: Lpn, vpn: Vpn) {
        let count = self.of(Of::Lpn(lpn));
        self.gone(Of::Lpn(lpn));
        *self.counter(Of::Vpn(vpn)) = count;
    }

    /// A new day: all counters are zero.
    pub fn clear(&mut self) {
        self.units.fill(0);
        self.values.fill(0);
    }

    /// Everything that has been read, the most popular first; of equal ones values before units, lower numbers first.
    pub fn ranking(&self) -> Vec<(u8, Of)> {
        let values = (0..).zip(&self.values).map(|(vpn, &count)| (count, Of::Vpn(Vpn(vpn))));
        let units = (0..).zip(&self.units).map(|(lpn, &count)| (count, Of::Lpn(Lpn(lpn))));
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
}
