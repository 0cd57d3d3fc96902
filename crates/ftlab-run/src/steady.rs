//! A drive in its steady state, for those who drive it themselves: the disks of an array that samples are read from.

use ftlab_core::{BlockDevice, Result};
use ftlab_drive::front;
use ftlab_ftl::Ftl;

use crate::spec::DriveSpec;
use crate::workload;

/// The preset `name`, full of data and aged as theory has it for uniform overwrites; where the mapping is not by pages, filled once.
pub fn steady_drive(name: &str, seed: u64) -> Result<Box<dyn BlockDevice>> {
    let drive = DriveSpec {
        name: name.to_owned(),
        toml: None,
        set: Vec::new(),
    };
    let mut config = workload::load_drive(&drive)?;
    config.ftl.seed = seed;
    let mut ftl = Ftl::new(config.layout.clone(), config.ftl.clone())?;
    if config.ftl.mapping.name == "page" {
        ftl.precondition_theory();
    } else {
        ftl.precondition_fill();
    }
    ftl.reset_counts();
    Ok(Box::new(front::timed_device(&config, ftl)?))
}
