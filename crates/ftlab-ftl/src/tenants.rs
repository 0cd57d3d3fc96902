//! Write amplification by tenant: whose each logical unit is, and what its survivors cost.

use ftlab_core::{Lpn, OpKind};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::backend::Cause;
use crate::request::{HostRequest, WriteContext};

/// What says whose a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantsBy {
    Stream,
    Volume,
    Pid,
    Label,
}

/// What one tenant wrote and what the drive wrote for it since the counts were reset, in mapping units. Padding, translation pages,
/// further copies and what several tenants share (deduplicated units) are nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TenantCounts {
    /// Number of the stream, volume, process or label; `None`: written by nobody that is known, such as what preconditioning has placed.
    pub tenant: Option<u32>,
    pub host_writes: u64,
    /// Programmed for its writes.
    pub programmed: u64,
    /// Moved by collection, and by static wear levelling.
    pub survivors: u64,
    pub wear_moves: u64,
}

impl TenantCounts {
    /// Units programmed for the tenant per unit that it wrote; of nobody it would charge what preconditioning has placed to writes that
    /// name no tenant.
    pub fn waf(&self) -> Option<f64> {
        let all = self.programmed + self.survivors + self.wear_moves;
        (self.host_writes > 0 && self.tenant.is_some()).then(|| all as f64 / self.host_writes as f64)
    }
}

/// Number of the tenant that nobody knows.
const NOBODY: u16 = 0;

/// Tenants, and the last one to write each logical unit: 2 bytes a unit.
pub(crate) struct Tenants {
    by: TenantsBy,
    of: Vec<u16>,
    numbers: FxHashMap<u32, u16>,
    counts: Vec<TenantCounts>,
}

impl Tenants {
    pub fn new(by: TenantsBy, logical_units: u32) -> Self {
        Tenants {
            by,
            of: vec![NOBODY; logical_units as usize],
            numbers: FxHashMap::default(),
            counts: vec![TenantCounts::default()],
        }
    }

    /// The host has written `request`.
    pub fn written(&mut self, request: &HostRequest<'_>) {
        debug_assert_eq!(request.op, OpKind::Write);
        let number = self.number(&request.write_context());
        self.counts[usize::from(number)].host_writes += u64::from(request.units);
    }

    /// The unit `lpn` has been stored, for which `programmed` units were programmed.
    pub fn stored(&mut self, lpn: Lpn, context: &WriteContext, programmed: u64) {
        let number = self.number(context);
        self.of[lpn.at()] = number;
        self.counts[usize::from(number)].programmed += programmed;
    }

    /// The unit that `lpn` owns (`None`: several may) has been moved.
    #[inline]
    pub fn moved(&mut self, lpn: Option<Lpn>, cause: Cause) {
        let number = lpn.map_or(NOBODY, |lpn| self.of[lpn.at()]);
        let counts = &mut self.counts[usize::from(number)];
        match cause {
            Cause::Wear => counts.wear_moves += 1,
            _ => counts.survivors += 1,
        }
    }

    /// Of those that have written, been moved or programmed since the last reset: the unknown one first, the others by number.
    pub fn counts(&self) -> Vec<TenantCounts> {
        let is_blank =
            |counts: &TenantCounts| counts.host_writes + counts.programmed + counts.survivors + counts.wear_moves == 0;
        let mut all: Vec<TenantCounts> = self.counts.iter().copied().filter(|counts| !is_blank(counts)).collect();
        all.sort_by_key(|counts| counts.tenant);
        all
    }

    pub fn reset_counts(&mut self) {
        for counts in &mut self.counts {
            *counts = TenantCounts {
                tenant: counts.tenant,
                ..TenantCounts::default()
            };
        }
    }

    /// The number of whoever wrote with `context`; nobody's for those beyond 65,535.
    fn number(&mut self, context: &WriteContext) -> u16 {
        let tenant = match self.by {
            // The default stream is one, too.
            TenantsBy::Stream => Some(u32::from(context.stream)),
            TenantsBy::Volume => Some(u32::from(context.volume)),
            TenantsBy::Pid => context.pid,
            TenantsBy::Label => context.label.map(u32::from),
        };
        let Some(tenant) = tenant else { return NOBODY };
        if let Some(&number) = self.numbers.get(&tenant) {
            return number;
        }
        let Ok(number) = u16::try_from(self.counts.len()) else {
            return NOBODY;
        };
        self.numbers.insert(tenant, number);
        self.counts.push(TenantCounts {
            tenant: Some(tenant),
            ..TenantCounts::default()
        });
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_no_write_amplification_and_the_default_stream_has() {
        let counts = |tenant| TenantCounts {
            tenant,
            host_writes: 2,
            programmed: 2,
            survivors: 1,
            wear_moves: 0,
        };
        assert_eq!([counts(None).waf(), counts(Some(0)).waf()], [None, Some(1.5)]);
        let mut tenants = Tenants::new(TenantsBy::Stream, 4);
        tenants.stored(Lpn(0), &WriteContext::default(), 1);
        // What preconditioning has placed is not the default stream's.
        tenants.moved(Some(Lpn(1)), Cause::Gc);
        let survivors: Vec<_> = tenants.counts().iter().map(|of| (of.tenant, of.survivors)).collect();
        assert_eq!(survivors, [(None, 1), (Some(0), 0)]);
    }

    #[test]
    fn a_unit_belongs_to_who_wrote_it_last() {
        let mut tenants = Tenants::new(TenantsBy::Pid, 4);
        let of = |pid| WriteContext {
            pid,
            ..WriteContext::default()
        };
        tenants.stored(Lpn(0), &of(Some(70)), 1);
        tenants.stored(Lpn(1), &of(Some(5)), 1);
        tenants.moved(Some(Lpn(0)), Cause::Gc);
        tenants.stored(Lpn(0), &of(Some(5)), 1);
        tenants.stored(Lpn(3), &of(None), 1);
        for lpn in [Some(Lpn(0)), Some(Lpn(2)), None] {
            tenants.moved(lpn, Cause::Gc);
        }
        tenants.moved(Some(Lpn(1)), Cause::Wear);
        let figures = |counts: &TenantCounts| (counts.tenant, counts.programmed, counts.survivors, counts.wear_moves);
        let all: Vec<_> = tenants.counts().iter().map(figures).collect();
        assert_eq!(all, [(None, 1, 2, 0), (Some(5), 2, 1, 1), (Some(70), 1, 1, 0)]);
        tenants.reset_counts();
        assert_eq!(tenants.counts(), []);
        tenants.moved(Some(Lpn(1)), Cause::Gc);
        assert_eq!(tenants.counts()[0].tenant, Some(5));
    }
}
