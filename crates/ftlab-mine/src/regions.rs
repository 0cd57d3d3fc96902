//! Which pairs of regions hold the correlations: the first, cheap pass of clustered mining.
//!
//! The mass of a pair of regions is the number of pairs of accesses that lie in them, within windows. A window with `a`
//! accesses of region A and `b` of region B adds a·b to {A, B}, and a·(a−1)/2 to {A, A}.

use std::cmp::Reverse;

use crate::meter::{Meter, Most, used};

/// Regions whose pairs are counted: those with most accesses. Bounds the table of masses to 1 MiB.
const REGIONS: usize = 512;

/// Two regions (or one twice) by number, the smaller one first.
pub(crate) struct RegionPair {
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) mass: u64,
}

/// What the first pass found.
pub(crate) struct Chosen {
    /// Heaviest first.
    pub(crate) pairs: Vec<RegionPair>,
    /// Regions with an access.
    pub(crate) regions: u64,
    /// Mass of all pairs of regions.
    pub(crate) mass: u64,
}

impl Chosen {
    /// Share of the mass that the chosen pairs hold.
    pub(crate) fn share(&self) -> f64 {
        let chosen: u64 = self.pairs.iter().map(|pair| pair.mass).sum();
        if self.mass == 0 {
            0.0
        } else {
            chosen as f64 / self.mass as f64
        }
    }
}

/// How regions are cut and pairs of them chosen.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    /// Units in a region.
    pub(crate) region: u32,
    /// Accesses in a window.
    pub(crate) window: usize,
    /// Windows in which a region must appear: a pair of its pages could not be in as many otherwise.
    pub(crate) needed: u32,
    /// Share of the mass at which there are enough pairs.
    pub(crate) share: f64,
    /// Most pairs.
    pub(crate) most: usize,
}

/// The heaviest pairs of regions, until they hold a share of the mass or are enough.
pub(crate) fn choose(lpns: &[u32], choice: Choice, meter: &mut Meter) -> Chosen {
    let Choice {
        region,
        window,
        needed,
        share,
        most,
    } = choice;
    let (regions, counted) = busiest(lpns, region, window, needed, meter);

    let mut masses = vec![0u64; counted.len() * (counted.len() + 1) / 2];
    let mut of_window: Vec<u32> = Vec::with_capacity(window.min(lpns.len()));
    let mut present: Vec<(u32, u64)> = Vec::new();
    let (mut most_of_window, mut most_present) = (Most::default(), Most::default());
    let mut mass = 0;
    for accesses in lpns.chunks(window) {
        let n = accesses.len() as u64;
        mass += n * (n - 1) / 2;
        present.clear();
        each_region(accesses, region, &mut of_window, |region, accesses| {
            if let Ok(rank) = counted.binary_search(&region) {
                present.push((rank as u32, accesses));
            }
        });
        most_of_window.see(&of_window);
        most_present.see(&present);
        for (i, &(b, in_b)) in present.iter().enumerate() {
            masses[index(b, b)] += in_b * (in_b - 1) / 2;
            for &(a, in_a) in &present[..i] {
                masses[index(a, b)] += in_a * in_b;
            }
        }
    }

    let heavier = |pair: &RegionPair| (Reverse(pair.mass), pair.a, pair.b);
    let mut pairs: Vec<RegionPair> = Vec::new();
    let mut most_pairs = Most::default();
    for b in 0..counted.len() {
        for a in 0..=b {
            let mass = masses[index(a as u32, b as u32)];
            if mass > 0 {
                pairs.push(RegionPair {
                    a: counted[a],
                    b: counted[b],
                    mass,
                });
            }
        }
        most_pairs.see(&pairs);
        if pairs.len() > most.saturating_mul(2) {
            pairs.select_nth_unstable_by_key(most, heavier);
            pairs.truncate(most);
        }
    }
    meter.alive(&[
        used(&counted),
        used(&masses),
        most_of_window.bytes(),
        most_present.bytes(),
        most_pairs.bytes(),
    ]);
    pairs.sort_unstable_by_key(heavier);
    let wanted = share * mass as f64;
    let mut held = 0;
    let enough = pairs.iter().take(most).position(|pair| {
        held += pair.mass;
        held as f64 >= wanted
    });
    pairs.truncate(enough.map_or(most, |last| last + 1));
    pairs.shrink_to_fit();
    Chosen { pairs, regions, mass }
}

