//! A backend that completes operations late, in a random order that the dependencies allow.
//!
//! What the contract promises is kept and no more: an operation completes after its dependencies; a program after the
//! earlier programs and erases of its block; an erase after everything earlier on its block.

use std::cell::Cell;
use std::collections::VecDeque;

use ftlab_core::{Layout, Stream};
use ftlab_ftl::{Backend, Class, FlashOp, FlashOpKind, Load, Need, Notice, OpId, Ticket};
use rustc_hash::FxHashMap;

use crate::double::Double;
use crate::nand::Nand;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Pending,
    Done,
    /// Power failed before it completed.
    Lost,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Flash(FlashOp),
    Engine { engine: u16, ticket: Ticket },
    Join { ticket: Ticket, notice: Option<Notice> },
}

#[derive(Debug)]
struct Operation {
    work: Work,
    state: State,
    /// Operations that must complete before it.
    left: u32,
    /// Operations that wait for it.
    dependents: Vec<u32>,
}

#[derive(Debug)]
pub struct Late {
    layout: Layout,
    issued: Nand,
    /// Whether each page is physically programmed, by block and page number.
    complete: Vec<Vec<bool>>,
    operations: Vec<Operation>,
    /// Operations that may complete: of flash, and the first work of each engine.
    ready: Vec<u32>,
    /// Works that could begin, by engine, oldest first.
    of_engine: FxHashMap<u16, VecDeque<u32>>,
    /// Pending flash operations of each block, oldest first.
    of_block: Vec<Vec<u32>>,
    /// Operations that have not completed, and those of them that carry each ticket.
    pending: u32,
    waiting: FxHashMap<u32, u32>,
    loads: Vec<Load>,
    timers: Vec<(u64, Notice)>,
    notices: Vec<Notice>,
    now_ns: u64,
    random: Stream,
    /// How many unfinished operations the FTL has named for others to wait for.
    named: Cell<u64>,
    /// Between a cut and the first operation after it: pages are looked up by what has completed.
    after_cut: bool,
}

impl Late {
    fn push(&mut self, work: Work, after: &[u32], needed: u32, ticket: Ticket) -> OpId {
        let id = self.operations.len() as u32;
        for &before in after {
            let before = &mut self.operations[before as usize];
            assert!(
                before.state != State::Lost,
                "{work:?} waits for an operation that a power cut has ended"
            );
            before.dependents.push(id);
        }
        self.operations.push(Operation {
            work,
            state: State::Pending,
            left: needed,
            dependents: Vec::new(),
        });
        self.pending += 1;
        if ticket.is_awaited() {
            *self.waiting.entry(ticket.0).or_default() += 1;
        }
        if needed == 0 {
            self.make_ready(id);
        }
        OpId {
            index: id,
            generation: 0,
        }
    }

    fn make_ready(&mut self, id: u32) {
        match self.operations[id as usize].work {
            Work::Flash(_) => self.ready.push(id),
            Work::Engine { engine, .. } => {
                let works = self.of_engine.entry(engine).or_default();
                works.push_back(id);
                if works.len() == 1 {
                    self.ready.push(id);
                }
            }
            Work::Join { .. } => self.complete(id),
        }
    }

    fn complete(&mut self, id: u32) {
        let operation = &mut self.operations[id as usize];
        assert!(operation.state == State::Pending, "{operation:?} completes twice");
        operation.state = State::Done;
        let (work, dependents) = (operation.work, std::mem::take(&mut operation.dependents));
        self.pending -= 1;
        let (ticket, notice) = match work {
            Work::Flash(op) => {
                self.complete_flash(id, &op);
                (op.ticket, op.notice)
            }
            Work::Engine { engine, ticket } => {
                let works = self.of_engine.entry(engine).or_default();
                assert!(works.pop_front() == Some(id), "works of engine {engine} out of order");
                self.ready.extend(works.front());
                (ticket, None)
            }
            Work::Join { ticket, notice } => (ticket, notice),
        };
        if ticket.is_awaited() {
            *self.waiting.get_mut(&ticket.0).expect("issued with this ticket") -= 1;
        }
        self.notices.extend(notice);
        self.release(dependents);
    }

