//! What `rr_ssd`, `random` and `static` have in common: copies of the values that are read most, and reads redirected to the copy whose
//! die has the least to do. They differ in the chip that gets a copy.

use std::collections::VecDeque;

use ftlab_core::{Error, LaneId, Result};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::chips::{Chips, Choice};
use super::copying::share_out;
use super::days::Days;
use super::popularity::{MOST, Popularity};
use super::{
    CopyPlan, Event, Idle, IdleWork, MAX_COPIES, Of, ReadOf, ReadPlan, ReplicationPolicy, Setup, WriteOf, shown,
};
use crate::indirection::Vpn;
use crate::{Now, learnt};

/// When copies are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    #[default]
    EndOfDay,
    OnLine,
}

/// Copies of a value that was read so often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopiesBy {
    /// 1 + round(count × (chips − 1) / 63), of the most that one value may have.
    #[default]
    Linear,
    /// count + 1.
    Count,
    /// As many as there are chips, or one value may have.
    All,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub when: When,
    pub mirror: bool,
    pub copies: CopiesBy,
    pub alpha: f64,
    pub workload_units: Option<u64>,
    pub day_s: f64,
    pub day_units: Option<u64>,
    pub idle_us: f64,
    pub idle_units: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            when: When::EndOfDay,
            mirror: true,
            copies: CopiesBy::Linear,
            alpha: 0.0,
            workload_units: None,
            day_s: 86_400.0,
            day_units: None,
            idle_us: 10_000.0,
            idle_units: 1024,
        }
    }
}

pub(super) fn new(name: &str, params: Params, choice: Choice, setup: &Setup) -> Result<Box<dyn ReplicationPolicy>> {
    let fault = |text: String| Error::input(format!("replication policy `{name}`: {text}"));
    if !(0.0..=1e6).contains(&params.alpha) {
        return Err(fault(format!(
            "alpha = {}, expected 0 to 1000000 %",
            shown(params.alpha)
        )));
    }
    if !(1e-3..=1e9).contains(&params.day_s) {
        return Err(fault(format!(
            "day_s = {}, expected 0.001 to 1e9 seconds",
            shown(params.day_s)
        )));
    }
    if !(1.0..=1e12).contains(&params.idle_us) {
        return Err(fault(format!(
            "idle_us = {}, expected 1 to 1e12 µs",
            shown(params.idle_us)
        )));
    }
    if params.day_units == Some(0) || params.workload_units == Some(0) || params.idle_units == 0 {
        return Err(fault(
            "day_units, workload_units or idle_units = 0, expected at least 1".to_owned(),
        ));
    }
    let days = Days {
        time_ns: (params.day_s * 1e9) as u64,
        units: params.day_units.unwrap_or(u64::from(setup.logical_units)),
        by_units: params.day_units.is_some(),
        began_ns: 0,
        began_tick: 0,
    };
    Ok(Box::new(Selective {
        days,
        choice,
        chips: Chips::new(setup),
        survey_every: u64::from(setup.logical_units / 64).max(1024),
        params,
        popularity: Popularity::default(),
        due: false,
        drops: Vec::new(),
        wanted: VecDeque::new(),
        stale: FxHashSet::default(),
        ordered: None,
        asked: 0,
        budget: 0,
        short: None,
        surveyed_at: None,
        done: Done::default(),
    }))
}

/// Figures since the drive was new.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    days: u64,
    copied: u64,
    dropped: u64,
    popular: u64,
}

/// What is to have further copies.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    of: Of,
    count: u8,
    /// Copies beyond the first.
    further: u32,
}

struct Selective {
    params: Params,
    days: Days,
    choice: Choice,
    chips: Chips,
    popularity: Popularity,
    /// A day is over, and nobody has looked yet at what its reads were.
    due: bool,
    /// Values that lose so many copies, the next one last.
    drops: Vec<(Vpn, u32)>,
    wanted: VecDeque<Wanted>,
    /// Of what is wanted: overwritten or gone since.
    stale: FxHashSet<Of>,
    /// The copy that was ordered last and has not been made yet.
    ordered: Option<LaneId>,
    /// Copies beyond the first that there may be.
    /// Space for copies that was asked for when it was last looked at, and what there is of it.
    asked: u64,
    budget: u64,
    /// The same when room last was short.
    short: Option<(u64, u64)>,
    /// The tick of the last survey (on line).
    surveyed_at: Option<u64>,
    survey_every: u64,
    done: Done,
}

/// What a saved state holds; orders that are under way are not among it.
#[derive(Serialize, Deserialize)]
struct Saved {
    popularity: Popularity,
    began_ns: u64,
    began_tick: u64,
}

