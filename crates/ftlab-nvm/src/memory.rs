//! Memory files: what is written in TOML, and what it means.
//!
//! # Errors
//! Unknown keys, values without a unit or out of range: one sentence with the key, the value and what was expected.

mod resolve;
mod written;

use ftlab_core::{Error, Result, units};

use crate::address::AddressMap;
use crate::schedule::Scheduler;
use crate::{Ps, presets};

pub use resolve::picoseconds;
use resolve::resolve;
use written::{Written, apply, one_line, replace_the_other};

/// When a write to the cells is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCost {
    /// Each written line occupies its bank for `t_wr` after its data (Messier, NVMain).
    Line,
    /// A dirty row is written to the cells, for `t_wr`, when it is closed (row buffers of PCM: Lee et al., ISCA 2009).
    Row,
    /// A row may be closed `t_wr` after the data of its last write (DRAM, Ramulator, DRAMsim3).
    Recovery,
}

/// A memory with every value resolved.
#[derive(Clone, Debug)]
pub struct Memory {
    pub title: String,
    pub source: String,
    pub channels: u32,
    pub ranks: u32,
    /// Of a rank.
    pub banks: u32,
    pub row_bytes: u64,
    pub line_bytes: u64,
    pub map: AddressMap,
    pub t_rcd: Ps,
    pub t_cl: Ps,
    pub t_cwl: Ps,
    pub t_rp: Ps,
    pub t_rtp: Ps,
    pub t_ccd: Ps,
    pub t_wr: Ps,
    pub t_burst: Ps,
    /// From the end of a write's data to the next read's column command, in the whole channel; none: a read may follow as its data fit on the bus.
    pub t_wtr: Option<Ps>,
    /// From the end of a read's data to the start of the next write's.
    pub t_rtw: Ps,
    /// From activation to activation, from each to the fourth after it, and from precharge to precharge, by `first_ready`.
    pub t_rrd: Ps,
    pub t_faw: Ps,
    pub t_ppd: Ps,
    /// Added to every latency, there and back: a link in front of the controller.
    pub link: Ps,
    pub cost: WriteCost,
    /// Writes to the cells of a channel at one time; 0: no limit.
    pub at_once: u32,
    /// A write to the cells may be paused after each such step; 0: never.
    pub pause_step: Ps,
    /// Places of the write buffer of a channel; 0: writes share the queue and are not posted.
    pub buffer: usize,
    pub high: usize,
    pub low: usize,
    /// Whether buffered writes go to the banks while no read is queued.
    pub when_idle: bool,
    pub scheduler: Scheduler,
    pub queue: usize,
    /// Whether a bank is given to its next request as soon as the one before has had its column command, not when it can take it.
    pub look_ahead: bool,
    /// A command in so much time, by `first_ready`; 0: any number.
    pub command_cycle: Ps,
    /// Whether the place in the queue is free when a request has its bank, not only with its column command.
    pub frees_early: bool,
    /// Places of a queue for each bank behind the shared ones, from which alone the scheduler chooses; 0: there are none.
    pub bank_queue: usize,
    /// Time from refresh to refresh, and of one.
    pub refresh: Option<(Ps, Ps)>,
}

impl Memory {
    /// A preset by name or a memory file by path, with `KEY=VALUE` changes.
    pub fn load(name: &str, set: &[String]) -> Result<Memory> {
        let (text, place) = presets::text(name)?;
        Memory::parse(&text, &place, set)
    }

    pub fn parse(text: &str, place: &str, set: &[String]) -> Result<Memory> {
        let mut table: toml::Table =
            toml::from_str(text).map_err(|e| Error::input(format!("{place}: {}", one_line(&e))))?;
        replace_the_other(&mut table, set);
        for change in set {
            apply(&mut table, change)?;
        }
        let written: Written = table
            .try_into()
            .map_err(|e: toml::de::Error| Error::input(format!("{place}: {}", one_line(&e))))?;
        resolve(&written).map_err(|e| Error::input(format!("{place}: {e}")))
    }

