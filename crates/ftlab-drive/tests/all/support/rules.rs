//! The rules of order (ARCHITECTURE.md, section 7), held against everything that the timed backend reports.
//!
//! Written without its tables: each operation knows what it must wait for, each page which program it holds.

use std::collections::BTreeMap;

use ftlab_core::Layout;
use ftlab_drive::schedule::Phase;
use ftlab_drive::timed::{Observer, Outstanding, Span, Subject};
use ftlab_flash::Timing;
use ftlab_ftl::{Class, FlashOp, FlashOpKind, Load, OpId, Ticket};

/// What a page holds: nothing, something undefined, or what program number 1, 2, ... put there.
type Content = u64;
const BLANK: Content = 0;
const UNDEFINED: Content = u64::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Flash,
    /// A read of a page that an unfinished program carries: it needs the data of the program and no flash.
    Served {
        program: usize,
    },
    All,
    First,
}

#[derive(Debug)]
struct Operation {
    kind: Kind,
    op: Option<FlashOp>,
    /// Operations that it depends on, and earlier ones on its block that it follows.
    after: Vec<usize>,
    earlier: Vec<usize>,
    /// What a read must find and a program leaves behind.
    content: Content,
    /// Its command, with the data of a program; the data of a read.
    commanded: Option<Span>,
    sent: Option<Span>,
    done: bool,
}

pub struct Rules {
    layout: Layout,
    timing: Timing,
    operations: Vec<Operation>,
    numbers: BTreeMap<(u32, u32), usize>,
    /// What the pages of each block hold, and what they will hold when everything issued has completed.
    cells: Vec<Vec<Content>>,
    issued: Vec<Vec<Content>>,
    /// Unfinished flash operations of each block, oldest first.
    of_block: Vec<Vec<usize>>,
    /// Operations that carry each unfinished ticket.
    tickets: BTreeMap<u32, Vec<usize>>,
    channel_free_ns: Vec<u64>,
    die_free_ns: Vec<u64>,
    programs: Content,
}

impl Rules {
    pub fn new(layout: &Layout, timing: &Timing) -> Self {
        let g = &layout.geometry;
        let blocks = (g.total_planes() * g.blocks) as usize;
        let blank = vec![vec![BLANK; g.pages as usize]; blocks];
        Rules {
            layout: layout.clone(),
            timing: timing.clone(),
            operations: Vec::new(),
            numbers: BTreeMap::new(),
            cells: blank.clone(),
            issued: blank,
            of_block: vec![Vec::new(); blocks],
            tickets: BTreeMap::new(),
            channel_free_ns: vec![0; g.channels as usize],
            die_free_ns: vec![0; g.total_dies() as usize],
            programs: 0,
        }
    }

    /// Block and page of a drive-wide page number.
    fn place(&self, page: u32) -> (usize, usize) {
        let at = self.layout.address(page);
        let block = at.plane * self.layout.geometry.blocks + at.block;
        (block as usize, at.page as usize)
    }

    fn numbers_of(&self, ids: &[OpId]) -> Vec<usize> {
        ids.iter()
            .filter(|&&id| id != OpId::DONE)
            .map(|id| self.number_of(*id))
            .collect()
    }

    fn number_of(&self, id: OpId) -> usize {
        *self
            .numbers
            .get(&(id.index, id.generation))
            .unwrap_or_else(|| panic!("{id:?} was never issued"))
    }

    fn add(&mut self, id: OpId, ticket: Ticket, operation: Operation) -> usize {
        let number = self.operations.len();
        self.operations.push(operation);
        self.numbers.insert((id.index, id.generation), number);
        if ticket.is_awaited() {
            self.tickets.entry(ticket.0).or_default().push(number);
        }
        number
    }

