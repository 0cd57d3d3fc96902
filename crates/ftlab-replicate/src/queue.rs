//! The queue of a partition, with the thread that works on it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::hold;

/// An access to the disk, whole with what follows from it.
pub type Job = Box<dyn FnOnce() + Send>;

/// Deferred jobs that a partition keeps; what comes later is left undone.
const MOST_DEFERRED: usize = 64;

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// For a moment without other jobs.
    deferred: VecDeque<Job>,
    running: usize,
    ends: bool,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// One job at a time, in order; deferred ones when there has been none for a while.
pub struct Queue {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Queue {
    /// `idle`: how long it is without a job before a deferred one is begun.
    pub fn start(number: usize, idle: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let thread = Builder::new()
            .name(format!("partition {number}"))
            .stack_size(256 << 10)
            .spawn(move || work(&its, idle))?;
        Ok(Queue {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    pub fn add(&self, job: Job) {
        hold(&self.shared.waiting).jobs.push_back(job);
        self.shared.changed.notify_one();
    }

    /// Whether there was room for it.
    pub fn defer(&self, job: Job) -> bool {
        let mut waiting = hold(&self.shared.waiting);
        if waiting.deferred.len() >= MOST_DEFERRED {
            return false;
        }
        waiting.deferred.push_back(job);
        self.shared.changed.notify_one();
        true
    }

    /// Jobs that wait or run.
    pub fn len(&self) -> usize {
        let waiting = hold(&self.shared.waiting);
        waiting.jobs.len() + waiting.running
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends when all jobs are done; deferred ones are left undone.
    pub fn end(&self) {
        hold(&self.shared.waiting).ends = true;
        self.shared.changed.notify_one();
        if let Some(thread) = hold(&self.thread).take() {
            // A job that panicked has reported nothing: those who wait for it have their own end.
            let _ = thread.join();
        }
    }
}

fn work(shared: &Shared, idle: Duration) {
    let mut waiting = hold(&shared.waiting);
    loop {
        if let Some(job) = waiting.jobs.pop_front() {
            waiting = run(shared, waiting, job);
        } else if waiting.ends {
            waiting.deferred.clear();
            return;
        } else if waiting.deferred.is_empty() {
            waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        } else {
            let waited = shared.changed.wait_timeout(waiting, idle);
            let (held, time) = waited.unwrap_or_else(PoisonError::into_inner);
            waiting = held;
            if time.timed_out()
                && waiting.jobs.is_empty()
                && !waiting.ends
                && let Some(job) = waiting.deferred.pop_front()
            {
                waiting = run(shared, waiting, job);
            }
        }
    }
}

fn run<'a>(
    shared: &'a Shared,
    mut waiting: std::sync::MutexGuard<'a, Waiting>,
    job: Job,
) -> std::sync::MutexGuard<'a, Waiting> {
    waiting.running = 1;
    drop(waiting);
    job();
    let mut waiting = hold(&shared.waiting);
    waiting.running = 0;
    waiting
}