    fn release(&mut self, dependents: Vec<u32>) {
        for dependent in dependents {
            let operation = &mut self.operations[dependent as usize];
            if operation.state == State::Pending && operation.left > 0 {
                operation.left -= 1;
                if operation.left == 0 {
                    self.make_ready(dependent);
                }
            }
        }
    }

    fn complete_flash(&mut self, id: u32, op: &FlashOp) {
        let block = self.issued.block_of(op.page);
        let page = self.layout.address(op.page).page as usize;
        match op.kind {
            FlashOpKind::Read => {}
            FlashOpKind::Program => self.complete[block][page] = true,
            FlashOpKind::Erase => self.complete[block].fill(false),
        }
        self.leave(id, op);
    }

    /// The operation is no longer in its block's and die's queues.
    fn leave(&mut self, id: u32, op: &FlashOp) {
        self.of_block[self.issued.block_of(op.page)].retain(|&other| other != id);
        let die = self.die_of(op.page);
        let load = &mut self.loads[die as usize];
        load.queued -= 1;
        load.internal -= u32::from(is_internal(op.class));
        load.idle_since_ns = (load.queued == 0).then_some(self.now_ns);
    }

    fn die_of(&self, page: u32) -> u32 {
        self.layout.die_of_plane(self.layout.address(page).plane)
    }

    fn inputs(&self, ids: &[OpId]) -> Vec<u32> {
        let inputs: Vec<u32> = ids.iter().filter(|&&id| !self.is_done(id)).map(|id| id.index).collect();
        self.named.set(self.named.get() + inputs.len() as u64);
        inputs
    }

    fn kind(&self, id: u32) -> FlashOpKind {
        match self.operations[id as usize].work {
            Work::Flash(op) => op.kind,
            Work::Join { .. } | Work::Engine { .. } => unreachable!("only flash has blocks"),
        }
    }
}

impl Late {
    /// Flash operations that wait for nothing, in order of issue.
    pub fn ready(&self) -> Vec<FlashOp> {
        let mut ready = self.ready.clone();
        ready.sort_unstable();
        let op = |id: u32| match self.operations[id as usize].work {
            Work::Flash(op) => Some(op),
            Work::Join { .. } | Work::Engine { .. } => None,
        };
        ready.into_iter().filter_map(op).collect()
    }

    /// How many operations have been issued, and how many unfinished ones were named for others to wait for.
    pub fn issued_and_named(&self) -> (u64, u64) {
        (self.operations.len() as u64, self.named.get())
    }
}

fn is_internal(class: Class) -> bool {
    matches!(class, Class::Gc | Class::Erase)
}

impl Backend for Late {
    const TIMED: bool = true;

    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId {
        self.after_cut = false;
        self.issued.issue(&op);
        let block = self.issued.block_of(op.page);
        let mut inputs = self.inputs(after);
        let earlier = self.of_block[block].iter().copied();
        match op.kind {
            FlashOpKind::Read => {}
            FlashOpKind::Program => inputs.extend(earlier.filter(|&id| self.kind(id) != FlashOpKind::Read)),
            FlashOpKind::Erase => inputs.extend(earlier),
        }
        let die = self.die_of(op.page);
        let load = &mut self.loads[die as usize];
        load.queued += 1;
        load.internal += u32::from(is_internal(op.class));
        load.idle_since_ns = None;
        let id = self.push(Work::Flash(op), &inputs, inputs.len() as u32, op.ticket);
        self.of_block[block].push(id.index);
        id
    }

    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId {
        assert!(!inputs.is_empty(), "a join of nothing");
        let left = self.inputs(inputs);
        let needed = match need {
            Need::First if left.len() < inputs.len() => 0,
            Need::First => 1,
            Need::All => left.len() as u32,
        };
        self.push(Work::Join { ticket, notice }, &left, needed, ticket)
    }

    fn join_more(&mut self, join: OpId, input: OpId) {
        if !self.is_done(input) {
            self.operations[input.index as usize].dependents.push(join.index);
        } else if !self.is_done(join) {
            self.complete(join.index);
        }
    }