    pub fn issue(&mut self, op: FlashOp, after: &[OpId], id: OpId) {
        let (block, page) = self.place(op.page);
        let is_earlier = |&earlier: &usize| match op.kind {
            FlashOpKind::Read => false,
            FlashOpKind::Program => self.kind_of(earlier) != FlashOpKind::Read,
            FlashOpKind::Erase => true,
        };
        let earlier: Vec<usize> = self.of_block[block].iter().copied().filter(is_earlier).collect();
        let after = self.numbers_of(after);
        let mut kind = Kind::Flash;
        let will_hold = &mut self.issued[block];
        match op.kind {
            FlashOpKind::Read => {
                let carries = |&number: &usize| {
                    self.operations[number].content == will_hold[page]
                        && self.operations[number]
                            .op
                            .is_some_and(|op| op.kind == FlashOpKind::Program)
                };
                if let Some(program) = self.of_block[block].iter().copied().find(carries) {
                    kind = Kind::Served { program };
                }
            }
            FlashOpKind::Program => {
                self.programs += 1;
                will_hold[page] = self.programs;
            }
            FlashOpKind::Erase => will_hold.fill(BLANK),
        }
        let content = will_hold[page];
        let operation = Operation {
            kind,
            op: Some(op),
            after,
            earlier,
            content,
            commanded: None,
            sent: None,
            done: false,
        };
        let number = self.add(id, op.ticket, operation);
        if kind == Kind::Flash {
            self.of_block[block].push(number);
        }
    }

    pub fn join(&mut self, inputs: &[OpId], all: bool, ticket: Ticket, id: OpId) {
        let operation = self.joined(self.numbers_of(inputs), all);
        // An input that is no operation at all has completed.
        let met = !all && inputs.contains(&OpId::DONE);
        let number = self.add(id, ticket, operation);
        self.operations[number].done = met;
    }

    fn joined(&self, after: Vec<usize>, all: bool) -> Operation {
        Operation {
            kind: if all { Kind::All } else { Kind::First },
            op: None,
            after,
            earlier: Vec::new(),
            content: BLANK,
            commanded: None,
            sent: None,
            done: false,
        }
    }

    pub fn join_more(&mut self, join: OpId, input: OpId) {
        let join = self.number_of(join);
        match input {
            OpId::DONE => self.operations[join].done |= self.operations[join].kind == Kind::First,
            input => {
                let input = self.number_of(input);
                self.operations[join].after.push(input);
            }
        }
    }

    /// `ticket` waits for every unfinished program.
    pub fn barrier(&mut self, ticket: Ticket) {
        let unfinished = self.of_block.iter().flatten().copied();
        let programs = unfinished.filter(|&number| self.kind_of(number) == FlashOpKind::Program);
        let number = self.operations.len();
        let operation = self.joined(programs.collect(), true);
        self.operations.push(operation);
        self.tickets.entry(ticket.0).or_default().push(number);
    }

    /// Who waits for it goes on; if it has begun, its die goes on with it as well.
    pub fn cancel(&mut self, id: OpId) {
        if id == OpId::DONE {
            return;
        }
        let number = self.number_of(id);
        let operation = &mut self.operations[number];
        if let Some(op) = &mut operation.op {
            let ticket = std::mem::replace(&mut op.ticket, Ticket::NONE);
            if let Some(of_ticket) = self.tickets.get_mut(&ticket.0) {
                of_ticket.retain(|&other| other != number);
            }
            if op.kind == FlashOpKind::Read && operation.commanded.is_none() && !operation.done {
                operation.done = true;
                let (block, _) = self.place(self.op(number).page);
                self.of_block[block].retain(|&other| other != number);
            }
        }
    }

    fn op(&self, number: usize) -> FlashOp {
        self.operations[number].op.expect("a flash operation")
    }

    fn kind_of(&self, number: usize) -> FlashOpKind {
        self.op(number).kind
    }

    fn is_done(&mut self, number: usize) -> bool {
        if !self.operations[number].done && self.operations[number].kind != Kind::Flash {
            let after = self.operations[number].after.clone();
            let done = match self.operations[number].kind {
                Kind::First => after.is_empty() || after.iter().any(|&input| self.is_done(input)),
                Kind::All | Kind::Flash => after.iter().all(|&input| self.is_done(input)),
                Kind::Served { program } => {
                    let data = self.operations[program].after.clone();
                    after.iter().chain(&data).all(|&input| self.is_done(input))
                }
            };
            self.operations[number].done = done;
        }
        self.operations[number].done
    }

