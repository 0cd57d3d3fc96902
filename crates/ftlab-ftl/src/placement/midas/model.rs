//! The Markov model of a chain of groups: valid shares and write amplification from the distribution of update intervals.

use serde::{Deserialize, Serialize};

/// Most bins of a distribution.
const BINS: u64 = 4096;

/// How many update intervals of each length were seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Intervals {
    /// Ticks of a bin.
    width: u64,
    /// The last one holds all that are longer.
    bins: Vec<u32>,
    pub seen: u64,
}

impl Intervals {
    /// Of up to `longest` ticks, in bins of `unit` or more.
    pub fn new(unit: u64, longest: u64) -> Self {
        let width = unit.max(longest.div_ceil(BINS)).max(1);
        Intervals {
            width,
            bins: vec![0; longest.div_ceil(width) as usize + 1],
            seen: 0,
        }
    }

    pub fn add(&mut self, interval: u64) {
        let bin = (interval / self.width).min(self.bins.len() as u64 - 1);
        self.bins[bin as usize] += 1;
        self.seen += 1;
    }

    pub fn clear(&mut self) {
        self.bins.fill(0);
        self.seen = 0;
    }

    pub fn len(&self) -> usize {
        self.bins.len()
    }

    pub fn survival(&self) -> Survival {
        let (mut left, mut area) = (self.seen as f64, 0.0);
        let all = left.max(1.0);
        let (mut alive, mut lived) = (vec![left / all], vec![0.0]);
        // What is in the last bin is taken for what never dies: it is counted among the immortal units.
        let longer = f64::from(self.bins[self.bins.len() - 1]);
        for &count in &self.bins[..self.bins.len() - 1] {
            let before = left;
            left -= f64::from(count);
            area += (before + left - 2.0 * longer) / 2.0 * self.width as f64;
            alive.push(left / all);
            lived.push(area / all);
        }
        let longer = longer / all;
        alive.iter_mut().for_each(|share| *share = (*share - longer).max(0.0));
        Survival {
            width: self.width as f64,
            alive,
            lived,
        }
    }
}

/// The share of versions that are alive some ticks after they were written, of those that die within the distribution.
pub(super) struct Survival {
    width: f64,
    alive: Vec<f64>,
    /// Its integral.
    lived: Vec<f64>,
}

impl Survival {
    fn end(&self) -> f64 {
        self.width * (self.alive.len() - 1) as f64
    }

    fn at(&self, time: f64) -> f64 {
        Self::between(&self.alive, time / self.width)
    }

    fn until(&self, time: f64) -> f64 {
        Self::between(&self.lived, time / self.width)
    }

    fn between(values: &[f64], place: f64) -> f64 {
        let last = values.len() - 1;
        if place >= last as f64 {
            return values[last];
        }
        let bin = place as usize;
        values[bin] + (values[bin + 1] - values[bin]) * (place - bin as f64)
    }
}

/// A drive as the model sees it, in mapping units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    /// Of all groups of the chain.
    pub all: f64,
    /// Valid units in them.
    pub live: f64,
    /// Units that come to the first group for each that the host writes.
    pub inflow: f64,
    /// The least share of the space that a group may have.
    pub least: f64,
}

/// What the model says of a chain.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    /// Valid share of each group's reclaim units when they are collected.
    pub valid: Vec<f64>,
    /// Units copied for each unit that the host writes.
    pub copies: f64,
}

/// A chain whose groups but the last have the shares `shares` of the space and are collected first in, first out; the last
/// keeps its own survivors. `None` where the last group could not hold its valid units.
pub(super) fn predict(survival: &Survival, space: Space, shares: &[f64]) -> Option<Prediction> {
    let inflow = space.inflow;
    let (mut time, mut copies, mut valid) = (0.0, 0.0, Vec::new());
    for share in shares {
        let before = survival.at(time);
        let stay = match inflow * before {
            flow if flow > 0.0 => share * space.all / flow,
            _ => survival.end(),
        };
        time = (time + stay).min(survival.end());
        let after = survival.at(time);
        valid.push(if before > 0.0 { after / before } else { 0.0 });
        copies += inflow * after;
    }
    let rest = space.all * (1.0 - shares.iter().sum::<f64>());
    let mortal = inflow * (survival.until(survival.end()) - survival.until(time));
    let immortal = (space.live - inflow * survival.until(survival.end())).max(0.0);
    if mortal + immortal >= rest {
        return None;
    }
    // One pass of the last group takes `pass` ticks; what enters it in that time fills it.
    let entering = |pass: f64| -> f64 {
        let (mut sum, mut at) = (0.0, time);
        while at < survival.end() {
            sum += survival.at(at);
            at += pass;
        }
        inflow * sum
    };
    let (mut short, mut long) = (survival.end() / 2000.0, survival.end());
    let pass = if long * entering(long) + immortal < rest {
        match entering(long) {
            flow if flow > 0.0 => (rest - immortal) / flow,
            _ => f64::INFINITY,
        }
    } else {
        for _ in 0..30 {
            let middle = (short + long) / 2.0;
            if middle * entering(middle) + immortal < rest {
                short = middle;
            } else {
                long = middle;
            }
        }
        long
    };
    let enters = entering(pass.min(survival.end()));
    let from_before = inflow * survival.at(time);
    let own = enters - from_before + immortal / pass;
    let all = enters + immortal / pass;
    valid.push(if all > 0.0 { own / all } else { 0.0 });
    Some(Prediction {
        valid,
        copies: copies + own,
    })
}

