//! The timed backend: an operation graph executed on dies and channels in integer nanoseconds.
//!
//! # Model
//! 1. An operation waits until everything it depends on has completed; programs of one block also wait for each other in
//!    order of issue, and an erase for every earlier operation on its block (`blocks.rs`). Then it is *ready* and joins the
//!    queue of its class in its die, in order of readiness, ties by issue.
//! 2. A die does one operation at a time, or several of one kind and class on different planes with the same page number
//!    (the first [`MERGE_WINDOW`] of the queue are looked at) where the flash can. What it does next is decided when the
//!    channel is granted to it for the command, so that later, more urgent work may still go first.
//! 3. Read: command on the channel, `t_r`, data out on the channel (waiting for it with the data in the die), decoding
//!    (holding nothing). Program: command and data in, `t_prog`. Erase: command, `t_bers`. Commands and data of a
//!    multi-plane operation follow each other on the channel in one go; the cell time is spent once; each read completes
//!    with its own data. The die is held from the start of the command to the end of the last phase.
//! 4. A channel carries one transfer at a time. It serves the die with the lowest phase rank, then the one that has waited
//!    longest (with a command: since the operation became ready; with data: since it left the cells), then the lowest number.
//! 5. A mapping or host read may suspend a program or an erase (`suspend.rs`).
//! 6. A read of a page whose program is unfinished is served from the controller's copy as soon as the program's data has
//!    arrived there (its `after` inputs have completed); it costs no flash operation.
//! 7. An engine of the controller (hashing) does one work at a time, beside the dies (`engines.rs`).
//! 8. Everything that happens at one instant is seen before anything is started at that instant.
//!
//! # Not modelled
//! The controller's own memory bandwidth and its limit of copies; read retries; a status poll after a program.
//!
//! # Cost
//! Two events per read and one per program or erase, plus a wake-up of a channel that somebody waits for after a command
//! or a program's data. One event per die and channel is pending at most (`agenda.rs`). No allocation in steady state.

mod agenda;
mod blocks;
mod channels;
mod copies;
mod dies;
mod engines;
mod executor;
mod graph;
mod link;
mod marks;
mod observe;
mod ops;
mod places;
mod plain_reads;
mod raised;
mod ranks;
mod runs;
mod stats;
mod suspend;
mod table;
mod tickets;
mod transfers;

use std::collections::VecDeque;

use ftlab_core::geometry::Divisor;
use ftlab_core::{Calendar, Completion, Error, Layout, Part, Result, RuId, Status};
use ftlab_flash::Timing;
use ftlab_ftl::{Backend, FlashOp, FlashOpKind, Load, Need, Notice, OpId, PageCopies, Ticket};

use agenda::Agenda;
use blocks::Blocks;
use channels::Channels;
use dies::Die;
use engines::Engines;
use marks::Marks;
use ops::Ops;
use places::Places;
use raised::Raised;
use ranks::Ranks;
use runs::{Fetch, Runs, Store};
use table::Table;
use tickets::Path;
use transfers::Transfers;

use crate::due::NEVER;
use crate::schedule::Plan;

pub use executor::MERGE_WINDOW;
pub use link::Link;
pub use observe::{Observer, Span, Subject};
pub use stats::TimedStats;
pub use tickets::{TicketInfo, Tickets};

/// What the driver must react to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Every operation of a sealed ticket has completed, and its data has crossed the host link; `take` it.
    TicketDone(Ticket),
    /// An operation with this notice has completed, or a timer with it has run out.
    Notice(Notice),
}

/// A program or an erase that power failure interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outstanding {
    pub kind: FlashOpKind,
    /// Drive-wide page index; for an erase the page it was issued with.
    pub page: u32,
    /// The die has begun with it: the page or block is in an undefined state. Otherwise it is untouched.
    pub started: bool,
}

