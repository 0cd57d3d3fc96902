//! The units of the addresses and sizes of a CSV, where its names leave them open. Part of the format `csv`.
//!
//! # Rule
//! Bytes, or sectors where the numbers are no multiples of 512, unless far more requests continue one another in other units
//! (`continuity`). This project's own names `offset` and `length`, and units that stand in a name, are never doubted; what
//! only words such as `lba` and `block` imply gives way.

use super::continuity::{Continuity, Reading};

/// What the name of a column says of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Nothing,
    /// Usually so.
    Implied(u64),
    Fixed(u64),
}

impl Said {
    fn allows(self, unit: u64) -> bool {
        self.fixed().is_none_or(|fixed| fixed == unit)
    }

    fn fixed(self) -> Option<u64> {
        match self {
            Said::Fixed(unit) => Some(unit),
            _ => None,
        }
    }

    fn unit(self) -> Option<u64> {
        match self {
            Said::Nothing => None,
            Said::Implied(unit) | Said::Fixed(unit) => Some(unit),
        }
    }
}

/// The units of these requests (device, address, size), and why.
pub fn of(rows: &[(u64, u64, u64)], address: Said, size: Said) -> (Reading, String) {
    let mut continuity = Continuity::default();
    rows.iter()
        .for_each(|&(device, address, size)| continuity.add(device, address, size));
    let (plain, why) = by_multiples(rows, &continuity, address.unit(), size.unit());
    if let (Some(_), Some(_)) = (address.fixed(), size.fixed()) {
        return (plain, why.join(", "));
    }
    let allowed = |r: &Reading| address.allows(r.address) && size.allows(r.size) && *r != plain;
    // Equal units continue alike: the likelier ones that the names allow stand for them.
    let equal = match continuity.all_addresses(512) {
        true => [Reading::BYTES, Reading::SECTORS],
        false => [Reading::SECTORS, Reading::BYTES],
    };
    let equal = equal.into_iter().filter(|_| plain.address != plain.size).find(allowed);
    match continuity.better(plain, Reading::UNEQUAL.into_iter().filter(allowed).chain(equal)) {
        Some(better) => better,
        None => (plain, why.join(", ")),
    }
}

/// The unit of addresses and ends, and why.
pub fn of_ends(rows: &[(u64, u64, u64)], inclusive: bool, address: Said) -> (Reading, String) {
    let whole = rows.iter().all(|&(_, address, _)| address.is_multiple_of(512));
    let unit = address.unit().unwrap_or(if whole { 1 } else { 512 });
    let why = match inclusive {
        true => "requests end behind what their end names",
        false => "requests end before what their end names",
    };
    (Reading::of(unit, unit), why.to_owned())
}

/// Whether an end is the last unit of its request, and not the first behind it: by which more requests have whole numbers
/// of eight units, or of two.
pub fn ends_inclusive(rows: &[(u64, u64, u64)]) -> bool {
    let of = |beyond: u64| {
        let length = |&(_, address, end): &(u64, u64, u64)| (end + beyond).checked_sub(address);
        let whole = |multiple: u64| {
            let lengths = rows.iter().filter_map(length);
            lengths.filter(|&n| n > 0 && n.is_multiple_of(multiple)).count()
        };
        (whole(8), whole(2))
    };
    of(1) >= of(0)
}

/// Whether sizes count from 0, as NVMe's commands have it: not where more requests continue one another without that.
pub fn counts_from_0(rows: &[(u64, u64, u64)]) -> bool {
    let continued = |beyond: u64| {
        let mut continuity = Continuity::default();
        rows.iter()
            .for_each(|&(device, address, size)| continuity.add(device, address, size + beyond));
        continuity.count(Reading::SECTORS)
    };
    rows.iter().any(|&(.., size)| size == 0) || continued(1) >= continued(0)
}

fn by_multiples(
    rows: &[(u64, u64, u64)],
    continuity: &Continuity,
    address: Option<u64>,
    size: Option<u64>,
) -> (Reading, Vec<&'static str>) {
    let mut why = Vec::new();
    let whole_sizes = continuity.all_sizes(512);
    let named = address.is_some();
    let address = address.unwrap_or_else(|| {
        // Sizes in sectors are small numbers that are not multiples of 512.
        let small = size.is_none() && rows.iter().all(|&(.., n)| n < 1 << 16) && !whole_sizes;
        let sectors = !continuity.all_addresses(512) && (size == Some(512) || small);
        why.push(match sectors {
            true => "addresses in sectors of 512 B, because they and the sizes are no multiples of 512",
            false => "addresses in bytes",
        });
        if sectors { 512 } else { 1 }
    });
    let size = size.unwrap_or_else(|| match (address, whole_sizes) {
        (1, _) => {
            why.push(match named {
                true => "sizes in bytes",
                false => "sizes in bytes, as the addresses",
            });
            1
        }
        (_, true) => {
            why.push("sizes in bytes, because all are multiples of 512");
            1
        }
        (_, false) => {
            why.push("sizes in the unit of the addresses, because not all are multiples of 512");
            address
        }
    });
    (Reading::of(address, size), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of three requests of 3, 8 and 5 units of 4 KiB at scattered places.
    fn runs(reading: Reading) -> Vec<(u64, u64, u64)> {
        let starts = (0..40u64).map(|i| i * 7919 % 1000 * 4096);
        let each = |at: u64| [(at, 3), (at + 3, 8), (at + 11, 5)];
        starts
            .flat_map(each)
            .map(|(at, n)| (0, at * 4096 / reading.address, n * 4096 / reading.size))
            .collect()
    }

    #[test]
    fn ends_and_sizes_that_count_from_0() {
        let inclusive = [(0, 0, 7), (0, 100, 115), (0, 9, 9)];
        let exclusive = inclusive.map(|(device, address, end)| (device, address, end + 1));
        assert!(ends_inclusive(&inclusive) && !ends_inclusive(&exclusive));
        let runs = |beyond: u64| (0..60).map(move |i| (0, i * 8, 8 - beyond)).collect::<Vec<_>>();
        assert!(counts_from_0(&runs(1)) && !counts_from_0(&runs(0)));
        assert!(counts_from_0(&[(0, 5, 0), (0, 5, 1), (0, 6, 1)]));
    }

    #[test]
    fn what_continues_decides_where_names_leave_it_open() {
        for reading in Reading::UNEQUAL {
            let (found, why) = of(&runs(reading), Said::Nothing, Said::Nothing);
            assert_eq!(found, reading, "{why}");
        }
        for reading in [Reading::SECTORS, Reading::BYTES] {
            // What a word implies gives way; what it says does not.
            let (found, _) = of(&runs(reading), Said::Implied(512), Said::Implied(1));
            assert_eq!(found, reading);
            let (found, _) = of(&runs(reading), Said::Fixed(512), Said::Fixed(1));
            assert_eq!(found, Reading::of(512, 1));
        }
        let (found, why) = of(&runs(Reading::of(1, 512)), Said::Fixed(1), Said::Nothing);
        assert_eq!(found, Reading::of(1, 512));
        assert!(
            why.contains("80 of 120 requests then begin where an earlier one ends"),
            "{why}"
        );
    }
}
