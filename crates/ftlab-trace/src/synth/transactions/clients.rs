//! The clients: each goes through its transaction until it must wait, for a lock, a page, or its next transaction.

use std::collections::VecDeque;

use ftlab_core::{Calendar, OpKind, Stream};
use rustc_hash::FxHashMap;

use super::locks::{Locks, Mode};
use super::mixes::{Access, Lock, Mix};
use super::pool::{Pool, PoolPolicy};
use super::{PageRequest, Report};

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub clients: u32,
    pub think_ns: u64,
    /// Of every page access.
    pub compute_ns: u64,
    pub timeout_ns: u64,
    pub page_bytes: u32,
    pub pool_pages: u32,
    pub seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Between transactions, until then.
    Thinks {
        until_ns: u64,
    },
    /// Has had its page, and works on it until then.
    Computes {
        until_ns: u64,
    },
    /// May go on.
    Ready,
    WaitsForLock {
        since_ns: u64,
    },
    /// The page of its access is being read or written for another client.
    WaitsForPage,
    /// Writes this page, which leaves the pool for its own.
    Writes {
        victim: u32,
    },
    /// Reads the page of its access.
    Reads,
    /// There is no further transaction for it.
    Rests,
}

struct Client {
    state: State,
    accesses: Vec<Access>,
    /// The next of `accesses`, and whether its lock is held.
    at: usize,
    is_locked: bool,
    kind: usize,
    began_ns: u64,
    asked_ns: u64,
}

pub struct Clients {
    shape: Shape,
    mix: Box<dyn Mix>,
    draws: Stream,
    thinking: Stream,
    pool: Pool,
    locks: Locks,
    clients: Vec<Client>,
    /// Pages that are read or written, and the clients that wait for them.
    busy: FxHashMap<u32, Vec<u32>>,
    /// Clients whose time may have come: those that think or compute, and those that wait for a lock.
    due: Calendar,
    ready: VecDeque<u32>,
    requests: VecDeque<PageRequest>,
    /// By tag: whose request it is.
    under_way: Vec<u32>,
    /// Transactions to begin.
    left: u64,
    /// Commits that are left; with the last one all is over, whatever is under way.
    to_commit: u64,
    pub report: Report,
}

impl Clients {
    pub fn new(shape: Shape, mix: Box<dyn Mix>, policy: Box<dyn PoolPolicy>) -> Self {
        let client = || Client {
            state: State::Rests,
            accesses: Vec::new(),
            at: 0,
            is_locked: false,
            kind: 0,
            began_ns: 0,
            asked_ns: 0,
        };
        Clients {
            report: Report {
                kinds: mix.kinds().iter().map(|&name| (name, 0, 0)).collect(),
                ..Report::default()
            },
            shape,
            mix,
            draws: Stream::new(shape.seed, "transactions"),
            thinking: Stream::new(shape.seed, "think time"),
            pool: Pool::new(shape.pool_pages, policy),
            locks: Locks::new(shape.clients),
            clients: (0..shape.clients).map(|_| client()).collect(),
            busy: FxHashMap::default(),
            due: Calendar::default(),
            ready: VecDeque::new(),
            requests: VecDeque::new(),
            under_way: Vec::new(),
            left: 0,
            to_commit: 0,
        }
    }

    /// So many transactions, all of which commit: the first of each client at 0; of clients that are at work already, only the number
    /// changes.
    pub fn begin(&mut self, transactions: u64) {
        self.start(transactions, transactions);
    }

    /// The same until so many have been committed: all clients are at work up to then, so that the run is not one of ever fewer of them
    /// towards its end.
    pub fn begin_until(&mut self, committed: u64) {
        self.start(u64::MAX, committed);
    }

    fn start(&mut self, transactions: u64, commits: u64) {
        self.left = transactions;
        self.to_commit = commits;
        for client in 0..self.shape.clients {
            if self.clients[client as usize].state == State::Rests {
                self.next_transaction(client, 0);
            }
        }
    }

    /// After the last of the transactions: what was counted is forgotten, the pool stays as it is.
    pub fn rest(&mut self) {
        assert!(
            self.locks.is_free() && self.busy.is_empty(),
            "a transaction is under way"
        );
        self.due.clear();
        self.report = Report {
            kinds: self.report.kinds.iter().map(|&(name, ..)| (name, 0, 0)).collect(),
            ..Report::default()
        };
    }

    /// Whether everything that was asked for has been committed.
    pub fn are_done(&self) -> bool {
        self.to_commit == 0
    }

