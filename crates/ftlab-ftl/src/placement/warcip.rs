//! WARCIP: writes with similar rewrite intervals are clustered, and clusters split and merge with the load.
//!
//! # Model
//! The rewrite interval of a host write is the time (host units) since the unit was last written, 0 for a first write,
//! plus a penalty. The penalty comes from collection: a survivor records the time since it was written, and its next
//! host write adds it.
//! * **Clusters**: at most `clusters`, each with a centre and a frontier of its own (1 and up). A write goes to the
//!   cluster with the nearest centre. The centre becomes the mean of the intervals that have entered the cluster since
//!   it was last sealed. A cluster is sealed after as many writes as a reclaim unit holds; then the mean begins anew.
//! * **Every `period` seals**: clusters that got less than a reclaim unit of writes since the last time are closed, at
//!   once if they are empty, otherwise when they are sealed next. The last open cluster is never closed, and its mark is
//!   forgotten. If there is a closed cluster, a cluster that got more than half of all writes is split: the new centre
//!   lies half-way to the next higher one. For the highest centre, the next higher one is taken to lie as far above it
//!   as the next lower one lies below (0 if there is none): the new centre is c + (c - lower) / 2. The look comes before
//!   the cluster that was sealed closes; a marked cluster that got a reclaim unit of writes loses its mark.
//! * **Ties** go to the lowest number: of equally near clusters, and of closed ones that a split may open.
//! * **Trims**: a trimmed unit counts as never written. Its next interval is 0, and its penalty is forgotten. A penalty
//!   belongs to the version that was copied: if a write makes room by collecting what it is about to replace, the copy's
//!   penalty is forgotten with it.
//! * **Survivors** go to frontier 0, where preconditioning has placed what it wrote; an overwrite of that is one.
//!
//! # Parameters
//! * `clusters` (count, default 5, 1 to 63).
//! * `period` (seals, default 128).
//!
//! # Not modelled
//! Sealing the reclaim units of a cluster on several lanes one by one: here the writes of the cluster are counted.
//!
//! # Errors
//! Parameters outside their ranges are refused.
//!
//! # Cost
//! O(clusters) a write; 8 bytes a mapping unit (last write, penalty).
//!
//! # Source
//! Yang, Pei and Yang, "WARCIP: write amplification reduction by clustering I/O pages", SYSTOR 2019; all centres at 0 to begin with
//! and the borders of splitting as in the prototype of Wang et al. (SepBIT), FAST 2022.

use ftlab_core::{Error, Lpn, Result};
use serde::{Deserialize, Serialize};

use super::{Asks, Event, Filler, HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::Now;
use crate::frontier::Frontier;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub clusters: u16,
    pub period: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            clusters: 5,
            period: 128,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(1..=63).contains(&params.clusters) || params.period == 0 {
        return Err(Error::input(format!(
            "placement policy `warcip`: clusters = {}, period = {}; expected 1 to 63 and at least 1",
            params.clusters, params.period
        )));
    }
    Ok(Box::new(Warcip {
        clusters: Clusters::new(params.clusters),
        penalties: vec![0; setup.logical_units as usize],
        units_per_ru: u64::from(setup.units_per_ru),
        writing: None,
        params,
    }))
}

struct Warcip {
    params: Params,
    clusters: Clusters,
    penalties: Vec<u32>,
    units_per_ru: u64,
    /// The unit that the host has written last, and when.
    writing: Option<(Lpn, u64)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Clusters {
    each: Vec<Cluster>,
    /// Since the last look at all of them.
    seals: u32,
    splits: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cluster {
    /// `None` while it is closed.
    centre: Option<f64>,
    /// Intervals since it was sealed.
    sum: f64,
    count: u64,
    /// Writes since the last look at all of them.
    writes: u64,
    /// Closes when it is sealed.
    is_closing: bool,
}

impl Clusters {
    fn new(count: u16) -> Self {
        let open = Cluster {
            centre: Some(0.0),
            sum: 0.0,
            count: 0,
            writes: 0,
            is_closing: false,
        };
        Clusters {
            each: vec![open; usize::from(count)],
            seals: 0,
            splits: 0,
        }
    }

    fn nearest(&self, interval: f64) -> usize {
        let distance = |cluster: &Cluster| cluster.centre.map_or(f64::INFINITY, |centre| (centre - interval).abs());
        let all = self.each.iter().map(distance).enumerate();
        all.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(number, _)| number)
    }

    /// Adds an interval to the cluster that is nearest; its number.
    fn add(&mut self, interval: f64, units_per_ru: u64, period: u32) -> usize {
        let number = self.nearest(interval);
        let cluster = &mut self.each[number];
        cluster.sum += interval;
        cluster.count += 1;
        cluster.writes += 1;
        cluster.centre = Some(cluster.sum / cluster.count as f64);
        if cluster.count >= units_per_ru {
            (cluster.sum, cluster.count) = (0.0, 0);
            self.seals += 1;
            if self.seals >= period {
                self.seals = 0;
                self.split_and_merge(units_per_ru);
            }
            let is_last = self.open() == 1;
            let cluster = &mut self.each[number];
            if std::mem::take(&mut cluster.is_closing) && !is_last {
                cluster.centre = None;
            }
        }
        number
    }

    fn open(&self) -> usize {
        self.each.iter().filter(|cluster| cluster.centre.is_some()).count()
    }

    fn split_and_merge(&mut self, units_per_ru: u64) {
        let all: u64 = self.each.iter().map(|cluster| cluster.writes).sum();
        let mut open = self.open();
        for cluster in &mut self.each {
            let is_idle = cluster.centre.is_some() && cluster.writes < units_per_ru;
            cluster.is_closing = is_idle && cluster.count > 0;
            if is_idle && cluster.count == 0 && open > 1 {
                cluster.centre = None;
                open -= 1;
            }
        }
        let busiest = self.each.iter().position(|cluster| cluster.writes > all / 2);
        let closed = self.each.iter().position(|cluster| cluster.centre.is_none());
        if let (Some(busiest), Some(closed)) = (busiest, closed)
            && let Some(centre) = self.each[busiest].centre
        {
            self.each[closed].centre = Some((centre + self.next_above(centre)) / 2.0);
            self.each[closed].is_closing = false;
            self.splits += 1;
        }
        self.each.iter_mut().for_each(|cluster| cluster.writes = 0);
    }

    /// The next centre above `centre`; of the highest, as far above it as the next one lies below.
    fn next_above(&self, centre: f64) -> f64 {
        let others = || self.each.iter().filter_map(|cluster| cluster.centre);
        let above = others().filter(|&other| other > centre).fold(f64::INFINITY, f64::min);
        if above.is_finite() {
            return above;
        }
        let below = others().filter(|&other| other < centre).fold(0.0, f64::max);
        2.0 * centre - below
    }
}

impl PlacementPolicy for Warcip {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("clusters", self.clusters.open() as f64),
            ("splits", self.clusters.splits as f64),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.params.clusters + 1
    }

