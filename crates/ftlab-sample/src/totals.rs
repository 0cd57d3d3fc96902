//! What is kept of the records of a sample: for each group, sums over partitions and over squares of partitions.
//!
//! # Model
//! A group's total in a partition is summed while records of the partition come, and is added to the sums when the next partition begins (partitions come one
//! after another). A partition without the group adds nothing and counts among all the same. Of a total `t` three numbers are kept: `t` of the partition under way, sum of `t`,
//! sum of `t²`; of a ratio `t / z` also those of `z` and of `t z`; of two totals in one formula the sum of their product. Where only some records of a partition are taken (`records` below 1), `t` is
//! scaled up by `M / m`, and `M (M - m) / m` times the variance within the partition is summed as well.
//!
//! Variances are what sums of products leave once they are subtracted, of time stamps less than a 64-bit number has digits. So sums over partitions have twice as many (`doubled`), but for
//! counts: those are whole numbers, which 64 bits have exactly up to 2^53.
//!
//! # Cost
//! 40 bytes a group and lane for a count, 56 for a sum, 112 for an average, and the group's key.

use crate::doubled::Doubled;
use crate::estimate::Rows;
use crate::expression::Wrong;
use crate::formula::Moments;
use crate::kept::Kept;
use crate::keys::{Keys, hash, is_same};
use crate::sql::Kind;

/// Sizes of numbers that are averaged or summed: their squares, and those of many of them together, are numbers of 64 bits.
const SQUARED: std::ops::RangeInclusive<f64> = 1e-100..=1e70;

/// Whether the square of a number can be summed.
pub fn summable(value: f64) -> std::result::Result<(), Wrong> {
    if value == 0.0 || SQUARED.contains(&value.abs()) {
        return Ok(());
    }
    Err(Wrong(format!(
        "{value:e}: expected 0, or {:e} to {:e} in size, of which squares can be summed",
        SQUARED.start(),
        SQUARED.end()
    )))
}

/// Numbers in front of a group's: partition under way, partitions seen.
const HEAD: usize = 2;

/// Where the numbers of each aggregate stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub kinds: Vec<Kind>,
    /// Whether records are sampled within partitions.
    pub within: bool,
    /// Whether partitions tell how many rows they have.
    by_rows: bool,
    /// Aggregates of which products are summed, for formulas.
    pairs: Vec<(usize, usize)>,
    starts: Vec<usize>,
    /// Whether all sums have 64 bits only.
    all_plain: bool,
    /// Where products stand, behind all aggregates.
    products: usize,
    width: usize,
}

/// Of pairs of aggregates: the sum over partitions of the product of their totals; and `M (M - m) / m` times the covariance of records within them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Products(Vec<((usize, usize), Doubled, Doubled)>);

impl Products {
    /// Of a pair that is kept, smaller number first.
    pub fn of(&self, a: usize, b: usize) -> (Doubled, Doubled) {
        let found = self.0.iter().find(|(pair, ..)| *pair == (a, b));
        found.map_or_else(
            || unreachable!("no product of {a} and {b}"),
            |&(_, both, within)| (both, within),
        )
    }

    /// Of `pairs`, each with its two sums.
    pub fn new(pairs: impl Iterator<Item = ((usize, usize), Doubled, Doubled)>) -> Products {
        Products(pairs.collect())
    }

    /// Sums of each pair, in the order in which pairs are kept.
    pub fn sums(&self) -> impl Iterator<Item = (Doubled, Doubled)> {
        self.0.iter().map(|&(_, both, within)| (both, within))
    }

    pub fn add(&mut self, other: &Products) {
        for (all, one) in self.0.iter_mut().zip(&other.0) {
            all.1 += one.1;
            all.2 += one.2;
        }
    }
}

/// Sums over the partitions of a disk, of one aggregate of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    pub t: Doubled,
    pub tt: Doubled,
    pub z: Doubled,
    pub zz: Doubled,
    pub tz: Doubled,
    /// With the rows of the partition, where files tell.
    pub tx: Doubled,
    /// Of records within partitions: `M (M - m) / m` times variances and covariance.
    pub within_tt: Doubled,
    pub within_zz: Doubled,
    pub within_tz: Doubled,
}

