//! Partitions are read by threads of their disk and counted by others.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use ftlab_core::{Error, Result};

use super::counting::Room;
use super::{Engine, GoOn, MEMORY, WATCH, locked};
use crate::read::{self, Loaded};

/// What ends a sample, if not all targets are reached.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Targets,
    Time(Instant),
    /// So many partitions are drawn of all disks together.
    Drawn(u64),
}

impl Until {
    /// Whether it has come; `next` are the lengths of the samples of all disks.
    fn is_over(self, next: &[u64], targets: &[u64]) -> bool {
        match self {
            Until::Targets => false,
            Until::Time(deadline) => Instant::now() >= deadline,
            // Two of each disk come whatever time they take.
            Until::Drawn(all) => {
                next.iter()
                    .zip(targets)
                    .map(|(&n, &most)| n.max(most.min(2)))
                    .sum::<u64>()
                    >= all
            }
        }
    }
}

/// A partition in memory.
pub(super) struct Part {
    pub(super) buffer: Vec<u8>,
    pub(super) loaded: Loaded,
}

struct Lane {
    pending: BTreeMap<u64, Part>,
    next: u64,
    is_busy: bool,
}

impl Lane {
    /// Whether its next partition can be counted.
    fn is_ready(&self) -> bool {
        !self.is_busy && self.pending.first_key_value().is_some_and(|(n, _)| *n == self.next)
    }
}

struct State {
    lanes: Vec<Lane>,
    next: Vec<u64>,
    targets: Vec<u64>,
    in_memory: Vec<usize>,
    readers: usize,
    computing: usize,
    stop: bool,
    /// A thread has panicked, which the end of all threads passes on.
    is_broken: bool,
    /// The first in order of disks and partitions of those that were found.
    error: Option<((usize, u64), Error)>,
    pool: Vec<Vec<u8>>,
    bytes_read: u64,
}

impl State {
    fn fail(&mut self, place: (usize, u64), error: Error) {
        if self.error.as_ref().is_none_or(|(known, _)| place < *known) {
            self.error = Some((place, error));
        }
        self.stop = true;
    }
}

/// A thread that ends by a panic stops the others, which would wait for it.
struct Leaving<'a>(&'a Mutex<State>, &'a Condvar, &'a Condvar);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = locked(self.0);
            (state.stop, state.is_broken) = (true, true);
            drop(state);
            self.1.notify_all();
            self.2.notify_all();
        }
    }
}