impl Selective {
    /// Copies beyond the first that a value should have after `count` reads.
    fn wants(&self, count: u8) -> u32 {
        let all = self.chips.count().min(MAX_COPIES) as u32 - 1;
        let count = u32::from(count);
        match self.params.copies {
            CopiesBy::All => all * u32::from(count > 0),
            CopiesBy::Count => count.min(all),
            // Rounded half up.
            CopiesBy::Linear => (2 * count * all + u32::from(MOST)).div_euclid(2 * u32::from(MOST)),
        }
    }

    /// The space for copies that is asked for: what deduplication saves, and `alpha` % of the workload's size.
    fn asked(&self, idle: &Idle<'_>) -> u64 {
        let workload = match (self.params.workload_units, self.params.alpha > 0.0) {
            (_, false) => 0,
            (Some(units), true) => units,
            (None, true) => idle.held_units(),
        };
        let more = (workload as f64 * self.params.alpha / 100.0) as u64;
        idle.saved_units() + more
    }

    /// Sets the limit: what is asked for, as far as the drive has room.
    fn limit(&mut self, idle: &Idle<'_>) {
        self.asked = self.asked(idle);
        self.budget = self.asked.min(idle.room);
    }

    /// More copies are wanted than there is room for, though not more than were asked for.
    fn is_short(&mut self) {
        if self.asked > self.budget {
            self.short = Some((self.asked, self.budget));
        }
    }

    /// A day's reads become orders, and all counters zero.
    fn plan(&mut self, idle: &Idle<'_>) {
        self.chips.survey(idle, &self.popularity);
        self.limit(idle);
        let ranking = self.popularity.ranking();
        self.done.popular = ranking.iter().filter(|&&(count, _)| self.wants(count) > 0).count() as u64;
        let wanted: u64 = ranking.iter().map(|&(count, _)| u64::from(self.wants(count))).sum();
        if wanted > self.budget {
            self.is_short();
        }
        let existing: Vec<(Vpn, u32)> = idle.copied().map(|(vpn, copies)| (vpn, copies as u32 - 1)).collect();
        let shares = share_out(&ranking, |count| self.wants(count), self.budget, &existing);
        self.wanted = shares
            .copies
            .into_iter()
            .map(|(count, of, further)| Wanted { of, count, further })
            .collect();
        self.drops = shares.drops;
        self.drops.reverse();
        self.stale.clear();
        self.popularity.clear();
    }

    fn next_drop(&mut self, idle: &Idle<'_>, lanes: &mut Vec<LaneId>) -> Option<IdleWork> {
        while let Some((vpn, copies)) = self.drops.last_mut() {
            let of = Of::Vpn(*vpn);
            idle.lanes_of(of, lanes);
            if *copies == 0 || lanes.len() < 2 || self.stale.contains(&of) {
                self.drops.pop();
                continue;
            }
            *copies -= 1;
            self.done.dropped += 1;
            let copy = (lanes.len() - 1) as u8;
            return Some(IdleWork::Drop { of, copy });
        }
        None
    }

    /// The next copy to make. On line, and without a mirror, only on idle lanes.
    fn next_copy(&mut self, idle: &Idle<'_>, idle_ns: Option<u64>, lanes: &mut Vec<LaneId>) -> Option<IdleWork> {
        if let Some(lane) = self.ordered.take() {
            self.chips.refused(lane);
        }
        while let Some(&Wanted { of, further, .. }) = self.wanted.front() {
            if idle.further >= self.budget.min(idle.room) {
                self.is_short();
                self.wanted.clear();
                break;
            }
            idle.lanes_of(of, lanes);
            if lanes.is_empty() || lanes.len() as u32 > further || self.stale.contains(&of) {
                self.wanted.pop_front();
                continue;
            }
            match self.chips.choose(&mut self.choice, lanes, idle, idle_ns) {
                Some(lane) => {
                    self.ordered = Some(lane);
                    return Some(IdleWork::Copy { of, lane: Some(lane) });
                }
                // Without a free chip nothing helps; without an idle one, waiting may.
                None if idle_ns.is_none() || self.chips.choose(&mut self.choice, lanes, idle, None).is_none() => {
                    self.wanted.pop_front();
                }
                None => return None,
            }
        }
        self.stale.clear();
        None
    }