    fn cancel(&mut self, id: OpId) {
        if self.is_done(id) {
            return;
        }
        let Work::Flash(op) = self.operations[id.index as usize].work else {
            panic!("only reads may be cancelled")
        };
        assert!(op.kind == FlashOpKind::Read, "only reads may be cancelled: {op:?}");
        self.operations[id.index as usize].state = State::Done;
        self.pending -= 1;
        self.ready.retain(|&other| other != id.index);
        self.leave(id.index, &op);
        let dependents = std::mem::take(&mut self.operations[id.index as usize].dependents);
        self.release(dependents);
    }

    fn is_done(&self, id: OpId) -> bool {
        id == OpId::DONE || self.operations[id.index as usize].state == State::Done
    }

    fn compute(&mut self, engine: u16, _: u64, after: &[OpId], ticket: Ticket) -> OpId {
        let inputs = self.inputs(after);
        self.push(Work::Engine { engine, ticket }, &inputs, inputs.len() as u32, ticket)
    }

    fn arm(&mut self, delay_ns: u64, notice: Notice) {
        self.timers.push((self.now_ns + delay_ns, notice));
    }

    fn barrier(&mut self, ticket: Ticket) {
        let pending = self.of_block.iter().flatten().copied();
        let programs: Vec<u32> = pending.filter(|&id| self.kind(id) == FlashOpKind::Program).collect();
        if !programs.is_empty() && ticket.is_awaited() {
            self.push(
                Work::Join { ticket, notice: None },
                &programs,
                programs.len() as u32,
                ticket,
            );
        }
    }

    fn load(&self, die: u32) -> Load {
        self.loads[die as usize]
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

impl Double for Late {
    fn new(layout: &Layout, seed: u64) -> Self {
        let issued = Nand::new(layout);
        let idle = Load {
            idle_since_ns: Some(0),
            ..Load::default()
        };
        Late {
            of_block: vec![Vec::new(); issued.blocks()],
            complete: vec![vec![false; layout.geometry.pages as usize]; issued.blocks()],
            issued,
            operations: Vec::new(),
            ready: Vec::new(),
            of_engine: FxHashMap::default(),
            pending: 0,
            waiting: FxHashMap::default(),
            loads: vec![idle; layout.geometry.total_dies() as usize],
            timers: Vec::new(),
            notices: Vec::new(),
            now_ns: 0,
            random: Stream::new(seed, "late"),
            named: Cell::new(0),
            after_cut: false,
            layout: layout.clone(),
        }
    }

    fn run(&mut self, steps: u32) -> bool {
        for _ in 0..steps {
            self.now_ns += 1 + self.random.below(50_000);
            let now = self.now_ns;
            let due = self.timers.iter().position(|&(due, _)| due <= now);
            if let Some(timer) = due
                && (self.ready.is_empty() || self.random.below(2) == 0)
            {
                let (_, notice) = self.timers.remove(timer);
                self.notices.push(notice);
                continue;
            }
            if self.ready.is_empty() {
                let pending = self.pending;
                assert!(pending == 0, "{pending} operations wait for each other");
                return false;
            }
            let chosen = self.random.below(self.ready.len() as u64) as usize;
            let id = self.ready.swap_remove(chosen);
            self.complete(id);
        }
        true
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn is_acknowledged(&self, ticket: Ticket) -> bool {
        self.waiting.get(&ticket.0).is_none_or(|&left| left == 0)
    }

    fn cut(&mut self, protected: bool) {
        self.timers.clear();
        if protected {
            while self.run(1) {}
        }
        for block in 0..self.issued.blocks() {
            let lost = std::mem::take(&mut self.of_block[block]);
            if !lost.is_empty() || !self.issued.is_blank(block) {
                self.issued.spoil(block);
            }
        }
        for operation in &mut self.operations {
            if operation.state == State::Pending {
                operation.state = State::Lost;
            }
        }
        for load in &mut self.loads {
            *load = Load {
                idle_since_ns: Some(self.now_ns),
                ..Load::default()
            };
        }
        self.pending = 0;
        self.ready.clear();
        self.of_engine.clear();
        self.waiting.clear();
        self.notices.clear();
        self.after_cut = true;
    }

    fn holds(&self, page: u32) -> bool {
        if self.after_cut {
            self.complete[self.issued.block_of(page)][self.layout.address(page).page as usize]
        } else {
            self.issued.holds(page)
        }
    }

    fn tally(&self) -> Option<(u64, u64)> {
        Some((self.issued.programs, self.issued.erases))
    }
}
