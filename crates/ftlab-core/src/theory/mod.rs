//! What theory says a correct drive must measure: closed forms and mean-field limits.
//!
//! # Model
//! `U` logical units on `T` raw ones, utilisation `rho = U/T`, uniform random one-unit overwrites of a full drive, no trim,
//! reclaim units of `b` mapping units, victims chosen one at a time when space is needed. All values are mean-field
//! limits (many reclaim units); a drive of 2,000 units reads 1 to 2 % high because open and free units eat spare: take
//! those off first, with [`effective_spare`].
//!
//! # Not modelled
//! Cost-benefit and windowed greedy victims (no closed form at finite `b`), trim, partly written pages.
//!
//! # Cost
//! Microseconds at the sizes of blocks, about 10 ms for a distribution of 2^20 levels. FIFO, random and greedy are exact at
//! every `b`. For d choices the recursion is exact up to 2,048 units; above, write amplification and distribution are
//! extrapolated in `1/b` (they agree with each other within 0.1 % at a spare factor of 2 %, nearer with more spare).
//!
//! # Source
//! FIFO: Xiang and Kurkoski, arXiv 1110.4245; Desnoyers, SYSTOR 2012 ("LRU"). d choices: Van Houdt, SIGMETRICS 2013.
//! Greedy at finite `b`: the mean-field equations of the same model as d goes to infinity (equal to Desnoyers 2012).

mod classes;
mod d_choices;
mod fifo;
mod greedy;
mod queueing;
mod spare;

pub use classes::{Class, SplitPools, fifo_with_classes, hot_cold, static_split};
pub use fifo::{fifo_survival, lambert_w0};
pub use queueing::md1_mean_wait;
pub use spare::{EffectiveSpare, effective_spare};

use crate::catalogue::PolicySpec;

/// Victim policies with a theory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VictimLaw {
    /// Fewest valid units.
    Greedy,
    /// Oldest.
    Fifo,
    Random,
    /// Fewest valid of so many drawn at random. With or without replacement: the difference vanishes as the number of
    /// reclaim units grows.
    DChoices(u32),
}

impl VictimLaw {
    /// The law of a victim policy by its name in drive files; `None` where there is no theory for it.
    ///
    /// `d_choices` without the parameter `d` means `default_d`.
    pub fn of(victim: &PolicySpec, default_d: u32) -> Option<Self> {
        match victim.name.as_str() {
            "greedy" => Some(VictimLaw::Greedy),
            "fifo" => Some(VictimLaw::Fifo),
            "random" => Some(VictimLaw::Random),
            "d_choices" => {
                let d = victim
                    .params
                    .get("d")
                    .map_or(Some(u64::from(default_d)), serde_json::Value::as_u64)?;
                u32::try_from(d).ok().filter(|&d| d > 0).map(VictimLaw::DChoices)
            }
            _ => None,
        }
    }
}

/// Write amplification under uniform random writes at utilisation `rho` (0 to 1, exclusive), `b` units per reclaim unit.
pub fn waf(law: VictimLaw, rho: f64, b: u32) -> f64 {
    check(rho, b);
    match law {
        VictimLaw::Greedy => greedy::waf(rho, b),
        VictimLaw::Fifo => fifo::waf(rho),
        VictimLaw::Random => 1.0 / (1.0 - rho),
        VictimLaw::DChoices(1) => 1.0 / (1.0 - rho),
        VictimLaw::DChoices(d) => d_choices::waf(rho, b, d),
    }
}

/// Shares of reclaim units with 0, 1, ... `b` valid units in steady state: `b + 1` numbers whose sum is 1 and whose mean
/// is `rho · b`.
pub fn valid_distribution(law: VictimLaw, rho: f64, b: u32) -> Vec<f64> {
    check(rho, b);
    match law {
        VictimLaw::Greedy => greedy::distribution(rho, b),
        VictimLaw::Fifo => fifo::distribution(rho, b),
        VictimLaw::Random => d_choices::distribution(rho, b, 1),
        VictimLaw::DChoices(d) => d_choices::distribution(rho, b, d),
    }
}

fn check(rho: f64, b: u32) {
    assert!(
        rho > 0.0 && rho < 1.0 && b > 0,
        "utilisation {rho} of reclaim units of {b} units: outside the theory"
    );
}

#[cfg(test)]
mod tests;
