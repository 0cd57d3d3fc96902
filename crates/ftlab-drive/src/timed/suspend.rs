//! Suspension of programs and erases for reads.
//!
//! A host or mapping read that becomes ready while its die programs or erases suspends that work, if the plan and the flash
//! allow it, the work has been suspended fewer than `max_suspends` times, and it needs more cell time than the suspension
//! itself takes. A suspension begins in the cell phase: a read that comes during the command, the data or the resumption
//! before it takes effect at its beginning. After `suspend_ns` the die takes ready host and mapping reads; when there
//! is none left, it resumes: `resume_ns`, then the remaining cell time.

use ftlab_ftl::FlashOpKind;

use super::Timed;
use super::dies::{Doing, Parked};

impl Timed {
    /// A die that programs or erases has been given new work.
    #[inline(never)]
    pub(super) fn consider_suspending(&mut self, number: u16) {
        let now = self.now;
        let timing = &self.timing;
        let die = &mut self.dies[usize::from(number)];
        if !std::mem::take(&mut die.urged) {
            return;
        }
        let allowed = match die.batch.kind {
            FlashOpKind::Program => timing.suspend_program,
            FlashOpKind::Erase => timing.suspend_erase,
            FlashOpKind::Read => false,
        };
        let from = die.cell_from_ns.max(now);
        let remaining_ns = die.cell_until_ns - from;
        if !allowed
            || die.batch.suspends >= timing.max_suspends
            || remaining_ns <= timing.suspend_ns
            || die.urgent(&self.ops) == 0
        {
            return;
        }
        die.batch.suspends += 1;
        die.parked = Some(Parked {
            batch: die.batch,
            remaining_ns,
        });
        die.doing = Doing::Suspending;
        self.counts.suspends += 1;
        self.agenda.set(usize::from(number), from + timing.suspend_ns);
    }

    /// No read is left for which the suspended work should wait.
    #[inline(never)]
    pub(super) fn resume(&mut self, number: u16) {
        let now = self.now;
        let die = &mut self.dies[usize::from(number)];
        let Some(parked) = die.parked.take() else { return };
        die.batch = parked.batch;
        die.urged = false;
        die.cell_from_ns = now + self.timing.resume_ns;
        die.cell_until_ns = die.cell_from_ns + parked.remaining_ns;
        die.hold(Doing::Changing, now);
        self.agenda.push(usize::from(number), die.cell_until_ns);
    }
}