    /// The backend says that everything that carries `ticket` has completed.
    pub fn ticket_done(&mut self, ticket: Ticket) {
        for number in self.tickets.remove(&ticket.0).unwrap_or_default() {
            assert!(
                self.is_done(number),
                "ticket {} is done before {:?}",
                ticket.0,
                self.operations[number]
            );
        }
    }

    /// Pages whose reads carry the unfinished `ticket`.
    pub fn pages_read(&self, ticket: Ticket) -> Vec<u32> {
        let numbers = self.tickets.get(&ticket.0).into_iter().flatten();
        let ops = numbers.filter_map(|&number| self.operations[number].op);
        ops.filter(|op| op.kind == FlashOpKind::Read)
            .map(|op| op.page)
            .collect()
    }

    /// Nothing is left to happen.
    pub fn finished(&self) {
        if let Some(&number) = self.of_block.iter().flatten().next() {
            panic!("never completes: {:?}", self.operations[number]);
        }
        assert!(self.tickets.is_empty(), "tickets never complete: {:?}", self.tickets);
    }

    /// Operations waiting or running on a die, and those of collection among them.
    pub fn check_load(&self, die: u32, load: Load) {
        let on_die = |op: &FlashOp| self.layout.die_of_plane(self.layout.address(op.page).plane) == die;
        let unfinished = self.of_block.iter().flatten().map(|&number| self.op(number));
        let classes: Vec<Class> = unfinished.filter(on_die).map(|op| op.class).collect();
        let internal = classes
            .iter()
            .filter(|class| matches!(class, Class::Gc | Class::Erase))
            .count();
        assert_eq!(
            (load.queued as usize, load.internal as usize),
            (classes.len(), internal),
            "load of die {die}"
        );
    }

    /// Power fails. With protection everything issued still completes.
    pub fn cut(&mut self, protected: bool, outstanding: &[Outstanding]) {
        let mut unfinished: Vec<usize> = self.of_block.iter().flatten().copied().collect();
        unfinished.sort_unstable();
        unfinished.retain(|&number| self.kind_of(number) != FlashOpKind::Read);
        let of_number = |&number: &usize| Outstanding {
            kind: self.kind_of(number),
            page: self.op(number).page,
            started: self.operations[number].commanded.is_some(),
        };
        let expected: Vec<Outstanding> = unfinished.iter().map(of_number).collect();
        assert_eq!(
            outstanding, expected,
            "programs and erases that power failure interrupts"
        );
        if protected {
            self.cells.clone_from(&self.issued);
        }
        self.issued.clone_from(&self.cells);
        self.operations.clear();
        self.numbers.clear();
        self.of_block.iter_mut().for_each(Vec::clear);
        self.tickets.clear();
        self.channel_free_ns.fill(0);
        self.die_free_ns.fill(0);
    }

    /// Whether `page` is in flash.
    pub fn holds(&self, page: u32) -> bool {
        let (block, page) = self.place(page);
        !matches!(self.cells[block][page], BLANK | UNDEFINED)
    }

    /// Whether the flash of `block` is erased.
    pub fn is_blank(&self, block: usize) -> bool {
        self.cells[block].iter().all(|&content| content == BLANK)
    }