impl Sums {
    pub fn add(&mut self, other: &Sums) {
        self.t += other.t;
        self.tt += other.tt;
        self.z += other.z;
        self.zz += other.zz;
        self.tz += other.tz;
        self.tx += other.tx;
        self.within_tt += other.within_tt;
        self.within_zz += other.within_zz;
        self.within_tz += other.within_tz;
    }

    /// Those of the ratio of a total to the rows of partitions, which are known to the last one.
    pub(crate) fn over(&self, rows: Rows) -> Sums {
        let (z, zz) = rows.sums();
        Sums {
            z,
            zz,
            tz: self.tx,
            ..*self
        }
    }
}

// Offsets from an aggregate's start; sums of two numbers take two places. What a count does not need is not there.
const T: usize = 0;
const C_T: usize = 1;
const C_TT: usize = 2;
const COUNT: usize = 3;
const S_T: usize = 1;
const S_TT: usize = 3;
const TOTAL: usize = 5;
const Z: usize = 5;
const S_Z: usize = 6;
const S_ZZ: usize = 8;
const S_TZ: usize = 10;
const RATIO: usize = 12;
// Behind those, of records within partitions: the record under way, what the partition's totals leave over, squares of the partition, and what is summed.
const R_T: usize = 0;
const R_Z: usize = 1;
const L_T: usize = 2;
const L_Z: usize = 3;
const Q_TT: usize = 4;
const Q_ZZ: usize = 6;
const Q_TZ: usize = 8;
const W_TT: usize = 10;
const W_ZZ: usize = 12;
const W_TZ: usize = 14;
const WITHIN: usize = 16;
// Behind those, of a total and the rows of partitions: the sum of products.
const BY_ROWS: usize = 2;
// Of a pair: the sum of products; of records within partitions, the partition's sum and what is summed.
const P_TT: usize = 0;
const P_Q: usize = 2;
const P_W: usize = 4;
const PRODUCT: usize = 2;
const PRODUCT_WITHIN: usize = 6;

impl Shape {
    pub fn new(kinds: Vec<Kind>, within: bool) -> Shape {
        Shape::with_pairs(kinds, Vec::new(), within, false)
    }

    /// Of `pairs` of counts or sums, smaller number first, products are kept too; with `by_rows` those of counts and sums with the rows of partitions.
    pub fn with_pairs(kinds: Vec<Kind>, pairs: Vec<(usize, usize)>, within: bool, by_rows: bool) -> Shape {
        let is_plain = counts_are_plain(&pairs, within, by_rows);
        let mut starts = Vec::new();
        let mut width = HEAD + usize::from(within);
        for kind in &kinds {
            starts.push(width);
            width += match kind {
                _ if kind.is_ratio() => RATIO,
                Kind::Count if is_plain => COUNT,
                _ if by_rows => TOTAL + BY_ROWS,
                _ => TOTAL,
            } + if within { WITHIN } else { 0 };
        }
        let products = width;
        width += pairs.len() * if within { PRODUCT_WITHIN } else { PRODUCT };
        Shape {
            within,
            by_rows,
            all_plain: is_plain && kinds.iter().all(|&kind| kind == Kind::Count),
            kinds,
            pairs,
            starts,
            products,
            width,
        }
    }

    /// Whether sums of this kind have 64 bits only.
    fn is_plain(&self, kind: Kind) -> bool {
        kind == Kind::Count && counts_are_plain(&self.pairs, self.within, self.by_rows)
    }

    /// Where products of a total with the rows of partitions stand, from its start on.
    fn rows(&self) -> usize {
        TOTAL + if self.within { WITHIN } else { 0 }
    }

    /// Each pair: where its totals start, and where its product stands.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let each = if self.within { PRODUCT_WITHIN } else { PRODUCT };
        let pairs = self.pairs.iter().enumerate();
        pairs.map(move |(at, &(a, b))| (self.starts[a], self.starts[b], self.products + each * at))
    }
}