/// Place of a ≤ b in a triangle.
fn index(a: u32, b: u32) -> usize {
    b as usize * (b as usize + 1) / 2 + a as usize
}

/// Calls with each region of a window, in order, and its accesses in it.
fn each_region(accesses: &[u32], region: u32, sorted: &mut Vec<u32>, mut visit: impl FnMut(u32, u64)) {
    sorted.clear();
    sorted.extend(accesses.iter().map(|&lpn| lpn / region));
    sorted.sort_unstable();
    for run in sorted.chunk_by(|a, b| a == b) {
        visit(run[0], run.len() as u64);
    }
}

/// How many regions there are; those in at least `needed` windows, of which the ones with most accesses, in order.
fn busiest(lpns: &[u32], region: u32, window: usize, needed: u32, meter: &mut Meter) -> (u64, Vec<u32>) {
    struct Known {
        region: u32,
        windows: u32,
        accesses: u64,
    }
    let mut known: Vec<Known> = Vec::new();
    let mut sorted: Vec<u32> = Vec::with_capacity(window.min(lpns.len()));
    let mut most_sorted = Most::default();
    for accesses in lpns.chunks(window) {
        let before = known.len();
        each_region(accesses, region, &mut sorted, |region, accesses| {
            match known[..before].binary_search_by_key(&region, |known| known.region) {
                Ok(at) => {
                    known[at].windows += 1;
                    known[at].accesses += accesses;
                }
                Err(_) => known.push(Known {
                    region,
                    windows: 1,
                    accesses,
                }),
            }
        });
        most_sorted.see(&sorted);
        if known.len() > before {
            known.sort_unstable_by_key(|known| known.region);
        }
    }
    let regions = known.len() as u64;
    let of_known = used(&known);
    known.retain(|known| known.windows >= needed);
    known.sort_unstable_by_key(|known| (Reverse(known.accesses), known.region));
    known.truncate(REGIONS);
    let mut counted: Vec<u32> = known.iter().map(|known| known.region).collect();
    counted.sort_unstable();
    meter.alive(&[of_known, most_sorted.bytes(), used(&counted)]);
    (regions, counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(lpns: &[u32], window: usize, share: f64, most: usize) -> Chosen {
        choose(
            lpns,
            Choice {
                region: 10,
                window,
                needed: 1,
                share,
                most,
            },
            &mut Meter::default(),
        )
    }

    #[test]
    fn masses_are_pairs_of_accesses_within_windows() {
        // Windows of 4: regions 0 0 1 2 and 0 1 1 1, then a window of one access, which has no pair.
        // {0,0}: 1; {0,1}: 2 + 3; {0,2}: 2; {1,2}: 1; {1,1}: 3. In all 6 + 6.
        let lpns = [1, 2, 11, 21, 5, 15, 16, 17, 99];
        let all = chosen(&lpns, 4, 1.0, 100);
        let listed: Vec<_> = all.pairs.iter().map(|p| (p.a, p.b, p.mass)).collect();
        assert_eq!(listed, [(0, 1, 5), (1, 1, 3), (0, 2, 2), (0, 0, 1), (1, 2, 1)]);
        assert_eq!((all.mass, all.regions, all.share()), (12, 4, 1.0));
    }

    #[test]
    fn pairs_are_taken_until_the_share_is_reached_or_there_are_enough() {
        let lpns = [1, 2, 11, 21, 5, 15, 16, 17, 99];
        // 5 of 12 are 41.7 %, 8 are 66.7 %, 10 are 83.3 %.
        assert_eq!(chosen(&lpns, 4, 0.41, 100).pairs.len(), 1);
        assert_eq!(chosen(&lpns, 4, 0.42, 100).pairs.len(), 2);
        assert_eq!(chosen(&lpns, 4, 0.80, 100).pairs.len(), 3);
        assert_eq!(chosen(&lpns, 4, 1.00, 2).pairs.len(), 2);
        let choice = Choice {
            region: 10,
            window: 4,
            needed: 2,
            share: 1.0,
            most: 100,
        };
        // Only regions 0 and 1 are in two windows; the mass of the others still counts against the share.
        let twice = choose(&lpns, choice, &mut Meter::default());
        assert_eq!((twice.pairs.len(), twice.regions, twice.share()), (3, 4, 9.0 / 12.0));
        let nothing = chosen(&[], 4, 0.9, 100);
        assert_eq!((nothing.pairs.len(), nothing.share()), (0, 0.0));
    }
}
