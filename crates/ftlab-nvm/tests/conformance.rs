//! Every scheduler and way of writing against a naive reference on random requests: each request is done at the same nanosecond.
//!
//! The reference goes nanosecond by nanosecond and looks at everything that waits, in the order of arrival. It knows no events, candidates or wake-up
//! times, and keeps its own state. `FTLAB_CASE=4711` runs one case alone.

mod common;

use common::{Ask, memory, serve};
use ftlab_core::Stream;
use ftlab_nvm::Memory;
use ftlab_nvm::memory::WriteCost;
use ftlab_nvm::schedule::{Limit, Scheduler};

#[derive(Clone)]
struct Waiting {
    id: usize,
    ask: Ask,
    /// When its column command may go out, once it has its bank.
    ready: Option<u64>,
}

#[derive(Clone, Default)]
struct Bank {
    open: Option<u32>,
    dirty: bool,
    column_from: u64,
    row_from: u64,
    passed: u32,
    hits: u32,
    /// The write to the cells that goes on or was the last: from and until when.
    cells: (u64, u64),
    /// What is left of one that was paused.
    left: Option<u64>,
}

struct Reference<'a> {
    m: &'a Memory,
    done: Vec<u64>,
    outside: Vec<Waiting>,
    queue: Vec<Waiting>,
    buffer: Vec<Waiting>,
    /// What is in the queues of banks, in the order in which it came there.
    staged: Vec<Waiting>,
    banks: Vec<Bank>,
    bus_until: u64,
    last_write_data: Option<u64>,
    last_read_data: Option<u64>,
    draining: bool,
    cell_writes: Vec<u64>,
    refreshed: u64,
}

fn ns(ps: u64) -> u64 {
    ps / 1000
}

