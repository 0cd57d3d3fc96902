//! Flexible data placement (FDP): the host names a reclaim unit handle with each write.
//!
//! # Model
//! The drive's lanes are assigned to reclaim groups in turn: lane `l` belongs to group `l mod groups`. Each group has
//! its own free units and victims. A handle refers to one open reclaim unit on each lane of every group. A write goes
//! to the reclaim unit that its placement identifier, a group and a handle, refers to; when that is full the controller
//! takes the next one.
//!
//! With `by = stream` the identifier is the write's stream id: the handle in its low bits, as many as `handles` needs,
//! and the group above them. A write without an identifier (id 0), or with one that names no handle or group of the
//! drive, uses handle 0. The drive then chooses the group by address, 16 mapping units for each group in turn. With
//! `volume`, `pid` or `label` the host gives each tenant a handle: the first tenant that writes gets handle 0, the next
//! one handle 1, and after the last handle the first again. The drive chooses the group.
//!
//! `isolation` says what collection may mix. `initially`: survivors of all handles share one open unit on each lane of
//! their group. `persistently`: survivors of a handle fill units of that handle alone, on a frontier of their own, and
//! static wear levelling does the same. `gc.survivors` has no effect. Figures: writes whose identifier was refused
//! (`invalid_ids`, since the drive was new), and tenants seen. The summary has the statistics of the drive's log page as well
//! (`fdp`: bytes of the host and of the media written, bytes of the media erased, counted from the end of the warm-up). Bytes of
//! the media are those of all causes, maps and checkpoints too; metadata of logical blocks is not modelled.
//!
//! # Parameters
//! * `groups` (count, default 1, a divisor of the drive's lanes): reclaim groups.
//! * `handles` (count, default 8, 1 to 128): reclaim unit handles.
//! * `isolation` (`initially` or `persistently`, default `initially`): what collection may mix.
//! * `by` (`stream`, `volume`, `pid` or `label`, default `stream`): what identifies the owner of a write.
//!
//! # Not modelled
//! Reclaim Unit Handle Update (the host's order to begin a new unit): no record of a trace carries it. Events, which a host reads
//! from the log; namespaces and their lists of handles; groups that differ in size; handles of both kinds of isolation
//! on one drive.
//!
//! # Errors
//! A parameter outside its range. A host that writes more into a group than the group holds ends the run, as a full
//! drive does.
//!
//! # Cost
//! O(1) per write; one open unit per handle and lane, one more per lane for survivors, or with `persistently` one for each
//! handle.
//!
//! # Source
//! NVM Express, TP4146 Flexible Data Placement (2022), part of the NVM Express Base Specification since 2.1 (2024).
//! Handle 0 for writes with an invalid identifier: QEMU's emulated drive (`hw/nvme/ctrl.c`).

use ftlab_core::{Error, LaneId, Layout, Lpn, Result};
use serde::{Deserialize, Serialize};

use super::{HostWrite, PlacementPolicy, Setup, Survivor, learnt};
use crate::frontier::Frontier;
use crate::request::WriteContext;

/// TP4146 has 16 bits for group and handle; so many handles of so many lanes are open units enough.
const MOST_HANDLES: u16 = 128;
/// Mapping units in a row for which the drive chooses the same group.
const RUN_UNITS: u32 = 16;

/// What the survivors of collection may be mixed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    Initially,
    Persistently,
}

/// What says whose a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Stream,
    Volume,
    Pid,
    Label,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub groups: u16,
    pub handles: u16,
    pub isolation: Isolation,
    pub by: By,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            groups: 1,
            handles: 8,
            isolation: Isolation::Initially,
            by: By::Stream,
        }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    let (groups, handles, lanes) = (params.groups, params.handles, setup.lanes);
    if !(1..=MOST_HANDLES).contains(&handles) {
        return Err(Error::input(format!(
            "placement policy `fdp`: handles = {handles}, expected 1 to {MOST_HANDLES}"
        )));
    }
    if groups == 0 || !lanes.is_multiple_of(u32::from(groups)) || groups > MOST_HANDLES {
        return Err(Error::input(format!(
            "placement policy `fdp`: groups = {groups}, expected a divisor of the drive's {lanes} lanes, at most {MOST_HANDLES}"
        )));
    }
    Ok(Box::new(Fdp {
        params,
        tenants: Vec::new(),
        invalid_ids: 0,
    }))
}

