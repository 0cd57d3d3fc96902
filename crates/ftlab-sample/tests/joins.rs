//! Joins whose keys are sampled: 95 % intervals hold the truth in 95 % of many seeds.
//!
//! `cargo test --release -p ftlab-sample --test joins -- --ignored --nocapture` takes thousands of seeds and prints a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ftlab_core::Stream;
use ftlab_sample::{SampleSpec, sample};
use serde_json::{Value as Json, json};

const QUERY: &str = "select count(*) as n, sum(ms) as total, avg(ms) as mean, sum(ms) / sum(w) as each";

/// How many rows of the sampled side a key has.
#[derive(Clone, Copy, Debug)]
enum Keys {
    Equal,
    /// Between 1 and 20.
    Even,
    /// 2000 of the first, and fewer by the rank of a key to this power.
    Zipf(f64),
}

struct Tables {
    folder: tempfile::TempDir,
}

impl Tables {
    fn new(keys: u64, of: Keys) -> Tables {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Stream::new(11, "joins");
        let (mut events, mut users) = ("user,ms\n".to_owned(), "id,w\n".to_owned());
        for key in 0..keys {
            let rows = match of {
                Keys::Equal => 5,
                Keys::Even => 1 + random.below(20),
                Keys::Zipf(power) => (2000.0 / ((key + 1) as f64).powf(power)).ceil() as u64,
            };
            let mean = 10 + random.below(30);
            for _ in 0..rows {
                writeln!(events, "{key},{}", mean + random.below(20)).unwrap();
            }
            // One key in seven has two rows on the other side, and one in nine none.
            for _ in 0..u64::from(key % 9 != 0) + u64::from(key % 7 == 0) {
                writeln!(users, "{key},{}", 1 + key % 4).unwrap();
            }
        }
        std::fs::write(folder.path().join("events.csv"), events).unwrap();
        std::fs::write(folder.path().join("users.csv"), users).unwrap();
        Tables { folder }
    }

    /// Of each number its value, low and high; and whether they are to be trusted.
    fn ask(&self, share: f64, seed: u64) -> (BTreeMap<String, [f64; 3]>, bool) {
        let at = self.folder.path().display();
        let query = format!("{QUERY} from '{at}/events.csv' e join '{at}/users.csv' u on e.user = u.id");
        let spec = json!({
            "query": query, "join_keys": share, "seed": seed, "threads": 1, "depth": 1, "no_quoted_newlines": true,
        });
        let found = sample(&SampleSpec::parse(&spec.to_string()).unwrap(), &mut || Ok(())).unwrap();
        let row = &found["rows"][0];
        let number = |of: &Json| of.as_f64().unwrap_or(f64::NAN);
        let values = row["values"].as_array().unwrap();
        let columns = found["columns"].as_array().unwrap().iter().zip(values);
        let numbers = columns.map(|(column, of)| {
            let bounds = [number(&of["value"]), number(&of["low"]), number(&of["high"])];
            (column["name"].as_str().unwrap().to_owned(), bounds)
        });
        (numbers.collect(), row["is_reliable"].as_bool().unwrap())
    }
}

/// Of each number: the share of intervals that hold the truth, the mean of estimate over truth, and the share among samples to be trusted; and how many of those there are.
fn coverage(tables: &Tables, share: f64, seeds: u64) -> (BTreeMap<String, [f64; 3]>, f64) {
    let (truth, is_whole) = tables.ask(1.0, 0);
    assert!(is_whole && truth.values().all(|[value, low, high]| value == low && value == high));
    let mut found: BTreeMap<String, [f64; 3]> = BTreeMap::new();
    let mut trusted = 0.0;
    for seed in 0..seeds {
        let (numbers, is_reliable) = tables.ask(share, seed);
        trusted += f64::from(u8::from(is_reliable));
        for (name, [value, low, high]) in numbers {
            let truth = truth[&name][0];
            let held = f64::from(u8::from(low <= truth && truth <= high));
            let of = found.entry(name).or_default();
            of[0] += held / seeds as f64;
            of[1] += value / truth / seeds as f64;
            of[2] += if is_reliable { held } else { 0.0 };
        }
    }
    found.values_mut().for_each(|of| of[2] /= trusted);
    (found, trusted / seeds as f64)
}

#[test]
fn intervals_hold_the_truth() {
    for (of, share) in [(Keys::Equal, 0.2), (Keys::Even, 0.1)] {
        let (found, trusted) = coverage(&Tables::new(400, of), share, 150);
        assert!(trusted > 0.99, "{of:?}: {trusted}");
        for (name, [held, mean, _]) in found {
            // Five standard deviations of 150 draws of 0.95.
            assert!(held > 0.86, "{of:?} {share} {name}: {held}");
            assert!((mean - 1.0).abs() < 0.06, "{of:?} {share} {name}: {mean}");
        }
    }
}

/// Keys that outweigh the others are certain.
#[test]
fn intervals_of_skewed_keys_hold_the_truth() {
    for of in [Keys::Zipf(0.8), Keys::Zipf(1.2)] {
        let (found, trusted) = coverage(&Tables::new(1000, of), 0.1, 150);
        assert!(trusted > 0.95, "{of:?}: {trusted}");
        for (name, [held, mean, _]) in found {
            // Five standard deviations of 150 draws of 0.95; without certain keys 0.5 to 0.8 of them.
            assert!(held > 0.86, "{of:?} {name}: {held}");
            assert!((mean - 1.0).abs() < 0.03, "{of:?} {name}: {mean}");
        }
    }
}

#[test]
#[ignore = "thousands of samples"]
fn table() {
    print(&[Keys::Equal, Keys::Even, Keys::Zipf(0.5)], 2000);
}

#[test]
#[ignore = "a thousand samples"]
fn table_of_skewed_keys() {
    print(&[Keys::Zipf(0.8), Keys::Zipf(1.2)], 400);
}

fn print(all: &[Keys], seeds: u64) {
    for &of in all {
        let tables = Tables::new(2000, of);
        for share in [0.01, 0.05, 0.2] {
            let (found, trusted) = coverage(&tables, share, seeds);
            print!("{of:?} {share}: trusted {trusted:.3}");
            for (name, [held, mean, of_trusted]) in found {
                print!("  {name} {held:.3} ({of_trusted:.3}) bias {:+.3}", mean - 1.0);
            }
            println!();
        }
    }
}
