//! What replication does in idle moments: copies are made and given up.

use crate::backend::{Backend, Class, Need, Notice, OpId, Ticket};
use crate::ftl::Ftl;
use crate::indirection::Vpn;
use crate::record::Target;
use crate::replicas::{Further, lane_load};
use crate::replication::{Idle, IdleWork, Loads, Of, ReplicationPolicy};
use ftlab_core::{LaneId, Lpn};

/// Answers of the policy that are carried out in one idle moment.
pub(crate) const MOST_AT_ONCE: u32 = 64;

/// Answers that are carried out before the drive waits for them, while a mirror serves the host.
const MOST_OFFLINE: u32 = 4096;

impl<B: Backend> Ftl<B> {
    /// Starts the clocks of what is done in idle time; called when the drive starts, and again after a power cut.
    pub fn start_idle_work(&mut self) {
        if self.roles.replication.is_some() {
            self.count_further();
        }
        if let Some(idle_ns) = self.roles.replication.as_ref().and_then(|policy| policy.idle_ns()) {
            self.backend.arm(idle_ns, Notice::IdleCopy);
        }
        if let Some(idle_ns) = self.roles.dedup.as_ref().and_then(|policy| policy.idle_ns()) {
            self.backend.arm(idle_ns, Notice::IdleMerge);
        }
    }

    /// If a mirror serves the host, or some lane is idle, does what the replication policy wants; then looks again after the same
    /// time.
    pub(crate) fn copy_when_idle(&mut self) {
        let now = self.now();
        let Some(policy) = &mut self.roles.replication else {
            return;
        };
        let Some(idle_ns) = policy.idle_ns() else { return };
        let (offline, has_work) = (policy.goes_offline(now), policy.has_idle_work());
        if offline && !self.is_offline() {
            self.go_offline();
        } else if has_work
            && (0..self.layout.lanes).any(|lane| self.lane_is_idle(LaneId(lane), idle_ns))
            && !self.replication_rests(idle_ns)
        {
            self.work_when_idle(Some(idle_ns));
        }
        self.backend.arm(idle_ns, Notice::IdleCopy);
    }

    /// Nothing has happened since the last look, and the policy needs none. What became idle at that very moment may have been seen busy.
    fn replication_rests(&mut self, idle_ns: u64) -> bool {
        let now = self.now();
        (0..self.layout.lanes).all(|lane| self.lane_is_idle(LaneId(lane), idle_ns + 1))
            && self.roles.replication.as_mut().is_some_and(|policy| policy.rests(now))
    }

    /// Without time, an idle moment comes after so many host units.
    pub(crate) fn copy_when_due(&mut self) {
        if B::TIMED || self.roles.idle_at.is_none_or(|at| self.tick < at) {
            return;
        }
        let now = self.now();
        let Some(policy) = &mut self.roles.replication else {
            return;
        };
        self.roles.idle_at = policy.idle_units().map(|every| self.tick + every.max(1));
        if policy.goes_offline(now) {
            self.go_offline();
        } else if policy.has_idle_work() {
            self.work_when_idle(None);
        }
    }

    fn go_offline(&mut self) {
        self.roles.offline_since = Some(self.backend.now_ns());
        self.counts.offline_times += 1;
        self.work_offline();
    }

    /// Carries out the next orders behind the mirror; the host comes back when there are none and all are in flash.
    pub(crate) fn work_offline(&mut self) {
        let Some(since_ns) = self.roles.offline_since else {
            return;
        };
        let mut programs = std::mem::take(&mut self.roles.programs);
        loop {
            programs.clear();
            let mut more = false;
            for _ in 0..MOST_OFFLINE {
                more = !self.end_of_life && self.do_when_idle(None, &mut programs);
                if !more {
                    break;
                }
            }
            programs.retain(|&program| !self.backend.is_done(program));
            if !programs.is_empty() {
                let notice = Some(Notice::Offline);
                self.backend.join(&programs, Need::All, Ticket::NONE, notice);
                break;
            }
            if !more {
                self.roles.offline_since = None;
                self.counts.offline_ns += self.backend.now_ns() - since_ns;
                break;
            }
        }
        self.roles.programs = programs;
    }

    /// Copies beyond the first of each value.
    pub fn further_copies(&self) -> u64 {
        self.roles.further
    }

    /// Whether a mirror serves the host at present.
    pub fn is_offline(&self) -> bool {
        self.roles.offline_since.is_some()
    }

    fn work_when_idle(&mut self, idle_ns: Option<u64>) {
        let mut programs = std::mem::take(&mut self.roles.programs);
        programs.clear();
        for _ in 0..MOST_AT_ONCE {
            if self.end_of_life || !self.do_when_idle(idle_ns, &mut programs) {
                break;
            }
        }
        self.roles.programs = programs;
    }

