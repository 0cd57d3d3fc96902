//! TPC-B: one kind of transaction, which updates an account, its teller and its branch and appends to the history.
//!
//! # Model
//! A branch has 10 tellers and 100,000 accounts; there are as many branches as the database has room for beside the
//! history, which takes the share `history`. A transaction draws a teller, then an account: 85 of a hundred at the
//! teller's branch, the others at another branch. It goes through the accounts' index to the account, updates it, the
//! teller and the branch, in this order, and appends a row of history. All tellers of a branch lie on one page, and the
//! row of the branch on another, so that page locks delay transactions of the same branch only.
//! # Parameters
//! * `history` (share of the database, default 0.05, 0.01 to 0.5): pages of the history, which begins anew at its end.
//! # Not modelled
//! Indexes of tellers and branches, which stay in the pool.
//! # Errors
//! A database too small for one branch; a share out of range.
//! # Cost
//! O(height of the index) per transaction.
//! # Source
//! TPC Benchmark B, revision 2.0, clauses 1.2, 3.2 and 5.3; rows of 100 bytes (50 of history) and PostgreSQL's 28 bytes a row.

use ftlab_core::{Error, Result, Stream};
use serde::{Deserialize, Serialize};

use super::{Access, Appended, Index, Mix, Pages, Setup, Table};

const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub history: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params { history: 0.05 }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn Mix>> {
    if !(0.01..=0.5).contains(&params.history) {
        let history = params.history;
        return Err(Error::input(format!(
            "mix `tpcb`: history = {history}, expected a share from 0.01 to 0.5"
        )));
    }
    let history = ((f64::from(setup.pages) * params.history) as u64).max(u64::from(setup.clients) + 1);
    let branches = setup.scale("tpcb", "branch", |branches| {
        let mut pages = Pages::new(setup.page_bytes);
        Tables::new(branches, &mut pages);
        pages.next + history
    })?;
    let mut pages = Pages::new(setup.page_bytes);
    let tables = Tables::new(branches, &mut pages);
    let rows = history * pages.rows_per_page(50);
    Ok(Box::new(TpcB {
        branches,
        tables,
        history: Appended::new(pages.table(rows, 50), setup.clients),
    }))
}

struct Tables {
    index: Index,
    accounts: Table,
    /// First of the pages, one a branch.
    tellers: u64,
    branches: u64,
}

impl Tables {
    fn new(branches: u64, pages: &mut Pages) -> Self {
        Tables {
            index: pages.index(branches * ACCOUNTS),
            accounts: pages.table(branches * ACCOUNTS, 100),
            tellers: pages.take(branches),
            branches: pages.take(branches),
        }
    }
}

struct TpcB {
    branches: u64,
    tables: Tables,
    history: Appended,
}

impl Mix for TpcB {
    fn kinds(&self) -> &'static [&'static str] {
        &["transaction"]
    }

    fn draw(&mut self, client: u32, random: &mut Stream, accesses: &mut Vec<Access>) -> usize {
        let branch = random.below(self.branches * TELLERS) / TELLERS;
        let is_remote = random.below(100) >= 85 && self.branches > 1;
        let home = match is_remote {
            true => (branch + 1 + random.below(self.branches - 1)) % self.branches,
            false => branch,
        };
        let account = home * ACCOUNTS + random.below(ACCOUNTS);
        let tables = &self.tables;
        tables.index.path(account, false, accesses);
        accesses.push(Access::change(tables.accounts.page_of(account)));
        accesses.push(Access::change((tables.tellers + branch) as u32));
        accesses.push(Access::change((tables.branches + branch) as u32));
        self.history.append(client, accesses);
        0
    }
}