struct Fdp {
    params: Params,
    /// Volumes, processes or labels in the order of their first writes.
    tenants: Vec<u32>,
    invalid_ids: u64,
}

impl Fdp {
    fn group_of_lane(&self, lane: LaneId) -> u16 {
        (lane.0 % u32::from(self.params.groups)) as u16
    }

    /// Frontiers that handles refer to.
    fn referred(&self) -> Frontier {
        self.params.groups * self.params.handles
    }

    /// Group and handle of a stream id; `None` if the drive has none such.
    fn named(&self, id: u16) -> Option<(u16, u16)> {
        let bits = self.params.handles.next_power_of_two().trailing_zeros();
        let (group, handle) = (id >> bits, id & ((1 << bits) - 1));
        (group < self.params.groups && handle < self.params.handles).then_some((group, handle))
    }

    /// The handle of a tenant.
    fn handle_of(&mut self, tenant: u32) -> u16 {
        let known = self.tenants.iter().position(|&known| known == tenant);
        let number = known.unwrap_or_else(|| {
            self.tenants.push(tenant);
            self.tenants.len() - 1
        });
        (number % usize::from(self.params.handles)) as u16
    }

    fn placement_of(&mut self, lpn: Lpn, context: &WriteContext) -> (u16, u16) {
        let tenant = match self.params.by {
            By::Stream if context.stream == 0 => None,
            By::Stream => match self.named(context.stream) {
                Some(named) => return named,
                None => {
                    self.invalid_ids += 1;
                    None
                }
            },
            By::Volume => Some(u32::from(context.volume)),
            By::Pid => context.pid,
            By::Label => context.label.map(u32::from),
        };
        let handle = tenant.map_or(0, |tenant| self.handle_of(tenant));
        let group = lpn.0 / RUN_UNITS % u32::from(self.params.groups);
        (group as u16, handle)
    }
}

