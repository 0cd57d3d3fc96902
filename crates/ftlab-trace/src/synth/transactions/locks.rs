//! Two-phase locks of pages: shared or exclusive, first come, first served.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Shared,
    Exclusive,
}

#[derive(Default)]
struct Held {
    holders: Vec<(u32, Mode)>,
    waiting: VecDeque<(u32, Mode)>,
}

impl Held {
    /// Whether `client` may have `mode` beside the present holders.
    fn admits(&self, client: u32, mode: Mode) -> bool {
        self.holders
            .iter()
            .all(|&(other, held)| other == client || (mode, held) == (Mode::Shared, Mode::Shared))
    }

    fn grant(&mut self, client: u32, mode: Mode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == client) {
            Some((_, held)) => *held = mode,
            None => self.holders.push((client, mode)),
        }
    }
}

/// Who holds and who waits for which page. A client waits for one lock at a time.
#[derive(Default)]
pub struct Locks {
    pages: FxHashMap<u32, Held>,
    /// By client: the pages it holds, and the one it waits for.
    held: Vec<Vec<u32>>,
    awaited: Vec<Option<u32>>,
}

impl Locks {
    pub fn new(clients: u32) -> Self {
        Locks {
            pages: FxHashMap::default(),
            held: vec![Vec::new(); clients as usize],
            awaited: vec![None; clients as usize],
        }
    }

    /// Whether `client` has the lock now; else it waits for it.
    pub fn ask(&mut self, client: u32, page: u32, mode: Mode) -> bool {
        let held = self.pages.entry(page).or_default();
        let own = held.holders.iter().find(|&&(holder, _)| holder == client).copied();
        if own.is_some_and(|(_, has)| has == Mode::Exclusive || has == mode) {
            return true;
        }
        if held.admits(client, mode) && (held.waiting.is_empty() || own.is_some()) {
            held.grant(client, mode);
            if own.is_none() {
                self.held[client as usize].push(page);
            }
            return true;
        }
        match own {
            Some(_) => held.waiting.push_front((client, mode)),
            None => held.waiting.push_back((client, mode)),
        }
        self.awaited[client as usize] = Some(page);
        false
    }

    /// `client` gives up what it holds and waits for; `granted` gets those who have their lock now, in the order of the pages that `client`
    /// locked.
    pub fn release(&mut self, client: u32, granted: &mut Vec<u32>) {
        let awaited = self.awaited[client as usize].take();
        let held = std::mem::take(&mut self.held[client as usize]);
        for &page in held.iter().chain(&awaited) {
            if let Some(held) = self.pages.get_mut(&page) {
                held.holders.retain(|&(holder, _)| holder != client);
                held.waiting.retain(|&(waiting, _)| waiting != client);
            }
            self.pass_on(page, granted);
        }
    }

    fn pass_on(&mut self, page: u32, granted: &mut Vec<u32>) {
        let Some(held) = self.pages.get_mut(&page) else { return };
        while let Some(&(next, mode)) = held.waiting.front() {
            if !held.admits(next, mode) {
                break;
            }
            held.waiting.pop_front();
            if held.holders.iter().all(|&(holder, _)| holder != next) {
                self.held[next as usize].push(page);
            }
            held.grant(next, mode);
            self.awaited[next as usize] = None;
            granted.push(next);
        }
        if held.holders.is_empty() && held.waiting.is_empty() {
            self.pages.remove(&page);
        }
    }

    /// Nobody holds or waits for anything.
    pub fn is_free(&self) -> bool {
        self.pages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Mode::{Exclusive, Shared};
    use super::*;

    fn released(locks: &mut Locks, client: u32) -> Vec<u32> {
        let mut granted = Vec::new();
        locks.release(client, &mut granted);
        granted
    }

    /// 0 and 1 share page 7. 2 wants it alone, and 3, which would share it, does not overtake 2.
    #[test]
    fn nobody_overtakes() {
        let mut locks = Locks::new(4);
        assert!(locks.ask(0, 7, Shared) && locks.ask(1, 7, Shared));
        assert!(!locks.ask(2, 7, Exclusive) && !locks.ask(3, 7, Shared));
        assert!(released(&mut locks, 0).is_empty());
        assert_eq!(released(&mut locks, 1), [2]);
        assert_eq!(released(&mut locks, 2), [3]);
        assert!(released(&mut locks, 3).is_empty());
        assert!(locks.is_free());
    }

    /// Who shares a page and wants it alone goes before those that wait, once the other sharer is gone. Two such wait for each other, until
    /// one gives up.
    #[test]
    fn from_shared_to_exclusive() {
        let mut locks = Locks::new(3);
        assert!(locks.ask(0, 7, Shared) && locks.ask(1, 7, Shared));
        assert!(!locks.ask(2, 7, Exclusive));
        assert!(!locks.ask(0, 7, Exclusive) && !locks.ask(1, 7, Exclusive));
        assert_eq!(released(&mut locks, 1), [0]);
        assert!(locks.ask(0, 7, Shared), "what is held exclusively is held shared");
        assert_eq!(released(&mut locks, 0), [2]);
        assert!(released(&mut locks, 2).is_empty());
        assert!(locks.is_free());
    }

    /// Who gives up waiting lets those behind it through.
    #[test]
    fn giving_up_lets_others_through() {
        let mut locks = Locks::new(3);
        assert!(locks.ask(0, 7, Shared));
        assert!(!locks.ask(1, 7, Exclusive) && !locks.ask(2, 7, Shared));
        assert_eq!(released(&mut locks, 1), [2]);
    }
}
