//! Wear levelling: which free unit is written next, and when cold data is moved off a little-worn unit.

use ftlab_core::{Catalogue, RuId, member};

use crate::units::Units;

pub mod dynamic;
pub mod none;
pub mod remaining_life;
#[path = "static.rs"]
pub mod r#static;

pub trait WearPolicy: Send {
    /// Free units are taken least worn first instead of in the order of their erasure.
    fn least_worn_first(&self) -> bool;

    /// Whether `due` ever names a unit: such a drive has a frontier of its own for what is moved.
    fn moves_cold_data(&self) -> bool {
        false
    }

    /// Called after each erase of a unit of `pool`: the closed unit whose data should move to a worn unit now.
    fn due(&mut self, _units: &Units, _pool: usize) -> Option<RuId> {
        None
    }

    /// What the policy has counted, for a saved state.
    fn save(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes over what [`WearPolicy::save`] wrote, on a drive with so many pools.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    fn load(&mut self, _saved: &[u8], _pools: usize) -> Result<(), String> {
        Ok(())
    }
}

/// What a wear policy is made with.
#[derive(Clone, Debug, Default)]
pub struct Setup {}

pub fn catalogue() -> Catalogue<dyn WearPolicy, Setup> {
    let catalogue = member!(Catalogue::new("wear"), none, dynamic, remaining_life);
    catalogue.with("static", r#static::new, include_str!("static.rs"))
}
