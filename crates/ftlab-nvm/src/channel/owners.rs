//! Requests that own their banks, reads and writes apart, by when they are ready for their column commands.
//!
//! Most become ready in the order in which they got their banks, so that one that comes is nearly always put at the end and one that
//! goes is at the front.

use crate::Ps;
use crate::ordered::Ordered;

/// A request that owns its bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub sequence: u64,
    /// Its slot in its queue.
    pub slot: u32,
    pub bank: u32,
    pub row: u32,
    pub write: bool,
    /// Earliest column command.
    pub ready: Ps,
    pub since: Ps,
}

/// Where an owner is: whether among the writes, and its index there.
pub(super) type At = (bool, usize);

#[derive(Debug)]
pub(super) struct Owners {
    /// Reads, writes: each by `ready`.
    lists: [Ordered<Owner>; 2],
    /// The earliest `ready` of each.
    soonest: [Ps; 2],
}

impl Owners {
    pub fn new() -> Self {
        Owners {
            lists: [Ordered::new(), Ordered::new()],
            soonest: [Ps::MAX; 2],
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.lists[0].items().len() + self.lists[1].items().len()
    }

    #[inline]
    pub fn writes(&self) -> usize {
        self.lists[1].items().len()
    }

    #[inline]
    pub fn add(&mut self, owner: Owner) -> At {
        let list = &mut self.lists[usize::from(owner.write)];
        let index = list.insert(owner, |other| other.ready > owner.ready);
        let soonest = &mut self.soonest[usize::from(owner.write)];
        *soonest = (*soonest).min(owner.ready);
        (owner.write, index)
    }

    pub fn get(&self, (write, index): At) -> &Owner {
        &self.lists[usize::from(write)].items()[index]
    }

    pub fn of_bank(&self, bank: u32) -> Option<&Owner> {
        self.lists
            .iter()
            .flat_map(|list| list.items())
            .find(|owner| owner.bank == bank)
    }

    #[inline]
    pub fn remove(&mut self, (write, index): At) -> Owner {
        let list = &mut self.lists[usize::from(write)];
        let taken = list.remove(index);
        self.soonest[usize::from(write)] = list.first().map_or(Ps::MAX, |owner| owner.ready);
        taken
    }

    /// The earliest `ready` of reads or of writes.
    #[inline]
    pub fn soonest(&self, write: bool) -> Ps {
        self.soonest[usize::from(write)]
    }

    /// The oldest request of those that are ready at `now`: its sequence, and where it is.
    #[inline]
    pub fn oldest(&self, write: bool, now: Ps) -> Option<(u64, At)> {
        let list = self.lists[usize::from(write)].items();
        let mut oldest: Option<(u64, At)> = None;
        for (index, owner) in list.iter().enumerate() {
            if owner.ready > now {
                break;
            }
            if oldest.is_none_or(|(sequence, _)| owner.sequence < sequence) {
                oldest = Some((owner.sequence, (write, index)));
            }
        }
        oldest
    }

    pub fn iter(&self) -> impl Iterator<Item = (At, &Owner)> {
        let of = |write: bool| {
            let list = self.lists[usize::from(write)].items().iter().enumerate();
            list.map(move |(index, owner)| ((write, index), owner))
        };
        of(false).chain(of(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three that are ready at 5, 5 and 9, the oldest at 5 is the one with the lower sequence, at 9 the third.
    #[test]
    fn the_oldest_that_is_ready_goes_first() {
        let owner = |sequence, ready| Owner {
            sequence,
            slot: 0,
            bank: 0,
            row: 0,
            write: true,
            ready,
            since: 0,
        };
        let mut owners = Owners::new();
        owners.add(owner(1, 9));
        owners.add(owner(7, 5));
        owners.add(owner(3, 5));
        assert_eq!((owners.soonest(true), owners.soonest(false)), (5, Ps::MAX));
        assert_eq!(owners.oldest(true, 4), None);
        assert_eq!(owners.oldest(true, 9).map(|(sequence, _)| sequence), Some(1));
        let (sequence, at) = owners.oldest(true, 5).unwrap();
        assert_eq!((sequence, owners.remove(at).sequence), (3, 3));
        assert_eq!((owners.len(), owners.writes(), owners.soonest(true)), (2, 2, 5));
    }
}
