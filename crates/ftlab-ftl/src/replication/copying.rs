//! Who gets how many copies out of a limited number, and whose old copies go for them.

use rustc_hash::FxHashMap;

use crate::indirection::{Of, Vpn};

/// Copies beyond the first, to be made and to be given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    /// What gets copies, the most popular first, with its count of reads and how many further copies it shall have.
    pub copies: Vec<(u8, Of, u32)>,
    /// Values that lose as many of their copies, the least popular first.
    pub drops: Vec<(Vpn, u32)>,
}

/// Goes from the most popular value down (`ranking`), and gives each the copies that it `wants` until `budget` is spent. Copies that
/// lie there already (`existing`, further copies of each value) count; what is beyond a value's share stays while there is room.
pub(super) fn share_out(
    ranking: &[(u8, Of)],
    wants: impl Fn(u8) -> u32,
    budget: u64,
    existing: &[(Vpn, u32)],
) -> Shares {
    let mut left = budget;
    let mut copies = Vec::new();
    let mut shares: FxHashMap<Vpn, (u8, u32)> = FxHashMap::default();
    for &(count, of) in ranking {
        let share = u64::from(wants(count)).min(left) as u32;
        left -= u64::from(share);
        if share > 0 {
            copies.push((count, of, share));
        }
        if let Of::Vpn(vpn) = of {
            shares.insert(vpn, (count, share));
        }
    }
    let mut beyond: Vec<(u8, Vpn, u32)> = existing
        .iter()
        .filter_map(|&(vpn, further)| {
            let (count, share) = shares.get(&vpn).copied().unwrap_or_default();
            (further > share).then(|| (count, vpn, further - share))
        })
        .collect();
    beyond.sort_unstable_by_key(|&(count, vpn, _)| (count, vpn));
    let mut too_many = beyond.iter().map(|&(.., more)| u64::from(more)).sum::<u64>();
    too_many = too_many.saturating_sub(left);
    let mut drops = Vec::new();
    for (_, vpn, more) in beyond {
        let dropped = u64::from(more).min(too_many) as u32;
        too_many -= u64::from(dropped);
        if dropped > 0 {
            drops.push((vpn, dropped));
        }
    }
    Shares { copies, drops }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Lpn;

    #[test]
    fn the_most_popular_come_first_and_the_least_popular_copies_go() {
        let (a, b, c) = (Of::Vpn(Vpn(1)), Of::Lpn(Lpn(9)), Of::Vpn(Vpn(2)));
        let ranking = [(60, a), (30, b), (5, c)];
        let wants = |count| u32::from(count) / 10;
        // 6 + 3 of 10; the last wants none. Value 2 has two copies that nobody asks for, value 7 three: one place is left.
        let existing = [(Vpn(1), 4), (Vpn(2), 2), (Vpn(7), 3)];
        let shares = share_out(&ranking, wants, 10, &existing);
        assert_eq!(shares.copies, [(60, a, 6), (30, b, 3)]);
        assert_eq!(shares.drops, [(Vpn(7), 3), (Vpn(2), 1)], "one of value 2's may stay");
        let shares = share_out(&ranking, wants, 7, &[]);
        assert_eq!(shares.copies, [(60, a, 6), (30, b, 1)]);
        assert_eq!(share_out(&ranking, wants, 0, &[(Vpn(1), 1)]).drops, [(Vpn(1), 1)]);
    }
}
