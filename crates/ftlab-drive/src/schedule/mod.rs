//! Scheduling policies: which waiting work a die takes next, and which die a channel serves next.
//!
//! A policy is asked once, when the drive is built, for a [`Plan`]: ranks and switches that the executor turns into small
//! tables. So a policy costs nothing per operation, and no policy can break the rules of the flash (order within a
//! block, one operation per die, one transfer per channel): those belong to the executor.

pub mod fcfs;
pub mod lockstep;
pub mod out_of_order;
pub mod read_first;

use ftlab_core::{Catalogue, member};
use ftlab_flash::Timing;
use ftlab_ftl::Class;

/// What a die asks its channel for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// A read command with its address.
    ReadCommand,
    /// The data of a finished read.
    DataOut,
    /// A program command with its address and data.
    Program,
    /// An erase command with its address.
    Erase,
}

impl Phase {
    pub const COUNT: usize = 4;

    pub fn name(self) -> &'static str {
        match self {
            Phase::ReadCommand => "read_command",
            Phase::DataOut => "data_out",
            Phase::Program => "program",
            Phase::Erase => "erase",
        }
    }
}

/// The decision of a schedule policy. Lower ranks go first; equal ranks are served in order of readiness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Rank of each [`Class`] in a die's ready queue, 0 to 7.
    pub class_ranks: [u8; Class::COUNT],
    /// Rank of each [`Phase`] on a channel, 0 to 7.
    pub channel_ranks: [u8; Phase::COUNT],
    /// After this many host writes in a row that overtook waiting GC work on a die, one operation of the GC or erase
    /// class goes first. `None`: ranks alone decide.
    pub gc_after: Option<u32>,
    /// A chip (way) with a busy die takes no command for its other dies.
    pub chip_exclusive: bool,
    /// Reads may suspend programs and erases where the flash allows it.
    pub suspend: bool,
}

/// What a policy may look at when it makes its plan.
pub struct Setup {
    pub timing: Timing,
}

/// Decides the order of work in dies and on channels.
pub trait SchedulePolicy: Send {
    fn plan(&self) -> Plan;
}

pub fn catalogue() -> Catalogue<dyn SchedulePolicy, Setup> {
    member!(Catalogue::new("schedule"), fcfs, read_first, out_of_order, lockstep)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ftlab_core::PolicySpec;

    pub(crate) fn timing() -> Timing {
        Timing {
            read_ns: vec![50_000],
            program_ns: vec![500_000],
            erase_ns: 3_000_000,
            read_command_ns: 290,
            program_command_ns: 361,
            erase_command_ns: 300,
            byte_ps: 3000,
            ecc_ns: 0,
            multi_plane: false,
            suspend_program: false,
            suspend_erase: false,
            suspend_ns: 0,
            resume_ns: 0,
            max_suspends: 0,
        }
    }

    pub(crate) fn plan(line: &str) -> ftlab_core::Result<Plan> {
        let timing = timing();
        Ok(catalogue()
            .build(&PolicySpec::parse(line)?, &mut Setup { timing })?
            .plan())
    }

    #[test]
    fn every_member_makes_a_plan_whose_ranks_fit_the_tables() {
        for name in catalogue().names() {
            let plan = plan(name).unwrap();
            assert!(
                plan.class_ranks.iter().chain(&plan.channel_ranks).all(|&rank| rank < 8),
                "{name}"
            );
        }
    }

    #[test]
    fn an_unknown_name_or_parameter_is_refused_with_the_known_ones() {
        assert!(plan("lockstp").unwrap_err().to_string().contains("lockstep"));
        assert!(plan("fcfs:gc_after=3").is_err());
        assert_eq!(plan("out_of_order:gc_after=3").unwrap().gc_after, Some(3));
        assert_eq!(plan("out_of_order:gc_after=0").unwrap().gc_after, None);
    }
}
