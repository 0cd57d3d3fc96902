//! A backend on the timed code path without time: every operation is checked and complete when it is issued.

use ftlab_core::Layout;
use ftlab_ftl::{Backend, FlashOp, Load, Need, Notice, OpId, Ticket};

use crate::double::Double;
use crate::nand::Nand;

#[derive(Debug)]
pub struct Instant {
    nand: Nand,
    now_ns: u64,
    timers: Vec<(u64, Notice)>,
    notices: Vec<Notice>,
}

impl Instant {
    fn raise(&mut self, notice: Option<Notice>) {
        self.notices.extend(notice);
    }
}

impl Backend for Instant {
    const TIMED: bool = true;

    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId {
        assert!(
            after.iter().all(|&id| id == OpId::DONE),
            "{op:?} waits for {after:?}, which were never issued"
        );
        self.nand.issue(&op);
        self.raise(op.notice);
        OpId::DONE
    }

    fn join(&mut self, inputs: &[OpId], _: Need, _: Ticket, notice: Option<Notice>) -> OpId {
        assert!(!inputs.is_empty(), "a join of nothing");
        self.raise(notice);
        OpId::DONE
    }

    fn join_more(&mut self, _: OpId, _: OpId) {}

    fn cancel(&mut self, _: OpId) {}

    fn is_done(&self, _: OpId) -> bool {
        true
    }

    fn compute(&mut self, _: u16, _: u64, after: &[OpId], _: Ticket) -> OpId {
        assert!(
            after.iter().all(|&id| id == OpId::DONE),
            "a work waits for {after:?}, which were never issued"
        );
        OpId::DONE
    }

    fn arm(&mut self, delay_ns: u64, notice: Notice) {
        self.timers.push((self.now_ns + delay_ns, notice));
    }

    fn barrier(&mut self, _: Ticket) {}

    fn load(&self, _: u32) -> Load {
        Load {
            idle_since_ns: Some(0),
            ..Load::default()
        }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

impl Double for Instant {
    fn new(layout: &Layout, _: u64) -> Self {
        Instant {
            nand: Nand::new(layout),
            now_ns: 0,
            timers: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Fires the next timers.
    fn run(&mut self, steps: u32) -> bool {
        for _ in 0..steps {
            let next = (0..self.timers.len()).min_by_key(|&i| (self.timers[i].0, i));
            let Some(next) = next else { return false };
            let (due, notice) = self.timers.remove(next);
            self.now_ns = self.now_ns.max(due);
            self.notices.push(notice);
        }
        true
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn is_acknowledged(&self, _: Ticket) -> bool {
        true
    }

    fn cut(&mut self, _: bool) {
        self.timers.clear();
        self.notices.clear();
        for block in 0..self.nand.blocks() {
            if !self.nand.is_blank(block) {
                self.nand.spoil(block);
            }
        }
    }

    fn holds(&self, page: u32) -> bool {
        self.nand.holds(page)
    }

    fn tally(&self) -> Option<(u64, u64)> {
        Some((self.nand.programs, self.nand.erases))
    }
}
