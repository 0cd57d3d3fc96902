//! The scheduler `first_ready`: by hand, and against a naive reference that looks at every request in every nanosecond.
//!
//! Times of the round memory: t_rcd 100, t_cl = t_cwl 20, t_rp 10, t_rtp 5, t_ccd 4, t_wr 300, t_burst 4.

mod common;

use common::{Ask, memory, read, serve, times, write};
use ftlab_core::Stream;
use ftlab_nvm::Memory;
use ftlab_nvm::schedule::Scheduler;

fn by_command(set: &[&str]) -> Memory {
    memory(&[&["controller.scheduler=first_ready", "write.cost=recovery"], set].concat())
}

/// With t_ccd 9 the row may be closed (105) before the next hit could go (109): it is closed for row 2, and then opened again for the older hit: 115 + 100 + 24; then
/// row 2: 215 + 5 + 10 + 100 + 24. With t_ccd 4 the hit goes first.
#[test]
fn a_precharge_is_as_ready_as_a_hit() {
    let asks = [read(0, 0, 1, 0), read(0, 0, 1, 1), read(0, 0, 2, 0)];
    assert_eq!(times(&by_command(&["timing.t_ccd=9ns"]), &asks), [124, 239, 354]);
    assert_eq!(times(&by_command(&[]), &asks), [124, 128, 243]);
}

/// Banks 0 and 1 are open at 100. Bank 0 has the bus; row 1 of bank 1 is closed for row 2 before it was read, and opened again: 110 + 100 + 24; row 2 follows.
#[test]
fn a_row_is_closed_before_it_was_read() {
    let asks = [read(0, 0, 1, 0), read(0, 1, 1, 0), read(0, 1, 2, 0)];
    let (found, system) = serve(&by_command(&[]), &asks);
    assert_eq!(found, [124, 234, 349]);
    assert_eq!(system.channels[0].counts.closed_unserved, 1);
    let counts = system.channels[0].banks[1].counts;
    assert_eq!((counts.hits, counts.misses, counts.conflicts), (0, 1, 1));
}

/// One command in 10: activations at 0, 10, 20. With 15 between them: 0, 15, 30. Of five activations the fifth waits for t_faw: 200.
#[test]
fn commands_are_apart() {
    let asks = [read(0, 0, 1, 0), read(0, 1, 1, 0), read(0, 2, 1, 0)];
    assert_eq!(
        times(&by_command(&["controller.command_cycle=10ns"]), &asks),
        [124, 134, 144]
    );
    assert_eq!(times(&by_command(&["timing.t_rrd=15ns"]), &asks), [124, 139, 154]);
    let five: Vec<Ask> = (0..4)
        .map(|bank| read(0, bank, 1, 0))
        .chain([read(0, 0, 2, 0)])
        .collect();
    assert_eq!(
        times(&by_command(&["timing.t_faw=200ns"]), &five),
        [124, 128, 132, 136, 324]
    );
    // Rows of banks 0 and 1 are closed at 2005 and, 50 later, at 2055.
    let closing = [
        read(0, 0, 1, 0),
        read(1000, 1, 1, 0),
        read(2000, 0, 2, 0),
        read(2000, 1, 2, 0),
    ];
    assert_eq!(
        times(&by_command(&["timing.t_ppd=50ns"]), &closing),
        [124, 1124, 2134, 2184]
    );
}

/// A run of one: the row has had two column commands; the third hit is passed by row 2, which the scheduler would close it for only at 109.
#[test]
fn a_spent_row_waits() {
    let asks = [read(0, 0, 1, 0), read(0, 0, 1, 1), read(0, 0, 1, 2), read(0, 0, 2, 0)];
    let set = ["timing.t_rtp=4ns"];
    assert_eq!(times(&by_command(&set), &asks), [124, 128, 132, 246]);
    let limited = memory(&[
        "controller.scheduler=first_ready:run=1",
        "write.cost=recovery",
        "timing.t_rtp=4ns",
    ]);
    // Closed at 108, opened for the older hit at 118; then row 2.
    assert_eq!(times(&limited, &asks), [124, 128, 242, 356]);
}

#[derive(Clone, Copy)]
struct Row {
    row: u32,
    /// Its first column command may go.
    ready: u64,
    columns: u32,
    /// The request that opened it and was not served yet.
    opener: Option<usize>,
}

#[derive(Clone, Default)]
struct Bank {
    open: Option<Row>,
    /// A request whose row was closed before it was served.
    robbed: Option<usize>,
    row_from: u64,
    column_from: u64,
}

