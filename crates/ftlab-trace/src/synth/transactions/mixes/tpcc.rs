//! TPC-C: the five transactions of a wholesale supplier, new orders and payments above all.
//!
//! # Model
//! A warehouse has 10 districts, 30,000 customers, a stock of 100,000 items, and room for 3,000 orders a district with ten lines each; there are as
//! many warehouses as the database has room for beside the 100,000 items. Each transaction draws its warehouse and district. In percent: 45 new
//! orders, 43 payments, 4 order statuses, 4 deliveries, 4 stock levels. Customers and items are drawn by NURand.
//!
//! * **New order**: the warehouse is read, the district changed, a customer read; for each of 5 to 15 lines the item is read and its stock
//!   changed (one of a hundred at another warehouse); then order, new order and lines are written.
//! * **Payment**: warehouse, district and customer change (15 of a hundred of another warehouse; 60 by name, for which one more index is
//!   read), and a row of history is appended.
//! * **Order status**: a customer and one of the last orders with its lines are read.
//! * **Delivery**: in each district the oldest new order, its order, its lines and its customer change.
//! * **Stock level**: a district and the lines of its last 20 orders are read, and the stock of each line, without locks.
//!
//! A warehouse and a district have a page each, so that page locks delay no transaction of another one. Everything else
//! is found through indexes.
//! # Parameters
//! None.
//! # Not modelled
//! Terminals bound to their warehouse; the hundredth of new orders that is rolled back; the index of new orders; growth
//! beyond 3,000 orders a district: new orders take the place of old ones.
//! # Errors
//! A database too small for one warehouse (some 100 MiB).
//! # Cost
//! O(lines × height of the indexes) per transaction.
//! # Source
//! TPC Benchmark C, revision 5.11: clauses 1.2 (cardinalities), 2.4 to 2.8 (transactions), 5.2.3 (mix), 2.1.6 (NURand: A = 1023 for customers, 8191
//! for items); bytes of rows by its table of clause 4.2, and PostgreSQL's 28 bytes a row.

use ftlab_core::{Result, Stream};
use serde::{Deserialize, Serialize};

use super::{Access, Appended, Index, Lock, Mix, Pages, Setup, Table, kind_of, non_uniform};

const DISTRICTS: u64 = 10;
const CUSTOMERS: u64 = 3000;
const ITEMS: u64 = 100_000;
const ORDERS: u64 = 3000;
const LINES: u64 = 10;
pub(super) const PERCENT: [u64; 5] = [45, 43, 4, 4, 4];

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {}

pub fn new(_: Params, setup: &mut Setup) -> Result<Box<dyn Mix>> {
    let warehouses = setup.scale("tpcc", "warehouse", |warehouses| {
        let mut pages = Pages::new(setup.page_bytes);
        Tables::new(warehouses, setup.clients, &mut pages);
        pages.next
    })?;
    let tables = Tables::new(warehouses, setup.clients, &mut Pages::new(setup.page_bytes));
    let districts = (warehouses * DISTRICTS) as usize;
    Ok(Box::new(TpcC {
        warehouses,
        tables,
        // Of the orders that are there from the start, the last 900 are new (clause 4.3.3.1).
        next_order: vec![ORDERS; districts],
        next_delivery: vec![ORDERS - 900; districts],
    }))
}

struct Indexed {
    index: Index,
    rows: Table,
}

impl Indexed {
    fn new(rows: u64, row_bytes: u32, pages: &mut Pages) -> Self {
        Indexed {
            index: pages.index(rows),
            rows: pages.table(rows, row_bytes),
        }
    }

    fn read(&self, row: u64, lock: Lock, accesses: &mut Vec<Access>) {
        self.index.path(row, false, accesses);
        accesses.push(Access::read(self.rows.page_of(row), lock));
    }

    fn change(&self, row: u64, accesses: &mut Vec<Access>) {
        self.index.path(row, false, accesses);
        accesses.push(Access::change(self.rows.page_of(row)));
    }

    /// Rows `first..first + count` with their index entries; a page that gets its first row is new.
    fn insert(&self, first: u64, count: u64, accesses: &mut Vec<Access>) {
        self.index.path(first, true, accesses);
        self.pages(first, count, |page, begins| {
            accesses.push(Access {
                is_new: begins,
                ..Access::change(page)
            });
        });
    }

    /// The pages of rows `first..first + count`, and whether each begins with one of them.
    fn pages(&self, first: u64, count: u64, mut each: impl FnMut(u32, bool)) {
        let per_page = self.rows.per_page;
        let last = first + count - 1;
        for page in first / per_page..=last / per_page {
            each(self.rows.page_of(page * per_page), page * per_page >= first);
        }
    }
}

struct Tables {
    /// First of the pages, one a warehouse, and one a district.
    warehouses: u64,
    districts: u64,
    customers: Indexed,
    by_name: Index,
    items: Indexed,
    stock: Indexed,
    orders: Indexed,
    new_orders: Table,
    lines: Indexed,
    history: Appended,
}

impl Tables {
    fn new(warehouses: u64, clients: u32, pages: &mut Pages) -> Self {
        let districts = warehouses * DISTRICTS;
        let history = districts * ORDERS + u64::from(clients) * pages.rows_per_page(46);
        Tables {
            warehouses: pages.take(warehouses),
            districts: pages.take(districts),
            customers: Indexed::new(districts * CUSTOMERS, 655, pages),
            by_name: pages.index(districts * CUSTOMERS),
            items: Indexed::new(ITEMS, 82, pages),
            stock: Indexed::new(warehouses * ITEMS, 306, pages),
            orders: Indexed::new(districts * ORDERS, 24, pages),
            new_orders: pages.table(districts * ORDERS, 8),
            lines: Indexed::new(districts * ORDERS * LINES, 54, pages),
            history: Appended::new(pages.table(history, 46), clients),
        }
    }
}

