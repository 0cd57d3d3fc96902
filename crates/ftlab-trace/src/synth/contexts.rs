//! Program contexts that differ in how much of what they write is duplicate.
//!
//! # Model
//! Every offset that is a multiple of `align` and leaves room for the largest size is equally likely, for every
//! context. The context of each request is drawn by `writes`; context number n (from 1 on) has n as its program
//! context. Context n writes in pieces of 4 KiB. The n-th share of `duplicates` of its pieces has the content of an
//! earlier piece: each of the context's last `distance` different contents is equally likely. The other pieces have new
//! contents. Contexts have no contents in common.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `duplicates` | share of duplicates of each context, between slashes | 0 to 1 each, 1 to 4096 of them | `0/0.1/0.5/0.9` |
//! | `writes` | share of the requests of each context, between slashes | together 1 | equal |
//! | `distance` | different contents of its own that a context repeats | 1 to 2^28 | 1000 |
//! # Not modelled
//! Lifetimes: the data that a duplicate repeats may have been overwritten everywhere, the sooner the smaller `span` is.
//! Separate address ranges for contexts. Contents of chunks. A piece shorter than 4 KiB has an id of its own.
//! # Cost
//! O(1) a piece; 8 bytes for each of the last `distance` contents of each context.
//! # Source
//! Ours, for the question of Kim's dissertation on program contexts in flash storage (Seoul National University 2019), section 5.2: contexts
//! of RocksDB and GCC differ in their rates of duplicates from 0 to 8 % (table 1).

use ftlab_core::request::{CONTENT_BYTES, paired};
use ftlab_core::{Batch, OpKind, Result, Stream};
use serde_json::{Map, Value, json};

use super::{Keys, Pattern, Space};

const MOST_CONTEXTS: usize = 4096;
const MOST_DISTANCE: u64 = 1 << 28;

pub fn new(keys: &mut Keys, space: Space) -> Result<Box<dyn Pattern>> {
    let duplicates = shares(keys, "duplicates", "0/0.1/0.5/0.9")?;
    let equal = vec![(1.0 / duplicates.len() as f64).to_string(); duplicates.len()].join("/");
    let writes = shares(keys, "writes", &equal)?;
    if writes.len() != duplicates.len() {
        let (found, expected) = (writes.len(), duplicates.len());
        return Err(keys.wrong(
            "writes",
            &show(&writes),
            &format!("{expected} shares, as many as `duplicates` has, not {found}"),
        ));
    }
    let sum: f64 = writes.iter().sum();
    if (sum - 1.0).abs() > 1e-6 {
        return Err(keys.wrong("writes", &show(&writes), &format!("shares that add up to 1, not {sum}")));
    }
    let distance = keys.count("distance")?.unwrap_or(1000);
    if !(1..=MOST_DISTANCE).contains(&distance) {
        return Err(keys.wrong("distance", &distance.to_string(), "1 to 268435456"));
    }
    let mut up_to = 0.0;
    let contexts = duplicates.iter().zip(&writes).map(|(&duplicates, &writes)| {
        up_to += writes;
        Context {
            duplicates,
            up_to,
            recent: Vec::new(),
            oldest: 0,
        }
    });
    Ok(Box::new(Contexts {
        contexts: contexts.collect(),
        contents: Stream::new(space.seed, "contents of contexts"),
        space,
        duplicates,
        writes,
        distance: distance as usize,
        made: 0,
    }))
}

/// Shares between slashes.
fn shares(keys: &mut Keys, key: &'static str, default: &str) -> Result<Vec<f64>> {
    let text = keys.text(key).unwrap_or_else(|| default.to_owned());
    let parts: Option<Vec<f64>> = text.split('/').map(|part| part.trim().parse().ok()).collect();
    parts
        .filter(|parts| parts.len() <= MOST_CONTEXTS && parts.iter().all(|share| (0.0..=1.0).contains(share)))
        .ok_or_else(|| {
            keys.wrong(
                key,
                &text,
                "shares from 0 to 1 such as 0/0.5, one for each of at most 4096 contexts",
            )
        })
}

fn show(shares: &[f64]) -> String {
    shares.iter().map(f64::to_string).collect::<Vec<_>>().join("/")
}

struct Contexts {
    space: Space,
    duplicates: Vec<f64>,
    writes: Vec<f64>,
    distance: usize,
    contexts: Vec<Context>,
    /// Draws contents, so that places are the same whatever the shares are.
    contents: Stream,
    /// Different contents so far.
    made: u64,
}

struct Context {
    duplicates: f64,
    /// Cumulative share of the requests.
    up_to: f64,
    /// Its last different contents, from `oldest` on, around the end.
    recent: Vec<u64>,
    oldest: usize,
}

