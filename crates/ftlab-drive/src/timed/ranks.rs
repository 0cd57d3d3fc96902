//! A plan's ranks as tables: the best of a set of classes in one look-up.

use ftlab_ftl::Class;

use crate::schedule::Plan;

/// Sets of classes as bits, `1 << class`.
pub(super) type ClassSet = u8;

#[inline(always)]
pub(super) fn bit(class: Class) -> ClassSet {
    1 << class as u8
}

pub(super) const READS: ClassSet = 1 << Class::Mapping as u8 | 1 << Class::HostRead as u8;
pub(super) const INTERNAL: ClassSet = 1 << Class::Gc as u8 | 1 << Class::Erase as u8;

const SETS: usize = 1 << Class::COUNT;

/// The classes of a set that go first.
#[derive(Clone, Copy)]
pub(super) struct First {
    pub classes: ClassSet,
    /// The only one, if there is but one.
    pub only: Option<Class>,
}

/// What a die and a channel need of a [`Plan`] at each decision.
pub(super) struct Ranks {
    /// For each set of non-empty classes, those of the best rank.
    best: [First; SETS],
    /// The same while GC is promoted above host writes.
    promoted: [First; SETS],
    pub channel: [u8; crate::schedule::Phase::COUNT],
    /// Overtaking host writes after which GC is promoted; `u32::MAX` for never.
    pub gc_after: u32,
    pub chip_exclusive: bool,
    pub suspend: bool,
}

impl Ranks {
    pub fn new(plan: &Plan) -> Self {
        let best = table(&plan.class_ranks);
        let mut promoted = best;
        for (set, winners) in promoted.iter_mut().enumerate() {
            let internal = set as ClassSet & INTERNAL;
            if *winners & bit(Class::HostWrite) != 0 && internal != 0 {
                *winners = best[internal as usize];
            }
        }
        Ranks {
            best: best.map(first),
            promoted: promoted.map(first),
            channel: plan.channel_ranks,
            gc_after: plan.gc_after.unwrap_or(u32::MAX),
            chip_exclusive: plan.chip_exclusive,
            suspend: plan.suspend,
        }
    }

    /// The classes of `set` that go first, on a die where `overtaken` host writes in a row went before waiting GC work.
    #[inline(always)]
    pub fn first_of(&self, set: ClassSet, overtaken: u32) -> First {
        let table = if overtaken >= self.gc_after {
            &self.promoted
        } else {
            &self.best
        };
        table[set as usize % SETS]
    }
}

fn first(classes: ClassSet) -> First {
    let only = Class::ALL.into_iter().find(|&class| classes == bit(class));
    First { classes, only }
}

fn table(ranks: &[u8; Class::COUNT]) -> [ClassSet; SETS] {
    let mut best = [0; SETS];
    for (set, winners) in best.iter_mut().enumerate() {
        let members = Class::ALL.into_iter().filter(|&c| set as ClassSet & bit(c) != 0);
        if let Some(least) = members.clone().map(|c| ranks[c as usize]).min() {
            *winners = members.filter(|&c| ranks[c as usize] == least).map(bit).sum();
        }
    }
    best
}
