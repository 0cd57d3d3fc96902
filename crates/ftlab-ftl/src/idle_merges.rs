//! What deduplication does in idle moments: stored units are read and hashed, and merged with others of the same content.

use crate::backend::{Backend, Cause, Class, FlashOp, FlashOpKind, Notice, Ticket};
use crate::dedup::{Idle, IdleWork, Merged};
use crate::ftl::Ftl;
use crate::idle_copies::MOST_AT_ONCE;
use crate::indirection::Of;
use crate::mapping::Why;
use crate::record::{Entry, Target};
use crate::replication::Event;
use ftlab_core::{LaneId, Lpn};

impl<B: Backend> Ftl<B> {
    /// If some lane is idle, does what the dedup policy wants; then looks again after the same time.
    pub(crate) fn merge_when_idle(&mut self) {
        let idle_ns = self.roles.dedup.as_ref().and_then(|policy| policy.idle_ns());
        let Some(idle_ns) = idle_ns else { return };
        if (0..self.layout.lanes).any(|lane| self.lane_is_idle(LaneId(lane), idle_ns)) {
            self.merge();
        }
        self.backend.arm(idle_ns, Notice::IdleMerge);
    }

    /// Without time, an idle moment comes after so many host units.
    #[inline(always)]
    pub(crate) fn merge_when_due(&mut self) {
        if !B::TIMED && self.roles.merge_at.is_some_and(|at| self.tick >= at) {
            self.merge_now();
        }
    }

    #[cold]
    fn merge_now(&mut self) {
        let every = self.roles.dedup.as_ref().and_then(|policy| policy.idle_units());
        self.roles.merge_at = every.map(|every| self.tick + every.max(1));
        self.merge();
    }

