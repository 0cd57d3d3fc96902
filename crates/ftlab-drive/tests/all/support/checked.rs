//! The timed backend as a double of the testkit: a schedule and times drawn, every report held against the rules.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use ftlab_core::{Layout, PolicySpec, Stream};
use ftlab_drive::schedule::{self, Phase, SchedulePolicy};
use ftlab_drive::timed::{Event, Observer, Span, Subject, TicketInfo, Timed};
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, FlashOp, Load, Need, Notice, OpId, Ticket};
use ftlab_testkit::Double;
use ftlab_testkit::draw::Drawer;
use ftlab_testkit::nand::Nand;

use super::mqsim_timing;
use super::rules::Rules;

/// Options that nobody finds by chance, beside the members of the catalogue.
const SCHEDULES: &[&str] = &["out_of_order:gc_after=1", "out_of_order:gc_after=0"];

pub struct Checked {
    timed: Timed,
    rules: Reports,
    nand: Nand,
    random: Stream,
    notices: Vec<Notice>,
    /// Tickets that have not been taken, and those of them that are done.
    open: BTreeSet<u32>,
    done: BTreeSet<u32>,
    after_cut: bool,
}

/// The rules, told by the backend and by whoever issues to it.
#[derive(Clone)]
struct Reports(Arc<Mutex<Rules>>);

impl Reports {
    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.0.lock().expect("one thread uses it")
    }
}

impl Observer for Reports {
    fn channel(&mut self, channel: u32, phase: Phase, subject: &Subject, span: Span) {
        self.lock().channel(channel, phase, subject, span);
    }

    fn die(&mut self, die: u32, subject: &Subject, planes: u32, span: Span) {
        self.lock().die(die, subject, planes, span);
    }

    fn done(&mut self, subject: &Subject, now_ns: u64) {
        self.lock().done(subject, now_ns);
    }
}

/// Times of some nanoseconds, so that several things often happen at once.
fn draw_timing(seed: u64) -> Timing {
    let mut random = Stream::new(seed, "timing");
    let mut between = |least: u64, most: u64| least + random.below(most - least + 1);
    let types = between(1, 3);
    Timing {
        read_ns: (0..types).map(|_| between(1, 60)).collect(),
        program_ns: (0..types).map(|_| between(1, 400)).collect(),
        erase_ns: between(100, 2000),
        read_command_ns: between(1, 9),
        program_command_ns: between(1, 9),
        erase_command_ns: between(1, 9),
        byte_ps: [1, 10, 100][between(0, 2) as usize],
        ecc_ns: between(0, 3),
        multi_plane: between(0, 1) == 0,
        suspend_program: between(0, 1) == 0,
        suspend_erase: between(0, 1) == 0,
        suspend_ns: between(1, 20),
        resume_ns: between(1, 20),
        max_suspends: between(0, 3) as u32,
    }
}

/// The schedule whose turn it is: a round of turns goes through all of them.
pub fn draw_schedule(seed: u64) -> PolicySpec {
    let drawer: Drawer<'_, dyn SchedulePolicy, schedule::Setup> = Drawer {
        catalogue: schedule::catalogue(),
        also: SCHEDULES,
        setup: || schedule::Setup { timing: mqsim_timing() },
    };
    drawer.draw(seed, &mut Stream::new(seed, "schedule"))
}

impl Checked {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Notice(notice) => self.notices.push(notice),
            Event::TicketDone(ticket) => {
                self.rules.lock().ticket_done(ticket);
                assert!(self.open.contains(&ticket.0), "ticket {} is not open", ticket.0);
                assert!(self.done.insert(ticket.0), "ticket {} is done twice", ticket.0);
            }
        }
    }
}

impl Backend for Checked {
    const TIMED: bool = true;

    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId {
        self.after_cut = false;
        self.nand.issue(&op);
        let id = self.timed.issue(op, after);
        self.rules.lock().issue(op, after, id);
        id
    }

    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId {
        let id = self.timed.join(inputs, need, ticket, notice);
        self.rules.lock().join(inputs, need == Need::All, ticket, id);
        id
    }

    fn join_more(&mut self, join: OpId, input: OpId) {
        self.rules.lock().join_more(join, input);
        self.timed.join_more(join, input);
    }

    fn cancel(&mut self, id: OpId) {
        self.rules.lock().cancel(id);
        self.timed.cancel(id);
    }

    fn is_done(&self, id: OpId) -> bool {
        self.timed.is_done(id)
    }