/// A further group must bring so much of the write amplification.
const WORTH: f64 = 0.005;

/// The best chain of up to `groups` groups that a search finds: groups are added one by one, in front of the last, at the
/// best of a row of sizes; after each, all sizes are varied in turn until nothing gets better.
pub(super) fn search(survival: &Survival, space: Space, groups: usize) -> Option<(Vec<f64>, Prediction)> {
    let mut best = (Vec::new(), predict(survival, space, &[])?);
    for _ in 1..groups {
        let mut found: Option<(Vec<f64>, Prediction)> = None;
        let try_shares = |shares: Vec<f64>, found: &mut Option<(Vec<f64>, Prediction)>| -> bool {
            let fits = shares.iter().all(|&share| share >= space.least) && shares.iter().sum::<f64>() < 0.95;
            let Some(prediction) = fits.then(|| predict(survival, space, &shares)).flatten() else {
                return false;
            };
            let better = found.as_ref().is_none_or(|(_, least)| prediction.copies < least.copies);
            if better {
                *found = Some((shares, prediction));
            }
            better
        };
        let mut share = space.least;
        while share < 0.95 {
            let mut shares = best.0.clone();
            shares.push(share);
            try_shares(shares, &mut found);
            share *= 1.5;
        }
        let mut rounds = 0;
        while let Some((shares, _)) = found.clone() {
            let mut better = false;
            for at in 0..shares.len() {
                for factor in [0.67, 0.85, 1.18, 1.5] {
                    let mut varied = found.as_ref().map_or_else(Vec::new, |(shares, _)| shares.clone());
                    varied[at] *= factor;
                    better |= try_shares(varied, &mut found);
                }
            }
            rounds += 1;
            if !better || rounds == 8 {
                break;
            }
        }
        match found {
            Some(found) if 1.0 + found.1.copies < (1.0 + best.1.copies) * (1.0 - WORTH) => best = found,
            _ => break,
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exponential intervals with the means of each class: `(share of writes, mean)`.
    fn exponential(classes: &[(f64, f64)], longest: u64) -> Survival {
        let mut intervals = Intervals::new(50, longest);
        for &(share, mean) in classes {
            for step in 0..100_000 {
                let uniform = (f64::from(step) + 0.5) / 100_000.0;
                let interval = -mean * uniform.ln();
                for _ in 0..(share * 10.0).round() as u32 {
                    intervals.add(interval as u64);
                }
            }
        }
        intervals.survival()
    }

    fn space(all: f64) -> Space {
        Space {
            all,
            live: 10_000.0,
            inflow: 1.0,
            least: 0.01,
        }
    }

    /// One group under uniform writes is a FIFO log: 2.364 and 4.016 at an over-provisioning of 0.30 and 0.15.
    #[test]
    fn a_chain_of_one_under_uniform_writes_is_a_fifo_log() {
        let survival = exponential(&[(1.0, 10_000.0)], 100_000);
        for (all, waf) in [(13_000.0, 2.364), (11_500.0, 4.016)] {
            let copies = predict(&survival, space(all), &[]).unwrap().copies;
            assert!((copies + 1.0 - waf).abs() < 0.02 * waf, "{copies}");
        }
        let (shares, _) = search(&survival, space(11_500.0), 5).unwrap();
        assert!(shares.is_empty(), "uniform writes have nothing to part: {shares:?}");
    }

    /// A first group that a version leaves after 1000 ticks, with intervals of 500 and 2000 in halves: half is valid.
    #[test]
    fn the_first_group_by_hand() {
        let mut intervals = Intervals::new(100, 10_000);
        (0..500).for_each(|_| {
            intervals.add(450);
            intervals.add(1950);
        });
        let survival = intervals.survival();
        let prediction = predict(&survival, space(20_000.0), &[0.05]).unwrap();
        assert!((prediction.valid[0] - 0.5).abs() < 1e-9, "{prediction:?}");
        // The immortal rest of 10,000 - 1,200 units and what lives to 1,950 pass through the last group.
        assert!(prediction.copies > 0.5 && prediction.copies < 1.5, "{prediction:?}");
        assert!(
            predict(&survival, space(10_000.0), &[0.05]).is_none(),
            "no room for what is valid"
        );
    }

    /// 90 % of the writes to 10 % of the data: several groups are far better than one.
    #[test]
    fn a_search_parts_two_classes() {
        let survival = exponential(&[(0.9, 1111.0), (0.1, 90_000.0)], 400_000);
        let one = predict(&survival, space(11_500.0), &[]).unwrap();
        let (shares, several) = search(&survival, space(11_500.0), 5).unwrap();
        assert!(!shares.is_empty() && several.valid.len() == shares.len() + 1);
        assert!(
            1.0 + several.copies < 0.7 * (1.0 + one.copies),
            "{one:?} {several:?} {shares:?}"
        );
    }
}