/// Whether sums of counts have 64 bits only: they are whole numbers unless they are scaled up, and only in formulas and beside rows their squares are set against others.
pub fn counts_are_plain(pairs: &[(usize, usize)], within: bool, by_rows: bool) -> bool {
    pairs.is_empty() && !within && !by_rows
}

/// The sums of a lane: of some partitions of a disk, in the order in which they are sampled.
pub struct Totals {
    shape: Shape,
    keys: Keys,
    rows: Vec<f64>,
    /// The group that came last.
    last: usize,
    /// Number of the partition under way, from 1 on.
    partition: f64,
    record: f64,
    /// Partitions that are done.
    pub partitions: u64,
    /// Records of the sample.
    pub records: u64,
    /// Whether a value below 0 has come, of each aggregate.
    pub negative: Vec<bool>,
    /// Records of the partition, and those taken.
    taken: (f64, f64),
    /// Values that are kept one by one, of each quantile.
    kept: Vec<Kept>,
    /// Rows of each partition, where they tell.
    sizes: Vec<u64>,
}

impl Totals {
    pub fn new(shape: Shape) -> Totals {
        Totals {
            keys: Keys::default(),
            rows: Vec::new(),
            last: 0,
            partition: 0.0,
            record: 0.0,
            partitions: 0,
            records: 0,
            negative: vec![false; shape.kinds.len()],
            taken: (1.0, 1.0),
            kept: Vec::new(),
            sizes: Vec::new(),
            shape,
        }
    }

    /// Rows of the partitions that have come, and the sums of their squares and cubes.
    pub fn sizes(&self) -> (u64, u128, f64) {
        let squares = self.sizes.iter().map(|&size| u128::from(size).pow(2));
        let cubes = self.sizes.iter().map(|&size| (size as f64).powi(3));
        (self.sizes.iter().sum(), squares.sum(), cubes.sum())
    }

    /// Begins the next partition, of which `taken` of `records` records come. Without records within partitions and rows that they tell, neither is looked at.
    pub fn begin(&mut self, records: u64, taken: u64) {
        if self.shape.within {
            // Scales differ by partition, so that none may be left under way.
            self.close();
            self.taken = (records as f64, taken as f64);
        }
        if self.shape.by_rows {
            self.sizes.push(records);
        }
        self.partition += 1.0;
        self.partitions += 1;
    }

    /// The next record begins.
    pub fn record(&mut self) {
        self.record += 1.0;
        self.records += 1;
    }

    /// So many records come, of which none is kept apart.
    pub fn records(&mut self, count: u64) {
        self.records += count;
    }

    /// Reads what `group` will read of keys with these hashes, so that it need not wait for memory.
    pub fn warm(&self, rows: &[(usize, u64)]) {
        let width = self.shape.width;
        let mut numbers = [0; 128];
        for rows in rows.chunks(numbers.len()) {
            let numbers = &mut numbers[..rows.len()];
            for (number, &(_, hash)) in numbers.iter_mut().zip(rows) {
                *number = self.keys.likely(hash);
            }
            let mut read = 0;
            for number in numbers.iter_mut() {
                let row = *number * width;
                read ^= self.rows.get(row).map_or(0, |it| it.to_bits());
                read ^= self.rows.get(row + width - 1).map_or(0, |it| it.to_bits());
                *number = self.keys.end(*number);
            }
            for &end in numbers.iter() {
                read ^= u64::from(self.keys.byte_before(end));
            }
            std::hint::black_box(read);
        }
    }

    /// The number of the group of a key with its hash; it is entered if it is new.
    #[inline]
    pub fn group(&mut self, key: &[u8], hash: u64) -> usize {
        // Sorted files have the group that came last again.
        let is_last = self.last < self.keys.len() && is_same(self.keys.key(self.last), key);
        let number = if is_last { self.last } else { self.look_up(key, hash) };
        let row = &mut self.rows[number * self.shape.width..][..self.shape.width];
        if row[0] != self.partition {
            let size = size_of(&self.sizes, row[0]);
            close(&self.shape, row, self.taken, size);
            row[0] = self.partition;
            row[1] += 1.0;
        }
        if self.shape.within && row[HEAD] != self.record {
            close_record(&self.shape, row);
            row[HEAD] = self.record;
        }
        number
    }

