//! What the transactions of a benchmark touch: which pages, in which order, and what they lock.

use ftlab_core::{Catalogue, Error, Result, Stream, member, units};

pub mod tm1;
pub mod tpcb;
pub mod tpcc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// Pages of indexes, pages at the end of a table that only this client appends to, and reads that need not repeat.
    None,
    Shared,
    Exclusive,
}

/// A page access of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub page: u32,
    pub writes: bool,
    pub lock: Lock,
    /// It holds nothing yet and need not be read.
    pub is_new: bool,
}

impl Access {
    pub const fn read(page: u32, lock: Lock) -> Self {
        Access {
            page,
            writes: false,
            lock,
            is_new: false,
        }
    }

    /// A page that is changed, and locked for it.
    pub const fn change(page: u32) -> Self {
        Access {
            page,
            writes: true,
            lock: Lock::Exclusive,
            is_new: false,
        }
    }
}

/// The transactions of a benchmark.
pub trait Mix: Send {
    /// Names of its transactions.
    fn kinds(&self) -> &'static [&'static str];

    /// Draws the next transaction of `client`: fills `accesses`, and says which of the kinds it is.
    fn draw(&mut self, client: u32, random: &mut Stream, accesses: &mut Vec<Access>) -> usize;
}

/// What a mix is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Of the database.
    pub pages: u32,
    pub page_bytes: u32,
    pub clients: u32,
}

impl Setup {
    /// The most scaling units (branches, warehouses, subscribers) of `of` pages that fit; a mistake if not one does.
    fn scale(&self, mix: &str, unit: &str, of: impl Fn(u64) -> u64) -> Result<u64> {
        let pages = u64::from(self.pages);
        if of(1) > pages {
            return Err(Error::input(format!(
                "mix `{mix}`: a database of {} has no room for one {unit} ({}): a larger `span`, or a larger drive",
                units::show_bytes(pages * u64::from(self.page_bytes)),
                units::show_bytes(of(1) * u64::from(self.page_bytes)),
            )));
        }
        let (mut fits, mut past) = (1, pages + 1);
        // More units than pages fit where one takes less than a page.
        while of(past) <= pages {
            past *= 2;
        }
        while past - fits > 1 {
            let middle = fits.midpoint(past);
            *if of(middle) <= pages { &mut fits } else { &mut past } = middle;
        }
        Ok(fits)
    }
}

pub fn catalogue() -> Catalogue<dyn Mix, Setup> {
    member!(Catalogue::new("mix"), tm1, tpcb, tpcc)
}

/// Bytes that a row takes besides its own: PostgreSQL's head of a tuple and pointer to it.
const ROW_HEAD: u32 = 28;
/// Bytes of an index entry, and how full its pages are.
const ENTRY: u32 = 20;
const FULL: f64 = 0.9;

/// Gives out the pages of the database.
struct Pages {
    next: u64,
    page_bytes: u32,
}

impl Pages {
    fn new(page_bytes: u32) -> Self {
        Pages { next: 0, page_bytes }
    }

    fn take(&mut self, pages: u64) -> u64 {
        let first = self.next;
        self.next += pages;
        first
    }

    fn rows_per_page(&self, row_bytes: u32) -> u64 {
        u64::from((self.page_bytes / (row_bytes + ROW_HEAD)).max(1))
    }

    fn table(&mut self, rows: u64, row_bytes: u32) -> Table {
        let per_page = self.rows_per_page(row_bytes);
        let pages = rows.div_ceil(per_page).max(1);
        Table {
            first: self.take(pages),
            pages,
            per_page,
        }
    }

    /// A tree over so many keys.
    fn index(&mut self, keys: u64) -> Index {
        let fanout = ((f64::from(self.page_bytes) * FULL) as u64 / u64::from(ENTRY)).max(2);
        let mut levels = Vec::new();
        let mut pages = keys.div_ceil(fanout).max(1);
        loop {
            levels.push((self.take(pages), pages));
            if pages == 1 {
                break;
            }
            pages = pages.div_ceil(fanout);
        }
        Index { levels, fanout }
    }
}

/// Rows that lie in the order of their keys.
#[derive(Clone, Debug)]
struct Table {
    first: u64,
    pages: u64,
    per_page: u64,
}

impl Table {
    fn page_of(&self, row: u64) -> u32 {
        (self.first + row / self.per_page % self.pages) as u32
    }
}

/// A tree: its levels from the leaves to the root, first page and number of pages of each.
#[derive(Clone, Debug)]
struct Index {
    levels: Vec<(u64, u64)>,
    fanout: u64,
}

impl Index {
    /// The path from the root to the leaf of `key`; nothing of it is locked. The leaf changes with an entry.
    fn path(&self, key: u64, changes: bool, accesses: &mut Vec<Access>) {
        for (level, &(first, pages)) in self.levels.iter().enumerate().rev() {
            let number = key / self.fanout.pow(level as u32 + 1) % pages;
            accesses.push(Access {
                writes: changes && level == 0,
                ..Access::read((first + number) as u32, Lock::None)
            });
        }
    }
}

/// Rows that clients append, each to a page of its own, which is new when it gets its first row. At its end the table begins anew.
struct Appended {
    table: Table,
    /// By client: its page and the rows on it.
    tails: Vec<(u64, u64)>,
    next: u64,
}

impl Appended {
    fn new(table: Table, clients: u32) -> Self {
        Appended {
            tails: vec![(0, table.per_page); clients as usize],
            table,
            next: 0,
        }
    }

    fn append(&mut self, client: u32, accesses: &mut Vec<Access>) {
        let (page, rows) = &mut self.tails[client as usize];
        if *rows == self.table.per_page {
            (*page, *rows) = (self.table.first + self.next % self.table.pages, 0);
            self.next += 1;
        }
        accesses.push(Access {
            page: *page as u32,
            writes: true,
            lock: Lock::None,
            is_new: *rows == 0,
        });
        *rows += 1;
    }
}

/// TPC's non-uniform draw of 0 to n − 1: NURand(A) of clause 2.1.6 with the constant `c`.
fn non_uniform(random: &mut Stream, a: u64, c: u64, n: u64) -> u64 {
    ((random.below(a + 1) | random.below(n)) + c) % n
}

/// The kind that a draw of 0 to 99 means, by shares in percent.
fn kind_of(draw: u64, percent: &[u64]) -> usize {
    let mut sum = 0;
    percent
        .iter()
        .position(|share| {
            sum += share;
            draw < sum
        })
        .unwrap_or(percent.len() - 1)
}

#[cfg(test)]
mod tests;
