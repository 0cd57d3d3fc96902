//! How long what is written stays valid, over the sampled pages. Memory: 38 histograms of 4 KiB.

use ftlab_core::bins::last;

use super::inspection::share;
use super::octaves::{EIGHTHS, FINE, Octaves, eighth_of};
use super::strata::{HOT_FROM, Scale, Strata};
use super::{Curve, LifetimeClass};

const CLASSES: usize = 32;

#[derive(Default)]
pub struct Lifetimes {
    /// Cold, and hot.
    overwritten: [u64; 2],
    trimmed: [u64; 2],
    ticks: Strata,
    nanoseconds: Strata,
    alive: Strata,
    classes: [Octaves; CLASSES],
}

/// A life that ended.
#[derive(Clone, Copy)]
pub struct Life {
    pub ticks: u64,
    pub nanoseconds: u64,
    /// Writes of the page when it began, that one included.
    pub writes: u32,
    pub trimmed: bool,
}

impl Lifetimes {
    #[inline]
    pub fn end(&mut self, life: Life, weight: u64) {
        let hot = life.writes >= HOT_FROM;
        let ended = if life.trimmed {
            &mut self.trimmed
        } else {
            &mut self.overwritten
        };
        ended[usize::from(hot)] += weight;
        self.ticks.add(hot, life.ticks, weight);
        self.nanoseconds.add(hot, life.nanoseconds, weight);
        self.classes[life.writes.max(1).ilog2() as usize].add(life.ticks, weight);
    }

    /// Data of this age, from a page's write of this number, is still valid at the end of the trace.
    pub fn alive(&mut self, ticks: u64, writes: u32, weight: u64) {
        self.alive.add(writes >= HOT_FROM, ticks, weight);
    }

    pub fn finish(&self, page_writes: u64, timed: bool) -> super::Lifetimes {
        let total = |of: fn(&Strata) -> &Octaves| of(&self.ticks).total() + of(&self.alive).total();
        let scale = Scale::new(page_writes, total(|s| &s.cold), total(|s| &s.hot));
        let both = |parts: [u64; 2]| parts[0] + scale.of(parts[1]);
        let [ticks, nanoseconds, alive] = [&self.ticks, &self.nanoseconds, &self.alive].map(|s| s.together(scale));
        let (overwritten, trimmed) = (both(self.overwritten), both(self.trimmed));
        let lives = overwritten + trimmed + alive.total();
        let (survival_ticks, median) = survival(&ticks, &alive);
        let mut seconds = Curve::new("lifetime_s", "write_share");
        if timed && lives > 0 {
            seconds = nanoseconds.by_octave(("lifetime_s", "write_share"), lives as f64, 1e-9);
        }
        super::Lifetimes {
            page_writes,
            overwritten_share: share(overwritten, lives),
            trimmed_share: share(trimmed, lives),
            alive_share: share(alive.total(), lives),
            ticks: ticks.by_octave(("lifetime_ticks", "write_share"), lives as f64, 1.0),
            percentiles_ticks: ticks.percentiles(1.0),
            seconds,
            percentiles_s: if timed {
                nanoseconds.percentiles(1e-9)
            } else {
                Default::default()
            },
            survival_ticks,
            median_survival_ticks: median,
            classes: self.classes(scale),
        }
    }

    /// The classes from 16 writes on are the hot lives.
    fn classes(&self, scale: Scale) -> Vec<LifetimeClass> {
        let weight = |heat: usize| {
            let total = self.classes[heat].total();
            if 1 << heat >= HOT_FROM { scale.of(total) } else { total }
        };
        let ended: u64 = (0..CLASSES).map(weight).sum();
        let classes = self.classes.iter().enumerate().filter(|(_, class)| class.total() > 0);
        classes
            .map(|(heat, class)| LifetimeClass {
                from_writes: 1 << heat,
                ended_share: share(weight(heat), ended).unwrap_or(0.0),
                p10_ticks: class.quantile(0.1),
                p50_ticks: class.quantile(0.5),
                p90_ticks: class.quantile(0.9),
            })
            .collect()
    }
}

/// Kaplan and Meier's product over the bins, ends before losses within a bin, at the ends of eighths of octaves; and the first
/// bin's end at or below half.
fn survival(ended: &Octaves, alive_at_end: &Octaves) -> (Curve, Option<f64>) {
    let mut curve = Curve::new("lifetime_ticks", "alive_share");
    let in_bin = |counts: &Octaves, bin: usize| counts.bins().get(bin).copied().unwrap_or(0);
    let bins = ended.bins().len().max(alive_at_end.bins().len());
    let mut at_risk = ended.total() + alive_at_end.total();
    let (mut alive, mut median) = (1.0, None);
    let mut last_eighth = None;
    for bin in 0..bins {
        let (ends, losses) = (in_bin(ended, bin), in_bin(alive_at_end, bin));
        if ends + losses == 0 {
            continue;
        }
        alive *= (at_risk - ends) as f64 / at_risk as f64;
        at_risk -= ends + losses;
        let eighth = eighth_of(bin);
        if last_eighth.replace(eighth) == Some(eighth) {
            curve.x.pop();
            curve.y.pop();
        }
        curve.push(last::<EIGHTHS>(eighth) as f64, alive);
        if alive <= 0.5 && median.is_none() {
            median = Some(last::<FINE>(bin) as f64);
        }
    }
    (curve, median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ends_and_one_alive() {
        let mut lifetimes = Lifetimes::default();
        for (ticks, writes, trimmed) in [(1, 1, false), (4, 2, false), (6, 3, true)] {
            let life = Life {
                ticks,
                nanoseconds: ticks * 1_000_000_000,
                writes,
                trimmed,
            };
            lifetimes.end(life, 1);
        }
        lifetimes.alive(5, 2, 1);
        let figures = lifetimes.finish(4, true);
        assert_eq!(
            (figures.overwritten_share, figures.trimmed_share, figures.alive_share),
            (Some(0.5), Some(0.25), Some(0.25))
        );
        assert_eq!(figures.percentiles_ticks.p50, Some(4.0));
        assert_eq!(
            (figures.ticks.x, figures.ticks.y),
            (vec![1.0, 2.0, 4.0], vec![0.25, 0.0, 0.5])
        );
        // Four at risk, one ends at 1: 3/4. One ends at 4: 1/2. One is lost at 5, so at 6 the last one at risk ends: 0.
        assert_eq!(figures.survival_ticks.x, [1.0, 4.0, 5.0, 6.0]);
        assert_eq!(figures.survival_ticks.y, [0.75, 0.5, 0.5, 0.0]);
        assert_eq!(figures.median_survival_ticks, Some(4.0));
        let classes: Vec<_> = figures
            .classes
            .iter()
            .map(|c| (c.from_writes, c.p50_ticks.unwrap().round()))
            .collect();
        assert_eq!(classes.len(), 2);
        assert_eq!(classes[0], (1, 1.0));
        assert_eq!(classes[1].0, 2);
        assert!((figures.percentiles_s.p99.unwrap() / 6.0 - 1.0).abs() < 0.004);
    }
}