/// The timed backend.
pub struct Timed {
    places: Places,
    timing: Timing,
    transfers: Transfers,
    ranks: Ranks,
    /// Operations of several planes of a die may run together.
    merges: bool,
    /// Copies of collections are gathered in runs (`runs.rs`).
    has_runs: bool,
    /// Planes of a die.
    planes: u32,
    width: u32,
    page_types: Divisor,
    ways: usize,

    now: u64,
    ops: Ops,
    /// Of the operations that carry a ticket beside others, by their numbers. Most operations have none, so that these are looked
    /// up with care.
    paths: Vec<Path>,
    /// Runs of reads and of programs.
    reads: Runs<Fetch>,
    programs: Runs<Store>,
    blocks: Blocks,
    dies: Table<Die>,
    channels: Channels,
    tickets: Tickets,
    host_out: Link,
    engines: Engines,

    agenda: Agenda,
    /// Reads being decoded, in order of completion (decoding takes the same time for all).
    decoding: VecDeque<(u64, u32)>,
    timers: Calendar,
    timer_notices: Vec<Notice>,
    timer_free: Vec<u32>,
    /// For the driver, all at `now`.
    raised: Raised,
    /// Operations without a die that complete now.
    completing: Vec<u32>,
    dirty_dies: Marks,
    dirty_channels: Marks,

    programs_outstanding: u32,
    /// The last barrier that was issued.
    last_barrier: OpId,
    counts: TimedStats,
    observer: Option<Box<dyn Observer>>,
}

impl Timed {
    pub fn new(layout: &Layout, timing: &Timing, plan: &Plan) -> Result<Self> {
        let geometry = &layout.geometry;
        let (channels, dies) = (geometry.channels as usize, geometry.total_dies() as usize);
        if dies > usize::from(u16::MAX) {
            return Err(Error::input(format!(
                "geometry: {dies} dies; the timed backend drives at most {}",
                u16::MAX
            )));
        }
        if geometry.pages > blocks::MOST_PAGES {
            return Err(Error::input(format!(
                "geometry.pages = {}; the timed backend has at most {} pages a block",
                geometry.pages,
                blocks::MOST_PAGES
            )));
        }
        if timing.read_ns.is_empty() || timing.program_ns.len() != timing.read_ns.len() {
            return Err(Error::input(
                "timing: `read` and `program` need one time per page type, and as many of each",
            ));
        }
        let per_channel = dies / channels;
        let ways = geometry.ways as usize;
        let die = |number: usize| {
            let (channel, place) = (number % channels, number / channels);
            Die::new(
                channel as u32,
                (channel * per_channel + place) as u32,
                (channel * ways + place % ways) as u32,
            )
        };
        let mut timed = Timed {
            merges: timing.multi_plane && geometry.planes > 1,
            page_types: Divisor::new(timing.read_ns.len() as u32),
            ways,
            now: 0,
            ops: Ops::new(),
            paths: Vec::new(),
            reads: Runs::new(),
            programs: Runs::new(),
            blocks: Blocks::new(
                geometry.total_planes() as usize * geometry.blocks as usize,
                geometry.pages,
            ),
            dies: (0..dies).map(die).collect(),
            channels: Channels::new(channels, per_channel),
            tickets: Tickets::default(),
            host_out: Link::free(),
            engines: Engines::default(),
            // Sources: dies, channels, decoding, timers, engines.
            agenda: Agenda::new(dies + channels + 3),
            decoding: VecDeque::new(),
            timers: Calendar::default(),
            timer_notices: Vec::new(),
            timer_free: Vec::new(),
            raised: Raised::default(),
            completing: Vec::new(),
            dirty_dies: Marks::new(dies),
            dirty_channels: Marks::new(channels),
            programs_outstanding: 0,
            last_barrier: OpId::DONE,
            counts: TimedStats::default(),
            observer: None,
            places: Places::new(layout),
            has_runs: !(timing.multi_plane && geometry.planes > 1) && timing.read_ns.iter().all(|&cell_ns| cell_ns > 0),
            planes: geometry.planes,
            width: layout.width,
            transfers: Transfers::new(timing, geometry.page_bytes),
            timing: timing.clone(),
            ranks: Ranks::new(plan),
        };
        timed.clear_stats();
        Ok(timed)
    }