impl Reference<'_> {
    fn posted(&self) -> bool {
        self.m.buffer > 0
    }

    fn same(a: &Ask, b: &Ask) -> bool {
        (a.bank, a.row, a.column) == (b.bank, b.row, b.column)
    }

    fn refresh_due(&self, now: u64) -> bool {
        self.m
            .refresh
            .is_some_and(|(every, _)| now >= (self.refreshed + 1) * ns(every))
    }

    /// Requests that have left the buffer but not their bank's queue are still found in it.
    fn buffered(&self, ask: &Ask) -> bool {
        let staged = self.staged.iter().filter(|w| w.ask.write);
        self.buffer.iter().chain(staged).any(|w| Self::same(&w.ask, ask))
    }

    fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.iter().chain(&self.buffer).chain(&self.staged)
    }

    /// What happens next at `now`: one arrival, else a step into a bank's queue, else a refresh, else one column command, else a write is paused or goes on, else the banks are given away together; false if
    /// nothing can.
    fn one(&mut self, now: u64) -> bool {
        self.admit(now) || self.stage() || self.refresh(now) || self.send(now) || self.pause(now) || self.give(now)
    }

    fn admit(&mut self, now: u64) -> bool {
        let Some(first) = self.outside.first().filter(|w| w.ask.at <= now).cloned() else {
            return false;
        };
        let held = self.buffered(&first.ask);
        if self.posted() && first.ask.write {
            if !held && self.buffer.len() - self.early(&self.buffer) == self.m.buffer {
                return false;
            }
            self.done[first.id] = now;
            if !held {
                self.buffer.push(first);
            }
        } else if self.posted() && held {
            self.done[first.id] = now + ns(self.m.t_cl + self.m.t_burst);
        } else {
            if self.queue.len() - self.early(&self.queue) == self.m.queue {
                return false;
            }
            self.queue.push(first);
        }
        self.outside.remove(0);
        // High water is looked at when all that can come in is in.
        let more = self.outside.first().is_some_and(|w| w.ask.at <= now) && self.could_enter();
        if !more && self.posted() && self.buffer.len() >= self.m.high {
            self.draining = true;
        }
        true
    }

    fn serves_writes(&self) -> bool {
        let none_asked = self.queue.is_empty() && self.staged.is_empty();
        self.posted() && (self.draining || (none_asked && (self.m.when_idle || self.outside.is_empty())))
    }

    fn stage(&mut self) -> bool {
        if self.m.bank_queue == 0 {
            return false;
        }
        let writes = self.serves_writes();
        let list = if writes { &self.buffer } else { &self.queue };
        let in_bank = |bank: u32| self.staged.iter().filter(|w| w.ask.bank == bank).count();
        let Some(at) = list.iter().position(|w| in_bank(w.ask.bank) < self.m.bank_queue) else {
            return false;
        };
        let list = if writes { &mut self.buffer } else { &mut self.queue };
        let moved = list.remove(at);
        self.staged.push(moved);
        if writes && self.buffer.len() <= self.m.low {
            self.draining = false;
        }
        true
    }

    /// Requests that have given up their place because they have their bank.
    fn early(&self, list: &[Waiting]) -> usize {
        let gone = |w: &&Waiting| self.m.frees_early && w.ready.is_some();
        list.iter().filter(gone).count()
    }

    fn could_enter(&self) -> bool {
        let first = &self.outside[0];
        let held = self.buffered(&first.ask);
        match self.posted() {
            true if held => true,
            true if first.ask.write => self.buffer.len() - self.early(&self.buffer) < self.m.buffer,
            _ => self.queue.len() - self.early(&self.queue) < self.m.queue,
        }
    }

    fn owned(&self, bank: u32) -> bool {
        self.all().any(|w| w.ask.bank == bank && w.ready.is_some())
    }

    fn refresh(&mut self, now: u64) -> bool {
        let none_owned = self.all().all(|w| w.ready.is_none());
        if !self.refresh_due(now) || !none_owned {
            return false;
        }
        let mut start = self.dirty_rows_closed(now);
        for bank in &self.banks {
            let closing = if bank.open.is_some() { ns(self.m.t_rp) } else { 0 };
            start = start.max(bank.row_from.max(bank.cells.1).max(now) + closing);
        }
        let end = start + ns(self.m.refresh.unwrap().1);
        for bank in &mut self.banks {
            *bank = Bank {
                column_from: end.max(bank.column_from),
                row_from: end,
                passed: bank.passed,
                hits: bank.hits,
                left: bank.left,
                ..Bank::default()
            };
        }
        self.refreshed += 1;
        true
    }

    /// Nanosecond by nanosecond: a dirty row whose bank may close it begins its write when fewer than `at_once` are under way.
    fn dirty_rows_closed(&self, now: u64) -> u64 {
        let mut left: Vec<u64> = (self.banks.iter().filter(|bank| bank.dirty))
            .map(|bank| bank.row_from)
            .collect();
        let mut under_way: Vec<u64> = Vec::new();
        let mut closed = now;
        for at in now.. {
            if left.is_empty() {
                break;
            }
            under_way.retain(|&end| end > at);
            left.retain(|&from| {
                let starts = from <= at && (self.m.at_once == 0 || under_way.len() < self.m.at_once as usize);
                if starts {
                    under_way.push(at + ns(self.m.t_wr));
                    closed = closed.max(at + ns(self.m.t_wr + self.m.t_rp));
                }
                !starts
            });
        }
        closed
    }

    fn send(&mut self, now: u64) -> bool {
        let latency = |w: &Waiting| if w.ask.write { ns(self.m.t_cwl) } else { ns(self.m.t_cl) };
        let turned = |w: &Waiting| match w.ask.write {
            false => (self.m.t_wtr.zip(self.last_write_data)).is_none_or(|(turn, end)| end + ns(turn) <= now),
            true => (self.last_read_data).is_none_or(|end| end + ns(self.m.t_rtw) <= now + latency(w)),
        };
        let can = |w: &&Waiting| w.ready.is_some_and(|at| at <= now) && self.bus_until <= now + latency(w) && turned(w);
        // In the order in which the scheduler came to see them.
        let age = |w: &Waiting| match self.staged.iter().position(|s| s.id == w.id) {
            Some(at) => at,
            None => w.id,
        };
        let Some(chosen) = self.all().filter(can).min_by_key(|w| age(w)).cloned() else {
            return false;
        };
        let data_end = now + latency(&chosen) + ns(self.m.t_burst);
        assert!(
            self.bus_until <= data_end - ns(self.m.t_burst),
            "the bus is booked twice"
        );
        self.bus_until = data_end;
        if chosen.ask.write {
            self.last_write_data = Some(data_end);
        } else {
            self.last_read_data = Some(data_end);
        }
        let bank = &mut self.banks[chosen.ask.bank as usize];
        bank.column_from = bank.column_from.max(now + ns(self.m.t_ccd));
        let mut done = data_end;
        let wr = ns(self.m.t_wr);
        if !chosen.ask.write {
            bank.row_from = bank.row_from.max(now + ns(self.m.t_rtp));
        } else {
            match self.m.cost {
                WriteCost::Line => {
                    done = data_end + wr;
                    bank.cells = (data_end, done);
                    self.cell_writes.push(done);
                }
                WriteCost::Row => {
                    bank.dirty = true;
                    bank.row_from = bank.row_from.max(data_end);
                }
                WriteCost::Recovery => bank.row_from = bank.row_from.max(data_end + wr),
            }
        }
        let drains = chosen.ask.write && self.posted();
        if drains && self.m.bank_queue == 0 && self.buffer.len() - 1 <= self.m.low {
            self.draining = false;
        }
        for list in [&mut self.queue, &mut self.buffer, &mut self.staged] {
            list.retain(|w| w.id != chosen.id);
        }
        if !drains {
            self.done[chosen.id] = done;
        }
        true
    }

    /// Bank by bank: a write to the cells for which a read waits stops at its next step, outside drains; what is left of one is written when nothing else has the bank.
    fn pause(&mut self, now: u64) -> bool {
        let step = ns(self.m.pause_step);
        if step == 0 {
            return false;
        }
        let writes_first = self.serves_writes();
        for number in 0..self.banks.len() {
            let awaited =
                !writes_first && (self.queue.iter()).any(|w| w.ask.bank as usize == number && w.ready.is_none());
            let owned = self.owned(number as u32);
            let powered = self.powered(now);
            let due = self.refresh_due(now);
            let bank = &mut self.banks[number];
            let (start, end) = bank.cells;
            if awaited && end > now {
                let stop = (0..).map(|steps| start + steps * step).find(|&at| at >= now).unwrap();
                // One that stops at its end is not paused, and one that was, is on its way to the step already.
                if stop < end && bank.left.is_none() {
                    bank.left = Some(end - stop);
                    bank.cells.1 = stop;
                    let held = self.cell_writes.iter_mut().find(|held| **held == end).unwrap();
                    *held = stop;
                    return true;
                }
            }
            let free = bank.column_from.max(bank.row_from).max(bank.cells.1) <= now;
            if let Some(left) = bank.left
                && !awaited
                && !owned
                && free
                && powered
                && !due
            {
                bank.left = None;
                bank.cells = (now, now + left);
                self.cell_writes.push(now + left);
                return true;
            }
        }
        false
    }

    fn powered(&self, now: u64) -> bool {
        let owners = self.all().filter(|w| w.ready.is_some() && w.ask.write).count();
        let started = if self.m.cost == WriteCost::Line { owners } else { 0 };
        let under_way = self.cell_writes.iter().filter(|&&end| end > now).count();
        self.m.at_once == 0 || under_way + started < self.m.at_once as usize
    }

    fn give(&mut self, now: u64) -> bool {
        if self.refresh_due(now) {
            return false;
        }
        let writes = self.serves_writes();
        let asked = match (self.m.bank_queue > 0, writes) {
            (true, _) => self.staged.clone(),
            (false, true) => self.buffer.clone(),
            (false, false) => self.queue.clone(),
        };
        let mut seen: Vec<u32> = Vec::new();
        let mut any = false;
        for waiting in &asked {
            let number = waiting.ask.bank;
            if seen.contains(&number) || self.owned(number) {
                if self.m.scheduler == Scheduler::Fcfs {
                    return any;
                }
                continue;
            }
            // Strictly in order: not beside another, and nobody behind the head.
            if self.m.scheduler == Scheduler::Fcfs && self.all().any(|w| w.ready.is_some()) {
                return any;
            }
            // The rest of a write comes before any other write to the bank.
            if waiting.ask.write && self.banks[number as usize].left.is_some() {
                if self.m.scheduler == Scheduler::Fcfs {
                    return any;
                }
                continue;
            }
            seen.push(number);
            let bank = &self.banks[number as usize];
            let of_bank: Vec<&Waiting> = asked.iter().filter(|w| w.ask.bank == number).collect();
            let oldest_hit = of_bank.iter().find(|w| bank.open == Some(w.ask.row));
            let oldest = of_bank[0];
            let oldest_other = of_bank.iter().find(|w| bank.open != Some(w.ask.row));
            let chosen = match (self.m.scheduler, oldest_hit) {
                (Scheduler::HitsFirst { limit }, Some(hit)) => match (limit, oldest_other) {
                    (Limit::Cap(cap), _) if hit.id != oldest.id && bank.passed >= cap => oldest,
                    (Limit::Run(run), Some(other)) if bank.hits >= run => other,
                    _ => hit,
                },
                _ => oldest,
            };
            let (id, row, write) = (chosen.id, chosen.ask.row, chosen.ask.write);
            let hit = bank.open == Some(row);
            let passes = hit && id != oldest.id;
            let from = if hit { bank.column_from } else { bank.row_from }.max(bank.cells.1);
            if now < from && !self.m.look_ahead {
                if self.m.scheduler == Scheduler::Fcfs {
                    return any;
                }
                continue;
            }
            let closes_dirty = !hit && bank.dirty;
            if ((self.m.cost == WriteCost::Line && write) || closes_dirty) && !self.powered(now) {
                if self.m.scheduler == Scheduler::Fcfs {
                    return any;
                }
                continue;
            }
            let mut ready = now.max(from);
            let bank = &mut self.banks[number as usize];
            if hit {
                bank.hits += 1;
                bank.passed = if passes { bank.passed + 1 } else { 0 };
            } else {
                bank.passed = 0;
                bank.hits = 0;
                if closes_dirty {
                    ready += ns(self.m.t_wr);
                    self.cell_writes.push(ready);
                }
                if bank.open.is_some() {
                    ready += ns(self.m.t_rp);
                }
                ready += ns(self.m.t_rcd);
                bank.open = Some(row);
                bank.dirty = false;
            }
            let lists = [&mut self.queue, &mut self.buffer, &mut self.staged];
            let mut all = lists.into_iter().flatten();
            all.find(|w| w.id == id).unwrap().ready = Some(ready);
            any = true;
        }
        any
    }
}

