//! Units that a collection need not move, as the dedup policy finds their contents elsewhere: they are merged with what lies there.

use ftlab_core::{Lpn, Slot};

use crate::backend::{Backend, Cause, Ticket};
use crate::dedup::Merged;
use crate::ftl::Ftl;
use crate::indirection::Of;
use crate::record::{Entry, Target};
use crate::replication::Event;

impl<B: Backend> Ftl<B> {
    /// Asks the dedup policy about the valid units among `count` slots from `first` on.
    pub(super) fn merge_collected(&mut self, first: Slot, count: u32) {
        if !self
            .roles
            .dedup
            .as_ref()
            .is_some_and(|policy| policy.may_merge_collected())
        {
            return;
        }
        let mut collected = std::mem::take(&mut self.roles.collected);
        collected.clear();
        self.record.for_each_valid(first, count, |slot| {
            let lpn = self.record.owner(slot).as_lpn();
            collected.extend(lpn.map(|lpn| (slot, lpn)));
        });
        let mut last_read = None;
        for &(slot, lpn) in &collected {
            // Merging another one may have made a value of it.
            if self.record.entry(lpn) != Entry::slot(slot) {
                continue;
            }
            self.roles.works.clear();
            let Some(policy) = &mut self.roles.dedup else { break };
            let into = policy.when_collected(lpn, &mut self.roles.works);
            if B::TIMED {
                for work in &self.roles.works {
                    self.backend.compute(work.engine, work.ns, &[], Ticket::NONE);
                }
            }
            let Some(into) = into else { continue };
            self.merge_instead_of_moving(slot, lpn, into);
            // What is left of the page is read when it is moved.
            let page = self.layout.page_of(slot);
            if last_read != Some(page) && !self.holds_valid(page) {
                self.read_for_gc(page, &[slot.0], Cause::Gc);
                last_read = Some(page);
            }
        }
        self.roles.collected = collected;
    }

    fn holds_valid(&self, page: u32) -> bool {
        let (first, mut holds) = (Slot(page * self.layout.units_per_page), false);
        self.record
            .for_each_valid(first, self.layout.units_per_page, |_| holds = true);
        holds
    }

    /// Maps `lpn`, whose unit lies in `slot`, to what lies at `into`. The map's changes are charged with the collection's moves. The
    /// unit stays as it is if no number is left for a value.
    fn merge_instead_of_moving(&mut self, slot: Slot, lpn: Lpn, into: Of) {
        let other = match into {
            Of::Vpn(vpn) => Entry::vpn(vpn),
            Of::Lpn(other) => self.record.entry(other),
        };
        assert!(
            self.holds_the_same(Entry::slot(slot), other),
            "{lpn:?} is merged with {into:?}, which holds something else"
        );
        let vpn = match (other.target(), into) {
            (Target::Vpn(vpn), _) => vpn,
            (Target::Slot(at), Of::Lpn(other)) if other != lpn => {
                let Some(vpn) = self.make_value(other, at) else { return };
                if !self.plain_mapping {
                    self.translation.moved[0].push(other.0);
                    self.translation.moved[1].push(vpn.0);
                }
                vpn
            }
            (target, _) => panic!("{lpn:?} is to be merged with {into:?}, which is {target:?}"),
        };
        self.tell_replication(Event::Gone(Of::Lpn(lpn)));
        self.indirection.acquire(vpn);
        self.repoint(lpn, Entry::vpn(vpn));
        if !self.plain_mapping {
            self.translation.moved[0].push(lpn.0);
        }
        self.tell_merged(Merged::WhenCollected);
    }
}