    /// The first `pages` pages of a reclaim unit, in fill order, are programmed, the others erased. Blocks of which this has
    /// not been said, and that are not erased first, are taken to hold whatever is read.
    pub fn set_filled(&mut self, unit: RuId, pages: u32) {
        for k in 0..self.width {
            let in_block = (pages + self.width - 1 - k) / self.width;
            self.blocks.set_filled(unit.0 * self.width + k, in_block);
        }
    }

    /// The link that completed reads of tickets with `cross_bytes` cross one by one; one that costs nothing unless replaced.
    pub fn host_out(&mut self) -> &mut Link {
        &mut self.host_out
    }

    /// Reports everything from now on to `observer`, in place of the one before, whose `finish` is the result.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) -> Result<()> {
        match std::mem::replace(&mut self.observer, observer) {
            Some(mut before) => before.finish(),
            None => Ok(()),
        }
    }

    /// Begins a ticket; `seal` it once all of its operations have been issued.
    #[inline]
    pub fn open(&mut self, info: TicketInfo) -> Ticket {
        debug_assert!(
            info.since_ns + info.parts.total_ns() >= self.now,
            "parts must reach until now"
        );
        self.tickets.open(&info)
    }

    /// No more operations will carry `ticket`: it completes with the last of them, at once if none is left.
    #[inline]
    pub fn seal(&mut self, ticket: Ticket) {
        let now = self.now;
        let state = self.tickets.known(ticket);
        debug_assert!(!state.sealed, "ticket {} sealed twice", ticket.0);
        state.sealed = true;
        if state.remaining == 0 {
            state.path.charge(Part::Queue, now);
            self.raised.push(Event::TicketDone(ticket));
        }
    }

    /// Counts the time since the ticket's last completion (or its beginning) as `part`: for a request that waited for a free
    /// block (`GcWait`) or for mapping work that was not among its dependencies (`Map`) before it could issue anything.
    pub fn charge(&mut self, ticket: Ticket, part: Part) {
        let now = self.now;
        self.tickets.known(ticket).path.charge(part, now);
    }

    /// The request of this ticket is refused: what it read crosses no link.
    pub fn refuse(&mut self, ticket: Ticket) {
        self.tickets.known(ticket).status = Status::WornOut;
    }

    /// Ends a ticket that has been reported done.
    #[inline]
    pub fn take(&mut self, ticket: Ticket) -> Completion {
        self.tickets.take(ticket, self.now)
    }

    /// The next thing to react to at or before `until_ns`; without one, the time is `until_ns` afterwards. `u64::MAX` is no
    /// limit: then the time stays where it is when nothing is left to happen.
    #[inline]
    pub fn pop(&mut self, until_ns: u64) -> Option<(u64, Event)> {
        let event = self.pop_event(until_ns)?;
        Some((self.now, event))
    }

    /// As [`Timed::pop`], without the time.
    #[inline(always)]
    pub fn pop_event(&mut self, until_ns: u64) -> Option<Event> {
        let is_quiet = self.raised.is_empty() && !self.has_dirty() && self.next_ns() > until_ns;
        if is_quiet {
            self.now = self.now.max(until_ns);
            return None;
        }
        self.react(until_ns)
    }

    /// As [`Timed::pop`], when there may be something to do.
    #[inline(always)]
    fn react(&mut self, until_ns: u64) -> Option<Event> {
        // `NEVER` is no limit, but nothing happens then.
        let last_ns = until_ns.min(NEVER - 1);
        loop {
            if let Some(event) = self.raised.pop() {
                match event {
                    Event::TicketDone(ticket) if !self.tickets.depart(ticket, &mut self.host_out, self.now) => continue,
                    _ => return Some(event),
                }
            }
            if self.agenda.next_time() > self.now && self.has_dirty() {
                self.dispatch();
            }
            let (time, crossed_ns) = (self.agenda.next_time(), self.tickets.next_crossed_ns());
            if time.min(crossed_ns) > last_ns {
                if until_ns != NEVER {
                    self.now = self.now.max(until_ns);
                }
                return None;
            }
            if crossed_ns < time {
                self.now = crossed_ns;
                return Some(Event::TicketDone(self.tickets.pop_crossed()));
            }
            self.now = time;
            self.counts.events += 1;
            let source = self.agenda.pop();
            self.happen(source as usize);
        }
    }

    /// When `pop` will next have something to do; starts whatever can start now.
    #[inline]
    pub fn next_time(&mut self) -> Option<u64> {
        if !self.raised.is_empty() {
            return Some(self.now);
        }
        if self.has_dirty() {
            self.start_what_can();
        }
        let time = self.next_ns();
        (time != NEVER).then_some(time)
    }

    /// When the next event of the agenda happens or the data of the next ticket has crossed.
    #[inline(always)]
    fn next_ns(&self) -> u64 {
        self.agenda.next_time().min(self.tickets.next_crossed_ns())
    }

    #[inline(never)]
    fn start_what_can(&mut self) {
        self.dispatch();
    }

    /// An operation on `page` will probably be issued soon: fetches the state of its block.
    #[inline(always)]
    pub fn prefetch(&self, page: u32) {
        self.blocks.prefetch(self.places.block_of(page));
    }

    /// Unfinished programs and erases in order of issue.
    pub fn outstanding(&self) -> Vec<Outstanding> {
        let mut all = Vec::new();
        for index in self.ops.unfinished() {
            let op = self.ops.at(index);
            let Some(kind) = op.kind.flash().filter(|&kind| kind != FlashOpKind::Read) else {
                continue;
            };
            let started = op.state >= ops::State::Running;
            let mut add = |page, started, sequence| {
                let outstanding = Outstanding { kind, page, started };
                all.push((self.ops.age(sequence), outstanding));
            };
            if op.kind == ops::Kind::Programs {
                for (n, (page, sequence)) in self.stores_left(op).enumerate() {
                    add(page, started && n == 0, sequence);
                }
            } else {
                add(op.page, started, op.sequence);
            }
        }
        all.sort_by_key(|&(age, _)| std::cmp::Reverse(age));
        all.into_iter().map(|(_, outstanding)| outstanding).collect()
    }

    /// Power is cut: every operation, ticket, timer and notice is gone; the time and the statistics stay.
    pub fn reset(&mut self) {
        self.ops.clear();
        self.reads.clear();
        self.programs.clear();
        self.blocks.clear();
        for die in self.dies.iter_mut() {
            if die.doing != dies::Doing::Idle {
                die.let_go(self.now);
            }
            let busy_ns = die.busy_ns;
            *die = Die::new(die.channel, die.wish, die.chip);
            die.busy_ns = busy_ns;
            die.idle_since_ns = self.now;
        }
        self.channels.clear(self.now);
        self.tickets.clear();
        self.host_out.clear();
        self.engines.clear();
        self.agenda.clear();
        self.decoding.clear();
        self.timers.clear();
        self.timer_notices.clear();
        self.timer_free.clear();
        self.raised.clear();
        self.dirty_dies.clear();
        self.dirty_channels.clear();
        self.programs_outstanding = 0;
        self.last_barrier = OpId::DONE;
    }

    /// Counters since the last `clear_stats`; busy times up to now.
    pub fn stats(&self) -> TimedStats {
        let mut stats = self.counts.clone();
        stats.until_ns = self.now;
        for (window, die) in stats.die_busy_ns.iter_mut().zip(self.dies.iter()) {
            for (part, busy) in window.iter_mut().zip(die.busy_until(self.now)) {
                *part = busy - *part;
            }
        }
        for (busy, channel) in stats.channel_busy_ns.iter_mut().zip(self.channels.each.iter()) {
            *busy = channel.busy_before(self.now) - *busy;
        }
        stats.host_out_busy_ns = self.host_out.busy_ns() - stats.host_out_busy_ns;
        stats
    }

    /// Begins a new window of statistics now.
    pub fn clear_stats(&mut self) {
        // Until `stats` takes the difference, the busy times hold the readings at the beginning of the window.
        self.counts = TimedStats {
            since_ns: self.now,
            until_ns: self.now,
            die_busy_ns: self.dies.iter().map(|d| d.busy_until(self.now)).collect(),
            channel_busy_ns: self.channels.each.iter().map(|c| c.busy_before(self.now)).collect(),
            host_out_busy_ns: self.host_out.busy_ns(),
            ..TimedStats::default()
        };
    }

    #[inline(always)]
    fn has_dirty(&self) -> bool {
        self.dirty_dies.count() | self.dirty_channels.count() != 0
    }
}

