//! Policies that are in no catalogue: made by the caller, under names of their own, for one call.

use ftlab_core::{Error, Result, error};
use ftlab_drive::config::DriveConfig;
use ftlab_ftl::placement::{self, PlacementPolicy};
use ftlab_ftl::victim::{self, VictimPolicy};
use ftlab_ftl::{Counts, FtlConfig, Overrides};
use serde_json::{Map, Value};

use crate::measure::End;

/// Makes a policy from the parameters that the drive file gives it.
pub type Factory<T> = Box<dyn Fn(&Map<String, Value>) -> Result<Box<T>> + Send + Sync>;

/// Calls what it is given, once, on the same thread.
pub type Around = Box<dyn Fn(&mut (dyn FnMut() + Send)) + Send + Sync>;

/// Members beside those of the catalogues. A drive file names them like any other.
#[derive(Default)]
pub struct Members {
    victims: Vec<(String, Factory<dyn VictimPolicy>)>,
    placements: Vec<(String, Factory<dyn PlacementPolicy>)>,
    around: Option<Around>,
}

impl Members {
    /// Adds a victim policy.
    ///
    /// # Errors
    /// The name is taken.
    pub fn add_victim(&mut self, name: &str, factory: Factory<dyn VictimPolicy>) -> Result<()> {
        refuse_taken(
            "victim",
            name,
            &victim::catalogue().names(),
            self.victims.iter().map(|(known, _)| known),
        )?;
        self.victims.push((name.to_owned(), factory));
        Ok(())
    }

    /// Adds a placement policy.
    ///
    /// # Errors
    /// The name is taken.
    pub fn add_placement(&mut self, name: &str, factory: Factory<dyn PlacementPolicy>) -> Result<()> {
        refuse_taken(
            "placement",
            name,
            &placement::catalogue().names(),
            self.placements.iter().map(|(known, _)| known),
        )?;
        self.placements.push((name.to_owned(), factory));
        Ok(())
    }

    /// Lets `around` call each run whole, from before its first policy is made until after the last is dropped: for what its
    /// members need on the run's thread all that time.
    pub fn surround(&mut self, around: Around) {
        self.around = Some(around);
    }

    /// Carries out `work`, a whole run.
    pub fn carry_out<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let Some(around) = &self.around else { return work() };
        let (mut work, mut done) = (Some(work), None);
        around(&mut || done = work.take().map(|work| work()));
        done.expect("what surrounds a run calls it")
    }

    /// Refuses names that are neither in a catalogue nor here, before anything is built or run.
    pub(crate) fn known(&self, config: &DriveConfig) -> Result<()> {
        let ftl = &config.ftl;
        let mut victims = victim::catalogue().names();
        victims.extend(self.victims.iter().map(|(name, _)| name.as_str()));
        let mut placements = placement::catalogue().names();
        placements.extend(self.placements.iter().map(|(name, _)| name.as_str()));
        for (role, spec, names) in [
            ("victim", &ftl.victim, victims),
            ("placement", &ftl.placement, placements),
            ("mapping", &ftl.mapping, ftlab_ftl::mapping::catalogue().names()),
            ("wear", &ftl.wear, ftlab_ftl::wear::catalogue().names()),
            (
                "allocation",
                &ftl.allocation,
                ftlab_ftl::allocation::catalogue().names(),
            ),
            ("dedup", &ftl.dedup, ftlab_ftl::dedup::catalogue().names()),
            (
                "replication",
                &ftl.replication,
                ftlab_ftl::replication::catalogue().names(),
            ),
            ("buffer", &ftl.buffer.policy, ftlab_ftl::buffer::catalogue().names()),
            ("schedule", &config.schedule, ftlab_drive::schedule::catalogue().names()),
        ] {
            if !names.contains(&spec.name.as_str()) {
                return Err(error::unknown(&format!("{role} policy"), &spec.name, &names));
            }
        }
        Ok(())
    }

    /// Refuses the end of a drive that has lost no unit, if it came because the victim policy given by the caller chose none.
    pub(crate) fn refuse_idle(&self, config: &DriveConfig, counts: &Counts, end: &End) -> Result<()> {
        let name = &config.ftl.victim.name;
        if *end != End::WornOut || counts.retired > 0 || !self.victims.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        Err(Error::input(format!(
            "victim policy `{name}`: chose no unit when room was needed, so the drive could not go on; expected one of those that are \
             closed"
        )))
    }

    /// The members that `config` names, made for one drive.
    pub(crate) fn overrides(&self, config: &FtlConfig) -> Result<Overrides> {
        let mut overrides = Overrides::default();
        if let Some((_, make)) = self.victims.iter().find(|(name, _)| *name == config.victim.name) {
            overrides.victim = Some(make(&config.victim.params)?);
        }
        if let Some((_, make)) = self.placements.iter().find(|(name, _)| *name == config.placement.name) {
            overrides.placement = Some(make(&config.placement.params)?);
        }
        Ok(overrides)
    }
}

fn refuse_taken<'a>(
    role: &str,
    name: &str,
    catalogue: &[&str],
    mut given: impl Iterator<Item = &'a String>,
) -> Result<()> {
    if catalogue.contains(&name) || given.any(|known| known == name) {
        return Err(Error::input(format!("{role} policy `{name}`: the name is taken")));
    }
    Ok(())
}