    #[inline]
    fn look_up(&mut self, key: &[u8], hash: u64) -> usize {
        let (number, is_new) = self.keys.number(key, hash);
        if is_new {
            self.rows.resize(self.rows.len() + self.shape.width, 0.0);
        }
        self.last = number;
        number
    }

    /// Adds a value to a group; `z` is what a ratio is over.
    #[inline]
    pub fn add(&mut self, group: usize, aggregate: usize, t: f64, z: f64) {
        let start = group * self.shape.width + self.shape.starts[aggregate];
        let is_ratio = self.shape.kinds[aggregate].is_ratio();
        self.negative[aggregate] |= t < 0.0;
        if self.shape.within {
            let within = start + if is_ratio { RATIO } else { TOTAL };
            self.rows[within + R_T] += t;
            self.rows[within + R_Z] += z;
        } else {
            self.rows[start + T] += t;
            if is_ratio {
                self.rows[start + Z] += z;
            }
        }
    }

    /// Keeps a value of a group, for a quantile.
    pub fn keep(&mut self, group: usize, quantile: usize, value: f64) {
        if self.kept.len() <= quantile {
            self.kept.resize_with(quantile + 1, Kept::default);
        }
        let scale = if self.shape.within {
            self.taken.0 / self.taken.1
        } else {
            1.0
        };
        self.kept[quantile].add(group, self.partitions - 1, scale, value);
    }

    /// What was kept of a group: number of the partition among those of the lane, what a value stands for, values.
    pub fn kept<'a>(&'a self, key: &[u8], quantile: usize) -> impl Iterator<Item = (u64, f64, &'a [f64])> {
        let of = self.keys.find(key).zip(self.kept.get(quantile));
        of.into_iter().flat_map(|(group, kept)| kept.of(group))
    }

    /// Keys of all groups, in the order in which they came.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.keys.len()).map(|number| self.keys.key(number))
    }

    /// Of a group by the place of its key among `keys`: the sum of an aggregate, and of what it is over.
    pub fn total(&self, number: usize, aggregate: usize) -> (f64, f64) {
        let row = &self.rows[number * self.shape.width..][..self.shape.width];
        let of = sums_of(&self.shape, row, aggregate);
        (of.t.value(), of.z.value())
    }

    /// Keeps the `most` groups whose first aggregates are the largest, if there are more than twice as many.
    pub fn forget(&mut self, most: usize) {
        if self.keys.len() <= 2 * most {
            return;
        }
        self.close();
        let width = self.shape.width;
        let sizes: Vec<f64> = (0..self.keys.len()).map(|number| self.total(number, 0).0).collect();
        let mut sorted = sizes.clone();
        let (_, &mut least, _) = sorted.select_nth_unstable_by(sizes.len() - most - 1, f64::total_cmp);
        let (keys, rows) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.rows));
        self.last = 0;
        for (number, _) in sizes.iter().enumerate().filter(|&(_, &size)| size > least) {
            let key = keys.key(number);
            self.keys.number(key, hash(key));
            self.rows.extend_from_slice(&rows[number * width..][..width]);
        }
    }

    /// Adds what is under way to the sums.
    pub fn close(&mut self) {
        for row in self.rows.chunks_mut(self.shape.width) {
            if self.shape.within {
                close_record(&self.shape, row);
            }
            let size = size_of(&self.sizes, row[0]);
            close(&self.shape, row, self.taken, size);
        }
    }

    /// Of one group: sums of each aggregate, and products. None if nothing of it came. Nothing may be under way.
    pub fn moments(&self, key: &[u8]) -> Option<Moments> {
        self.keys.find(key).map(|number| self.moments_of(number))
    }

    fn moments_of(&self, number: usize) -> Moments {
        let row = &self.rows[number * self.shape.width..][..self.shape.width];
        let within = |at: usize| {
            if self.shape.within {
                sum(&row[at + P_W..])
            } else {
                Doubled::default()
            }
        };
        let pairs = self.shape.pairs.iter().zip(self.shape.pairs());
        let products = pairs.map(|(&pair, (_, _, at))| (pair, sum(&row[at + P_TT..]), within(at)));
        Moments {
            sums: sums(&self.shape, row),
            products: Products::new(products),
        }
    }

    /// As `groups`, with products.
    pub fn all_moments(&self) -> impl Iterator<Item = (&[u8], u64, Moments)> {
        (0..self.keys.len()).map(|number| {
            let seen = self.rows[number * self.shape.width + 1] as u64;
            (self.keys.key(number), seen, self.moments_of(number))
        })
    }

    /// As `groups`, without room of its own for each.
    pub fn each_group<'t>(&'t self, mut each: impl FnMut(&'t [u8], u64, &[Sums])) {
        let mut own = Vec::new();
        for number in 0..self.keys.len() {
            let row = &self.rows[number * self.shape.width..][..self.shape.width];
            own.clear();
            own.extend((0..self.shape.kinds.len()).map(|at| sums_of(&self.shape, row, at)));
            each(self.keys.key(number), row[1] as u64, &own);
        }
    }

    /// All groups, in the order in which they came: key, partitions seen, sums of each aggregate. Nothing may be under way.
    pub fn groups(&self) -> impl Iterator<Item = (&[u8], u64, Vec<Sums>)> {
        (0..self.keys.len()).map(|number| {
            let row = &self.rows[number * self.shape.width..][..self.shape.width];
            (self.keys.key(number), row[1] as u64, sums(&self.shape, row))
        })
    }
}

