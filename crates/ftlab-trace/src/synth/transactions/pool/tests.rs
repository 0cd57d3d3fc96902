//! The pool against lists that are searched from end to end, and by hand.

use std::collections::BTreeMap;

use ftlab_core::{PolicySpec, Stream};

use super::*;

fn pool(policy: &str, pages: u32) -> Pool {
    let spec = PolicySpec::parse(policy).unwrap();
    Pool::new(pages, catalogue().build(&spec, &mut Setup { pages }).unwrap())
}

/// The pages from the least to the most recently used, and of every page the requests and the blocked ones.
#[derive(Default)]
struct Naive {
    pages: Vec<(u32, bool)>,
    requests: BTreeMap<u32, (u32, u32)>,
}

impl Naive {
    fn uses(&mut self, page: u32, writes: bool) -> bool {
        let Some(at) = self.pages.iter().position(|&(p, _)| p == page) else {
            return false;
        };
        let (_, dirty) = self.pages.remove(at);
        self.pages.push((page, dirty || writes));
        true
    }

    fn blocking(&self, page: u32) -> f64 {
        let (all, blocked) = self.requests.get(&page).copied().unwrap_or_default();
        f64::from(blocked) / f64::from(all.max(1))
    }

    fn leaves(&mut self, policy: &str, window: usize) -> (u32, bool) {
        let window = window.min(self.pages.len());
        let clean = self.pages[..window].iter().position(|&(_, dirty)| !dirty);
        let least = (0..window).rev().fold(None, |best: Option<usize>, at| match best {
            Some(best) if self.blocking(self.pages[best].0) < self.blocking(self.pages[at].0) => Some(best),
            _ => Some(at),
        });
        let at = match policy {
            "lru" => 0,
            "cflru" => clean.unwrap_or(0),
            _ => clean.or(least).unwrap_or(0),
        };
        self.pages.remove(at)
    }
}

#[test]
fn every_policy_chooses_as_a_search_through_all_pages_does() {
    for policy in catalogue().names() {
        for (pages, window) in [(1, 0), (2, 1), (7, 4), (24, 12)] {
            let (mut pool, mut naive) = (pool(policy, pages), Naive::default());
            let mut random = Stream::new(u64::from(pages), policy);
            for _ in 0..4000 {
                let page = (random.below(40) * random.below(40) / 40) as u32;
                let writes = random.below(3) > 0;
                let found = pool.uses(page, writes);
                assert_eq!(found, naive.uses(page, writes), "{policy}");
                if found {
                    continue;
                }
                let expected = (naive.pages.len() == pages as usize).then(|| naive.leaves(policy, window));
                assert_eq!(pool.reserve(), expected, "{policy} of {pages} pages");
                let took_ns = random.below(2) * 1_000_000;
                pool.policy.on_io(page, took_ns);
                let (all, blocked) = naive.requests.entry(page).or_default();
                (*all, *blocked) = (*all + 1, *blocked + u32::from(took_ns > 800_000));
                pool.enters(page, writes);
                naive.pages.push((page, writes));
            }
        }
    }
}

/// Pages 0 to 3 came in this order, and all but 2 are dirty. Of the half that was used least recently (0 and 1) neither is clean. By CFLRU/E
/// page 1 leaves if page 0 was blocked; with a region of three quarters page 2, the clean one, leaves in both.
#[test]
fn clean_first_and_then_the_least_blocked() {
    let leaves = |policy: &str| {
        let mut pool = pool(policy, 4);
        for page in 0..4 {
            assert_eq!(pool.reserve(), None);
            pool.policy.on_io(page, if page == 0 { 2_000_000 } else { 1000 });
            pool.enters(page, page != 2);
        }
        pool.reserve()
    };
    assert_eq!(leaves("lru"), Some((0, true)));
    assert_eq!(leaves("cflru"), Some((0, true)));
    assert_eq!(leaves("cflru_e"), Some((1, true)));
    assert_eq!(leaves("cflru_e:deadline_us=3000"), Some((0, true)));
    assert_eq!(leaves("cflru:window=0.75"), Some((2, false)));
    assert_eq!(leaves("cflru_e:window=0.75"), Some((2, false)));
    assert_eq!(leaves("cflru_e:window=0"), Some((0, true)));
}

#[test]
fn windows_out_of_range_are_refused() {
    for policy in ["cflru:window=1.5", "cflru_e:window=-1", "cflru_e:deadline_us=0"] {
        let spec = PolicySpec::parse(policy).unwrap();
        let error = catalogue()
            .build(&spec, &mut Setup { pages: 4 })
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.starts_with("pool policy `cflru") && error.contains("expected"),
            "{error}"
        );
    }
}
