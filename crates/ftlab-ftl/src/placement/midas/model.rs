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

    /// The share of versions that are alive at each edge of the bins, as far as `seen` tells.
    fn alive(&self, seen: Seen) -> Vec<f64> {
        let all = self.seen.max(1) as f64;
        let mut left = 1.0;
        let mut alive = vec![left];
        for (bin, &count) in self.bins[..self.bins.len() - 1].iter().enumerate() {
            let chances = seen.known - (bin as f64 + 0.5) * self.width as f64;
            if chances < LEAST_CHANCES * seen.window && bin > 0 {
                break;
            }
            left = f64::max(
                left - f64::from(count) / all * f64::max(seen.window / chances, 1.0),
                0.0,
            );
            alive.push(left);
        }
        alive
    }
}

/// When intervals were looked for: a death counts only if the birth was seen. Of long intervals that leaves few, which stand for
/// those that began too early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Ticks in which deaths were looked for.
    pub window: f64,
    /// Ticks since births are known.
    pub known: f64,
}

/// A distribution ends where deaths could be seen in no more than this share of the window.
const LEAST_CHANCES: f64 = 0.1;

/// Where versions come from: those that go to the chain at once, and those that go to the hot group.
pub(super) struct Origins<'a> {
    pub cold: &'a Intervals,
    pub hot: &'a Intervals,
    /// Share of the host writes that is hot.
    pub hot_share: f64,
    pub seen: Seen,
}

/// Versions in the chain, for each unit that the host writes, by the time since they entered it. What gets older than the
/// distribution is long, dies at a constant rate, and makes up for the valid units that the distribution does not explain.
pub(super) struct Survival {
    width: f64,
    alive: Vec<f64>,
    /// Its integral.
    lived: Vec<f64>,
    /// Mean of what is left of the life of a version that has got older than the distribution.
    rest: f64,
    /// Share of the hot group's units that are valid when collected.
    pub hot_valid: f64,
}

impl Survival {
    /// Of a drive of `live` valid units; with a hot group of so many units, which go to the chain when it is given up.
    pub fn new(origins: &Origins<'_>, live: f64, hot_units: f64) -> Self {
        let width = origins.cold.width as f64;
        let (cold, hot) = (origins.cold.alive(origins.seen), origins.hot.alive(origins.seen));
        let share = origins.hot_share;
        let stay = if share > 0.0 { hot_units / share } else { 0.0 };
        let step = |bin: usize| Self::between(&hot, bin as f64 + stay / width);
        let alive: Vec<f64> = (0..cold.len())
            .map(|bin| (1.0 - share) * cold[bin] + share * step(bin))
            .collect();
        let mut area = 0.0;
        let lived: Vec<f64> = std::iter::once(0.0)
            .chain(alive.windows(2).map(|pair| {
                area += (pair[0] + pair[1]) / 2.0 * width;
                area
            }))
            .collect();
        let steps = 64;
        let in_hot: f64 = (0..steps)
            .map(|step| Self::between(&hot, (f64::from(step) + 0.5) / f64::from(steps) * stay / width))
            .sum::<f64>()
            * share
            * stay
            / f64::from(steps);
        let end = alive[alive.len() - 1].max(1e-9);
        Survival {
            width,
            rest: (live - in_hot - area).max(0.0) / end,
            alive,
            lived,
            hot_valid: Self::between(&hot, stay / width),
        }
    }

    fn end(&self) -> f64 {
        self.width * (self.alive.len() - 1) as f64
    }

    fn of_end(&self) -> f64 {
        match self.rest {
            0.0 => 0.0,
            _ => self.alive[self.alive.len() - 1].max(1e-9),
        }
    }

    fn at(&self, time: f64) -> f64 {
        match time - self.end() {
            over if over < 0.0 => Self::between(&self.alive, time / self.width),
            _ if self.rest == 0.0 => 0.0,
            over => self.of_end() * (-over / self.rest).exp(),
        }
    }

    /// Valid units that have been in the chain for longer than `time`.
    fn older(&self, time: f64) -> f64 {
        let all = self.lived[self.lived.len() - 1];
        let long = self.of_end() * self.rest;
        match time - self.end() {
            over if over < 0.0 => all - Self::between(&self.lived, time / self.width) + long,
            _ if self.rest == 0.0 => 0.0,
            over => long * (-over / self.rest).exp(),
        }
    }