    fn starts(&mut self, number: usize, span: Span) {
        let (after, earlier) = (
            self.operations[number].after.clone(),
            self.operations[number].earlier.clone(),
        );
        for before in after.into_iter().chain(earlier) {
            assert!(
                self.is_done(before),
                "{:?} starts before {:?} is done",
                self.operations[number],
                self.operations[before]
            );
        }
        let (block, page) = self.place(self.op(number).page);
        let operation = &mut self.operations[number];
        assert!(!operation.done, "{operation:?} starts although it is done");
        assert_eq!(operation.kind, Kind::Flash, "{operation:?} needs no flash");
        assert_eq!(operation.commanded.replace(span), None, "{operation:?} starts twice");
        let op = operation.op.expect("a flash operation");
        let cells = &mut self.cells[block];
        match op.kind {
            FlashOpKind::Read => assert_eq!(cells[page], operation.content, "{op:?} reads another version"),
            FlashOpKind::Program => {
                assert_eq!(cells[page], BLANK, "{op:?} of a page that is not erased");
                let before = page.checked_sub(1).map(|before| cells[before]);
                assert!(
                    before != Some(BLANK),
                    "{op:?} before the page in front of it is programmed"
                );
                cells[page] = UNDEFINED;
            }
            FlashOpKind::Erase => cells.fill(UNDEFINED),
        }
    }
}

impl Observer for Rules {
    fn channel(&mut self, channel: u32, phase: Phase, subject: &Subject, span: Span) {
        let free_ns = &mut self.channel_free_ns[channel as usize];
        assert!(
            span.start_ns >= *free_ns,
            "{subject:?} takes channel {channel} at {} ns, which is busy until {free_ns}",
            span.start_ns
        );
        *free_ns = span.end_ns;
        let plane = self.layout.address(subject.page).plane;
        assert_eq!(plane % self.layout.geometry.channels, channel, "{subject:?}");
        let number = self.number_of(subject.id);
        let op = self.op(number);
        assert_eq!(
            (op.kind, op.class, op.cause, op.page),
            (subject.kind, subject.class, subject.cause, subject.page)
        );
        if phase != Phase::DataOut {
            return self.starts(number, span);
        }
        let (_, page) = self.place(op.page);
        let sensed_ns = self.timing.read_of(page as u32);
        let operation = &mut self.operations[number];
        let commanded = operation.commanded.expect("data of a read that has begun");
        assert!(
            span.start_ns >= commanded.end_ns + sensed_ns,
            "{subject:?} sends data from {} ns on, which is before it has them: {commanded:?}",
            span.start_ns
        );
        assert_eq!(operation.sent.replace(span), None, "{subject:?} sends its data twice");
    }

    fn die(&mut self, die: u32, subject: &Subject, planes: u32, span: Span) {
        let g = &self.layout.geometry;
        assert_eq!(
            self.layout.die_of_plane(self.layout.address(subject.page).plane),
            die,
            "{subject:?}"
        );
        let most = if self.timing.multi_plane { g.planes } else { 1 };
        assert!((1..=most).contains(&planes), "{subject:?} on {planes} planes");
        let free_ns = &mut self.die_free_ns[die as usize];
        assert!(
            span.start_ns >= *free_ns,
            "{subject:?} holds die {die} from {} ns on, which is busy until {free_ns}",
            span.start_ns
        );
        *free_ns = span.end_ns;
    }

    fn done(&mut self, subject: &Subject, now_ns: u64) {
        let number = self.number_of(subject.id);
        let (block, page) = self.place(subject.page);
        let operation = &mut self.operations[number];
        if operation.done
            && operation.op.is_some_and(|op| op.kind == FlashOpKind::Read)
            && operation.commanded.is_none()
        {
            // A read that was cancelled before it began.
            return;
        }
        assert!(!operation.done, "{operation:?} completes twice");
        operation.done = true;
        let commanded = operation.commanded.expect("what completes has begun");
        let (timing, number_in_block) = (&self.timing, page as u32);
        match subject.kind {
            FlashOpKind::Read => {
                let sent = operation.sent.expect("a read that completes has sent its data");
                assert_eq!(now_ns, sent.end_ns + timing.ecc_ns, "{operation:?}");
            }
            FlashOpKind::Program => {
                assert!(
                    now_ns >= commanded.end_ns + timing.program_of(number_in_block),
                    "{operation:?}"
                );
                self.cells[block][page] = operation.content;
            }
            FlashOpKind::Erase => {
                assert!(now_ns >= commanded.end_ns + timing.erase_ns, "{operation:?}");
                self.cells[block].fill(BLANK);
            }
        }
        self.of_block[block].retain(|&other| other != number);
    }
}