    /// Carries out one order of the policy, whose program is added to `programs`; false if it has none.
    fn do_when_idle(&mut self, idle_ns: Option<u64>, programs: &mut Vec<OpId>) -> bool {
        match self.ask_with_drive(|policy, idle| policy.when_idle(idle)) {
            None => return false,
            Some(IdleWork::Copy { of, lane }) => {
                if let Some(lane) = lane.or_else(|| self.idle_lane_for(of, idle_ns)) {
                    let further = Further {
                        ticket: Ticket::NONE,
                        of,
                        lane,
                        class: Class::Gc,
                        from_flash: true,
                    };
                    programs.extend(self.program_further(&further).map(|(_, program)| program));
                }
            }
            Some(IdleWork::Drop { of, copy }) => self.drop_copy(of, copy),
        }
        true
    }

    /// Gives up a copy that the policy names, so that there is room for another; false if there is none to be given up.
    pub(crate) fn give_up_for_another(&mut self) -> bool {
        while self.roles.further >= self.roles.room {
            let further = self.roles.further;
            if let Some(IdleWork::Drop { of, copy }) = self.ask_with_drive(|policy, idle| policy.when_full(idle)) {
                self.drop_copy(of, copy);
            }
            if self.roles.further == further {
                return false;
            }
        }
        true
    }

    /// Asks the policy something for which it looks at the drive.
    fn ask_with_drive(
        &mut self,
        ask: impl FnOnce(&mut dyn ReplicationPolicy, &Idle<'_>) -> Option<IdleWork>,
    ) -> Option<IdleWork> {
        let (layout, backend) = (&self.layout, &self.backend);
        let idle = Idle {
            loads: Loads {
                of: &|lane| lane_load(backend, layout, lane),
                lanes: layout.lanes,
            },
            now: self.now(),
            record: &self.record,
            indirection: &self.indirection,
            layout,
            units: &self.units,
            further: self.roles.further,
            room: self.roles.room,
        };
        let policy = self.roles.replication.as_mut();
        policy.and_then(|policy| ask(policy.as_mut(), &idle))
    }

    /// An idle lane that has no copy of `of`: the next one after the first copy's.
    fn idle_lane_for(&self, of: Of, idle_ns: Option<u64>) -> Option<LaneId> {
        let slots = match self.vpn_of(of) {
            Some(vpn) => self.indirection.copies_of(vpn).collect(),
            None => match of {
                Of::Lpn(lpn) => self.record.entry(lpn).as_slot().into_iter().collect(),
                Of::Vpn(_) => Vec::new(),
            },
        };
        let lane_of = |slot| self.layout.lane_of(self.layout.ru_of(slot));
        let first = lane_of(*slots.first()?);
        let lanes = self.layout.lanes;
        let after = (1..lanes).map(|step| LaneId((first.0 + step) % lanes));
        let mut free = after.filter(|&lane| slots.iter().all(|&slot| lane_of(slot) != lane));
        free.find(|&lane| idle_ns.is_none_or(|idle_ns| self.lane_is_idle(lane, idle_ns)))
    }

    /// The VPN behind which `of` has copies.
    fn vpn_of(&self, of: Of) -> Option<Vpn> {
        let vpn = match of {
            Of::Lpn(Lpn(lpn)) if lpn >= self.config.logical_units => None,
            Of::Lpn(lpn) => match self.record.entry(lpn).target() {
                Target::Vpn(vpn) => Some(vpn),
                Target::Slot(_) | Target::Unmapped | Target::Chunks(_) => None,
            },
            Of::Vpn(vpn) => Some(vpn),
        };
        vpn.filter(|&vpn| self.indirection.copy_count(vpn) > 0)
    }

    /// Gives up one of several copies: the one that is named, unless another lies on a die that has failed.
    fn drop_copy(&mut self, of: Of, copy: u8) {
        let Some(vpn) = self.vpn_of(of) else { return };
        let mut slots = std::mem::take(&mut self.roles.slots);
        self.indirection.copies_into(vpn, &mut slots);
        let named = slots.get(usize::from(copy)).filter(|_| slots.len() > 1);
        let slot = named.map(|&named| {
            slots
                .iter()
                .copied()
                .find(|&slot| self.is_slot_lost(slot))
                .unwrap_or(named)
        });
        if let Some(slot) = slot {
            self.indirection.drop_copy(vpn, slot);
            self.roles.further -= 1;
            self.invalidate(slot);
            self.vpn_changed(vpn, Ticket::NONE);
        }
        self.roles.slots = slots;
    }
}