impl Engine<'_> {
    /// Reads and counts until each disk's sample has the length of its target, or `until` ends it before.
    pub(super) fn extend(&mut self, targets: &[u64], until: Until, go_on: GoOn<'_>) -> Result<()> {
        if !matches!(until, Until::Time(_)) {
            for (disk, order) in self.orders.iter_mut().enumerate() {
                self.permutations[disk].extend(order, targets[disk]);
            }
        }
        let permutations = std::mem::take(&mut self.permutations)
            .into_iter()
            .map(Mutex::new)
            .collect::<Vec<_>>();
        let orders = std::mem::take(&mut self.orders)
            .into_iter()
            .map(Mutex::new)
            .collect::<Vec<_>>();
        let lanes = self.lanes_of_disk as u64;
        let threads = self.threads().min(self.lanes.len());
        // Row groups may be large: one more is read while one is counted, and as many as have room.
        let fit = MEMORY / self.dataset.largest(&self.plan.picks).max(1);
        let limit = (self.spec.depth + 2 * threads.min(self.lanes_of_disk)).min(fit.max(2) as usize);
        let state = Mutex::new(State {
            lanes: (0..self.lanes.len())
                .map(|lane| {
                    let (disk, number) = (lane / self.lanes_of_disk, (lane % self.lanes_of_disk) as u64);
                    // The first partition of the lane that is not done.
                    let done = self.done[disk];
                    Lane {
                        pending: BTreeMap::new(),
                        next: done + (number + lanes - done % lanes) % lanes,
                        is_busy: false,
                    }
                })
                .collect(),
            next: self.done.clone(),
            targets: targets.to_vec(),
            in_memory: vec![0; targets.len()],
            readers: self.spec.depth * targets.len(),
            computing: threads,
            stop: false,
            is_broken: false,
            error: None,
            pool: Vec::new(),
            bytes_read: 0,
        });
        let (ready, room) = (Condvar::new(), Condvar::new());
        let engine = &*self;
        let reader = &|disk: usize| {
            let _leaving = Leaving(&state, &ready, &room);
            let mut guard = locked(&state);
            loop {
                while guard.in_memory[disk] >= limit && !guard.stop {
                    guard = room.wait(guard).unwrap_or_else(PoisonError::into_inner);
                }
                let number = guard.next[disk];
                // That ends the sample where it is, but not below two partitions.
                if number >= 2 && until.is_over(&guard.next, targets) {
                    guard.targets[disk] = guard.targets[disk].min(number);
                }
                if guard.stop || number >= guard.targets[disk] {
                    break;
                }
                guard.next[disk] += 1;
                guard.in_memory[disk] += 1;
                let mut buffer = guard.pool.pop().unwrap_or_default();
                drop(guard);
                let partition = {
                    let mut order = locked(&orders[disk]);
                    locked(&permutations[disk]).extend(&mut order, number + 1);
                    order[number as usize]
                };
                let loaded = read::load(engine.dataset.place(disk, partition), &engine.plan.picks, &mut buffer);
                guard = locked(&state);
                match loaded {
                    Ok(loaded) => {
                        let lane = disk * engine.lanes_of_disk + (number % lanes) as usize;
                        guard.lanes[lane].pending.insert(number, Part { buffer, loaded });
                    }
                    Err(error) => guard.fail((disk, number), error),
                }
                ready.notify_all();
            }
            guard.readers -= 1;
            drop(guard);
            ready.notify_all();
            room.notify_all();
        };
        let computer = &|thread: usize| {
            let _leaving = Leaving(&state, &ready, &room);
            let mut room_for = Room::of(thread);
            let mut guard = locked(&state);
            loop {
                let is_ready = |&at: &usize| guard.lanes[at].is_ready();
                // Lanes of its own first: their groups may still be in the core's cache.
                let own = (thread..guard.lanes.len()).step_by(threads).find(is_ready);
                let found = own.or_else(|| (0..guard.lanes.len()).find(is_ready));
                let is_over = guard.readers == 0 && guard.lanes.iter().all(|lane| lane.pending.is_empty());
                let Some(at) = found.filter(|_| !guard.stop) else {
                    if guard.stop || is_over {
                        break;
                    }
                    guard = ready.wait(guard).unwrap_or_else(PoisonError::into_inner);
                    continue;
                };
                let lane = &mut guard.lanes[at];
                let Some((number, mut part)) = lane.pending.pop_first() else {
                    continue;
                };
                lane.is_busy = true;
                drop(guard);
                let disk = at / engine.lanes_of_disk;
                let partition = locked(&orders[disk])[number as usize];
                let counted = {
                    let mut totals = locked(&engine.lanes[at]);
                    let counted = engine.count(disk, partition, &mut part, &mut totals, &mut room_for);
                    if let Some(most) = engine.most_groups {
                        totals.forget(most);
                    }
                    counted
                };
                guard = locked(&state);
                guard.lanes[at].is_busy = false;
                guard.lanes[at].next += lanes;
                guard.in_memory[disk] -= 1;
                guard.bytes_read += part.loaded.bytes_read;
                guard.pool.push(part.buffer);
                if let Err(error) = counted {
                    guard.fail((disk, number), error);
                }
                ready.notify_all();
                room.notify_all();
            }
            guard.computing -= 1;
            drop(guard);
            ready.notify_all();
            room.notify_all();
        };
        let mut stopped = Ok(());
        std::thread::scope(|scope| {
            for disk in 0..targets.len() {
                for _ in 0..engine.spec.depth {
                    scope.spawn(move || reader(disk));
                }
            }
            for thread in 0..threads {
                scope.spawn(move || computer(thread));
            }
            let mut guard = locked(&state);
            while (guard.computing > 0 || guard.readers > 0) && !guard.is_broken {
                guard = ready
                    .wait_timeout(guard, WATCH)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                if stopped.is_ok() {
                    let bytes_read = engine.bytes_read + guard.bytes_read;
                    drop(guard);
                    stopped = go_on(&|| engine.progress(targets, bytes_read));
                    guard = locked(&state);
                    if stopped.is_err() {
                        guard.stop = true;
                        ready.notify_all();
                        room.notify_all();
                    }
                }
            }
        });
        stopped?;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, error)) = state.error {
            return Err(error);
        }
        let unlocked = |mutex: Mutex<_>| mutex.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.permutations = permutations
            .into_iter()
            .map(|p| p.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        self.orders = orders.into_iter().map(unlocked).collect();
        self.done = state.next;
        self.bytes_read += state.bytes_read;
        for lane in &self.lanes {
            locked(lane).close();
        }
        Ok(())
    }
}