/// The sum at the first two places.
#[inline]
fn sum(of: &[f64]) -> Doubled {
    Doubled {
        high: of[0],
        low: of[1],
    }
}

/// Adds to the sum at the first two places.
#[inline]
fn add(of: &mut [f64], more: Doubled) {
    let Doubled { high, low } = sum(of) + more;
    (of[0], of[1]) = (high, low);
}

/// Adds the record under way to its partition.
fn close_record(shape: &Shape, row: &mut [f64]) {
    for (a, b, at) in shape.pairs() {
        let both = Doubled::product(row[a + TOTAL + R_T], row[b + TOTAL + R_T]);
        add(&mut row[at + P_Q..], both);
    }
    for (kind, &start) in shape.kinds.iter().zip(&shape.starts) {
        let of = &mut row[start..];
        let within = if kind.is_ratio() { RATIO } else { TOTAL };
        let (t, z) = (of[within + R_T], of[within + R_Z]);
        let total = under_way(of, T, within + L_T) + Doubled::from(t);
        (of[T], of[within + L_T]) = (total.high, total.low);
        add(&mut of[within + Q_TT..], Doubled::product(t, t));
        if kind.is_ratio() {
            let total = under_way(of, Z, within + L_Z) + Doubled::from(z);
            (of[Z], of[within + L_Z]) = (total.high, total.low);
            add(&mut of[within + Q_ZZ..], Doubled::product(z, z));
            add(&mut of[within + Q_TZ..], Doubled::product(t, z));
        }
        of[within + R_T] = 0.0;
        of[within + R_Z] = 0.0;
    }
}

/// A total of the partition under way, with what it leaves over.
fn under_way(of: &[f64], total: usize, left: usize) -> Doubled {
    Doubled {
        high: of[total],
        low: of[left],
    }
}

/// Rows of a partition by its number, from 1 on; nothing where partitions do not tell.
#[inline]
fn size_of(sizes: &[u64], partition: f64) -> f64 {
    let size = sizes.get((partition as usize).wrapping_sub(1));
    size.map_or(0.0, |&size| size as f64)
}

/// Adds the partition under way to the sums.
#[inline]
fn close(shape: &Shape, row: &mut [f64], taken: (f64, f64), size: f64) {
    if shape.all_plain {
        for &start in &shape.starts {
            close_count(&mut row[start..]);
        }
    } else {
        close_all(shape, row, taken, size);
    }
}

