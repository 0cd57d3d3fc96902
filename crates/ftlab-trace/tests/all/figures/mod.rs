//! Figures of a stream of requests by which a fitted workload is held against its original.
//!
//! Exact, and independent of the library's own inspection: everything is counted page by page (4 KiB).

use ftlab_core::{Batch, OpKind, Source};
use rustc_hash::{FxHashMap, FxHashSet};

/// Cache sizes as shares of the footprint.
pub const CACHES: [f64; 5] = [0.01, 0.05, 0.10, 0.20, 0.50];
/// Shares of the written pages.
pub const HOTTEST: [f64; 3] = [0.01, 0.10, 0.20];

#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub requests: u64,
    pub pages: u64,
    pub read_share: f64,
    /// Mean, median and 90th percentile in bytes, of reads and of writes.
    pub sizes: [Option<(f64, u32, u32)>; 2],
    pub hot_writes: Option<[f64; 3]>,
    pub miss_all: [f64; 5],
    pub miss_reads: Option<[f64; 5]>,
    /// First touches per page access.
    pub first_touches: f64,
    pub sequential: f64,
    /// Median page writes from a page's write to its next.
    pub lifetime: Option<f64>,
    /// Share of the page writes that are not overwritten.
    pub alive: f64,
    pub gap_cv: Option<f64>,
    pub mean_gap_ns: f64,
    /// Share of the page writes whose value was written before.
    pub duplicates: Option<f64>,
    /// Distinct values per page written, and per page read.
    pub unique_values: Option<[f64; 2]>,
    /// Values, the most popular in reads first, that make 80 % of the page reads, of all values.
    pub values_of_80: Option<f64>,
    /// Distinct first addresses of the first 10,000 writes.
    pub addresses_10k: u64,
    /// Reads of a page written within the 1024 requests of a partition, per write: mean over partitions.
    pub dirty_reads: f64,
}

/// Counts accesses at a distance, for the LRU stack (Bennett and Kruskal 1975): a Fenwick tree over times.
struct Stack {
    tree: Vec<u32>,
    last: FxHashMap<u64, usize>,
    now: usize,
}

impl Stack {
    fn new() -> Self {
        Stack {
            tree: vec![0; 1 << 16],
            last: FxHashMap::default(),
            now: 0,
        }
    }

    fn add(&mut self, mut at: usize, by: i32) {
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(by);
            at += at & at.wrapping_neg();
        }
    }

    fn sum(&self, mut at: usize) -> u64 {
        let mut sum = 0;
        while at > 0 {
            sum += u64::from(self.tree[at]);
            at &= at - 1;
        }
        sum
    }

    /// Distinct pages since the last access of `page`, itself included; `None` at the first.
    fn access(&mut self, page: u64) -> Option<u64> {
        if self.now + 1 >= self.tree.len() {
            self.compact();
        }
        self.now += 1;
        let now = self.now;
        let last = self.last.insert(page, now);
        self.add(now, 1);
        let last = last?;
        let distance = self.sum(now) - self.sum(last);
        self.add(last, -1);
        Some(distance)
    }

    fn compact(&mut self) {
        let mut order: Vec<(usize, u64)> = self.last.iter().map(|(&page, &at)| (at, page)).collect();
        order.sort_unstable();
        self.tree = vec![0; (order.len() * 4).max(1 << 16)];
        self.now = order.len();
        for (at, &(_, page)) in order.iter().enumerate() {
            self.last.insert(page, at + 1);
            self.add(at + 1, 1);
        }
    }
}

