//! A naive model of the timed backend: one event per phase, every decision by looking at everything.
//!
//! Written for clarity and independence: no queues, no tables, no reservations ahead of time.

use ftlab_core::Layout;
use ftlab_drive::schedule::{Phase, Plan};
use ftlab_drive::timed::MERGE_WINDOW;
use ftlab_flash::Timing;
use ftlab_ftl::{Cause, Class, FlashOp, FlashOpKind};

/// Something to issue; `after` are numbers of earlier things.
#[derive(Clone, Debug)]
pub enum Item {
    Op { op: FlashOp, after: Vec<usize> },
    JoinAll { after: Vec<usize> },
    JoinFirst { after: Vec<usize> },
}

impl Item {
    pub fn after(&self) -> &[usize] {
        match self {
            Item::Op { after, .. } | Item::JoinAll { after } | Item::JoinFirst { after } => after,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Status {
    Waiting,
    Ready(u64),
    Running,
    Decoding(u64),
    Done(u64),
}

struct Entry {
    item: Item,
    /// (plane, block, page) of a flash operation.
    place: Option<(u32, u32, u32)>,
    /// The program from whose data a read is served.
    carrier: Option<usize>,
    status: Status,
}

impl Entry {
    fn op(&self) -> Option<&FlashOp> {
        match &self.item {
            Item::Op { op, .. } => Some(op),
            _ => None,
        }
    }

    fn done(&self) -> bool {
        matches!(self.status, Status::Done(_))
    }

    fn changes_flash(&self) -> bool {
        self.op().is_some_and(|op| op.kind != FlashOpKind::Read)
    }
}

#[derive(Clone, Debug)]
struct Work {
    ops: Vec<usize>,
    /// Reads whose data is out.
    sent: usize,
    suspends: u32,
}

#[derive(Clone, Debug)]
enum Doing {
    Idle,
    Command { until: u64, work: Work },
    Cell { until: u64, work: Work },
    Resuming { until: u64, remaining: u64, work: Work },
    Holding { since: u64, work: Work },
    Data { until: u64, work: Work },
    Suspending { until: u64, remaining: u64, work: Work },
}

#[derive(Clone)]
struct Die {
    doing: Doing,
    /// Suspended work and the cell time it needs.
    parked: Option<(Work, u64)>,
    overtaken: u32,
    urged: bool,
    /// A suspension decided on before the cell phase began.
    suspend_at_cell: bool,
}

pub struct Reference {
    layout: Layout,
    timing: Timing,
    plan: Plan,
    entries: Vec<Entry>,
    dies: Vec<Die>,
    channel_busy: Vec<u64>,
    now: u64,
}

impl Reference {
    pub fn new(layout: &Layout, timing: &Timing, plan: &Plan) -> Self {
        let die = Die {
            doing: Doing::Idle,
            parked: None,
            overtaken: 0,
            urged: false,
            suspend_at_cell: false,
        };
        Reference {
            layout: layout.clone(),
            timing: timing.clone(),
            plan: plan.clone(),
            entries: Vec::new(),
            dies: vec![die; layout.geometry.total_dies() as usize],
            channel_busy: vec![0; layout.geometry.channels as usize],
            now: 0,
        }
    }

    /// Completion times in order of issue; `None` for what never completed.
    pub fn completions(&self) -> Vec<Option<u64>> {
        let time = |e: &Entry| match e.status {
            Status::Done(time) => Some(time),
            _ => None,
        };
        self.entries.iter().map(time).collect()
    }

    /// Issues now (the present instant's decisions have been made by `run_until`).
    pub fn issue(&mut self, item: Item) {
        let place = match &item {
            Item::Op { op, .. } => {
                let at = self.layout.address(op.page);
                Some((at.plane, at.block, at.page))
            }
            _ => None,
        };
        let mut carrier = None;
        if let Item::Op { op, .. } = &item
            && op.kind == FlashOpKind::Read
        {
            carrier = (0..self.entries.len()).rev().find(|&i| {
                let e = &self.entries[i];
                !e.done() && e.place == place && e.op().is_some_and(|op| op.kind == FlashOpKind::Program)
            });
        }
        self.entries.push(Entry {
            item,
            place,
            carrier,
            status: Status::Waiting,
        });
        self.settle();
    }

    /// Everything up to and including `until`.
    pub fn run_until(&mut self, until: u64) {
        loop {
            self.decide();
            match self.next_event().filter(|&t| t <= until) {
                None => break,
                Some(time) => {
                    self.now = time;
                    while self.next_event() == Some(time) {
                        self.end_phases();
                        self.settle();
                    }
                }
            }
        }
        self.now = until;
    }

    pub fn run(&mut self) {
        self.decide();
        while let Some(time) = self.next_event() {
            self.run_until(time);
        }
    }

    fn next_event(&self) -> Option<u64> {
        let dies = self.dies.iter().filter_map(|d| match &d.doing {
            Doing::Idle | Doing::Holding { .. } => None,
            Doing::Command { until, .. }
            | Doing::Cell { until, .. }
            | Doing::Resuming { until, .. }
            | Doing::Data { until, .. }
            | Doing::Suspending { until, .. } => Some(*until),
        });
        let channels = self.channel_busy.iter().copied().filter(|&t| t > self.now);
        let decoding = self.entries.iter().filter_map(|e| match e.status {
            Status::Decoding(until) => Some(until),
            _ => None,
        });
        dies.chain(channels).chain(decoding).min()
    }

    fn end_phases(&mut self) {
        let now = self.now;
        for e in &mut self.entries {
            if e.status == Status::Decoding(now) {
                e.status = Status::Done(now);
            }
        }
        for d in 0..self.dies.len() {
            let doing = std::mem::replace(&mut self.dies[d].doing, Doing::Idle);
            self.dies[d].doing = match doing {
                Doing::Command { until, work } if until == now => {
                    let cell = self.cell_ns(&work);
                    self.begin_cell(d, work, cell)
                }
                Doing::Resuming { until, remaining, work } if until == now => self.begin_cell(d, work, remaining),
                Doing::Cell { until, work } if until == now => match self.kind(&work) {
                    FlashOpKind::Read => Doing::Holding { since: now, work },
                    _ => {
                        for &i in &work.ops {
                            self.entries[i].status = Status::Done(now);
                        }
                        Doing::Idle
                    }
                },
                Doing::Data { until, mut work } if until == now => {
                    let i = work.ops[work.sent];
                    work.sent += 1;
                    self.entries[i].status = match self.timing.ecc_ns {
                        0 => Status::Done(now),
                        ecc => Status::Decoding(now + ecc),
                    };
                    match work.ops.get(work.sent) {
                        None => Doing::Idle,
                        Some(&next) => Doing::Data {
                            until: now + self.transfer_ns(next),
                            work,
                        },
                    }
                }
                Doing::Suspending { until, remaining, work } if until == now => {
                    self.dies[d].parked = Some((work, remaining));
                    Doing::Idle
                }
                other => other,
            };
        }
    }

    fn begin_cell(&mut self, d: usize, mut work: Work, cell: u64) -> Doing {
        if std::mem::take(&mut self.dies[d].suspend_at_cell) {
            work.suspends += 1;
            Doing::Suspending {
                until: self.now + self.timing.suspend_ns,
                remaining: cell,
                work,
            }
        } else {
            Doing::Cell {
                until: self.now + cell,
                work,
            }
        }
    }

    /// Completes joins and copies and makes operations ready until nothing changes.
    fn settle(&mut self) {
        let now = self.now;
        loop {
            let mut changed = false;
            for i in 0..self.entries.len() {
                if self.entries[i].status != Status::Waiting || !self.may_go_on(i) {
                    continue;
                }
                changed = true;
                let e = &self.entries[i];
                if e.op().is_none() || e.carrier.is_some() {
                    self.entries[i].status = Status::Done(now);
                    continue;
                }
                let urges = e.op().is_some_and(|op| {
                    op.kind == FlashOpKind::Read && matches!(op.class, Class::Mapping | Class::HostRead)
                });
                let die = self.die_of(i);
                self.dies[die].urged |= urges;
                self.entries[i].status = Status::Ready(now);
            }
            if !changed {
                return;
            }
        }
    }

    fn may_go_on(&self, i: usize) -> bool {
        let e = &self.entries[i];
        let done = |&j: &usize| self.entries[j].done();
        let after = e.item.after();
        match &e.item {
            Item::JoinAll { .. } => after.iter().all(done),
            Item::JoinFirst { .. } => after.is_empty() || after.iter().any(done),
            Item::Op { op, .. } => {
                let block = e.place.map(|(plane, block, _)| (plane, block));
                let mut before = self.entries[..i]
                    .iter()
                    .filter(|b| !b.done() && b.carrier.is_none() && b.place.map(|(p, b, _)| (p, b)) == block);
                let in_order = match op.kind {
                    FlashOpKind::Read => true,
                    FlashOpKind::Program => !before.any(Entry::changes_flash),
                    FlashOpKind::Erase => before.next().is_none(),
                };
                let data = e
                    .carrier
                    .is_none_or(|program| self.entries[program].item.after().iter().all(done));
                in_order && data && after.iter().all(done)
            }
        }
    }

    fn decide(&mut self) {
        for d in 0..self.dies.len() {
            self.suspend_or_resume(d);
        }
        for channel in 0..self.channel_busy.len() {
            self.grant(channel);
        }
    }

    fn suspend_or_resume(&mut self, d: usize) {
        let now = self.now;
        if matches!(self.dies[d].doing, Doing::Idle) && self.dies[d].parked.is_some() {
            if self.select(d).is_none() {
                let (work, remaining) = self.dies[d].parked.take().unwrap();
                self.dies[d].urged = false;
                self.dies[d].doing = Doing::Resuming {
                    until: now + self.timing.resume_ns,
                    remaining,
                    work,
                };
            }
            return;
        }
        let (work, remaining, in_cell) = match &self.dies[d].doing {
            Doing::Cell { until, work } => (work, until - now, true),
            Doing::Resuming { remaining, work, .. } => (work, *remaining, false),
            Doing::Command { work, .. } => (work, self.cell_ns(work), false),
            _ => return,
        };
        let allowed = match self.kind(work) {
            FlashOpKind::Read => return,
            FlashOpKind::Program => self.timing.suspend_program,
            FlashOpKind::Erase => self.timing.suspend_erase,
        };
        if self.dies[d].suspend_at_cell {
            return;
        }
        let mut work = work.clone();
        let urged = std::mem::take(&mut self.dies[d].urged);
        let wanted = urged
            && allowed
            && self.plan.suspend
            && work.suspends < self.timing.max_suspends
            && remaining > self.timing.suspend_ns
            && self.urgent_heads(d).next().is_some();
        if !wanted {
            return;
        }
        if in_cell {
            work.suspends += 1;
            self.dies[d].doing = Doing::Suspending {
                until: now + self.timing.suspend_ns,
                remaining,
                work,
            };
        } else {
            self.dies[d].suspend_at_cell = true;
        }
    }

    fn grant(&mut self, channel: usize) {
        let now = self.now;
        while self.channel_busy[channel] <= now {
            let dies = (channel..self.dies.len()).step_by(self.channel_busy.len());
            let best = dies.filter_map(|d| self.wish(d).map(|wish| (wish, d))).min();
            let Some((_, d)) = best else { return };
            let duration = match self.dies[d].doing.clone() {
                Doing::Holding { work, .. } => {
                    let until = now + self.transfer_ns(work.ops[0]);
                    let total = work.ops.iter().map(|&i| self.transfer_ns(i)).sum::<u64>();
                    self.dies[d].doing = Doing::Data { until, work };
                    total
                }
                _ => self.start(d),
            };
            self.channel_busy[channel] = now + duration;
        }
    }

    /// What the die asks of its channel: (rank, since).
    fn wish(&self, d: usize) -> Option<(u8, u64)> {
        let rank = |phase: Phase| self.plan.channel_ranks[phase as usize];
        match &self.dies[d].doing {
            Doing::Holding { since, .. } => Some((rank(Phase::DataOut), *since)),
            Doing::Idle => {
                if self.plan.chip_exclusive && self.chip_busy(d) {
                    return None;
                }
                let head = self.head(d, self.select(d)?)?;
                let phase = match self.entries[head].op()?.kind {
                    FlashOpKind::Read => Phase::ReadCommand,
                    FlashOpKind::Program => Phase::Program,
                    FlashOpKind::Erase => Phase::Erase,
                };
                Some((rank(phase), self.ready_ns(head)))
            }
            _ => None,
        }
    }

    fn chip_busy(&self, d: usize) -> bool {
        let g = &self.layout.geometry;
        let chip = |d: usize| d % (g.channels * g.ways) as usize;
        (0..self.dies.len()).any(|o| chip(o) == chip(d) && !matches!(self.dies[o].doing, Doing::Idle))
    }

    fn start(&mut self, d: usize) -> u64 {
        let class = self.select(d).unwrap();
        let queue = self.queue(d, class);
        let first = queue[0];
        let mut ops = vec![first];
        if self.timing.multi_plane {
            for &i in queue[1..].iter().take(MERGE_WINDOW as usize - 1) {
                let (a, b) = (self.entries[first].place.unwrap(), self.entries[i].place.unwrap());
                let kind = self.entries[i].op().unwrap().kind;
                let same = kind == self.entries[first].op().unwrap().kind && (kind == FlashOpKind::Erase || a.2 == b.2);
                let new_plane = ops.iter().all(|&o| self.entries[o].place.unwrap().0 != b.0);
                if same && new_plane {
                    ops.push(i);
                }
            }
        }
        for &i in &ops {
            self.entries[i].status = Status::Running;
        }
        let internal_waits = [Class::Gc, Class::Erase].iter().any(|&c| !self.queue(d, c).is_empty());
        let die = &mut self.dies[d];
        match class {
            Class::Gc | Class::Erase => die.overtaken = 0,
            Class::HostWrite if internal_waits => die.overtaken += 1,
            _ => {}
        }
        die.urged = false;
        let duration = ops
            .iter()
            .map(|&i| match self.entries[i].op().unwrap().kind {
                FlashOpKind::Read => self.timing.read_command_ns,
                FlashOpKind::Program => self.timing.program_command_ns + self.transfer_ns(i),
                FlashOpKind::Erase => self.timing.erase_command_ns,
            })
            .sum::<u64>();
        self.dies[d].doing = Doing::Command {
            until: self.now + duration,
            work: Work {
                ops,
                sent: 0,
                suspends: 0,
            },
        };
        duration
    }

    fn select(&self, d: usize) -> Option<Class> {
        let die = &self.dies[d];
        let classes: Vec<Class> = if die.parked.is_some() {
            self.urgent_heads(d).collect()
        } else {
            Class::ALL
                .into_iter()
                .filter(|&c| !self.queue(d, c).is_empty())
                .collect()
        };
        let rank = |c: Class| self.plan.class_ranks[c as usize];
        let oldest = |from: &[Class]| {
            let least = from.iter().map(|&c| rank(c)).min()?;
            from.iter()
                .copied()
                .filter(|&c| rank(c) == least)
                .min_by_key(|&c| self.head(d, c).map(|i| (self.ready_ns(i), i)))
        };
        let host_write_first =
            classes.contains(&Class::HostWrite) && classes.iter().all(|&c| rank(c) >= rank(Class::HostWrite));
        if host_write_first && self.plan.gc_after.is_some_and(|limit| die.overtaken >= limit) {
            let internal: Vec<Class> = classes
                .iter()
                .copied()
                .filter(|c| matches!(c, Class::Gc | Class::Erase))
                .collect();
            if !internal.is_empty() {
                return oldest(&internal);
            }
        }
        oldest(&classes)
    }

    fn urgent_heads(&self, d: usize) -> impl Iterator<Item = Class> + '_ {
        [Class::Mapping, Class::HostRead].into_iter().filter(move |&c| {
            self.head(d, c)
                .is_some_and(|i| self.entries[i].op().unwrap().kind == FlashOpKind::Read)
        })
    }

    fn head(&self, d: usize, class: Class) -> Option<usize> {
        self.queue(d, class).first().copied()
    }

    /// Ready operations of a class, longest ready first, then in order of issue.
    fn queue(&self, d: usize, class: Class) -> Vec<usize> {
        let mut queue: Vec<usize> = (0..self.entries.len())
            .filter(|&i| {
                matches!(self.entries[i].status, Status::Ready(_))
                    && self.entries[i].op().unwrap().class == class
                    && self.die_of(i) == d
            })
            .collect();
        queue.sort_by_key(|&i| (self.ready_ns(i), i));
        queue
    }

    fn ready_ns(&self, i: usize) -> u64 {
        match self.entries[i].status {
            Status::Ready(time) => time,
            other => panic!("operation {i} is {other:?}, not ready"),
        }
    }

    fn die_of(&self, i: usize) -> usize {
        self.entries[i].place.unwrap().0 as usize % self.dies.len()
    }

    fn kind(&self, work: &Work) -> FlashOpKind {
        self.entries[work.ops[0]].op().unwrap().kind
    }

    fn cell_ns(&self, work: &Work) -> u64 {
        let (_, _, page) = self.entries[work.ops[0]].place.unwrap();
        match self.kind(work) {
            FlashOpKind::Read => self.timing.read_of(page),
            FlashOpKind::Program => self.timing.program_of(page),
            FlashOpKind::Erase => self.timing.erase_ns,
        }
    }

    fn transfer_ns(&self, i: usize) -> u64 {
        self.timing.transfer_ns(u64::from(self.entries[i].op().unwrap().bytes))
    }
}

/// The cause that goes with a class in random graphs.
pub fn cause_of(class: Class) -> Cause {
    match class {
        Class::Mapping => Cause::Map,
        Class::HostRead | Class::HostWrite => Cause::Host,
        Class::Gc | Class::Erase => Cause::Gc,
    }
}