    fn merge(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let idle = Idle {
                now: self.now(),
                ends: self.config.logical_units,
                indirection: &self.indirection,
            };
            let Some(policy) = self.roles.dedup.as_mut().filter(|_| !self.end_of_life) else {
                return;
            };
            self.roles.works.clear();
            match policy.when_idle(&idle, &mut self.roles.works) {
                None => return,
                Some(IdleWork::Examine { lpn }) => self.examine(lpn),
                Some(IdleWork::Merge { lpn, into }) => self.merge_unit(lpn, into),
            }
        }
    }

    /// Reads the stored unit of `lpn`; the works that were asked for begin when it has been read.
    fn examine(&mut self, lpn: Lpn) {
        if lpn.0 >= self.config.logical_units {
            return;
        }
        let mut slots = std::mem::take(&mut self.roles.slots);
        slots.clear();
        match self.record.entry(lpn).target() {
            Target::Vpn(vpn) => slots.extend(self.indirection.first_slot(vpn)),
            _ => self.places_into(self.record.entry(lpn), &mut slots),
        }
        slots.sort_unstable_by_key(|slot| slot.0);
        slots.dedup_by_key(|slot| self.layout.page_of(*slot));
        let mut reads = std::mem::take(&mut self.roles.programs);
        reads.clear();
        for &slot in &slots {
            let page = self.layout.page_of(slot);
            if self.being_filled(page) {
                continue;
            }
            self.counts.dedup_page_reads += 1;
            if !B::TIMED {
                self.assert_written(page);
                continue;
            }
            let op = FlashOp {
                kind: FlashOpKind::Read,
                class: Class::Gc,
                cause: Cause::Gc,
                page,
                bytes: self.layout.geometry.unit_bytes,
                ticket: Ticket::NONE,
                notice: None,
            };
            reads.push(self.backend.issue(op, &[]));
        }
        if B::TIMED && !slots.is_empty() {
            for work in &self.roles.works {
                self.backend.compute(work.engine, work.ns, &reads, Ticket::NONE);
            }
        }
        (self.roles.slots, self.roles.programs) = (slots, reads);
    }

    /// Maps `lpn` to what lies at `into`, as far as both hold something.
    fn merge_unit(&mut self, lpn: Lpn, into: Of) {
        let other = match into {
            Of::Lpn(other) if other.0 >= self.config.logical_units => return,
            Of::Lpn(other) => self.record.entry(other),
            Of::Vpn(vpn) if self.indirection.is_used(vpn) && self.indirection.first_slot(vpn).is_some() => {
                Entry::vpn(vpn)
            }
            Of::Vpn(_) => return,
        };
        let own = match lpn.0 < self.config.logical_units {
            true => self.record.entry(lpn),
            false => return,
        };
        if own == Entry::UNMAPPED || other == Entry::UNMAPPED || own == other {
            return;
        }
        assert!(
            self.holds_the_same(own, other),
            "{lpn:?} is merged with {into:?}, which holds something else"
        );
        if !self.plain_mapping {
            self.look_up(0, lpn.0..lpn.0 + 1, lpn.0 + 1, Why::HostWrite, Ticket::NONE);
        }
        // A collection for the look-up may have merged it.
        if self.record.entry(lpn).as_slot().is_some() {
            self.tell_replication(Event::Gone(Of::Lpn(lpn)));
        }
        if self.share(lpn, into, Ticket::NONE) {
            if !self.plain_mapping {
                self.map_changed(0, lpn.0, Ticket::NONE);
            }
            self.tell_merged(Merged::WhenIdle);
        }
        self.map_ready.clear();
        self.write_full_journal_page();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Counting;
    use crate::config::{BufferConfig, FtlConfig, GcConfig, PoolScope, Survivors};
    use crate::request::HostRequest;
    use ftlab_core::geometry::PlaneOrder;
    use ftlab_core::{Geometry, IoContext, Layout, OpKind, PolicySpec, ReclaimKind};

    fn caftl() -> Ftl<Counting> {
        let geometry = Geometry {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks: 8,
            pages: 8,
            page_bytes: 512,
            unit_bytes: 512,
            oob_bytes: 16,
        };
        let order = PlaneOrder::parse("CWDP").unwrap();
        let layout = Layout::new(geometry, ReclaimKind::Block, order).unwrap();
        let named = PolicySpec::named;
        let config = FtlConfig {
            logical_units: 16,
            mapping: named("page"),
            placement: named("none"),
            victim: named("greedy"),
            wear: named("none"),
            allocation: named("round_robin"),
            dedup: PolicySpec::parse("caftl:entries=0,crc=false,switch=false,idle_units=1000").unwrap(),
            replication: named("none"),
            gc: GcConfig {
                pool: PoolScope::Lane,
                hard: 1,
                soft: 1,
                preemptible: false,
                step_units: 4,
                background: false,
                idle_ns: 0,
                survivors: Survivors::Shared,
            },
            buffer: BufferConfig {
                policy: named("none"),
                capacity_units: 0,
                power_loss_protected: true,
            },
            erase_limit: None,
            map_cache_bytes: 0,
            share_loads: true,
            checkpoint_units: 0,
            seed: 1,
            verify: true,
        };
        Ftl::new(layout, config).unwrap()
    }

    fn write(ftl: &mut Ftl<Counting>, lpn: u32, contents: &[u64]) {
        let context = IoContext {
            contents,
            content_bytes: 512,
            ..IoContext::NONE
        };
        let request = HostRequest {
            context: &context,
            ..HostRequest::whole(OpKind::Write, Lpn(lpn), contents.len() as u32)
        };
        ftl.admit(&request, Ticket::NONE);
    }

    fn merged(ftl: &Ftl<Counting>) -> f64 {
        let reports = ftl.policy_reports();
        let figures = reports.iter().flat_map(|(_, figures)| figures);
        figures
            .filter(|(name, _)| *name == "merged")
            .map(|(_, count)| *count)
            .sum()
    }

    /// Unit 4 passes with its request, whose sample (9) is new, and holds what unit 0 does. In an idle moment the two become one value;
    /// without a number for it nothing is merged, and nothing is counted as merged.
    #[test]
    fn what_no_number_is_left_for_is_not_merged() {
        for runs_out in [false, true] {
            let mut ftl = caftl();
            write(&mut ftl, 0, &[7]);
            write(&mut ftl, 4, &[7, 9]);
            while runs_out && ftl.indirection.create().is_some() {}
            ftl.merge();
            let is_one = ftl.record.entry(Lpn(0)) == ftl.record.entry(Lpn(4));
            assert_eq!((is_one, merged(&ftl)), (!runs_out, f64::from(u8::from(!runs_out))));
        }
    }
}
