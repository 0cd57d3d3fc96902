"""A load in the manner of TPC-C for SQLite: its tables, its five transactions in their shares, one client.

Not TPC-C: tables are a tenth as large, and nothing is measured.
Source of tables, transactions and shares: TPC Benchmark C, standard specification, revision 5.11, clauses 1 to 5.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import time

DISTRICTS, CUSTOMERS, ITEMS = 10, 300, 10_000

SCHEMA = """
create table warehouse(w integer primary key, name, tax, ytd);
create table district(w, d, tax, ytd, next_order, primary key(w, d)) without rowid;
create table customer(w, d, c, last, balance, ytd, payments, data, primary key(w, d, c)) without rowid;
create index customer_last on customer(w, d, last);
create table item(i integer primary key, name, price, data);
create table stock(w, i, quantity, ytd, orders, data, primary key(w, i)) without rowid;
create table orders(w, d, o, c, entry, carrier, lines, primary key(w, d, o)) without rowid;
create table new_order(w, d, o, primary key(w, d, o)) without rowid;
create table order_line(w, d, o, n, i, quantity, amount, delivery, info, primary key(w, d, o, n)) without rowid;
create table history(w, d, c, at, amount, data);
"""


class Load:
    """One client."""

    def __init__(self, path: str, warehouses: int, seed: int) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.random = random.Random(seed)
        self.warehouses = warehouses
        self.clock = 0

    def text(self, low: int, high: int) -> str:
        return "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz ", k=self.random.randint(low, high)))

    def skewed(self, a: int, most: int) -> int:
        """The specification's non-uniform numbers, 1 to `most`."""
        return ((self.random.randint(0, a) | self.random.randint(1, most)) + 7) % most + 1

    def fill(self) -> None:
        put = self.db.executemany
        self.db.executescript(SCHEMA)
        self.db.execute("begin")
        put(
            "insert into item values(?,?,?,?)", ((i, self.text(14, 24), i % 100, self.text(26, 50)) for i in _to(ITEMS))
        )
        for w in _to(self.warehouses):
            self.db.execute("insert into warehouse values(?,?,0.1,0)", (w, self.text(6, 10)))
            stock = ((w, i, self.random.randint(10, 100), self.text(26, 50)) for i in _to(ITEMS))
            put("insert into stock values(?,?,?,0,0,?)", stock)
            for d in _to(DISTRICTS):
                self.db.execute("insert into district values(?,?,0.1,0,1)", (w, d))
                people = ((w, d, c, f"name{c % 100}", self.text(300, 500)) for c in _to(CUSTOMERS))
                put("insert into customer values(?,?,?,?,-10,10,1,?)", people)
        self.db.execute("commit")

    def run(self, transactions: int, rate: float) -> None:
        begun = time.monotonic()
        kinds = [self.new_order, self.payment, self.order_status, self.delivery, self.stock_level]
        for _ in range(transactions):
            if rate:
                # No faster than that: what runs beside it keeps its share of the device.
                time.sleep(max(0.0, begun + self.clock / rate - time.monotonic()))
            self.clock += 1
            (kind,) = self.random.choices(kinds, [45, 43, 4, 4, 4])
            self.db.execute("begin")
            kind(self.random.randint(1, self.warehouses), self.random.randint(1, DISTRICTS))
            self.db.execute("commit")

    def new_order(self, w: int, d: int) -> None:
        (o,) = self.db.execute("select next_order from district where w=? and d=?", (w, d)).fetchone()
        self.db.execute("update district set next_order=next_order+1 where w=? and d=?", (w, d))
        lines = self.random.randint(5, 15)
        c = self.skewed(1023, CUSTOMERS)
        self.db.execute("insert into orders values(?,?,?,?,?,null,?)", (w, d, o, c, self.clock, lines))
        self.db.execute("insert into new_order values(?,?,?)", (w, d, o))
        for n in _to(lines):
            i, quantity = self.skewed(8191, ITEMS), self.random.randint(1, 10)
            (price,) = self.db.execute("select price from item where i=?", (i,)).fetchone()
            self.db.execute(
                "update stock set quantity=case when quantity>=?+10 then quantity-? else quantity-?+91 end, "
                "ytd=ytd+?, orders=orders+1 where w=? and i=?",
                (quantity, quantity, quantity, quantity, w, i),
            )
            line = (w, d, o, n, i, quantity, quantity * price, self.text(24, 24))
            self.db.execute("insert into order_line values(?,?,?,?,?,?,?,null,?)", line)

    def payment(self, w: int, d: int) -> None:
        amount, c = self.random.randint(1, 5000), self.skewed(1023, CUSTOMERS)
        self.db.execute("update warehouse set ytd=ytd+? where w=?", (amount, w))
        self.db.execute("update district set ytd=ytd+? where w=? and d=?", (amount, w, d))
        customer = "update customer set balance=balance-?, ytd=ytd+?, payments=payments+1 where w=? and d=? and c=?"
        self.db.execute(customer, (amount, amount, w, d, c))
        self.db.execute("insert into history values(?,?,?,?,?,?)", (w, d, c, self.clock, amount, self.text(12, 24)))

    def order_status(self, w: int, d: int) -> None:
        c = self.skewed(1023, CUSTOMERS)
        last = "select o from orders where w=? and d=? and c=? order by o desc limit 1"
        for (o,) in self.db.execute(last, (w, d, c)).fetchall():
            self.db.execute("select * from order_line where w=? and d=? and o=?", (w, d, o)).fetchall()

    def delivery(self, w: int, _: int) -> None:
        for d in _to(DISTRICTS):
            oldest = self.db.execute("select min(o) from new_order where w=? and d=?", (w, d)).fetchone()[0]
            if oldest is None:
                continue
            of = (w, d, oldest)
            self.db.execute("delete from new_order where w=? and d=? and o=?", of)
            self.db.execute("update orders set carrier=1 where w=? and d=? and o=?", of)
            self.db.execute("update order_line set delivery=? where w=? and d=? and o=?", (self.clock, *of))

    def stock_level(self, w: int, d: int) -> None:
        (following,) = self.db.execute("select next_order from district where w=? and d=?", (w, d)).fetchone()
        low = (
            "select count(distinct s.i) from order_line l join stock s on s.w=l.w and s.i=l.i "
            "where l.w=? and l.d=? and l.o>=? and s.quantity<15"
        )
        self.db.execute(low, (w, d, following - 20)).fetchone()


def _to(most: int) -> range:
    return range(1, most + 1)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("database")
    options.add_argument("--warehouses", type=int, default=1)
    options.add_argument("--transactions", type=int, default=1000)
    options.add_argument("--rate", type=float, default=0, help="at most so many transactions a second")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    load = Load(given.database, given.warehouses, given.seed)
    load.fill()
    load.run(given.transactions, given.rate)
    load.db.close()


if __name__ == "__main__":
    main()