fn reference(m: &Memory, asks: &[Ask]) -> Vec<u64> {
    let outside = asks
        .iter()
        .enumerate()
        .map(|(id, &ask)| Waiting { id, ask, ready: None })
        .collect();
    let mut r = Reference {
        m,
        done: vec![u64::MAX; asks.len()],
        outside,
        queue: Vec::new(),
        buffer: Vec::new(),
        staged: Vec::new(),
        banks: vec![Bank::default(); m.banks_per_channel()],
        bus_until: 0,
        last_write_data: None,
        last_read_data: None,
        draining: false,
        cell_writes: Vec::new(),
        refreshed: 0,
    };
    let mut now = 0;
    while r.done.contains(&u64::MAX) {
        while r.one(now) {}
        now += 1;
        assert!(now < 10_000_000, "the reference hangs");
    }
    r.done
}

/// Random requests: few rows, so that there are hits and conflicts; bursts and pauses.
fn asks(random: &mut Stream, count: usize) -> Vec<Ask> {
    let share = random.below(101);
    let rows = 1 + random.below(6);
    let pause = [1, 20, 200][random.below(3) as usize];
    let mut at = 0;
    let mut one = |_| {
        if random.below(3) > 0 {
            at += random.below(pause);
        }
        Ask {
            at,
            write: random.below(100) >= share,
            bank: random.below(4) as u32,
            row: random.below(rows) as u32,
            column: random.below(4) as u32,
        }
    };
    (0..count).map(&mut one).collect()
}

