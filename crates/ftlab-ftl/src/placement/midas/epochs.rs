//! What MiDAS does once an epoch: in its middle groups that behave otherwise than predicted are merged, at its end better sizes are
//! searched.

use super::Midas;
use super::model::{self, Intervals, Origins, Seen, Space, Survival};

/// Intervals without which there is no search.
const LEAST_SEEN: u64 = 200;
/// Difference of valid shares that makes a group irregular.
const IRREGULAR: f64 = 0.1;
/// When the hot group is worth having, and epochs until it is tried again.
const HOT_VALID: f64 = 0.2;
const HOT_TRAFFIC: f64 = 0.15;
const HOT_PAUSE: u32 = 4;
/// Sizes of the hot group that are tried, each this share of the one before.
const HOT_SIZES: i32 = 9;
const HOT_STEP: f64 = 0.7;

impl Midas {
    pub(super) fn end_epoch(&mut self, tick: u64) {
        self.learnt.epochs += 1;
        let seen: u64 = self.learnt.intervals.iter().map(|intervals| intervals.seen).sum();
        if seen < LEAST_SEEN || self.learnt.valid == 0 {
            self.learnt.begun = tick;
        } else {
            self.judge_hot_group();
            self.reconfigure(tick);
            // What is kept is predicted anew: the intervals have changed, or the hot group.
            let hot_size = match self.learnt.is_hot_used {
                true => self.learnt.hot_size,
                false => 0.0,
            };
            let (survival, space, _) = self.as_modelled(hot_size, tick);
            let in_chain = space.all / self.space();
            let shares: Vec<f64> = self.learnt.shares.iter().map(|share| share / in_chain).collect();
            self.learnt.predicted = match model::predict(&survival, space, &shares) {
                Some(prediction) => prediction.valid[..shares.len()].to_vec(),
                None => {
                    self.learnt.shares.clear();
                    self.learnt.is_graded = self.params.graded;
                    Vec::new()
                }
            };
        }
        let hot = self.learnt.hot_writes as f64 / self.learnt.host as f64;
        let (size, epoch) = (self.learnt.hot_size * self.space(), self.epoch as f64);
        let learnt = &mut self.learnt;
        if learnt.valid > 0 {
            learnt.hot_stay = (learnt.hot_stay * (size / hot.max(0.01))).sqrt().min(epoch);
        }
        learnt.intervals.iter_mut().for_each(Intervals::clear);
        learnt.opened = tick;
        learnt.settled = tick + self.epoch / 3;
        learnt.is_checked = false;
        (learnt.host, learnt.hot_writes, learnt.copies) = (0, 0, 0);
        learnt.collected.fill((0, 0));
    }

    /// In the middle of an epoch: the first group that behaves otherwise than predicted is merged with all later ones.
    pub(super) fn check(&mut self) {
        self.learnt.is_checked = true;
        let differs = |(number, predicted): (usize, &f64)| {
            let measured = self.valid_share(number + 1);
            measured.is_some_and(|measured| (measured - predicted).abs() > IRREGULAR)
        };
        let predicted = &self.learnt.predicted;
        let Some(first) = (0..predicted.len()).find(|&at| differs((at, &predicted[at]))) else {
            return;
        };
        self.merge_from(first);
    }

    /// The drive with a hot group that has this share, or none, at the end of an epoch: what lives how long in the chain, its
    /// space, and copies from the hot group for each unit that the host writes.
    fn as_modelled(&self, hot_size: f64, tick: u64) -> (Survival, Space, f64) {
        let learnt = &self.learnt;
        let hot_share = learnt.hot_writes as f64 / learnt.host as f64;
        let hot_units = hot_size * self.space();
        let origins = Origins {
            cold: &learnt.intervals[0],
            hot: &learnt.intervals[1],
            hot_share,
            seen: Seen {
                window: (tick - learnt.opened) as f64,
                known: (tick - learnt.begun) as f64,
            },
        };
        let survival = Survival::new(&origins, f64::from(self.placed), hot_units);
        let space = Space {
            all: self.space() - hot_units,
            least: 2.0 * f64::from(self.units_per_ru) / learnt.closed as f64,
        };
        let hot_copies = match hot_size {
            0.0 => 0.0,
            _ => hot_share * survival.hot_valid,
        };
        (survival, space, hot_copies)
    }

    fn reconfigure(&mut self, tick: u64) {
        let learnt = &self.learnt;
        let measured = 1.0 + learnt.copies as f64 / learnt.host as f64;
        let is_worth = learnt.hot_writes as f64 >= HOT_TRAFFIC * learnt.host as f64;
        let may_be_hot = self.params.hot && learnt.hot_pause == 0 && is_worth;
        let least = 2.0 * f64::from(self.units_per_ru) / learnt.closed as f64;
        let mut sizes = vec![0.0];
        if may_be_hot {
            let steps = (0..HOT_SIZES).map(|step| self.params.hot_share * HOT_STEP.powi(step));
            sizes.extend(steps.filter(|&size| size >= least));
        }
        // The best chain without a hot group and with one: predicted write amplification, share of the hot group, shares.
        let mut best: [Option<(f64, f64, Vec<f64>)>; 2] = [None, None];
        for hot_size in sizes {
            let (survival, space, hot_copies) = self.as_modelled(hot_size, tick);
            if hot_size > 0.0 && survival.hot_valid > HOT_VALID {
                continue;
            }
            let in_chain = space.all / self.space();
            let found = model::search(&survival, space, usize::from(self.params.groups));
            if let Some((shares, prediction)) = found {
                let waf = 1.0 + hot_copies + prediction.copies;
                let of_kind = &mut best[usize::from(hot_size > 0.0)];
                if of_kind.as_ref().is_none_or(|&(least, ..)| waf < least) {
                    *of_kind = Some((waf, hot_size, shares.iter().map(|share| share * in_chain).collect()));
                }
            }
        }
        // The counters are to find what a hot group of the best size would hold.
        if let Some((_, hot_size, _)) = best[1]
            && !self.learnt.is_hot_used
        {
            self.learnt.hot_size = hot_size;
        }
        let best = best
            .into_iter()
            .flatten()
            .min_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((waf, hot_size, shares)) = best
            && waf < measured
        {
            let is_hot_used = hot_size > 0.0;
            if is_hot_used != self.learnt.is_hot_used {
                (self.learnt.is_hot_used, self.learnt.hot_ages) = (is_hot_used, (0, 0));
                self.learnt.handed[0] = tick;
            }
            // What the last group had belongs to the new last one.
            let before = self.last();
            self.learnt.handed[before..].fill(tick);
            (self.learnt.is_resized, self.learnt.is_graded) = (true, false);
            if is_hot_used {
                self.learnt.hot_size = hot_size;
            }
            self.learnt.shares = shares;
            self.learnt.applied += 1;
        }
    }

    /// Gives up a hot group that is not worth its space.
    fn judge_hot_group(&mut self) {
        let traffic = self.learnt.hot_writes as f64 / self.learnt.host as f64;
        let is_worth = self.valid_share(0).is_none_or(|valid| valid <= HOT_VALID) && traffic >= HOT_TRAFFIC;
        let learnt = &mut self.learnt;
        if learnt.is_hot_used && !is_worth {
            (learnt.is_hot_used, learnt.hot_ages, learnt.hot_pause) = (false, (0, 0), HOT_PAUSE);
        } else {
            learnt.hot_pause = learnt.hot_pause.saturating_sub(1);
        }
    }
}