    /// On line: looks at chips and space every so often.
    fn look(&mut self, idle: &Idle<'_>) {
        let tick = idle.now.tick;
        if self
            .surveyed_at
            .is_none_or(|at| tick < at || tick >= at + self.survey_every)
        {
            self.surveyed_at = Some(tick);
            self.chips.survey(idle, &self.popularity);
            self.limit(idle);
            self.done.popular = self.popularity.ranking().len() as u64;
            // What nobody has read today or the day before makes room for what is wanted, and no more of it than that takes.
            let mut missing = (idle.further + self.wanted.len() as u64).saturating_sub(self.budget);
            self.drops.clear();
            for (vpn, copies) in idle.copied() {
                if missing == 0 {
                    break;
                }
                if !self.popularity.is_read(Of::Vpn(vpn)) {
                    let dropped = missing.min(copies as u64 - 1);
                    missing -= dropped;
                    self.drops.push((vpn, dropped as u32));
                }
            }
        }
    }
}

impl ReplicationPolicy for Selective {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("days", self.done.days as f64),
            ("copied", self.done.copied as f64),
            ("dropped", self.done.dropped as f64),
            ("popular", self.done.popular as f64),
            ("budget", self.budget as f64),
        ]
    }

    fn note(&self) -> Option<String> {
        let (asked, room) = self.short?;
        Some(format!(
            "copies: what deduplication saves and `alpha` are {asked} units, and the drive has room for {room} beside its \
             logical units: more copies were wanted, for which a larger `ftl.op_ratio` makes room"
        ))
    }

    fn write(&mut self, _: &WriteOf<'_>) -> CopyPlan {
        CopyPlan::ONE
    }

    fn read(&mut self, read: &ReadOf<'_>, plan: &mut ReadPlan) {
        let of = read.vpn.map_or(Of::Lpn(read.lpn), Of::Vpn);
        let (before, count) = self.popularity.read(of);
        if self.params.when == When::OnLine && self.wants(count) > self.wants(before) {
            self.wanted.push_back(Wanted {
                of,
                count,
                further: self.wants(count),
            });
        }
        if read.copies.len() > 1 {
            let least = (0..read.copies.len()).min_by_key(|&copy| read.copies[copy].load.queued);
            plan.order.extend(least.map(|copy| copy as u8));
        }
    }

    fn goes_offline(&mut self, now: Now) -> bool {
        let over = self.days.over(now);
        self.done.days += u64::from(over);
        match self.params.when {
            When::EndOfDay => self.due |= over,
            When::OnLine if over => self.popularity.next_day(),
            When::OnLine => {}
        }
        over && self.params.mirror && self.params.when == When::EndOfDay
    }

    fn has_idle_work(&self) -> bool {
        match self.params.when {
            When::EndOfDay => self.due || !self.drops.is_empty() || !self.wanted.is_empty(),
            When::OnLine => !self.wanted.is_empty(),
        }
    }

    fn idle_ns(&self) -> Option<u64> {
        if self.chips.count() == 1 {
            return None;
        }
        let idle_ns = (self.params.idle_us * 1e3) as u64;
        match (self.params.when, self.params.mirror) {
            (When::EndOfDay, true) => Some(self.days.look_ns()),
            _ => Some(idle_ns),
        }
    }

    fn idle_units(&self) -> Option<u64> {
        (self.chips.count() > 1).then_some(self.params.idle_units)
    }

    fn when_idle(&mut self, idle: &Idle<'_>) -> Option<IdleWork> {
        let spread = self.params.when == When::OnLine || !self.params.mirror;
        if self.params.when == When::OnLine {
            self.look(idle);
        } else if std::mem::take(&mut self.due) {
            self.plan(idle);
        }
        let mut lanes = Vec::new();
        let idle_ns = spread.then_some((self.params.idle_us * 1e3) as u64);
        self.next_drop(idle, &mut lanes)
            .or_else(|| self.next_copy(idle, idle_ns, &mut lanes))
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Copied { of, lane, .. } => {
                self.ordered = None;
                self.done.copied += 1;
                let count = self.wanted.front().filter(|wanted| wanted.of == of);
                self.chips.copied(lane, count.map_or(0, |wanted| wanted.count));
            }
            Event::Became { lpn, vpn } => self.popularity.became(lpn, vpn),
            Event::Gone(of) => {
                self.popularity.gone(of);
                if !self.wanted.is_empty() || !self.drops.is_empty() {
                    self.stale.insert(of);
                }
            }
        }
    }

    fn forget(&mut self) {
        self.popularity.clear();
        self.wanted.clear();
        self.drops.clear();
        self.stale.clear();
        self.ordered = None;
        self.surveyed_at = None;
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&Saved {
            popularity: self.popularity.clone(),
            began_ns: self.days.began_ns,
            began_tick: self.days.began_tick,
        })
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let saved: Saved = learnt::load(saved)?;
        self.popularity = saved.popularity;
        (self.days.began_ns, self.days.began_tick) = (saved.began_ns, saved.began_tick);
        Ok(())
    }
}