#[test]
fn every_scheduler_agrees_with_the_reference() {
    let only = std::env::var("FTLAB_CASE")
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    (0..2000)
        .filter(|case| only.is_none_or(|only| only == *case))
        .for_each(hold);
}

#[test]
#[ignore = "takes minutes"]
fn many_more_requests_agree_with_the_reference() {
    (2000..50000).for_each(hold);
}

/// One case by its number: a memory, requests, and when each is done.
fn hold(case: u64) {
    let schedulers = [
        "fcfs",
        "ready_first",
        "hits_first",
        "hits_first:cap=1",
        "hits_first:cap=4",
        "hits_first:run=1",
        "hits_first:run=3",
    ];
    let mut random = Stream::new(case, "nvm conformance");
    let mut set = vec![format!("controller.scheduler={}", schedulers[(case % 7) as usize])];
    let cost = ["line", "row", "recovery"][random.below(3) as usize];
    set.push(format!("write.cost={cost}"));
    set.push(format!("controller.queue={}", [1, 2, 5, 32][random.below(4) as usize]));
    set.push(format!("timing.t_ccd={}ns", [1, 4, 9, 60][random.below(4) as usize]));
    set.push(format!("timing.t_cwl={}ns", [20, 13, 30][random.below(3) as usize]));
    set.push(format!("timing.t_rtp={}ns", [0, 5, 40][random.below(3) as usize]));
    if random.below(2) == 0 {
        set.push(format!("write.buffer={}", [1, 4, 16][random.below(3) as usize]));
        set.push(format!("write.when_idle={}", random.below(2) == 0));
        let marks = [(0.5, 0.3), (1.0, 0.0), (0.25, 0.1), (0.9, 0.8)][random.below(4) as usize];
        set.extend([format!("write.high={}", marks.0), format!("write.low={}", marks.1)]);
    }
    let pauses = cost == "line" && set.iter().any(|key| key.starts_with("write.buffer")) && random.below(2) == 0;
    if pauses {
        set.push(format!(
            "write.pause_step={}ns",
            [1, 50, 130, 300][random.below(4) as usize]
        ));
    }
    if cost != "recovery" && random.below(2) == 0 {
        set.push(format!("write.at_once={}", 1 + random.below(3)));
    } else if !pauses && random.below(3) == 0 {
        set.push("controller.look_ahead=true".into());
    }
    if random.below(3) == 0 {
        set.push("controller.place_until=bank".into());
    }
    if !pauses && random.below(3) == 0 {
        set.push(format!("controller.bank_queue={}", [1, 2, 8][random.below(3) as usize]));
    }
    if random.below(3) == 0 {
        set.push(format!("timing.t_wtr={}ns", [0, 7, 50][random.below(3) as usize]));
        set.push(format!("timing.t_rtw={}ns", [0, 5, 30][random.below(3) as usize]));
    }
    if random.below(3) == 0 {
        let (every, takes) = [(700, 90), (1900, 400), (331, 7)][random.below(3) as usize];
        set.push(format!("refresh.t_refi={every}ns"));
        set.push(format!("refresh.t_rfc={takes}ns"));
    }
    let refs: Vec<&str> = set.iter().map(String::as_str).collect();
    let memory = memory(&refs);
    let asks = asks(&mut random, 60);
    let found = serve(&memory, &asks).0;
    let wanted = reference(&memory, &asks);
    if let Some(at) = (0..asks.len()).find(|&at| found[at] != wanted[at]) {
        for (number, ask) in asks.iter().enumerate().take(at + 4) {
            println!("{number} {ask:?}: {} {}", found[number], wanted[number]);
        }
        panic!(
            "case {case} {set:?}: request {at} {:?} is done at {}, by the reference at {}",
            asks[at], found[at], wanted[at]
        );
    }
}