impl PlacementPolicy for Fdp {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("invalid_ids", self.invalid_ids as f64),
            ("tenants", self.tenants.len() as f64),
        ]
    }

    fn host_frontiers(&self) -> Frontier {
        self.referred()
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        match self.params.isolation {
            Isolation::Initially => self.params.groups,
            Isolation::Persistently => self.referred(),
        }
    }

    /// A victim is of one group, and with `persistently` of one handle.
    fn survivor_frontiers(&self) -> Frontier {
        1
    }

    fn keeps_survivors_apart(&self) -> bool {
        self.params.isolation == Isolation::Persistently
    }

    fn lanes(&self, frontier: Frontier, layout: &Layout) -> Option<Vec<LaneId>> {
        if self.params.groups == 1 {
            return None;
        }
        let group = match self.params.isolation {
            Isolation::Initially if frontier >= self.referred() => frontier - self.referred(),
            _ => frontier % self.referred() / self.params.handles,
        };
        let lanes = (0..layout.lanes).map(LaneId);
        Some(lanes.filter(|&lane| self.group_of_lane(lane) == group).collect())
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let (group, handle) = self.placement_of(write.lpn, write.context);
        group * self.params.handles + handle
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let referred = self.referred();
        Some(match self.params.isolation {
            Isolation::Initially => referred + self.group_of_lane(survivor.lane),
            Isolation::Persistently => referred + survivor.stream % referred,
        })
    }

    fn save(&self) -> Vec<u8> {
        learnt::save(&self.tenants)
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        self.tenants = learnt::load(saved)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Now;

    fn fdp(groups: u16, handles: u16, by: By) -> Box<dyn PlacementPolicy> {
        let params = Params {
            groups,
            handles,
            by,
            ..Params::default()
        };
        new(params, &mut setup()).unwrap()
    }

    fn setup() -> Setup {
        Setup {
            logical_units: 1000,
            unit_bytes: 4096,
            units_per_ru: 10,
            rus: 200,
            lanes: 4,
            survivors: crate::config::Survivors::Shared,
            seed: 1,
        }
    }

    fn place(policy: &mut dyn PlacementPolicy, lpn: u32, context: WriteContext) -> Frontier {
        policy.host(&HostWrite {
            lpn: Lpn(lpn),
            context: &context,
            since: None,
            dies: None,
            now: Now::default(),
        })
    }

    /// Two groups of three handles: two bits for the handle, so id 1 is handle 1 of group 0, id 4 handle 0 of group 1 (frontier 3),
    /// id 6 its handle 2. Id 3 names no handle, id 8 no group: handle 0 of the group of the address, 16 units each.
    #[test]
    fn a_stream_id_names_group_and_handle() {
        let mut policy = fdp(2, 3, By::Stream);
        let mut of = |lpn, stream| {
            let context = WriteContext {
                stream,
                ..WriteContext::default()
            };
            place(policy.as_mut(), lpn, context)
        };
        assert_eq!([of(0, 1), of(0, 2), of(0, 4), of(0, 6)], [1, 2, 3, 5]);
        assert_eq!([of(15, 0), of(16, 0), of(31, 0), of(32, 0)], [0, 3, 3, 0]);
        assert_eq!([of(0, 3), of(16, 8)], [0, 3]);
        assert_eq!(policy.report()[0], ("invalid_ids", 2.0));
    }

    /// Tenants get handles in the order in which they begin to write; the third of two shares that of the first.
    #[test]
    fn tenants_get_handles_in_turn() {
        let mut policy = fdp(1, 2, By::Pid);
        let mut of = |pid| {
            let context = WriteContext {
                pid,
                ..WriteContext::default()
            };
            place(policy.as_mut(), 0, context)
        };
        let pids = [Some(900), Some(17), Some(900), Some(4), None, Some(17)];
        assert_eq!(pids.map(&mut of), [0, 1, 0, 0, 0, 1]);
        let mut again = fdp(1, 2, By::Pid);
        again.load(&policy.save()).unwrap();
        assert_eq!(again.report()[1], ("tenants", 3.0));
    }

    /// Survivors of two groups of two handles: `initially` one frontier of the group of the lane, `persistently` one of the handle.
    #[test]
    fn isolation_says_where_survivors_go() {
        let mut survivor = Survivor {
            lpn: Some(Lpn(3)),
            vpn: None,
            from: 3,
            opened: 0,
            stream: 3,
            lane: LaneId(1),
            since: None,
            dies: None,
            is_cached: false,
            now: Now::default(),
        };
        let with = |isolation| {
            let params = Params {
                groups: 2,
                handles: 2,
                isolation,
                ..Params::default()
            };
            new(params, &mut setup()).unwrap()
        };
        let mut initially = with(Isolation::Initially);
        assert_eq!(
            (initially.own_survivor_frontiers(), initially.survivor(&survivor)),
            (2, Some(5))
        );
        let mut persistently = with(Isolation::Persistently);
        assert_eq!(
            (persistently.own_survivor_frontiers(), persistently.survivor(&survivor)),
            (4, Some(7))
        );
        (survivor.from, survivor.stream) = (7, 7);
        assert_eq!(persistently.survivor(&survivor), Some(7), "they stay with their own");
    }

    #[test]
    fn parameters_outside_their_range_are_refused() {
        for (groups, handles) in [(1, 0), (1, 129), (0, 8), (3, 8), (8, 8)] {
            let params = Params {
                groups,
                handles,
                ..Params::default()
            };
            assert!(new(params, &mut setup()).is_err(), "{groups} {handles}");
        }
    }
}
