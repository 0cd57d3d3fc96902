//! Requests that wait: all in the order in which they came, and those of each bank in the same order.
//!
//! Lists linked through one table, so that a request is taken out from anywhere without moving the others, and what waits for a bank is
//! found without looking at what does not.

use super::Queued;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

const EMPTY: Ends = Ends {
    first: NONE,
    last: NONE,
};

#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    request: Queued,
    /// Among all.
    all: Links,
    /// Among those of its bank.
    alike: Links,
}

#[derive(Debug)]
pub(super) struct Queue {
    slots: Vec<Slot>,
    /// Slots without a request.
    free: Vec<u32>,
    all: Ends,
    of_bank: Vec<Ends>,
    len: usize,
}

impl Queue {
    pub fn new(banks: usize) -> Self {
        Queue {
            slots: Vec::new(),
            free: Vec::new(),
            all: EMPTY,
            of_bank: vec![EMPTY; banks],
            len: 0,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Behind all others.
    #[inline]
    pub fn push(&mut self, request: Queued) {
        let bank = &mut self.of_bank[request.bank as usize];
        let slot = Slot {
            request,
            all: Links {
                before: self.all.last,
                after: NONE,
            },
            alike: Links {
                before: bank.last,
                after: NONE,
            },
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        match std::mem::replace(&mut bank.last, at) {
            NONE => bank.first = at,
            before => self.slots[before as usize].alike.after = at,
        }
        match std::mem::replace(&mut self.all.last, at) {
            NONE => self.all.first = at,
            before => self.slots[before as usize].all.after = at,
        }
        self.len += 1;
    }

    /// Takes out the request in a slot.
    #[inline]
    pub fn remove(&mut self, at: u32) -> Queued {
        let Slot { request, all, alike } = self.slots[at as usize];
        let bank = &mut self.of_bank[request.bank as usize];
        match alike.before {
            NONE => bank.first = alike.after,
            before => self.slots[before as usize].alike.after = alike.after,
        }
        match alike.after {
            NONE => bank.last = alike.before,
            after => self.slots[after as usize].alike.before = alike.before,
        }
        match all.before {
            NONE => self.all.first = all.after,
            before => self.slots[before as usize].all.after = all.after,
        }
        match all.after {
            NONE => self.all.last = all.before,
            after => self.slots[after as usize].all.before = all.before,
        }
        self.free.push(at);
        self.len -= 1;
        request
    }

    #[inline]
    pub fn get(&self, at: u32) -> &Queued {
        &self.slots[at as usize].request
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> &mut Queued {
        &mut self.slots[at as usize].request
    }

    /// All requests with their slots, the oldest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Queued)> {
        self.walk(self.all.first, |slot| slot.all.after)
    }

    /// Those of one bank, the oldest first.
    #[inline]
    pub fn of_bank(&self, bank: u32) -> impl Iterator<Item = (u32, &Queued)> {
        self.walk(self.of_bank[bank as usize].first, |slot| slot.alike.after)
    }

    #[inline]
    fn walk(&self, first: u32, after: impl Fn(&Slot) -> u32) -> impl Iterator<Item = (u32, &Queued)> {
        let mut next = first;
        std::iter::from_fn(move || {
            let at = next;
            // There is no slot with the number NONE.
            let slot = self.slots.get(at as usize)?;
            next = after(slot);
            Some((at, &slot.request))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(sequence: u64, bank: u32) -> Queued {
        Queued {
            sequence,
            tag: 0,
            arrived: 0,
            write: false,
            owns: false,
            is_counted: false,
            bank,
            row: 0,
            line: 0,
        }
    }

    /// Pushed and taken out at random, beside a plain list.
    #[test]
    fn both_orders_are_those_of_a_plain_list() {
        let mut random = ftlab_core::Stream::new(1, "queue");
        let mut queue = Queue::new(3);
        let mut plain: Vec<(u64, u32)> = Vec::new();
        for sequence in 0..2000 {
            if random.below(20) < 10 + u64::from(plain.len() < 5) * 5 {
                let bank = random.below(3) as u32;
                queue.push(request(sequence, bank));
                plain.push((sequence, bank));
            } else if !plain.is_empty() {
                let nth = random.below(plain.len() as u64) as usize;
                let (at, _) = queue.iter().nth(nth).unwrap();
                let taken = queue.remove(at);
                assert_eq!((taken.sequence, taken.bank), plain.remove(nth));
            }
            assert_eq!(queue.len(), plain.len());
            let all: Vec<(u64, u32)> = queue.iter().map(|(_, q)| (q.sequence, q.bank)).collect();
            assert_eq!(all, plain);
            for bank in 0..3 {
                let of_bank: Vec<u64> = queue.of_bank(bank).map(|(_, q)| q.sequence).collect();
                let wanted: Vec<u64> = plain.iter().filter(|p| p.1 == bank).map(|p| p.0).collect();
                assert_eq!(of_bank, wanted);
            }
        }
    }
}