#[derive(Clone, Copy)]
enum Command {
    Column,
    Open,
    Close,
}

struct Reference<'a> {
    m: &'a Memory,
    asks: &'a [Ask],
    done: Vec<u64>,
    /// Requests that wait for a bank: those with a place, those in the write buffer, those in the queues of banks.
    queue: Vec<usize>,
    buffer: Vec<usize>,
    staged: Vec<usize>,
    draining: bool,
    next: usize,
    banks: Vec<Bank>,
    bus_until: u64,
    write_data: Option<u64>,
    read_data: Option<u64>,
    opened: Vec<u64>,
    closed: Option<u64>,
    command_free: u64,
    refreshed: u64,
}

fn ns(ps: u64) -> u64 {
    ps / 1000
}

impl Reference<'_> {
    fn is_opener(&self, id: usize) -> bool {
        let bank = &self.banks[self.asks[id].bank as usize];
        bank.robbed == Some(id) || bank.open.is_some_and(|row| row.opener == Some(id))
    }

    fn posted(&self) -> bool {
        self.m.buffer > 0
    }

    fn all(&self) -> Vec<usize> {
        [&self.queue[..], &self.buffer, &self.staged].concat()
    }

    /// Whether the line waits to be written.
    fn is_buffered(&self, ask: &Ask) -> bool {
        let staged = self.staged.iter().filter(|&&id| self.asks[id].write);
        let mut writes = self.buffer.iter().chain(staged).map(|&id| &self.asks[id]);
        writes.any(|other| (other.bank, other.row, other.column) == (ask.bank, ask.row, ask.column))
    }

    /// Whether a list has a place. A request for which a row was opened has left its own, if the controller frees it then; with queues of banks it has left before.
    fn has_place(&self, list: &[usize], places: usize) -> bool {
        let gone = |id: &&usize| self.m.frees_early && self.m.bank_queue == 0 && self.is_opener(**id);
        list.len() - list.iter().filter(gone).count() < places
    }

    fn admit(&mut self, now: u64) -> bool {
        let mut any = false;
        while let Some(ask) = self.asks.get(self.next).filter(|ask| ask.at <= now) {
            let held = self.posted() && self.is_buffered(ask);
            if held {
                // A write takes the place of the one that waits; a read is answered from it.
                self.done[self.next] = now + if ask.write { 0 } else { ns(self.m.t_cl + self.m.t_burst) };
            } else if self.posted() && ask.write {
                if !self.has_place(&self.buffer, self.m.buffer) {
                    break;
                }
                self.done[self.next] = now;
                self.buffer.push(self.next);
            } else {
                if !self.has_place(&self.queue, self.m.queue) {
                    break;
                }
                self.queue.push(self.next);
            }
            self.next += 1;
            any = true;
        }
        // High water is looked at when all that can come in is in.
        self.draining |= any && self.posted() && self.buffer.len() >= self.m.high;
        any
    }

    fn serves_writes(&self) -> bool {
        let none_asked = self.queue.is_empty() && self.staged.is_empty();
        let idle = self.m.when_idle || self.next == self.asks.len();
        self.posted() && (self.draining || (none_asked && idle))
    }

    /// One request goes on to the queue of its bank.
    fn stage(&mut self) -> bool {
        if self.m.bank_queue == 0 {
            return false;
        }
        let writes = self.serves_writes();
        let of_bank = |bank: u32| self.staged.iter().filter(|&&id| self.asks[id].bank == bank).count();
        let list = if writes { &self.buffer } else { &self.queue };
        let Some(at) = list
            .iter()
            .position(|&id| of_bank(self.asks[id].bank) < self.m.bank_queue)
        else {
            return false;
        };
        let id = if writes {
            self.buffer.remove(at)
        } else {
            self.queue.remove(at)
        };
        self.staged.push(id);
        if writes && self.buffer.len() <= self.m.low {
            self.draining = false;
        }
        true
    }

    fn refresh_is_due(&self, now: u64) -> bool {
        self.m
            .refresh
            .is_some_and(|(every, _)| now >= (self.refreshed + 1) * ns(every))
    }

    fn refresh(&mut self, now: u64) -> bool {
        if !self.refresh_is_due(now) || self.all().iter().any(|&id| self.is_opener(id)) {
            return false;
        }
        let free = |bank: &Bank| bank.row_from.max(now) + bank.open.map_or(0, |_| ns(self.m.t_rp));
        let end = self.banks.iter().map(free).max().unwrap() + ns(self.m.refresh.unwrap().1);
        for bank in &mut self.banks {
            bank.open = None;
            bank.row_from = end;
        }
        self.refreshed += 1;
        true
    }

    /// What a request needs next, if it can have it now.
    fn can(&self, id: usize, now: u64) -> Option<Command> {
        let ask = self.asks[id];
        let bank = &self.banks[ask.bank as usize];
        let m = self.m;
        let mine = self.is_opener(id);
        let of_another = !mine && (bank.robbed.is_some() || bank.open.is_some_and(|row| row.opener.is_some()));
        match bank.open {
            Some(row) if row.row == ask.row => {
                let latency = if ask.write { ns(m.t_cwl) } else { ns(m.t_cl) };
                let turned = match ask.write {
                    false => m
                        .t_wtr
                        .zip(self.write_data)
                        .is_none_or(|(turn, end)| end + ns(turn) <= now),
                    true => self.read_data.is_none_or(|end| end + ns(m.t_rtw) <= now + latency),
                };
                let bus = self.bus_until <= now + latency;
                let free = row.ready <= now && bank.column_from <= now;
                (free && bus && turned && !of_another).then_some(Command::Column)
            }
            Some(row) => {
                let spaced = self.closed.is_none_or(|at| at + ns(m.t_ppd) <= now);
                let free = bank.row_from <= now && (row.opener.is_none() || row.ready <= now);
                (spaced && free).then_some(Command::Close)
            }
            None => {
                let last = self.opened.last().is_none_or(|at| at + ns(m.t_rrd) <= now);
                let fourth = self.opened.len().checked_sub(4);
                let window = fourth.is_none_or(|at| self.opened[at] + ns(m.t_faw) <= now);
                (bank.row_from <= now && last && window && !of_another).then_some(Command::Open)
            }
        }
    }

    fn command(&mut self, now: u64) -> bool {
        if now < self.command_free {
            return false;
        }
        let Scheduler::FirstReady { run } = self.m.scheduler else {
            panic!("another scheduler");
        };
        // Those for which a row was opened go first, whatever is served; in the order in which the scheduler came to see them.
        let mut mine = if self.m.bank_queue > 0 {
            self.staged.clone()
        } else {
            self.all()
        };
        if self.m.bank_queue == 0 {
            mine.sort_unstable();
        }
        mine.retain(|&id| self.is_opener(id));
        let served = match (self.m.bank_queue > 0, self.serves_writes()) {
            (true, _) => &self.staged,
            (false, true) => &self.buffer,
            (false, false) => &self.queue,
        };
        let others: Vec<usize> = served.iter().copied().filter(|&id| !self.is_opener(id)).collect();
        let mut chosen = mine.into_iter().find(|&id| self.can(id, now).is_some());
        if chosen.is_none() && !self.refresh_is_due(now) {
            let spent = |id: usize| {
                let open = self.banks[self.asks[id].bank as usize].open;
                open.is_some_and(|row| row.row == self.asks[id].row && run.is_some_and(|run| row.columns > run))
            };
            let ready = others
                .iter()
                .copied()
                .find(|&id| self.can(id, now).is_some() && !spent(id));
            let oldest = others.first().copied().filter(|&id| self.can(id, now).is_some());
            chosen = ready.or(oldest);
        }
        let Some(id) = chosen else {
            return false;
        };
        self.command_free = now + ns(self.m.command_cycle);
        let (ask, command) = (self.asks[id], self.can(id, now).unwrap());
        let bank = &mut self.banks[ask.bank as usize];
        match command {
            Command::Open => {
                bank.robbed = None;
                bank.open = Some(Row {
                    row: ask.row,
                    ready: now + ns(self.m.t_rcd),
                    columns: 0,
                    opener: Some(id),
                });
                self.opened.push(now);
            }
            Command::Close => {
                bank.robbed = bank.open.unwrap().opener;
                bank.open = None;
                bank.row_from = now + ns(self.m.t_rp);
                self.closed = Some(now);
            }
            Command::Column => {
                let row = bank.open.as_mut().unwrap();
                row.columns += 1;
                row.opener = None;
                bank.column_from = now + ns(self.m.t_ccd);
                let data = now + if ask.write { ns(self.m.t_cwl) } else { ns(self.m.t_cl) };
                assert!(self.bus_until <= data, "the bus is booked twice");
                let end = data + ns(self.m.t_burst);
                self.bus_until = end;
                let closing = if ask.write {
                    end + ns(self.m.t_wr)
                } else {
                    now + ns(self.m.t_rtp)
                };
                bank.row_from = bank.row_from.max(closing);
                *(if ask.write {
                    &mut self.write_data
                } else {
                    &mut self.read_data
                }) = Some(end);
                for list in [&mut self.queue, &mut self.buffer, &mut self.staged] {
                    list.retain(|&other| other != id);
                }
                if !(ask.write && self.posted()) {
                    self.done[id] = end;
                } else if self.m.bank_queue == 0 && self.buffer.len() <= self.m.low {
                    self.draining = false;
                }
            }
        }
        true
    }
}

