//! TM-1 (TATP): seven short transactions of a mobile network's register of subscribers, four fifths of them reads.
//!
//! # Model
//! As many subscribers as the database has room for, each with 2.5 rows of access, 2.5 of special facilities and 3.75
//! of call forwarding on average, tables by subscriber, each behind an index; one more index by the subscriber's
//! number. Subscribers are drawn by NURand. In percent: 35 GET_SUBSCRIBER_DATA, 10 GET_NEW_DESTINATION, 35
//! GET_ACCESS_DATA, 2 UPDATE_SUBSCRIBER_DATA, 14 UPDATE_LOCATION, 2 INSERT_CALL_FORWARDING, 2 DELETE_CALL_FORWARDING.
//! Inserted and deleted rows lie beside the subscriber's other rows.
//! # Parameters
//! None.
//! # Not modelled
//! Transactions that fail because a row is missing or exists already: they touch the same pages.
//! # Errors
//! A database too small for one subscriber.
//! # Cost
//! O(height of the indexes) per transaction.
//! # Source
//! Telecom Application Transaction Processing Benchmark, description 1.0 (2009): tables, mix and NURand's A, C = 0; bytes of rows by its columns,
//! and PostgreSQL's 28 bytes a row.

use ftlab_core::{Result, Stream};
use serde::{Deserialize, Serialize};

use super::{Access, Index, Lock, Mix, Pages, Setup, Table, kind_of, non_uniform};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {}

const KINDS: [&str; 7] = [
    "get_subscriber_data",
    "get_new_destination",
    "get_access_data",
    "update_subscriber_data",
    "update_location",
    "insert_call_forwarding",
    "delete_call_forwarding",
];
pub(super) const PERCENT: [u64; 7] = [35, 10, 35, 2, 14, 2, 2];

pub fn new(_: Params, setup: &mut Setup) -> Result<Box<dyn Mix>> {
    let subscribers = setup.scale("tm1", "subscriber", |subscribers| {
        let mut pages = Pages::new(setup.page_bytes);
        Tables::new(subscribers, &mut pages);
        pages.next
    })?;
    let tables = Tables::new(subscribers, &mut Pages::new(setup.page_bytes));
    let a = match subscribers {
        0..=1_000_000 => 65_535,
        1_000_001..=10_000_000 => 1_048_575,
        _ => 2_097_151,
    };
    Ok(Box::new(Tm1 { subscribers, a, tables }))
}

/// A table by subscriber: 1, 2.5 or 3.75 rows of each.
struct BySubscriber {
    index: Index,
    rows: Table,
    quarters: u64,
}

impl BySubscriber {
    fn new(subscribers: u64, quarters: u64, row_bytes: u32, pages: &mut Pages) -> Self {
        let rows = (subscribers * quarters).div_ceil(4);
        BySubscriber {
            index: pages.index(rows),
            rows: pages.table(rows, row_bytes),
            quarters,
        }
    }

    /// One row of the subscriber, read or changed; an inserted or deleted one changes the index as well.
    fn access(&self, subscriber: u64, lock: Lock, entry: bool, accesses: &mut Vec<Access>) {
        let row = subscriber * self.quarters / 4;
        self.index.path(row, entry, accesses);
        let page = self.rows.page_of(row);
        accesses.push(match lock {
            Lock::Exclusive => Access::change(page),
            other => Access::read(page, other),
        });
    }
}

struct Tables {
    by_number: Index,
    subscriber: BySubscriber,
    access: BySubscriber,
    facility: BySubscriber,
    forwarding: BySubscriber,
}

impl Tables {
    fn new(subscribers: u64, pages: &mut Pages) -> Self {
        Tables {
            by_number: pages.index(subscribers),
            subscriber: BySubscriber::new(subscribers, 4, 110, pages),
            access: BySubscriber::new(subscribers, 10, 20, pages),
            facility: BySubscriber::new(subscribers, 10, 20, pages),
            forwarding: BySubscriber::new(subscribers, 15, 30, pages),
        }
    }
}

struct Tm1 {
    subscribers: u64,
    a: u64,
    tables: Tables,
}

impl Mix for Tm1 {
    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn draw(&mut self, _: u32, random: &mut Stream, accesses: &mut Vec<Access>) -> usize {
        let kind = kind_of(random.below(100), &PERCENT);
        let who = non_uniform(random, self.a, 0, self.subscribers);
        let tables = &self.tables;
        match KINDS[kind] {
            "get_subscriber_data" => tables.subscriber.access(who, Lock::Shared, false, accesses),
            "get_new_destination" => {
                tables.facility.access(who, Lock::Shared, false, accesses);
                tables.forwarding.access(who, Lock::Shared, false, accesses);
            }
            "get_access_data" => tables.access.access(who, Lock::Shared, false, accesses),
            "update_subscriber_data" => {
                tables.subscriber.access(who, Lock::Exclusive, false, accesses);
                tables.facility.access(who, Lock::Exclusive, false, accesses);
            }
            "update_location" => {
                tables.by_number.path(who, false, accesses);
                tables.subscriber.access(who, Lock::Exclusive, false, accesses);
            }
            "insert_call_forwarding" => {
                tables.by_number.path(who, false, accesses);
                tables.subscriber.access(who, Lock::Shared, false, accesses);
                tables.facility.access(who, Lock::Shared, false, accesses);
                tables.forwarding.access(who, Lock::Exclusive, true, accesses);
            }
            _ => {
                tables.by_number.path(who, false, accesses);
                tables.subscriber.access(who, Lock::Shared, false, accesses);
                tables.forwarding.access(who, Lock::Exclusive, true, accesses);
            }
        }
        kind
    }
}