    /// Nobody has anything to do any more; requests under way belong to nobody.
    fn end(&mut self) {
        for request in self.requests.drain(..) {
            match request.op {
                OpKind::Write => self.report.writes -= 1,
                _ => self.report.reads -= 1,
            }
        }
        self.locks = Locks::new(self.shape.clients);
        self.busy.clear();
        self.due.clear();
        self.ready.clear();
        self.under_way.clear();
        for client in &mut self.clients {
            client.state = State::Rests;
        }
    }

    pub fn next_time(&mut self, now_ns: u64) -> Option<u64> {
        while let Some((time_ns, client)) = self.due.pop_due(now_ns) {
            self.comes_due(client, time_ns, now_ns);
        }
        self.go_on(now_ns);
        match self.requests.is_empty() {
            false => Some(now_ns),
            true => self.next_due(),
        }
    }

    /// When a client comes due. Waits for locks that are over are passed by: behind the last transaction nothing happens any more.
    fn next_due(&mut self) -> Option<u64> {
        while let Some((time_ns, client)) = self.due.next() {
            if self.is_due(client, time_ns) {
                return Some(time_ns);
            }
            self.due.pop_due(time_ns);
        }
        None
    }

    /// Whether the client waits for this time; else it has its lock, or its transaction, already.
    fn is_due(&self, number: u32, time_ns: u64) -> bool {
        match self.clients[number as usize].state {
            State::Thinks { until_ns } | State::Computes { until_ns } => until_ns == time_ns,
            State::WaitsForLock { since_ns } => since_ns + self.shape.timeout_ns == time_ns,
            _ => false,
        }
    }

    pub fn take(&mut self) -> Option<PageRequest> {
        self.requests.pop_front()
    }

    pub fn issued(&mut self, tag: u64, client: u32, now_ns: u64) {
        let tag = tag as usize;
        if self.under_way.len() <= tag {
            self.under_way.resize(tag + 1, u32::MAX);
        }
        self.under_way[tag] = client;
        self.clients[client as usize].asked_ns = now_ns;
    }

    pub fn completed(&mut self, tag: u64, now_ns: u64) {
        let client = self.under_way.get(tag as usize).copied();
        // Of a request that was under way at the end nobody is told.
        if let Some(client) = client.filter(|&client| client != u32::MAX) {
            self.done(client, now_ns);
        }
    }

    /// The next request, if there is one, completes at once.
    pub fn at_once(&mut self, now_ns: u64) -> Option<PageRequest> {
        let request = self.take()?;
        self.clients[request.client as usize].asked_ns = now_ns;
        self.done(request.client, now_ns);
        Some(request)
    }

    fn comes_due(&mut self, number: u32, time_ns: u64, now_ns: u64) {
        if !self.is_due(number, time_ns) {
            return;
        }
        let client = &mut self.clients[number as usize];
        let was = std::mem::replace(&mut client.state, State::Ready);
        match was {
            State::Thinks { .. } => client.began_ns = now_ns,
            State::WaitsForLock { since_ns } => {
                client.at = 0;
                client.is_locked = false;
                self.report.restarts += 1;
                self.report.lock_wait_ns += u128::from(now_ns - since_ns);
                self.release(number, now_ns);
            }
            _ => {}
        }
        self.ready.push_back(number);
    }

    fn release(&mut self, number: u32, now_ns: u64) {
        let mut granted = Vec::new();
        self.locks.release(number, &mut granted);
        for other in granted {
            let client = &mut self.clients[other as usize];
            let State::WaitsForLock { since_ns } = client.state else {
                unreachable!("client {other} was given a lock while {:?}", client.state);
            };
            self.report.lock_wait_ns += u128::from(now_ns - since_ns);
            client.is_locked = true;
            client.state = State::Ready;
            self.ready.push_back(other);
        }
    }

    fn next_transaction(&mut self, number: u32, now_ns: u64) {
        let client = &mut self.clients[number as usize];
        if self.left == 0 {
            client.state = State::Rests;
            return;
        }
        self.left -= 1;
        client.accesses.clear();
        client.kind = self.mix.draw(number, &mut self.draws, &mut client.accesses);
        client.at = 0;
        client.is_locked = false;
        let think_ns = match self.shape.think_ns {
            0 => 0,
            // 1 − u is never 0.
            mean => (-libm::log(1.0 - self.thinking.unit()) * mean as f64) as u64,
        };
        client.state = State::Thinks {
            until_ns: now_ns + think_ns,
        };
        self.due.push(now_ns + think_ns, number);
    }

    fn go_on(&mut self, now_ns: u64) {
        while let Some(number) = self.ready.pop_front() {
            self.goes_on(number, now_ns);
            if self.ready.is_empty() {
                while let Some((time_ns, client)) = self.due.pop_due(now_ns) {
                    self.comes_due(client, time_ns, now_ns);
                }
            }
        }
    }

