//! Collection in steps, on the timed backend: a preemptible or background collection moves a few units per step and goes on
//! when those have been programmed; what has been invalidated in between is not moved.

use ftlab_core::{LaneId, RuId, Slot};

use crate::backend::{Backend, Cause, Need, Notice, Ticket};
use crate::copies::Copies;
use crate::ftl::Ftl;

/// A collection in steps.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub ru: RuId,
    pub cause: Cause,
    /// Offset in the unit up to which everything has been moved.
    pub done: u32,
    /// Programs of its copies so far.
    pub copies: Copies,
}

const SHORTEST_WAIT_NS: u64 = 10_000;

impl<B: Backend> Ftl<B> {
    /// Ends every collection under way (a clean shutdown).
    pub(crate) fn finish_jobs(&mut self) {
        for pool in 0..self.gc.jobs.len() {
            self.finish_job(pool);
        }
    }

    pub(super) fn consider_early_collection(&mut self, pool: usize) {
        if self.units.pools[pool].free > self.config.gc.soft || self.gc.jobs[pool].is_some() {
            return;
        }
        if self.config.gc.preemptible {
            // Work that begins while nothing else is going on counts as background work.
            let background = self.config.gc.background && self.pool_is_idle(pool, 0);
            self.start_job(pool, background);
        } else {
            self.wait_for_idle(pool);
        }
    }

    /// The job of the pool goes on with the next event, or when an earlier job's last step would have.
    fn step_soon(&mut self, pool: usize) {
        if !std::mem::replace(&mut self.gc.waits_for_step[pool], true) {
            self.backend.arm(1, Notice::GcStep { pool: pool as u32 });
        }
    }

    /// Looks at the pool again after the idle time, and not all the time when that is nothing.
    fn wait_for_idle(&mut self, pool: usize) {
        if !std::mem::replace(&mut self.gc.waits_for_idle[pool], true) {
            let delay = self.config.gc.idle_ns.max(SHORTEST_WAIT_NS);
            self.backend.arm(delay, Notice::GcIdle { pool: pool as u32 });
        }
    }

    fn start_job(&mut self, pool: usize, background: bool) {
        // Below the reserve collection is urgent, and not in steps.
        if self.units.pools[pool].free < self.config.gc.hard {
            return;
        }
        let Some(ru) = self.choose_victim(pool) else { return };
        if self.units.valid(ru) == self.layout.slots_per_ru {
            return;
        }
        self.begin(ru, Cause::Gc);
        self.counts.gc_background_collections += u64::from(background);
        self.gc.jobs[pool] = Some(Job {
            ru,
            cause: Cause::Gc,
            done: 0,
            copies: Copies::default(),
        });
        // Not at once: the host write that has just made room is about to open a unit.
        self.step_soon(pool);
    }

    /// Moves the next few valid units of the pool's job; when nothing is left, erases.
    fn step_job(&mut self, pool: usize) {
        self.gc.depth += 1;
        self.step_job_inside(pool);
        self.gc.depth -= 1;
        // The reserve is for the copies: host writes may not fill a unit that was opened from it before it is replaced.
        if self.units.pools[pool].free < self.config.gc.hard && self.frontiers.survivors_join_host() {
            self.finish_job(pool);
        }
    }

    fn step_job_inside(&mut self, pool: usize) {
        let Some(mut job) = self.gc.jobs[pool].take() else {
            return;
        };
        let base = self.layout.first_slot(job.ru);
        let (all, step) = (self.layout.slots_per_ru, self.config.gc.step_units.max(1));
        let mut count = 0;
        let mut found = 0;
        while job.done + count < all && found < step {
            found += u32::from(self.record.is_valid(Slot(base.0 + job.done + count)));
            count += 1;
        }
        self.gc.copies.clear();
        if !self.move_valid(job.ru, Slot(base.0 + job.done), count, job.cause) {
            self.abandon(job.ru, job.cause);
            return;
        }
        job.done += count;
        job.copies.append(&self.gc.copies);
        if job.done == all {
            std::mem::swap(&mut self.gc.copies, &mut job.copies);
            self.end(job.ru, job.cause);
            self.consider_early_collection(pool);
            return;
        }
        // Copies that wait in a page being assembled have no program yet; the step then goes on after its reads.
        let step = Notice::GcStep { pool: pool as u32 };
        if self.gc.copies.is_empty() {
            self.step_soon(pool);
        } else if !std::mem::replace(&mut self.gc.waits_for_step[pool], true) {
            let width = self.layout.width;
            self.backend.join(
                self.gc.copies.last_of_each_block(width),
                Need::All,
                Ticket::NONE,
                Some(step),
            );
        }
        self.gc.jobs[pool] = Some(job);
    }

    /// The hard threshold has been reached: the rest of the pool's job is done at once. False if there is no job.
    pub(super) fn finish_job(&mut self, pool: usize) -> bool {
        let Some(mut job) = self.gc.jobs[pool].take() else {
            return false;
        };
        self.gc.depth += 1;
        let base = self.layout.first_slot(job.ru);
        self.gc.copies.clear();
        std::mem::swap(&mut self.gc.copies, &mut job.copies);
        if self.move_valid(
            job.ru,
            Slot(base.0 + job.done),
            self.layout.slots_per_ru - job.done,
            job.cause,
        ) {
            self.end(job.ru, job.cause);
        } else {
            self.abandon(job.ru, job.cause);
        }
        self.gc.depth -= 1;
        true
    }

    /// The next step of the pool's collection has been called for.
    pub(crate) fn step_due(&mut self, pool: usize) {
        self.gc.waits_for_step[pool] = false;
        let mid_idle = !self.config.gc.preemptible && !self.pool_is_idle(pool, 0);
        if mid_idle && self.gc.jobs[pool].is_some() {
            // Background work gives way; it goes on when the dies are idle again.
            self.wait_for_idle(pool);
        } else {
            self.step_job(pool);
        }
    }

    /// The idle time of the pool has passed since it was last looked at.
    pub(crate) fn idle_due(&mut self, pool: usize) {
        self.gc.waits_for_idle[pool] = false;
        if self.pool_is_idle(pool, self.config.gc.idle_ns) {
            if self.gc.jobs[pool].is_some() {
                self.step_job(pool);
            } else if self.units.pools[pool].free <= self.config.gc.soft {
                self.start_job(pool, true);
            }
        } else if self.units.pools[pool].free <= self.config.gc.soft || self.gc.jobs[pool].is_some() {
            self.wait_for_idle(pool);
        }
    }

    /// Whether every die of the pool has had nothing to do for `idle_ns`.
    fn pool_is_idle(&self, pool: usize, idle_ns: u64) -> bool {
        self.units.pools[pool]
            .lanes
            .iter()
            .all(|&lane| self.lane_is_idle(lane, idle_ns))
    }

    /// Whether every die of the lane has had nothing to do for `idle_ns`.
    pub(crate) fn lane_is_idle(&self, lane: LaneId, idle_ns: u64) -> bool {
        let now = self.backend.now_ns();
        self.layout.lane_dies(lane).iter().all(|&die| {
            let load = self.backend.load(die);
            load.idle_since_ns
                .is_some_and(|since| since.saturating_add(idle_ns) <= now)
        })
    }
}