struct TpcC {
    warehouses: u64,
    tables: Tables,
    /// By district: the number of its next order, and of the one that is delivered next.
    next_order: Vec<u64>,
    next_delivery: Vec<u64>,
}

impl TpcC {
    fn other_warehouse(&self, warehouse: u64, percent: u64, random: &mut Stream) -> u64 {
        if random.below(100) >= percent || self.warehouses == 1 {
            return warehouse;
        }
        (warehouse + 1 + random.below(self.warehouses - 1)) % self.warehouses
    }

    /// Row of an order of `district`.
    fn order(district: u64, number: u64) -> u64 {
        district * ORDERS + number % ORDERS
    }

    fn new_order(&mut self, district: u64, random: &mut Stream, accesses: &mut Vec<Access>) {
        let warehouse = district / DISTRICTS;
        let tables = &self.tables;
        accesses.push(Access::read((tables.warehouses + warehouse) as u32, Lock::Shared));
        accesses.push(Access::change((tables.districts + district) as u32));
        let customer = district * CUSTOMERS + non_uniform(random, 1023, 0, CUSTOMERS);
        tables.customers.read(customer, Lock::Shared, accesses);
        let lines = 5 + random.below(11);
        for _ in 0..lines {
            let item = non_uniform(random, 8191, 0, ITEMS);
            let supplier = self.other_warehouse(warehouse, 1, random);
            tables.items.read(item, Lock::Shared, accesses);
            tables.stock.change(supplier * ITEMS + item, accesses);
        }
        let number = &mut self.next_order[district as usize];
        let order = Self::order(district, *number);
        *number += 1;
        tables.orders.insert(order, 1, accesses);
        accesses.push(Access::change(tables.new_orders.page_of(order)));
        // Ten places are kept for the lines of an order.
        tables.lines.insert(order * LINES, lines.min(LINES), accesses);
    }

    fn payment(&mut self, client: u32, district: u64, random: &mut Stream, accesses: &mut Vec<Access>) {
        let warehouse = district / DISTRICTS;
        accesses.push(Access::change((self.tables.warehouses + warehouse) as u32));
        accesses.push(Access::change((self.tables.districts + district) as u32));
        let home = match self.other_warehouse(warehouse, 15, random) {
            same if same == warehouse => district,
            other => other * DISTRICTS + random.below(DISTRICTS),
        };
        let customer = home * CUSTOMERS + non_uniform(random, 1023, 0, CUSTOMERS);
        if random.below(100) < 60 {
            self.tables.by_name.path(customer, false, accesses);
        }
        self.tables.customers.change(customer, accesses);
        self.tables.history.append(client, accesses);
    }

    fn order_status(&self, district: u64, random: &mut Stream, accesses: &mut Vec<Access>) {
        let tables = &self.tables;
        let customer = district * CUSTOMERS + non_uniform(random, 1023, 0, CUSTOMERS);
        if random.below(100) < 60 {
            tables.by_name.path(customer, false, accesses);
        }
        tables.customers.read(customer, Lock::Shared, accesses);
        let order = Self::order(district, random.below(ORDERS));
        tables.orders.read(order, Lock::Shared, accesses);
        tables.lines.index.path(order * LINES, false, accesses);
        let read = |page, _| accesses.push(Access::read(page, Lock::Shared));
        tables.lines.pages(order * LINES, LINES, read);
    }

    fn delivery(&mut self, warehouse: u64, random: &mut Stream, accesses: &mut Vec<Access>) {
        let tables = &self.tables;
        for district in warehouse * DISTRICTS..(warehouse + 1) * DISTRICTS {
            let number = &mut self.next_delivery[district as usize];
            if *number == self.next_order[district as usize] {
                continue;
            }
            let order = Self::order(district, *number);
            *number += 1;
            accesses.push(Access::change(tables.new_orders.page_of(order)));
            tables.orders.change(order, accesses);
            tables.lines.index.path(order * LINES, false, accesses);
            tables
                .lines
                .pages(order * LINES, LINES, |page, _| accesses.push(Access::change(page)));
            // Customers of old orders are a permutation (clause 4.3.3.1): any.
            let customer = district * CUSTOMERS + random.below(CUSTOMERS);
            tables.customers.change(customer, accesses);
        }
    }

    fn stock_level(&self, district: u64, random: &mut Stream, accesses: &mut Vec<Access>) {
        let tables = &self.tables;
        accesses.push(Access::read((tables.districts + district) as u32, Lock::Shared));
        let next = self.next_order[district as usize];
        for number in next - 20..next {
            let order = Self::order(district, number);
            let read = |page, _| accesses.push(Access::read(page, Lock::None));
            tables.lines.pages(order * LINES, LINES, read);
            for _ in 0..LINES {
                let item = non_uniform(random, 8191, 0, ITEMS);
                let row = district / DISTRICTS * ITEMS + item;
                tables.stock.read(row, Lock::None, accesses);
            }
        }
    }
}

impl Mix for TpcC {
    fn kinds(&self) -> &'static [&'static str] {
        &["new_order", "payment", "order_status", "delivery", "stock_level"]
    }

    fn draw(&mut self, client: u32, random: &mut Stream, accesses: &mut Vec<Access>) -> usize {
        let kind = kind_of(random.below(100), &PERCENT);
        let district = random.below(self.warehouses * DISTRICTS);
        match kind {
            0 => self.new_order(district, random, accesses),
            1 => self.payment(client, district, random, accesses),
            2 => self.order_status(district, random, accesses),
            3 => self.delivery(district / DISTRICTS, random, accesses),
            _ => self.stock_level(district, random, accesses),
        }
        kind
    }
}