    fn filled_by(&self, frontier: Frontier) -> Filler {
        match frontier {
            0 => Filler::Survivors,
            _ => Filler::Host,
        }
    }

    fn survivor_frontiers(&self) -> Frontier {
        1
    }

    fn asks(&self) -> Asks {
        Asks {
            since: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.writing = Some((write.lpn, write.now.tick));
        let penalty = std::mem::take(&mut self.penalties[write.lpn.at()]);
        let interval = write
            .since
            .map_or(0, |since| write.now.tick - since + u64::from(penalty));
        let cluster = self
            .clusters
            .add(interval as f64, self.units_per_ru, self.params.period);
        cluster as Frontier + 1
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        if let (Some(lpn), Some(since)) = (survivor.lpn, survivor.since)
            // The version that the write under way replaces is dead before its penalty could count.
            && self.writing != Some((lpn, survivor.now.tick))
        {
            let age = survivor.now.tick - since;
            self.penalties[lpn.at()] = u32::try_from(age).unwrap_or(u32::MAX);
        }
        Some(0)
    }

    fn on(&mut self, event: Event, _: Now) {
        if let Event::Trimmed(lpn) = event {
            self.penalties[lpn.at()] = 0;
        }
    }

    fn forget(&mut self) {
        self.clusters = Clusters::new(self.params.clusters);
        self.penalties.fill(0);
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&(&self.clusters, &self.penalties))
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        let (clusters, penalties): (Clusters, Vec<u32>) = learnt::load(saved)?;
        if clusters.each.len() != self.clusters.each.len() || penalties.len() != self.penalties.len() {
            return Err("clusters or penalties of another drive".into());
        }
        (self.clusters, self.penalties) = (clusters, penalties);
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        8 * self.penalties.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Survivors;
    use crate::request::WriteContext;
    use ftlab_core::LaneId;

    fn put(policy: &mut dyn PlacementPolicy, since: Option<u64>, tick: u64) {
        policy.host(&HostWrite {
            lpn: Lpn(5),
            context: &WriteContext::default(),
            since,
            dies: None,
            now: Now { tick, time_ns: 0 },
        });
    }

    fn copy(policy: &mut dyn PlacementPolicy, since: u64, tick: u64) {
        policy.survivor(&Survivor {
            lpn: Some(Lpn(5)),
            vpn: None,
            from: 1,
            opened: 0,
            stream: 0,
            lane: LaneId(0),
            since: Some(since),
            dies: None,
            is_cached: false,
            now: Now { tick, time_ns: 0 },
        });
    }

    /// Intervals of a unit that is written at ticks 10, 30 and 70, copied at `copied`: by its write at 30 before that is placed, or at 40.
    fn intervals(copied: u64) -> f64 {
        let mut setup = Setup {
            logical_units: 10,
            unit_bytes: 4096,
            units_per_ru: 100,
            rus: 20,
            lanes: 1,
            survivors: Survivors::Shared,
            seed: 1,
        };
        let params = Params {
            clusters: 1,
            ..Params::default()
        };
        let mut policy = new(params, &mut setup).unwrap();
        put(&mut *policy, None, 10);
        put(&mut *policy, Some(10), 30);
        copy(&mut *policy, if copied == 30 { 10 } else { 30 }, copied);
        put(&mut *policy, Some(30), 70);
        let (clusters, _): (Clusters, Vec<u32>) = learnt::load(&policy.save()).unwrap();
        clusters.each[0].sum
    }

    #[test]
    fn a_penalty_belongs_to_the_version_that_was_copied() {
        assert_eq!(intervals(40), 20.0 + 40.0 + 10.0);
        assert_eq!(intervals(30), 20.0 + 40.0);
    }
}