fn reference(m: &Memory, asks: &[Ask]) -> Vec<u64> {
    let mut r = Reference {
        m,
        asks,
        done: vec![u64::MAX; asks.len()],
        queue: Vec::new(),
        buffer: Vec::new(),
        staged: Vec::new(),
        draining: false,
        next: 0,
        banks: vec![Bank::default(); m.banks_per_channel()],
        bus_until: 0,
        write_data: None,
        read_data: None,
        opened: Vec::new(),
        closed: None,
        command_free: 0,
        refreshed: 0,
    };
    let mut now = 0;
    while r.done.contains(&u64::MAX) {
        while r.admit(now) || r.stage() || r.refresh(now) || r.command(now) {}
        now += 1;
        assert!(now < 10_000_000, "the reference hangs");
    }
    r.done
}

#[test]
fn random_requests_agree_with_the_reference() {
    let only = std::env::var("FTLAB_CASE")
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    (0..1000)
        .filter(|case| only.is_none_or(|only| only == *case))
        .for_each(hold);
}

#[test]
#[ignore = "takes minutes"]
fn many_more_requests_agree_with_the_reference() {
    (1000..25000).for_each(hold);
}

/// One case by its number: a memory, requests, and when each is done.
fn hold(case: u64) {
    let mut random = Stream::new(case, "first ready");
    let mut pick = |values: [u64; 3]| values[random.below(3) as usize];
    let mut set = vec![
        format!(
            "controller.scheduler=first_ready{}",
            ["", ":run=1", ":run=4"][pick([0, 1, 2]) as usize]
        ),
        "write.cost=recovery".into(),
        format!("controller.queue={}", pick([1, 5, 32])),
        format!("controller.command_cycle={}ns", pick([0, 1, 3])),
        format!(
            "controller.place_until={}",
            ["bank", "column"][(pick([0, 1, 1])) as usize]
        ),
    ];
    for (key, values) in [
        ("t_ccd", [1, 4, 9]),
        ("t_cwl", [20, 13, 30]),
        ("t_rtp", [0, 5, 40]),
        ("t_rrd", [0, 2, 30]),
        ("t_faw", [0, 40, 300]),
        ("t_ppd", [0, 2, 20]),
        ("t_rtw", [0, 5, 30]),
        ("t_wtr", [0, 7, 50]),
    ] {
        set.push(format!("timing.{key}={}ns", pick(values)));
    }
    if pick([0, 1, 1]) == 1 {
        set.push(format!("write.buffer={}", pick([1, 4, 16])));
        set.push(format!("write.when_idle={}", pick([0, 1, 1]) == 1));
        let (high, low) = [("0.5", "0.3"), ("1.0", "0.0"), ("0.8", "0.2")][pick([0, 1, 2]) as usize];
        set.extend([format!("write.high={high}"), format!("write.low={low}")]);
    }
    if pick([0, 1, 2]) == 0 {
        set.push(format!("controller.bank_queue={}", pick([1, 2, 8])));
    }
    if pick([0, 1, 2]) == 0 {
        set.extend(["refresh.t_refi=700ns".into(), "refresh.t_rfc=90ns".into()]);
    }
    let (rows, pause, writes) = (pick([1, 2, 5]), pick([1, 20, 200]), pick([1, 2, 3]));
    let mut at = 0;
    let asks: Vec<Ask> = (0..60)
        .map(|_| {
            at += random.below(pause);
            let place = (
                random.below(4) as u32,
                random.below(rows) as u32,
                random.below(4) as u32,
            );
            let of = if random.below(4) < writes { write } else { read };
            of(at, place.0, place.1, place.2)
        })
        .collect();
    let refs: Vec<&str> = set.iter().map(String::as_str).collect();
    let memory = memory(&refs);
    let found = serve(&memory, &asks).0;
    let wanted = reference(&memory, &asks);
    if let Some(at) = (0..asks.len()).find(|&at| found[at] != wanted[at]) {
        panic!(
            "case {case} {set:?}: request {at} {:?} is done at {}, by the reference at {}",
            asks[at], found[at], wanted[at]
        );
    }
}
