//! Partitions through a plan, by threads, handed out in a fixed order.
//!
//! # Model
//! Each disk has `depth` threads that read its partitions in order; other threads take what is read through the plan. A window of the order is under way at
//! once; what is done waits for its turn, so that results do not depend on threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ftlab_core::Result;

use super::plan::{Part, Plan};
use super::source::Source;
use crate::frames::Unpacker;
use crate::read::{self, Loaded};

/// How often Ctrl-C is looked for.
const WATCH: Duration = Duration::from_millis(50);

pub struct PartStream {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    source: Arc<Source>,
    plan: Plan,
    /// Disk and partition.
    order: Vec<(usize, u64)>,
    window: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Of each disk, places in the order that are not yet read.
    unread: Vec<std::vec::IntoIter<usize>>,
    read: BTreeMap<usize, (Vec<u8>, Loaded)>,
    done: BTreeMap<usize, Result<Part>>,
    next: usize,
    is_over: bool,
    pool: Vec<Vec<u8>>,
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartStream {
    pub fn start(
        source: &Arc<Source>,
        plan: Plan,
        order: Vec<(usize, u64)>,
        threads: usize,
        depth: usize,
    ) -> PartStream {
        let disks = source.dataset.disks.len();
        let mut unread = vec![Vec::new(); disks];
        for (at, (disk, _)) in order.iter().enumerate() {
            unread[*disk].push(at);
        }
        let shared = Arc::new(Shared {
            source: source.clone(),
            plan,
            order,
            window: depth * disks + 2 * threads,
            state: Mutex::new(State {
                unread: unread.into_iter().map(Vec::into_iter).collect(),
                read: BTreeMap::new(),
                done: BTreeMap::new(),
                next: 0,
                is_over: false,
                pool: Vec::new(),
            }),
            changed: Condvar::new(),
        });
        let mut handles = Vec::new();
        for disk in 0..disks {
            for _ in 0..depth {
                let shared = shared.clone();
                handles.push(std::thread::spawn(move || reads(&shared, disk)));
            }
        }
        for _ in 0..threads {
            let shared = shared.clone();
            handles.push(std::thread::spawn(move || computes(&shared)));
        }
        PartStream {
            shared,
            threads: handles,
        }
    }

    /// The next in order, none behind the last. `go_on` is called now and then, and may refuse.
    pub fn next(&self, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Option<Part>> {
        let mut state = self.shared.locked();
        loop {
            let next = state.next;
            if next == self.shared.order.len() {
                return Ok(None);
            }
            if let Some(part) = state.done.remove(&next) {
                state.next += 1;
                drop(state);
                self.shared.changed.notify_all();
                return part.map(Some);
            }
            let (guard, waited) = self
                .shared
                .changed
                .wait_timeout(state, WATCH)
                .unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if waited.timed_out() {
                drop(state);
                go_on()?;
                state = self.shared.locked();
            }
        }
    }
}

impl Drop for PartStream {
    fn drop(&mut self) {
        self.shared.locked().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn reads(shared: &Shared, disk: usize) {
    let mut state = shared.locked();
    loop {
        let Some(&at) = state.unread[disk].as_slice().first() else {
            return;
        };
        if state.is_over {
            return;
        }
        if at >= state.next + shared.window {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        state.unread[disk].next();
        let mut buffer = state.pool.pop().unwrap_or_default();
        drop(state);
        let loaded = read::load(shared.source.dataset.place(disk, shared.order[at].1), &[], &mut buffer);
        state = shared.locked();
        match loaded {
            Ok(loaded) => {
                state.read.insert(at, (buffer, loaded));
            }
            Err(error) => {
                state.done.insert(at, Err(error));
            }
        }
        shared.changed.notify_all();
    }
}

fn computes(shared: &Shared) {
    let mut unpacker = Unpacker::default();
    let mut state = shared.locked();
    loop {
        if state.is_over || state.next == shared.order.len() {
            return;
        }
        let Some((at, (mut buffer, mut loaded))) = state.read.pop_first() else {
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(state);
        let (disk, partition) = shared.order[at];
        let dataset = &shared.source.dataset;
        let place = dataset.place(disk, partition);
        let part = read::unpack(place, &mut loaded, &mut buffer, &mut unpacker)
            .and_then(|()| shared.plan.run(dataset, disk, partition, &buffer, &loaded));
        state = shared.locked();
        state.done.insert(at, part);
        state.pool.push(buffer);
        shared.changed.notify_all();
    }
}