    /// Its time is checked by hand elsewhere; here it is done when what it waits for is, or later.
    fn compute(&mut self, engine: u16, ns: u64, after: &[OpId], ticket: Ticket) -> OpId {
        let id = self.timed.compute(engine, ns, after, ticket);
        self.rules.lock().join(after, true, ticket, id);
        id
    }

    fn arm(&mut self, delay_ns: u64, notice: Notice) {
        self.timed.arm(delay_ns, notice);
    }

    fn barrier(&mut self, ticket: Ticket) {
        self.rules.lock().barrier(ticket);
        self.timed.barrier(ticket);
    }

    fn load(&self, die: u32) -> Load {
        let load = self.timed.load(die);
        self.rules.lock().check_load(die, load);
        load
    }

    fn now_ns(&self) -> u64 {
        self.timed.now_ns()
    }
}

impl Double for Checked {
    fn new(layout: &Layout, seed: u64) -> Self {
        let timing = draw_timing(seed);
        let mut setup = schedule::Setup { timing: timing.clone() };
        let policy = schedule::catalogue().build(&draw_schedule(seed), &mut setup);
        let plan = policy.expect("a schedule that was tried").plan();
        let mut timed = Timed::new(layout, &timing, &plan).expect("a tiny drive");
        for block in 0..layout.rus {
            timed.set_filled(ftlab_core::RuId(block), 0);
        }
        let rules = Reports(Arc::new(Mutex::new(Rules::new(layout, &timing))));
        timed.observe(Some(Box::new(rules.clone()))).expect("nobody looked on");
        Checked {
            timed,
            rules,
            nand: Nand::new(layout),
            random: Stream::new(seed, "steps"),
            notices: Vec::new(),
            open: BTreeSet::new(),
            done: BTreeSet::new(),
            after_cut: false,
        }
    }

    fn show(layout: &Layout, seed: u64) -> String {
        let (schedule, timing, g) = (draw_schedule(seed).show(), draw_timing(seed), &layout.geometry);
        format!(
            "\n  {schedule}, {} dies of {} planes a chip\n  {timing:?}",
            g.dies, g.planes
        )
    }

    fn open(&mut self, _request: u64) -> Ticket {
        // Their numbers may be given out again: whoever waited for them has been told.
        for ticket in std::mem::take(&mut self.done) {
            self.timed.take(Ticket(ticket));
            self.open.remove(&ticket);
        }
        let ticket = self.timed.open(TicketInfo {
            since_ns: self.timed.now_ns(),
            ..TicketInfo::default()
        });
        assert!(self.open.insert(ticket.0), "ticket {} is given out twice", ticket.0);
        ticket
    }

    fn seal(&mut self, ticket: Ticket) {
        self.timed.seal(ticket);
    }

    /// Each step is an instant at which something happens, or an earlier one.
    fn run(&mut self, steps: u32) -> bool {
        for _ in 0..steps {
            let Some(next_ns) = self.timed.next_time() else {
                self.rules.lock().finished();
                return false;
            };
            let to_go = next_ns - self.timed.now_ns();
            let until_ns = match self.random.below(3) {
                0 if to_go > 1 => next_ns - self.random.below(to_go),
                _ => next_ns,
            };
            if let Some((_, event)) = self.timed.pop(until_ns) {
                self.hear(event);
            }
        }
        true
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    fn is_acknowledged(&self, ticket: Ticket) -> bool {
        !self.open.contains(&ticket.0) || self.done.contains(&ticket.0)
    }

    fn cut(&mut self, protected: bool) {
        let outstanding = self.timed.outstanding();
        self.rules.lock().cut(protected, &outstanding);
        self.timed.reset();
        for block in 0..self.nand.blocks() {
            if !self.nand.is_blank(block) || !self.rules.lock().is_blank(block) {
                self.nand.spoil(block);
            }
        }
        self.notices.clear();
        self.open.clear();
        self.done.clear();
        self.after_cut = true;
    }

    fn holds(&self, page: u32) -> bool {
        if self.after_cut {
            self.rules.lock().holds(page)
        } else {
            self.nand.holds(page)
        }
    }

    fn tally(&self) -> Option<(u64, u64)> {
        Some((self.nand.programs, self.nand.erases))
    }

    fn pages_read(&self, ticket: Ticket) -> Option<Vec<u32>> {
        Some(self.rules.lock().pages_read(ticket))
    }
}
