//! Victim selection: which reclaim unit is collected next.

use ftlab_core::{Catalogue, RuId, Stream, member};

use crate::Now;
use crate::units::{Closed, Orders};

pub mod cost_benefit;
pub mod d_choices;
pub mod fifo;
pub mod greedy;
pub mod random;
pub mod windowed_greedy;

/// Chooses the next unit to reclaim (a block or a superblock: the policy cannot tell).
pub trait VictimPolicy: Send {
    /// Figures of the policy's own for the summary, since the drive was new.
    fn report(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Which orders of the closed units the mechanism must keep for `choose`.
    fn orders(&self) -> Orders {
        Orders::default()
    }

    /// `None`: nothing worth reclaiming now.
    fn choose(&mut self, closed: &mut Closed<'_>, now: Now) -> Option<RuId>;
}

/// What a victim policy is made with.
pub struct Setup {
    /// The random stream of the role.
    pub random: Stream,
}

pub fn catalogue() -> Catalogue<dyn VictimPolicy, Setup> {
    member!(
        Catalogue::new("victim"),
        greedy,
        cost_benefit,
        fifo,
        random,
        d_choices,
        windowed_greedy
    )
}