    /// Takes the client to where it must wait.
    fn goes_on(&mut self, number: u32, now_ns: u64) {
        loop {
            let client = &mut self.clients[number as usize];
            let Some(&access) = client.accesses.get(client.at) else {
                return self.commits(number, now_ns);
            };
            if !client.is_locked {
                let mode = match access.lock {
                    Lock::None => None,
                    Lock::Shared => Some(Mode::Shared),
                    Lock::Exclusive => Some(Mode::Exclusive),
                };
                if mode.is_some_and(|mode| !self.locks.ask(number, access.page, mode)) {
                    client.state = State::WaitsForLock { since_ns: now_ns };
                    self.report.lock_waits += 1;
                    self.due.push(now_ns + self.shape.timeout_ns, number);
                    return;
                }
                client.is_locked = true;
            }
            if let Some(waiting) = self.busy.get_mut(&access.page) {
                waiting.push(number);
                client.state = State::WaitsForPage;
                return;
            }
            self.report.accesses += 1;
            if self.pool.uses(access.page, access.writes) {
                self.report.hits += 1;
                if self.has_its_page(number, now_ns) {
                    continue;
                }
                return;
            }
            match self.pool.reserve() {
                Some((victim, true)) => {
                    self.busy.insert(access.page, Vec::new());
                    self.busy.insert(victim, Vec::new());
                    client.state = State::Writes { victim };
                    self.asks(number, OpKind::Write, victim);
                    return;
                }
                _ if access.is_new => {
                    self.pool.enters(access.page, access.writes);
                    if !self.has_its_page(number, now_ns) {
                        return;
                    }
                }
                _ => {
                    self.busy.insert(access.page, Vec::new());
                    client.state = State::Reads;
                    self.asks(number, OpKind::Read, access.page);
                    return;
                }
            }
        }
    }

    /// Whether the client goes on at once.
    fn has_its_page(&mut self, number: u32, now_ns: u64) -> bool {
        let client = &mut self.clients[number as usize];
        client.accesses[client.at].is_new = false;
        client.at += 1;
        client.is_locked = false;
        if self.shape.compute_ns == 0 {
            client.state = State::Ready;
            return true;
        }
        let until_ns = now_ns + self.shape.compute_ns;
        client.state = State::Computes { until_ns };
        self.due.push(until_ns, number);
        false
    }

    fn asks(&mut self, number: u32, op: OpKind, page: u32) {
        match op {
            OpKind::Write => self.report.writes += 1,
            _ => self.report.reads += 1,
        }
        self.requests.push_back(PageRequest {
            client: number,
            op,
            offset: u64::from(page) * u64::from(self.shape.page_bytes),
            length: self.shape.page_bytes,
        });
    }

    /// The client's request has completed.
    fn done(&mut self, number: u32, now_ns: u64) {
        let client = &mut self.clients[number as usize];
        let access = client.accesses[client.at];
        let took_ns = now_ns - client.asked_ns;
        match client.state {
            State::Writes { victim } => {
                self.pool.policy.on_io(victim, took_ns);
                if access.is_new {
                    self.enters(number, access, now_ns);
                } else {
                    client.state = State::Reads;
                    self.asks(number, OpKind::Read, access.page);
                }
                self.frees(victim);
            }
            State::Reads => {
                self.pool.policy.on_io(access.page, took_ns);
                self.enters(number, access, now_ns);
            }
            other => unreachable!("client {number} has a completed request while {other:?}"),
        }
        self.go_on(now_ns);
    }

    fn enters(&mut self, number: u32, access: Access, now_ns: u64) {
        self.pool.enters(access.page, access.writes);
        if self.has_its_page(number, now_ns) {
            self.ready.push_back(number);
        }
        self.frees(access.page);
    }

    /// Nothing is under way for the page any more.
    fn frees(&mut self, page: u32) {
        for waiting in self.busy.remove(&page).unwrap_or_default() {
            self.clients[waiting as usize].state = State::Ready;
            self.ready.push_back(waiting);
        }
    }

    fn commits(&mut self, number: u32, now_ns: u64) {
        let client = &self.clients[number as usize];
        let response_ns = now_ns - client.began_ns;
        self.report.responses.push(response_ns);
        let (_, committed, sum_ns) = &mut self.report.kinds[client.kind];
        *committed += 1;
        *sum_ns += u128::from(response_ns);
        self.release(number, now_ns);
        self.to_commit -= 1;
        if self.to_commit == 0 {
            return self.end();
        }
        self.next_transaction(number, now_ns);
    }
}