#[inline]
fn close_count(of: &mut [f64]) {
    let t = std::mem::take(&mut of[T]);
    of[C_T] += t;
    of[C_TT] += t * t;
}

/// As `close`; apart, so that words are counted without it.
#[inline(never)]
fn close_all(shape: &Shape, row: &mut [f64], taken: (f64, f64), size: f64) {
    if shape.within {
        close_sampled(shape, row, taken);
    }
    for (a, b, at) in shape.pairs() {
        let both = Doubled::product(row[a + T], row[b + T]);
        add(&mut row[at + P_TT..], both);
    }
    for (&kind, &start) in shape.kinds.iter().zip(&shape.starts) {
        let of = &mut row[start..];
        if shape.is_plain(kind) {
            close_count(of);
            continue;
        }
        let t = std::mem::take(&mut of[T]);
        add(&mut of[S_T..], Doubled::from(t));
        add(&mut of[S_TT..], Doubled::product(t, t));
        if kind.is_ratio() {
            let z = std::mem::take(&mut of[Z]);
            add(&mut of[S_Z..], Doubled::from(z));
            add(&mut of[S_ZZ..], Doubled::product(z, z));
            add(&mut of[S_TZ..], Doubled::product(t, z));
        } else if shape.by_rows {
            add(&mut of[shape.rows()..], Doubled::product(t, size));
        }
    }
}

/// Adds the variances of the partition under way, of which records were sampled, and scales its totals up.
fn close_sampled(shape: &Shape, row: &mut [f64], (records, taken): (f64, f64)) {
    if taken <= 0.0 {
        return;
    }
    let factor = if taken < records && taken > 1.0 {
        records * (records - taken) / taken / (taken - 1.0)
    } else {
        0.0
    };
    for (a, b, at) in shape.pairs() {
        let total = |start: usize| under_way(&row[start..], T, TOTAL + L_T);
        let left = sum(&row[at + P_Q..]) - total(a) * total(b) / taken;
        add(&mut row[at + P_W..], factor * left);
        row[at + P_Q..at + P_W].fill(0.0);
    }
    for (kind, &start) in shape.kinds.iter().zip(&shape.starts) {
        let of = &mut row[start..];
        let within = if kind.is_ratio() { RATIO } else { TOTAL };
        let t = under_way(of, T, within + L_T);
        let z = if kind.is_ratio() {
            under_way(of, Z, within + L_Z)
        } else {
            Doubled::default()
        };
        for (squares, summed, both) in [(Q_TT, W_TT, t * t), (Q_ZZ, W_ZZ, z * z), (Q_TZ, W_TZ, t * z)] {
            let left = sum(&of[within + squares..]) - both / taken;
            add(&mut of[within + summed..], factor * left);
        }
        of[within + L_T..within + W_TT].fill(0.0);
        // Rounded, so that all products are of the same totals.
        of[T] = t.value() * (records / taken);
        if kind.is_ratio() {
            of[Z] = z.value() * (records / taken);
        }
    }
}

fn sums(shape: &Shape, row: &[f64]) -> Vec<Sums> {
    (0..shape.kinds.len()).map(|at| sums_of(shape, row, at)).collect()
}