    pub fn banks_per_channel(&self) -> usize {
        (self.ranks * self.banks) as usize
    }

    pub fn banks_in_all(&self) -> usize {
        self.banks_per_channel() * self.channels as usize
    }

    /// From the column command to the data.
    #[inline]
    pub fn column_latency(&self, write: bool) -> Ps {
        if write { self.t_cwl } else { self.t_cl }
    }

    /// Unloaded latency of a read that finds its row open.
    pub fn hit(&self) -> Ps {
        self.t_cl + self.t_burst + self.link
    }

    /// Refuses an address that the memory does not have.
    pub fn check(&self, address: u64, what: &str) -> Result<()> {
        if address < self.map.capacity {
            return Ok(());
        }
        Err(Error::input(format!(
            "{what}: address {address:#x} lies beyond the memory, expected less than {:#x} ({})",
            self.map.capacity,
            units::show_bytes(self.map.capacity)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(set: &[&str]) -> String {
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        Memory::load("archsampler", &set).unwrap_err().to_string()
    }

    #[test]
    fn the_memory_of_table_2_1() {
        let memory = Memory::load("archsampler", &[]).unwrap();
        assert_eq!((memory.t_rcd, memory.t_cl, memory.t_wr), (150_000, 15_000, 500_000));
        assert_eq!((memory.banks_in_all(), memory.row_bytes), (32, 8192));
        assert_eq!((memory.buffer, memory.high, memory.low), (128, 64, 38));
        let at = memory.map.place(33 * 8192 + 64);
        assert_eq!((at.bank, at.row, at.column), (1, 1, 1));
    }

    /// The archsampler preset has 32 banks of 8 KiB rows; functions that add a row bit to each bank bit.
    #[test]
    fn bank_functions_replace_the_interleaving() {
        let masks: Vec<String> = (13..18).map(|bit| format!("\"{:#x}\"", 0x21u64 << bit)).collect();
        let memory = Memory::load(
            "archsampler",
            &[format!("geometry.bank_functions=[{}]", masks.join(","))],
        )
        .unwrap();
        assert_eq!(
            memory.map.functions,
            (13..18).map(|bit| 0x21 << bit).collect::<Vec<u64>>()
        );
        assert_eq!(memory.map.place(1 << 18).bank, 1);
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_sentence_with_its_place() {
        for (set, part) in [
            (
                "geometry.banks=0",
                "geometry.banks = 0: expected a power of two from 1 to 1024",
            ),
            ("geometry.banks=12", "geometry.banks = 12"),
            ("timing.t_rcd=150", "`150`: expected"),
            ("timing.t_rcd=fast", "timing.t_rcd = fast: expected a time such as"),
            ("write.cost=lines", "did you mean `line`?"),
            ("write.low=0.9", "expected 0 <= low < high <= 1"),
            ("controller.scheduler=fifo", "known: fcfs, ready_first, hits_first"),
            ("timing.t_rdc=1ns", "unknown field `t_rdc`"),
            ("geometry.bank_functions=[\"0x2000\"]", "1 functions, expected 5"),
            ("timing=5", "`timing` is a section, expected one of its keys"),
            (
                "geometry.line=16KiB",
                "geometry.line = 16KiB: expected at most a row (geometry.row = 8KiB)",
            ),
            ("nonsense", "expected KEY=VALUE"),
        ] {
            let sentence = said(&[set]);
            assert!(sentence.contains(part) && !sentence.contains('\n'), "{set}: {sentence}");
        }
        let both = ["geometry.bank_functions=[\"0x2000\"]", "geometry.interleave=line"];
        assert!(said(&both).contains("expected either interleave"));
        let no_section = Memory::parse("title = \"t\"\nsource = \"s\"\ntiming = 5", "x", &[])
            .unwrap_err()
            .to_string();
        assert!(no_section.contains("`5`: expected a section [timing]"), "{no_section}");
        assert!(
            Memory::load("pmc", &[])
                .unwrap_err()
                .to_string()
                .contains("unknown memory `pmc`")
        );
    }
}