pub fn figures(source: &mut dyn Source) -> Figures {
    let mut f = Figures::default();
    let mut batch = Batch::default();
    let (mut reads, mut lengths) = (0u64, [Vec::new(), Vec::new()]);
    let mut stack = Stack::new();
    let mut distances: [FxHashMap<u64, u64>; 2] = Default::default();
    let (mut accesses, mut first, mut read_accesses) = (0u64, 0u64, 0u64);
    let mut writes = FxHashMap::<u64, (u64, u64)>::default();
    let (mut page_writes, mut lifetimes) = (0u64, Vec::new());
    let (mut streams, mut sequential) = (Vec::<u64>::new(), 0u64);
    let (mut last, mut gaps, mut gap_sum, mut gap_square) = (None, 0.0f64, 0.0f64, 0.0f64);
    let (mut written_values, mut value_writes, mut duplicates) = (FxHashMap::<u64, u64>::default(), 0u64, 0u64);
    let mut read_values = FxHashMap::<u64, u64>::default();
    let (mut value_reads, mut starts, mut early_writes) = (0u64, FxHashSet::default(), 0);
    let (mut dirty, mut dirty_count, mut part_writes) = (FxHashSet::<u64>::default(), 0u64, 0u64);
    let mut ratios = Vec::new();
    loop {
        source.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            break;
        }
        for i in 0..batch.len() {
            let (op, offset, length) = (batch.op[i], batch.offset[i], batch.length[i]);
            let write = match op {
                OpKind::Read => false,
                OpKind::Write => true,
                _ => continue,
            };
            if length == 0 {
                continue;
            }
            f.requests += 1;
            reads += u64::from(!write);
            lengths[usize::from(write)].push(length);
            if let Some(last) = last.replace(batch.time_ns[i]) {
                let gap = batch.time_ns[i].saturating_sub(last) as f64;
                gaps += 1.0;
                gap_sum += gap;
                gap_square += gap * gap;
            }
            let end = offset + u64::from(length);
            if let Some(at) = streams.iter().position(|&e| e == offset) {
                sequential += 1;
                streams.remove(at);
            } else if streams.len() == 32 {
                streams.remove(0);
            }
            streams.push(end);
            if write && early_writes < 10_000 {
                early_writes += 1;
                starts.insert(offset);
            }
            part_writes += u64::from(write);
            let mut read_dirty = false;
            for page in offset / 4096..end.div_ceil(4096) {
                accesses += 1;
                read_accesses += u64::from(!write);
                match stack.access(page) {
                    None => first += 1,
                    Some(distance) => *distances[usize::from(write)].entry(distance).or_default() += 1,
                }
                if write {
                    page_writes += 1;
                    dirty.insert(page);
                    let (times, at) = writes.entry(page).or_default();
                    if *times > 0 {
                        lifetimes.push(page_writes - *at);
                    }
                    (*times, *at) = (*times + 1, page_writes);
                } else {
                    read_dirty |= dirty.contains(&page);
                }
            }
            dirty_count += u64::from(read_dirty);
            if f.requests % 1024 == 0 {
                if part_writes > 0 {
                    ratios.push(dirty_count as f64 / part_writes as f64);
                }
                dirty.clear();
                (dirty_count, part_writes) = (0, 0);
            }
            for &value in batch.content_of(i) {
                if write {
                    let times = written_values.entry(value).or_default();
                    duplicates += u64::from(*times > 0);
                    *times += 1;
                    value_writes += 1;
                } else {
                    *read_values.entry(value).or_default() += 1;
                    value_reads += 1;
                }
            }
        }
    }
    f.pages = stack.last.len() as u64;
    f.read_share = reads as f64 / f.requests as f64;
    for (op, lengths) in lengths
        .iter_mut()
        .enumerate()
        .filter(|(_, lengths)| !lengths.is_empty())
    {
        lengths.sort_unstable();
        let at = |share: f64| lengths[((lengths.len() - 1) as f64 * share) as usize];
        let mean = lengths.iter().map(|&l| f64::from(l)).sum::<f64>() / lengths.len() as f64;
        f.sizes[op] = Some((mean, at(0.5), at(0.9)));
    }
    let mut by_writes: Vec<u64> = writes.values().map(|(times, _)| *times).collect();
    by_writes.sort_unstable_by(|a, b| b.cmp(a));
    f.hot_writes = (page_writes > 0).then(|| {
        HOTTEST.map(|share| {
            let pages = (by_writes.len() as f64 * share).ceil() as usize;
            by_writes[..pages].iter().sum::<u64>() as f64 / page_writes as f64
        })
    });
    let hits = |op: usize, cache: f64| -> u64 {
        let most = (cache * f.pages as f64).max(1.0) as u64;
        distances[op]
            .iter()
            .filter(|(distance, _)| **distance <= most)
            .map(|(_, count)| count)
            .sum()
    };
    f.miss_all = CACHES.map(|c| 1.0 - (hits(0, c) + hits(1, c)) as f64 / accesses as f64);
    f.miss_reads = (read_accesses > 0).then(|| CACHES.map(|c| 1.0 - hits(0, c) as f64 / read_accesses as f64));
    f.first_touches = first as f64 / accesses as f64;
    f.sequential = sequential as f64 / f.requests as f64;
    lifetimes.sort_unstable();
    f.lifetime = lifetimes.get(lifetimes.len() / 2).map(|&l| l as f64);
    f.alive = writes.len() as f64 / page_writes.max(1) as f64;
    f.mean_gap_ns = gap_sum / gaps.max(1.0);
    let variance = gap_square / gaps.max(1.0) - f.mean_gap_ns * f.mean_gap_ns;
    f.gap_cv = (gap_sum > 0.0).then(|| variance.max(0.0).sqrt() / f.mean_gap_ns);
    f.duplicates = (value_writes > 0).then(|| duplicates as f64 / value_writes as f64);
    f.unique_values = (value_writes + value_reads > 0).then(|| {
        [
            written_values.len() as f64 / value_writes.max(1) as f64,
            read_values.len() as f64 / value_reads.max(1) as f64,
        ]
    });
    f.values_of_80 = (value_reads > 0).then(|| {
        let mut counts: Vec<u64> = read_values.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (mut sum, mut values) = (0, 0);
        for count in counts {
            if sum as f64 >= 0.8 * value_reads as f64 {
                break;
            }
            sum += count;
            values += 1;
        }
        let all = read_values.keys().filter(|v| !written_values.contains_key(*v)).count() + written_values.len();
        f64::from(values) / all as f64
    });
    f.addresses_10k = starts.len() as u64;
    f.dirty_reads = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    f
}