    /// The sum of what is alive at `time`, and `pass`, two, three ... times `pass` later.
    fn passes(&self, time: f64, pass: f64) -> f64 {
        let (mut sum, mut at) = (0.0, time);
        while at < self.end() {
            sum += self.at(at);
            at += pass;
        }
        match self.rest {
            0.0 => sum,
            rest => sum + self.at(at) / -(-pass / rest).exp_m1(),
        }
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
    let (mut time, mut copies, mut valid) = (0.0, 0.0, Vec::new());
    for share in shares {
        let before = survival.at(time);
        if before <= 0.0 {
            valid.push(0.0);
            continue;
        }
        time += share * space.all / before;
        let after = survival.at(time);
        valid.push(after / before);
        copies += after;
    }
    let rest = space.all * (1.0 - shares.iter().sum::<f64>());
    if survival.older(time) >= rest {
        return None;
    }
    // One pass of the last group takes `pass` ticks; what enters it in that time fills it.
    let fills = |pass: f64| pass * survival.passes(time, pass) >= rest;
    let (mut short, mut long) = (0.0, survival.end() / 16.0);
    while !fills(long) {
        (short, long) = (long, 2.0 * long);
        if long > LONGEST * survival.end() {
            break;
        }
    }
    for _ in 0..24 {
        let middle = (short + long) / 2.0;
        if middle > survival.end() / 4096.0 && !fills(middle) {
            short = middle;
        } else {
            long = middle;
        }
    }
    let enters = survival.passes(time, long.max(survival.end() / 4096.0));
    let own = enters - survival.at(time);
    valid.push(if enters > 0.0 { own / enters } else { 0.0 });
    Some(Prediction {
        valid,
        copies: copies + own,
    })
}

/// The longest pass that is looked for, as distributions.
const LONGEST: f64 = 1e6;

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
        survival(&intervals)
    }

    /// Of 10,000 valid units, without a hot group, when births have been known for ever.
    fn survival(intervals: &Intervals) -> Survival {
        let origins = Origins {
            cold: intervals,
            hot: &Intervals::new(50, 100),
            hot_share: 0.0,
            seen: Seen {
                window: 1e6,
                known: 1e9,
            },
        };
        Survival::new(&origins, 10_000.0, 0.0)
    }

    fn space(all: f64) -> Space {
        Space { all, least: 0.01 }
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
        let survival = survival(&intervals);
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

    /// 80 % of the writes to a fifth of 10,000 units, intervals seen up to four times those: what outlives them counts in each group.
    #[test]
    fn what_outlives_the_distribution_goes_through_the_chain() {
        let classes = [(0.8, 2_500.0), (0.2, 40_000.0)];
        let survival = exponential(&classes, 40_000);
        let alive = |time: f64| {
            classes
                .iter()
                .map(|(share, mean)| share * (-time / mean).exp())
                .sum::<f64>()
        };
        let prediction = predict(&survival, space(11_500.0), &[0.15, 0.10, 0.08]).unwrap();
        let mut time = 0.0;
        for (at, share) in [0.15, 0.10, 0.08].into_iter().enumerate() {
            let before = alive(time);
            time += share * 11_500.0 / before;
            let expected = alive(time) / before;
            let valid = prediction.valid[at];
            assert!(
                (valid - expected).abs() < 0.01,
                "group {}: {valid} against {expected}",
                at + 1
            );
        }
        // The same with all intervals seen, so that nothing of the last group is left to the tail.
        let all = predict(&exponential(&classes, 400_000), space(11_500.0), &[0.15, 0.10, 0.08]).unwrap();
        assert!(
            (all.copies / prediction.copies - 1.0).abs() < 0.01,
            "{all:?} {prediction:?}"
        );
    }

    /// Births are known since the window began: long intervals are rarely seen, and each counts for several.
    #[test]
    fn a_first_window_is_not_biased() {
        let (mean, window) = (20_000.0, 40_000.0);
        let mut intervals = Intervals::new(100, window as u64);
        for step in 0..400_000u32 {
            let uniform = (f64::from(step) + 0.5) / 400_000.0;
            let interval = -mean * uniform.ln();
            // Births are spread over the window; each death that is seen belongs to a birth long before it or in it.
            let death = f64::from((u64::from(step) * 7919 % 400_000) as u32) / 400_000.0 * window;
            intervals.add(if death >= interval { interval as u64 } else { u64::MAX });
        }
        let seen = Seen { window, known: window };
        let alive = intervals.alive(seen);
        assert!(alive.len() as f64 * 100.0 < 0.92 * window, "{}", alive.len());
        for (bin, &share) in alive.iter().enumerate().step_by(50) {
            let expected = (-(bin as f64) * 100.0 / mean).exp();
            assert!(
                (share - expected).abs() < 0.02,
                "{share} against {expected} after {bin} bins"
            );
        }
    }

    /// Half of the writes are hot and die after 500 ticks, in a hot group that a version leaves after 400 or 800 ticks.
    #[test]
    fn a_hot_group_keeps_from_the_chain_what_dies_in_it() {
        let (mut cold, mut hot) = (Intervals::new(100, 10_000), Intervals::new(100, 10_000));
        (0..500).for_each(|_| {
            cold.add(9_000);
            hot.add(450);
        });
        let of = |hot_units: f64| {
            let seen = Seen {
                window: 1e6,
                known: 1e9,
            };
            let origins = Origins {
                cold: &cold,
                hot: &hot,
                hot_share: 0.5,
                seen,
            };
            let survival = Survival::new(&origins, 6_000.0, hot_units);
            (
                survival.hot_valid,
                survival.at(0.0),
                survival.older(0.0) + hot_units.min(225.0),
            )
        };
        for (hot_units, hot_valid, inflow) in [(200.0, 1.0, 1.0), (400.0, 0.0, 0.5)] {
            let (valid, flow, live) = of(hot_units);
            assert!(
                (valid - hot_valid).abs() < 1e-9 && (flow - inflow).abs() < 1e-9,
                "{valid} {flow}"
            );
            assert!((live - 6_000.0).abs() < 10.0, "valid units of both: {live}");
        }
    }
}
