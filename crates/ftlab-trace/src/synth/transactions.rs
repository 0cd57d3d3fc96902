//! Transactions of a database in a closed loop: clients, page locks and a buffer pool; misses of the pool go to the drive.
//!
//! # Model
//! Each of `clients` thinks, draws a transaction of the `mix`, and makes its page accesses one after the other. Its
//! next request comes when its last one has completed, so that a slower drive leads to fewer transactions, not to a
//! longer queue.
//!
//! * **Locks**: strict two-phase locking of pages of tables, shared or exclusive, first come, first served; a client
//!   that reads a page and then writes it goes before those that wait. A client that has waited for `timeout` releases
//!   its locks and begins the same transaction anew (**restart**). Pages of indexes are latched, not locked.
//! * **Pool**: `pool` pages of `page` bytes. The `policy` chooses the page to evict. A dirty page is written first, and
//!   the client that needs the room waits for this write, then for the read of its own page. A client that needs a page
//!   which is being read or written waits for that. A new page is not read. The pool starts warm: `warm` transactions
//!   have gone through it without reaching a drive.
//! * **Response time**: from a transaction's first access to its commit, restarts included.
//! * **End**: the run ends with commit number `transactions`. Up to then every client begins its next transaction when it has thought;
//!   what the others have not committed by then is not counted. So throughput is that of all clients at work: by the law of closed
//!   loops `clients` / (`think` + response time).
//!
//! On a backend without time, and where the requests are written to a file, every request completes at once. The
//! clients' requests then come in turn. The summary's `transactions` has: transactions a second; response time, its
//! mean, its 99th percentile and the mean of the slowest hundredth (at least one); restarts; lock waits; hits of the
//! pool; and `busy`, the share of the time in which a die works, mean over the dies: for the host, its copies included,
//! and for collection, mapping and erases (`internal`).
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `mix` | a mix of transactions (role `mix`): `tpcb`, `tpcc` or `tm1` | | `tpcb` |
//! | `clients` | clients at once | 1 to 65536 | 10 |
//! | `think` | mean time between a client's transactions, exponential; 0: none | up to 1 h | `0ns` |
//! | `compute` | what a client does with each page, before its next | up to 1 h | `0ns` |
//! | `transactions` | to commit: the run ends with the last | 1 to 2^32 | 20,000 |
//! | `span` | the database: part of the drive, from its start: a share, or bytes | what the mix needs at least | 0.6 |
//! | `page` | bytes of its pages | 512 B to 64 KiB, a power of two | 8 KiB |
//! | `pool` | pages of the pool, or `1%`: of the database's | `clients` to less than the database | 1024 |
//! | `policy` | which page the pool evicts (role `pool`): `lru`, `cflru`, `cflru_e` | | `lru` |
//! | `timeout` | longest wait for a lock | 1 µs to 1 h | `50ms` |
//! | `warm` | transactions before the first | up to 2^32 | as many as the pool has pages |
//! | `seed` | of this workload | | the run's seed |
//!
//! On the command line `/` parts several parameters of a policy, as commas part the keys: `policy=cflru_e:window=0.25/deadline_us=400`.
//! # Not modelled
//! Clients that wait for a processor: `compute` is the same however many clients compute. The log, checkpoints and
//! background writers; vacuum; undo of restarted transactions, whose pages stay dirty. Row locks, deadlock detection (a
//! deadlock ends by the time-out). Growth: a table that is appended to begins anew at its end.
//! # Cost
//! 8 bytes a transaction, some 50 a page of the pool.
//! # Source
//! He, Yu and Zhou, IEEE TPDS 26(1), 2015, section 5.1 (ten clients, no think time, pages of 8 KiB, a pool of 1024
//! pages or 1 % of the database); the locking rules, the time-out and the warm start are assumed: the source replays
//! page accesses of PostgreSQL, which it does not publish.

mod clients;
mod locks;
pub mod mixes;
pub mod pool;
mod report;

use ftlab_core::{Batch, OpKind, PolicySpec, Result, units};
use serde_json::{Map, Value, json};

use self::clients::{Clients, Shape};
pub use self::report::Report;
use super::{Arrivals, Keys};

