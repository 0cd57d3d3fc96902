//! What requests say of the units of addresses and sizes.
//!
//! # Rule
//! A file read or written in order asks for what lies behind what it asked for before. Counted is how many requests begin
//! where one of the [`WINDOW`] before them on the same device ends, for each [`Reading`] of a size against an address:
//! both in one unit, or either in bytes, sectors of 512 bytes or units of 4 KiB. A reading decides against another when it
//! explains at least 20 of [`ENOUGH`] requests or more, 2 % of them all, and three times as many as the other.
//! A reading is possible only where requests begin with a sector, so that byte addresses beside larger units are all multiples
//! of 512, and cover whole units of their addresses.

/// Requests among whose ends a continued one is looked for.
const WINDOW: usize = 64;
/// So many requests are evidence.
pub const ENOUGH: u64 = 50;
const SECTOR: u64 = 512;
const PAGE: u64 = 4096;

/// Units of an address and of a size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub address: u64,
    pub size: u64,
}

impl Reading {
    pub const SECTORS: Reading = Reading::of(SECTOR, SECTOR);
    pub const BYTES: Reading = Reading::of(1, 1);
    /// Those that differ from one another in what a request continues, and from two equal units.
    pub const UNEQUAL: [Reading; 6] = [
        Reading::of(1, SECTOR),
        Reading::of(SECTOR, 1),
        Reading::of(1, PAGE),
        Reading::of(PAGE, 1),
        Reading::of(SECTOR, PAGE),
        Reading::of(PAGE, SECTOR),
    ];

    pub const fn of(address: u64, size: u64) -> Self {
        Reading { address, size }
    }

    /// Where a request ends, in the unit of addresses; `None` where that is no whole number.
    fn end(self, address: u64, size: u64) -> Option<u64> {
        let length = match self.address <= self.size {
            true => size.checked_mul(self.size / self.address)?,
            false => Some(size / (self.address / self.size)).filter(|n| n * (self.address / self.size) == size)?,
        };
        address.checked_add(length)
    }

    /// The place of its count: equal units continue alike whatever they are.
    fn place(self) -> usize {
        let unequal = Self::UNEQUAL.iter();
        unequal.take_while(|&&other| other != self).count()
    }

    /// The units in words.
    pub fn show(self) -> String {
        let unit = |bytes| match bytes {
            1 => "bytes",
            SECTOR => "sectors of 512 bytes",
            _ => "units of 4 KiB",
        };
        match self.address == self.size {
            true => format!("addresses and sizes are taken as {}", unit(self.address)),
            false => format!(
                "addresses are taken as {} and sizes as {}",
                unit(self.address),
                unit(self.size)
            ),
        }
    }
}

/// How many requests continue others, by reading.
#[derive(Debug, Default)]
pub struct Continuity {
    requests: u64,
    /// By [`Reading::place`], equal units last.
    counts: [u64; 7],
    ends: [Vec<Option<(u64, u64)>>; 7],
    /// Bits that are set in some address, in some size.
    address_bits: u64,
    size_bits: u64,
}

impl Continuity {
    pub fn add(&mut self, device: u64, address: u64, size: u64) {
        let at = self.requests as usize % WINDOW;
        for (place, reading) in Reading::UNEQUAL.into_iter().chain([Reading::BYTES]).enumerate() {
            let known = &mut self.ends[place];
            self.counts[place] += u64::from(known.contains(&Some((device, address))));
            let end = reading.end(address, size).map(|end| (device, end));
            match known.get_mut(at) {
                Some(oldest) => *oldest = end,
                None => known.push(end),
            }
        }
        self.requests += 1;
        self.address_bits |= address;
        self.size_bits |= size;
    }

    /// Requests that continue one before.
    pub fn count(&self, reading: Reading) -> u64 {
        self.counts[reading.place()]
    }

    /// Whether every address, or every size, is a multiple of so many (a power of two).
    pub fn all_addresses(&self, multiple: u64) -> bool {
        self.address_bits.is_multiple_of(multiple)
    }

    pub fn all_sizes(&self, multiple: u64) -> bool {
        self.size_bits.is_multiple_of(multiple)
    }

    fn is_possible(&self, reading: Reading) -> bool {
        // Nothing begins within a sector.
        match reading.address < reading.size {
            true => self.all_addresses(SECTOR / reading.address.min(SECTOR)),
            false => self.all_sizes(reading.address / reading.size),
        }
    }

    /// Of `readings`, the one that decides against `taken`, with the reason.
    pub fn better(&self, taken: Reading, readings: impl Iterator<Item = Reading>) -> Option<(Reading, String)> {
        let other = self.count(taken);
        let decides = |&reading: &Reading| {
            let count = self.count(reading);
            self.requests >= ENOUGH && count >= 20 && count * 50 >= self.requests && count > other.saturating_mul(3)
        };
        let possible = readings.filter(|&reading| self.is_possible(reading));
        let best = possible.filter(decides).max_by_key(|&reading| self.count(reading))?;
        let (count, all) = (self.count(best), self.requests);
        let otherwise = match taken {
            Reading::SECTORS => "both in sectors".to_owned(),
            Reading::BYTES => "both in bytes".to_owned(),
            taken => format!("units of {} and {} bytes", taken.address, taken.size),
        };
        let why = format!(
            "{}, since {count} of {all} requests then begin where an earlier one ends ({other} with {otherwise})",
            best.show()
        );
        Some((best, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of three requests of 3, 8 and 5 sectors, one behind the other, at scattered places, written in these units.
    fn runs(reading: Reading) -> Continuity {
        let mut continuity = Continuity::default();
        for i in 0..40u64 {
            let mut at = i * 7919 % 1000 * 4096;
            for pages in [3, 8, 5] {
                continuity.add(0, at * 4096 / reading.address, pages * 4096 / reading.size);
                at += pages;
            }
        }
        continuity
    }

    #[test]
    fn every_reading_is_found_by_what_continues() {
        for reading in Reading::UNEQUAL {
            let (found, why) = runs(reading)
                .better(Reading::SECTORS, Reading::UNEQUAL.into_iter())
                .unwrap();
            assert_eq!(found, reading);
            assert!(
                why.contains("80 of 120 requests then begin where an earlier one ends (0 with both in sectors)"),
                "{why}"
            );
        }
        for reading in [Reading::SECTORS, Reading::BYTES] {
            assert_eq!(runs(reading).better(reading, Reading::UNEQUAL.into_iter()), None);
            let (found, _) = runs(reading)
                .better(Reading::of(1, 512), [reading].into_iter())
                .unwrap();
            assert_eq!(found, reading);
        }
    }

    #[test]
    fn another_device_continues_nothing() {
        let mut continuity = Continuity::default();
        (0..100).for_each(|i| continuity.add(i, i * 8, 8));
        assert_eq!(continuity.count(Reading::SECTORS), 0);
    }

    #[test]
    fn the_coarser_unit_must_divide() {
        // Sizes of 3 where addresses go on by 3 × 512 and one is odd: no byte addresses.
        let mut continuity = Continuity::default();
        (0..100).for_each(|i| continuity.add(0, i * 1536, 3));
        assert!(
            continuity
                .better(Reading::SECTORS, Reading::UNEQUAL.into_iter())
                .is_some()
        );
        continuity.add(0, 7, 3);
        assert_eq!(continuity.better(Reading::SECTORS, Reading::UNEQUAL.into_iter()), None);
    }
}