impl Contexts {
    /// The content of the next piece that a context writes.
    fn content(&mut self, number: usize) -> u64 {
        let context = &mut self.contexts[number];
        let known = context.recent.len() as u64;
        if known > 0 && self.contents.unit() < context.duplicates {
            return context.recent[self.contents.below(known) as usize];
        }
        self.made += 1;
        let content = paired(self.space.seed, self.made);
        if context.recent.len() < self.distance {
            context.recent.push(content);
        } else {
            context.recent[context.oldest] = content;
            context.oldest = (context.oldest + 1) % self.distance;
        }
        content
    }
}

impl Pattern for Contexts {
    fn place(&mut self, batch: &mut Batch, random: &mut Stream) {
        let Space { positions, align, .. } = self.space;
        for i in 0..batch.op.len() {
            batch.offset.push(random.below(positions) * align);
            let draw = random.unit();
            let number = self.contexts.partition_point(|context| context.up_to <= draw);
            let number = number.min(self.contexts.len() - 1);
            batch.pc.push(number as u64 + 1);
            if batch.op[i] == OpKind::Write {
                for _ in 0..batch.length[i].div_ceil(CONTENT_BYTES) {
                    let content = self.content(number);
                    batch.content.push(content);
                }
            }
            batch.content_end.push(batch.content.len() as u32);
        }
    }

    fn describe(&self, into: &mut Map<String, Value>) {
        into.insert("duplicates".to_owned(), json!(show(&self.duplicates)));
        into.insert("writes".to_owned(), json!(show(&self.writes)));
        into.insert("distance".to_owned(), json!(self.distance));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use ftlab_core::{Batch, Source};
    use rustc_hash::FxHashMap;

    fn batches(spec: &str) -> Vec<Batch> {
        let mut generator = parse(spec, 1 << 30, 4096, 1).unwrap();
        let mut all = Vec::new();
        loop {
            let mut batch = Batch::default();
            generator.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                return all;
            }
            all.push(batch);
        }
    }

    /// Of 40,000 draws a share of 0.7 is off by more than 0.01 less than once in 10,000 generators (4.4 standard deviations).
    #[test]
    fn each_context_repeats_as_much_as_it_should() {
        let mut of: FxHashMap<u64, [u64; 2]> = FxHashMap::default();
        let mut last: FxHashMap<u64, (u64, u64)> = FxHashMap::default();
        let mut different = [0; 4];
        for batch in
            batches("contexts:duplicates=0/0.2/0.7,writes=0.2/0.4/0.4,distance=50,size=8KiB,requests=50000,read=0.1")
        {
            for i in 0..batch.len() {
                let pc = batch.pc[i];
                assert_eq!(batch.content_of(i).is_empty(), batch.op[i] == ftlab_core::OpKind::Read);
                for &content in batch.content_of(i) {
                    let [all, copies] = of.entry(pc).or_default();
                    *all += 1;
                    if let Some(&(who, when)) = last.get(&content) {
                        *copies += 1;
                        assert!(
                            who == pc && different[pc as usize] - when < 50,
                            "a content of {who} for {pc}"
                        );
                    } else {
                        different[pc as usize] += 1;
                        last.insert(content, (pc, different[pc as usize]));
                    }
                }
            }
        }
        assert_eq!(of[&1][1], 0);
        for (pc, share, writes) in [(1, 0.0, 0.2), (2, 0.2, 0.4), (3, 0.7, 0.4)] {
            let [all, copies] = of[&pc];
            assert!(
                (copies as f64 / all as f64 - share).abs() < 0.01,
                "{pc}: {copies} of {all}"
            );
            assert!((all as f64 / 90_000.0 - writes).abs() < 0.01, "{pc}: {all}");
        }
    }

    /// Places and writers stay the same when only the shares of duplicates change.
    #[test]
    fn contents_leave_the_places_as_they_are() {
        let of = |duplicates| batches(&format!("contexts:duplicates={duplicates},requests=1000")).remove(0);
        let (few, many) = (of("0/0.1"), of("0.9/1"));
        assert_eq!((&few.offset, &few.pc), (&many.offset, &many.pc));
        assert_ne!(few.content, many.content);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for (keys, words) in [
            ("duplicates=0/2", "shares from 0 to 1 such as 0/0.5"),
            ("duplicates=0/", "shares from 0 to 1"),
            (
                "duplicates=0/0.5,writes=1",
                "2 shares, as many as `duplicates` has, not 1",
            ),
            ("duplicates=0/0.5,writes=0.5/0.4", "shares that add up to 1, not 0.9"),
            ("distance=0", "1 to 268435456"),
        ] {
            let error = parse(&format!("contexts:{keys}"), 1 << 30, 4096, 1)
                .err()
                .unwrap()
                .to_string();
            assert!(error.contains(words), "{keys}: {error}");
        }
    }
}