/// One figure of both, and whether it lies within its bound.
pub struct Row {
    pub name: String,
    pub original: f64,
    pub fitted: f64,
    pub ok: bool,
    pub bound: &'static str,
}

impl Row {
    /// How far apart the two are: in points where the bound is in points, in octaves for bins, and in per cent of the
    /// smaller one for ratios.
    pub fn off(&self) -> f64 {
        let (x, y) = (self.original, self.fitted);
        match self.bound {
            "bin" => (x.log2().floor() - y.log2().floor()).abs(),
            "1 point" | "2 points" | "3 points" | "5 points" => (x - y).abs() * 100.0,
            _ if x == y => 0.0,
            // A ratio to nothing has no percentage: as if it were to one.
            _ if x.min(y) == 0.0 => x.max(y) * 100.0,
            _ => (x.max(y) / x.min(y) - 1.0) * 100.0,
        }
    }
}

/// Holds `b`, fitted, against `a`, the original.
pub fn compare(a: &Figures, b: &Figures) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |name: String, x: f64, y: f64, bound: &'static str, ok: bool| {
        rows.push(Row {
            name,
            original: x,
            fitted: y,
            ok,
            bound,
        });
    };
    let points = |x: f64, y: f64, bound: f64| (x - y).abs() <= bound / 100.0 + 1e-12;
    let ratio = |x: f64, y: f64, bound: f64| x == y || (x / y <= bound && y / x <= bound);
    row(
        "read share".into(),
        a.read_share,
        b.read_share,
        "1 point",
        points(a.read_share, b.read_share, 1.0),
    );
    for (op, name) in ["read", "write"].iter().enumerate() {
        if let (Some(x), Some(y)) = (a.sizes[op], b.sizes[op]) {
            // Where an operation is rare, one long request moves its mean.
            row(format!("{name} mean size"), x.0, y.0, "3 %", ratio(x.0, y.0, 1.03));
            let bins = |x: u32, y: u32| x.ilog2() == y.ilog2();
            row(
                format!("{name} median size"),
                x.1.into(),
                y.1.into(),
                "bin",
                bins(x.1, y.1),
            );
            row(
                format!("{name} p90 size"),
                x.2.into(),
                y.2.into(),
                "bin",
                bins(x.2, y.2),
            );
        }
    }
    if let (Some(x), Some(y)) = (a.hot_writes, b.hot_writes) {
        for (at, share) in HOTTEST.iter().enumerate() {
            row(
                format!("writes to hottest {share}"),
                x[at],
                y[at],
                "5 points",
                points(x[at], y[at], 5.0),
            );
        }
    }
    for (at, cache) in CACHES.iter().enumerate() {
        let (x, y) = (a.miss_all[at], b.miss_all[at]);
        row(format!("LRU misses {cache}"), x, y, "5 points", points(x, y, 5.0));
        if let (Some(x), Some(y)) = (a.miss_reads, b.miss_reads) {
            row(
                format!("LRU misses {cache} reads"),
                x[at],
                y[at],
                "5 points",
                points(x[at], y[at], 5.0),
            );
        }
    }
    row(
        "pages".into(),
        a.pages as f64,
        b.pages as f64,
        "10 %",
        ratio(a.pages as f64, b.pages as f64, 1.1),
    );
    let (x, y) = (a.first_touches, b.first_touches);
    row("first touches".into(), x, y, "2 points", points(x, y, 2.0));
    row(
        "sequential".into(),
        a.sequential,
        b.sequential,
        "5 points",
        points(a.sequential, b.sequential, 5.0),
    );
    if let (Some(x), Some(y)) = (a.lifetime, b.lifetime) {
        row("median lifetime".into(), x, y, "x 1.5", ratio(x, y, 1.5));
    }
    if a.hot_writes.is_some() {
        row(
            "alive".into(),
            a.alive,
            b.alive,
            "5 points",
            points(a.alive, b.alive, 5.0),
        );
    }
    if let (Some(x), Some(y)) = (a.gap_cv, b.gap_cv) {
        row("gap CV".into(), x, y, "25 %", ratio(x, y, 1.25));
        row(
            "mean gap us".into(),
            a.mean_gap_ns / 1e3,
            b.mean_gap_ns / 1e3,
            "5 %",
            ratio(a.mean_gap_ns, b.mean_gap_ns, 1.05),
        );
    }
    if let (Some(x), Some(y)) = (a.duplicates, b.duplicates) {
        row("duplicates".into(), x, y, "3 points", points(x, y, 3.0));
    }
    rows
}