/// Those of one aggregate.
fn sums_of(shape: &Shape, row: &[f64], aggregate: usize) -> Sums {
    let (kind, of) = (shape.kinds[aggregate], &row[shape.starts[aggregate]..]);
    if shape.is_plain(kind) {
        return Sums {
            t: of[C_T].into(),
            tt: of[C_TT].into(),
            ..Sums::default()
        };
    }
    let at = |place: usize| sum(&of[place..]);
    let mut sums = Sums {
        t: at(S_T),
        tt: at(S_TT),
        ..Sums::default()
    };
    if kind.is_ratio() {
        (sums.z, sums.zz, sums.tz) = (at(S_Z), at(S_ZZ), at(S_TZ));
    } else if shape.by_rows {
        sums.tx = at(shape.rows());
    }
    if shape.within {
        let within = if kind.is_ratio() { RATIO } else { TOTAL };
        sums.within_tt = at(within + W_TT);
        sums.within_zz = at(within + W_ZZ);
        sums.within_tz = at(within + W_TZ);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two partitions: 3 and 4 of group a in the first, 5 in the second; 1 of b in the second.
    #[test]
    fn sums_over_whole_partitions() {
        let mut totals = Totals::new(Shape::new(vec![Kind::Sum, Kind::Average], false));
        for records in [&[("a", 3.0), ("a", 4.0)][..], &[("b", 1.0), ("a", 5.0)]] {
            totals.begin(2, 2);
            for (key, value) in records {
                totals.record();
                let group = totals.group(key.as_bytes(), hash(key.as_bytes()));
                totals.add(group, 0, *value, 0.0);
                totals.add(group, 1, *value, 1.0);
            }
        }
        totals.close();
        let mut groups: Vec<_> = totals.groups().collect();
        groups.sort_by_key(|group| group.0);
        let (key, seen, sums) = &groups[0];
        assert_eq!(
            (*key, *seen, sums[0].t.value(), sums[0].tt.value()),
            (&b"a"[..], 2, 12.0, 49.0 + 25.0)
        );
        let a = sums[1];
        let a = [a.t, a.tt, a.z, a.zz, a.tz].map(Doubled::value);
        assert_eq!(a, [12.0, 74.0, 3.0, 5.0, 14.0 + 5.0]);
        assert_eq!((groups[1].1, groups[1].2[0].t.value()), (1, 1.0));
    }

    /// Of keys `0` to `9`, with as many records in each of two partitions, three are kept, and come on.
    #[test]
    fn groups_with_small_counts_are_forgotten() {
        let mut totals = Totals::new(Shape::new(vec![Kind::Count], false));
        for round in 0..2 {
            totals.begin(0, 0);
            for number in 0..10u8 {
                for _ in 0..number {
                    let key = [b'0' + number];
                    let group = totals.group(&key, hash(&key));
                    totals.add(group, 0, 1.0, 0.0);
                }
            }
            totals.forget(if round == 0 { 3 } else { 5 });
        }
        totals.close();
        let mut found: Vec<_> = totals
            .groups()
            .map(|(key, seen, sums)| (key.to_vec(), seen, sums[0].t.value()))
            .collect();
        found.sort_by(|a, b| b.2.total_cmp(&a.2));
        assert_eq!(
            found[..3],
            [
                (b"9".to_vec(), 2, 18.0),
                (b"8".to_vec(), 2, 16.0),
                (b"7".to_vec(), 2, 14.0)
            ]
        );
        assert_eq!(found[3], (b"6".to_vec(), 1, 6.0));
        assert_eq!(found.len(), 9);
    }

    /// Worked example A of the statistics: 8, 10 and 6 records, of which 4, 5 and 3 are taken. Totals 32, 70, 18; within 5.3333 + 25 + 6.
    #[test]
    fn records_within_partitions() {
        let mut totals = Totals::new(Shape::new(vec![Kind::Sum], true));
        for (records, values) in [
            (8, &[3.0, 5.0, 4.0, 4.0][..]),
            (10, &[6.0, 7.0, 5.0, 9.0, 8.0]),
            (6, &[2.0, 4.0, 3.0]),
        ] {
            totals.begin(records, values.len() as u64);
            for value in values {
                totals.record();
                let group = totals.group(b"", hash(b""));
                totals.add(group, 0, *value, 0.0);
            }
        }
        totals.close();
        let sums = totals.groups().next().unwrap().2[0];
        let [t, tt, within] = [sums.t, sums.tt, sums.within_tt].map(Doubled::value);
        assert!((t - 120.0).abs() < 1e-9 && (tt - (32.0 * 32.0 + 4900.0 + 324.0)).abs() < 1e-9);
        assert!((within - 36.333_333_333).abs() < 1e-6, "{sums:?}");
    }
}