impl Backend for Timed {
    const TIMED: bool = true;

    #[inline]
    fn issue(&mut self, op: FlashOp, after: &[OpId]) -> OpId {
        self.issue_op(op, after)
    }

    #[inline(always)]
    fn issue_sole(&mut self, op: FlashOp) -> OpId {
        self.issue_sole_op(op)
    }

    fn copy(&mut self, copies: &PageCopies<'_>) -> OpId {
        self.copy_pages(copies)
    }

    fn join(&mut self, inputs: &[OpId], need: Need, ticket: Ticket, notice: Option<Notice>) -> OpId {
        self.issue_join(inputs, need, ticket, notice)
    }

    fn join_more(&mut self, join: OpId, input: OpId) {
        self.extend_join(join, input);
    }

    fn cancel(&mut self, id: OpId) {
        self.cancel_op(id);
    }

    #[inline]
    fn is_done(&self, id: OpId) -> bool {
        self.ops.live(id).is_none()
    }

    fn compute(&mut self, engine: u16, ns: u64, after: &[OpId], ticket: Ticket) -> OpId {
        self.issue_work(engine, ns, after, ticket)
    }

    fn arm(&mut self, delay_ns: u64, notice: Notice) {
        let slot = match self.timer_free.pop() {
            Some(slot) => {
                self.timer_notices[slot as usize] = notice;
                slot
            }
            None => {
                self.timer_notices.push(notice);
                (self.timer_notices.len() - 1) as u32
            }
        };
        self.timers.push(self.now + delay_ns, slot);
        let next = self.timers.next_time().unwrap_or(NEVER);
        self.agenda.set(self.timer_source(), next);
    }

    fn barrier(&mut self, ticket: Ticket) {
        self.issue_barrier(ticket);
    }

    #[inline]
    fn load(&self, die: u32) -> Load {
        let die = self.dies.get(die as usize).expect("a die of the drive");
        Load {
            queued: die.queued,
            internal: die.internal,
            idle_since_ns: (die.queued == 0).then_some(die.idle_since_ns),
        }
    }

    #[inline(always)]
    fn now_ns(&self) -> u64 {
        self.now
    }
}

// The agenda's sources.
impl Timed {
    #[inline(always)]
    fn channel_source(&self, channel: u32) -> usize {
        self.dies.len() + channel as usize
    }

    #[inline(always)]
    fn decoding_source(&self) -> usize {
        self.dies.len() + self.channels.each.len()
    }

    #[inline(always)]
    fn timer_source(&self) -> usize {
        self.dies.len() + self.channels.each.len() + 1
    }

    fn engines_source(&self) -> usize {
        self.timer_source() + 1
    }
}