const HOUR_NS: u64 = 3_600_000_000_000;
const MOST: u64 = 1 << 32;

/// A page that a client reads or writes on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    pub client: u32,
    pub op: OpKind,
    pub offset: u64,
    pub length: u32,
}

/// The workload: asked for requests, and told when they have completed.
pub struct Transactions {
    clients: Clients,
    shape: Shape,
    /// Transactions that go through the pool before the first; `None` when they have.
    warm: Option<u64>,
    transactions: u64,
    described: Map<String, Value>,
    /// Of a run in which every request completes at once.
    now_ns: u64,
}

impl Transactions {
    pub fn new(keys: &mut Keys, logical_bytes: u64, run_seed: u64) -> Result<Self> {
        let seed = keys.count("seed")?.unwrap_or(run_seed);
        let database = match keys.has("span") {
            true => super::spec::span(keys, logical_bytes)?,
            false => {
                keys.text("span");
                (0.6 * logical_bytes as f64) as u64
            }
        };
        let page = keys.bytes_within("page", 8192, 512..=64 << 10)?;
        if !page.is_power_of_two() {
            return Err(keys.wrong("page", &units::show_bytes(page), "a power of two"));
        }
        let within = |keys: &mut Keys, key: &'static str, default: u64, least: u64, most: u64| {
            let value = keys.count(key)?.unwrap_or(default);
            match (least..=most).contains(&value) {
                true => Ok(value),
                false => Err(keys.wrong(key, &value.to_string(), &format!("{least} to {most}"))),
            }
        };
        let clients = within(keys, "clients", 10, 1, 65_536)?;
        let transactions = within(keys, "transactions", 20_000, 1, MOST)?;
        let time = |keys: &mut Keys, key: &'static str, default: u64, least: u64| {
            let ns = keys.nanoseconds(key, default)?;
            match (least..=HOUR_NS).contains(&ns) {
                true => Ok(ns),
                false => Err(keys.wrong(key, &format!("{ns}ns"), &format!("{least}ns to 1h"))),
            }
        };
        let think_ns = time(keys, "think", 0, 0)?;
        let compute_ns = time(keys, "compute", 0, 0)?;
        let timeout_ns = time(keys, "timeout", 50_000_000, 1000)?;
        let pages = (database / page).min(u64::from(u32::MAX - 1));
        if pages <= clients {
            let expected = format!(
                "more than {clients} pages of {}: one in the pool for each client, and others on the drive",
                units::show_bytes(page)
            );
            return Err(keys.wrong("span", &units::show_bytes(database), &expected));
        }
        let pool = pool_pages(keys, pages, clients)?;
        let warm = within(keys, "warm", pool, 0, MOST)?;
        let named = |keys: &mut Keys, key: &'static str, default: &str| {
            let text = keys.text(key).unwrap_or_else(|| default.to_owned());
            // Commas part the keys of a generator on a command line.
            PolicySpec::parse(&text.replace('/', ",")).map_err(|e| keys.wrong_as(key, &e))
        };
        let (mix, policy) = (named(keys, "mix", "tpcb")?, named(keys, "policy", "lru")?);
        let shape = Shape {
            clients: clients as u32,
            think_ns,
            compute_ns,
            timeout_ns,
            page_bytes: page as u32,
            pool_pages: pool as u32,
            seed,
        };
        let mut setup = mixes::Setup {
            pages: pages as u32,
            page_bytes: page as u32,
            clients: clients as u32,
        };
        let made = mixes::catalogue().build(&mix, &mut setup)?;
        let leaves = pool::catalogue().build(&policy, &mut pool::Setup { pages: pool as u32 })?;
        let described = Map::from_iter([
            ("mix".to_owned(), json!(mix.show())),
            ("clients".to_owned(), json!(clients)),
            ("think".to_owned(), json!(format!("{think_ns}ns"))),
            ("compute".to_owned(), json!(format!("{compute_ns}ns"))),
            ("transactions".to_owned(), json!(transactions)),
            ("span".to_owned(), json!(format!("{database}B"))),
            ("page".to_owned(), json!(format!("{page}B"))),
            ("pool".to_owned(), json!(pool)),
            ("policy".to_owned(), json!(policy.show())),
            ("timeout".to_owned(), json!(format!("{timeout_ns}ns"))),
            ("warm".to_owned(), json!(warm)),
            ("seed".to_owned(), json!(seed)),
        ]);
        Ok(Transactions {
            clients: Clients::new(shape, made, leaves),
            shape,
            warm: Some(warm),
            transactions,
            described,
            now_ns: 0,
        })
    }

    /// When the next request comes, at the earliest `now_ns`: then [`Transactions::next_request`] has it. A later time is one at which
    /// to ask again: somebody has thought, or has waited long enough. `None`: not before a request completes, or never.
    pub fn next_time(&mut self, now_ns: u64) -> Option<u64> {
        self.start();
        self.clients.next_time(now_ns)
    }

    /// The request that [`Transactions::next_time`] announced, on its way as `tag`.
    pub fn next_request(&mut self, tag: impl FnOnce(&PageRequest) -> u64, now_ns: u64) -> Option<(u64, PageRequest)> {
        let request = self.clients.take()?;
        let tag = tag(&request);
        self.clients.issued(tag, request.client, now_ns);
        Some((tag, request))
    }

    pub fn completed(&mut self, tag: u64, now_ns: u64) {
        self.clients.completed(tag, now_ns);
    }

    pub fn report(&self) -> &Report {
        &self.clients.report
    }

    /// The pool's policy, with its parameters.
    pub fn policy(&self) -> &str {
        self.described["policy"].as_str().unwrap_or_default()
    }

    /// All have been committed: the run is over, whatever is under way.
    pub fn are_done(&self) -> bool {
        self.warm.is_none() && self.clients.are_done()
    }

    /// Goes on for ever.
    pub fn go_on(&mut self) {
        self.transactions = u64::MAX;
        if self.warm.is_none() {
            self.clients.begin_until(u64::MAX);
        }
    }

    /// Fills a batch that is empty with requests that complete at once.
    pub fn fill(&mut self, batch: &mut Batch) {
        self.start();
        while batch.len() < Batch::TARGET {
            let Some(next) = self.clients.next_time(self.now_ns) else {
                break;
            };
            if next > self.now_ns {
                self.now_ns = next;
                continue;
            }
            let Some(request) = self.clients.at_once(self.now_ns) else {
                continue;
            };
            batch.push(self.now_ns, request.op, request.offset, request.length, 0, 0);
        }
    }

    /// Warms the pool; the clients begin at 0.
    fn start(&mut self) {
        let Some(warm) = self.warm.take() else { return };
        if warm > 0 {
            self.clients.begin(warm);
            let mut now_ns = 0;
            while let Some(next) = self.clients.next_time(now_ns) {
                now_ns = next;
                self.clients.at_once(now_ns);
            }
            self.clients.rest();
        }
        self.clients.begin_until(self.transactions);
    }

    pub fn describe(&self, into: &mut Map<String, Value>) {
        into.extend(self.described.clone());
    }

    pub fn arrivals(&self) -> Arrivals {
        Arrivals::Closed {
            queue_depth: self.shape.clients,
        }
    }
}

/// `1024`, or `1%` of the database's pages.
fn pool_pages(keys: &mut Keys, pages: u64, clients: u64) -> Result<u64> {
    let text = keys.text("pool").unwrap_or_else(|| "1024".to_owned());
    let share = text
        .trim()
        .strip_suffix('%')
        .map(|percent| percent.trim().parse::<f64>());
    let pool = match share {
        Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => (percent / 100.0 * pages as f64).round() as u64,
        Some(_) => return Err(keys.wrong("pool", &text, "a number of pages, or a share such as 1%")),
        None => units::count(&text).map_err(|e| keys.wrong_as("pool", &e))?,
    };
    if pool < clients || pool >= pages {
        let expected = format!(
            "at least a page for each of {clients} clients, and fewer than the {pages} of the database: others would never reach the drive"
        );
        return Err(keys.wrong("pool", &text, &expected));
    }
    Ok(pool)
}

#[cfg(test)]
mod tests;
