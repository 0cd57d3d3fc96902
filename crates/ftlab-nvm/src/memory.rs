//! Memory files: what is written in TOML, and what it means.
//!
//! # Errors
//! Unknown keys, values without a unit or out of range: one sentence with the key, the value and what was expected.

use ftlab_core::{Error, Result, error, units};
use serde::Deserialize;

use crate::address::AddressMap;
use crate::schedule::Scheduler;
use crate::{Ps, presets};

/// What a memory file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: String,
    source: String,
    geometry: Geometry,
    timing: Timing,
    write: Write,
    controller: Controller,
    refresh: Option<Refresh>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Geometry {
    channels: u64,
    ranks: u64,
    banks: u64,
    row: String,
    line: String,
    capacity: String,
    interleave: Option<String>,
    bank_functions: Option<Vec<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Timing {
    t_rcd: String,
    t_cl: String,
    t_cwl: String,
    t_rp: String,
    t_rtp: String,
    t_ccd: String,
    t_wr: String,
    t_burst: String,
    t_wtr: Option<String>,
    t_rtw: Option<String>,
    t_rrd: Option<String>,
    t_faw: Option<String>,
    t_ppd: Option<String>,
    link: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    cost: String,
    at_once: Option<u64>,
    pause_step: Option<String>,
    buffer: u64,
    high: Option<f64>,
    low: Option<f64>,
    when_idle: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Controller {
    scheduler: String,
    queue: u64,
    bank_queue: Option<u64>,
    place_until: Option<String>,
    command_cycle: Option<String>,
    look_ahead: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Refresh {
    t_refi: String,
    t_rfc: String,
}

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

/// What the parser says, with the place that it knows, on one line.
fn one_line(refusal: &toml::de::Error) -> String {
    let said = refusal.to_string();
    let said = said.replace(refusal.message(), &error::in_words(refusal.message()));
    let said = SECTIONS.iter().fold(said, |said, section| {
        let name = section[..1].to_uppercase() + &section[1..];
        said.replace(&format!("struct {name}"), &format!("a section [{section}]"))
    });
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

const SECTIONS: [&str; 5] = ["geometry", "timing", "write", "controller", "refresh"];

/// Bank functions take the place of the interleaving that the file has, and the other way round; both in `set` are refused as both in a file.
fn replace_the_other(table: &mut toml::Table, set: &[String]) {
    let sets = |key: &str| {
        let key = format!("geometry.{key}");
        set.iter()
            .any(|change| change.split_once('=').is_some_and(|(k, _)| k.trim() == key))
    };
    let Some(geometry) = table.get_mut("geometry").and_then(toml::Value::as_table_mut) else {
        return;
    };
    for (key, other) in [("bank_functions", "interleave"), ("interleave", "bank_functions")] {
        if sets(key) && !sets(other) {
            geometry.remove(other);
        }
    }
}

/// `geometry.banks=16`, with the type of the value as TOML has it, a text where it has none.
fn apply(table: &mut toml::Table, change: &str) -> Result<()> {
    let Some((key, value)) = change.split_once('=') else {
        return Err(Error::input(format!(
            "--set {change}: expected KEY=VALUE, such as timing.t_rcd=50ns"
        )));
    };
    let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    if SECTIONS.contains(&key.trim()) && !parsed.is_table() {
        return Err(Error::input(format!(
            "--set {change}: `{}` is a section, expected one of its keys: {}.KEY=VALUE",
            key.trim(),
            key.trim()
        )));
    }
    let mut at = table;
    let mut parts: Vec<&str> = key.trim().split('.').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let entry = at
            .entry(part.to_owned())
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        let Some(inner) = entry.as_table_mut() else {
            return Err(Error::input(format!("--set {change}: `{part}` holds no keys")));
        };
        at = inner;
    }
    at.insert(last.to_owned(), parsed);
    Ok(())
}

fn resolve(w: &Written) -> Result<Memory> {
    let g = &w.geometry;
    let channels = power("geometry.channels", g.channels, 64)?;
    let ranks = power("geometry.ranks", g.ranks, 64)?;
    let banks = power("geometry.banks", g.banks, 1024)?;
    let line = size("geometry.line", &g.line, 16)?;
    let row = size("geometry.row", &g.row, 1)?;
    if row < line {
        return Err(Error::input(format!(
            "geometry.line = {}: expected at most a row (geometry.row = {})",
            g.line, g.row
        )));
    }
    let capacity = size("geometry.capacity", &g.capacity, row)?;
    let bits = (channels * ranks * banks).trailing_zeros();
    let functions = functions(g, bits, line, row)?;
    let map = AddressMap::new(functions, channels.trailing_zeros(), line, row, capacity)?;
    let t = &w.timing;
    let t_burst = time("timing.t_burst", &t.t_burst)?;
    if t_burst == 0 {
        return Err(Error::input("timing.t_burst = 0ns: expected more than nothing"));
    }
    let cost = match w.write.cost.as_str() {
        "line" => WriteCost::Line,
        "row" => WriteCost::Row,
        "recovery" => WriteCost::Recovery,
        other => {
            return Err(ftlab_core::error::unknown(
                "write.cost",
                other,
                &["line", "row", "recovery"],
            ));
        }
    };
    let buffer = count("write.buffer", w.write.buffer, 0, 4096)? as usize;
    let (high, low) = marks(&w.write, buffer)?;
    let pause_step = w
        .write
        .pause_step
        .as_ref()
        .map_or(Ok(0), |t| time("write.pause_step", t))?;
    if pause_step > 0 && (cost != WriteCost::Line || buffer == 0) {
        return Err(Error::input(
            "write.pause_step: pausing needs write.cost = \"line\" and a write buffer",
        ));
    }
    let bank_queue = count("controller.bank_queue", w.controller.bank_queue.unwrap_or(0), 0, 4096)? as usize;
    if bank_queue > 0 && pause_step > 0 {
        return Err(Error::input(
            "controller.bank_queue: queues of banks hold reads and writes in one order, expected no write.pause_step",
        ));
    }
    let frees_early = match w.controller.place_until.as_deref() {
        None | Some("column") => false,
        Some("bank") => true,
        Some(other) => {
            return Err(ftlab_core::error::unknown(
                "controller.place_until",
                other,
                &["column", "bank"],
            ));
        }
    };
    let scheduler = Scheduler::parse(&w.controller.scheduler)?;
    let by_command = matches!(scheduler, Scheduler::FirstReady { .. });
    let of_commands = |key: &str, text: &Option<String>| {
        let time = text.as_ref().map_or(Ok(0), |text| time(key, text))?;
        if time > 0 && !by_command {
            return Err(Error::input(format!(
                "{key}: expected controller.scheduler = \"first_ready\", the others do not choose among commands"
            )));
        }
        Ok(time)
    };
    if by_command && (cost != WriteCost::Recovery || pause_step > 0) {
        return Err(Error::input(
            "controller.scheduler: first_ready chooses among commands of DRAM, expected write.cost = \"recovery\"",
        ));
    }
    if by_command && time("timing.t_rcd", &t.t_rcd)? == 0 {
        return Err(Error::input(
            "timing.t_rcd: first_ready opens rows again and again, expected more than 0ns",
        ));
    }
    let look_ahead = w.controller.look_ahead.unwrap_or(false);
    if look_ahead && (by_command || pause_step > 0 || w.write.at_once.unwrap_or(0) > 0) {
        return Err(Error::input(
            "controller.look_ahead: expected another scheduler than first_ready, no write.pause_step and no write.at_once",
        ));
    }
    let at_once = count("write.at_once", w.write.at_once.unwrap_or(0), 0, 1024)? as u32;
    if at_once > 0 && cost == WriteCost::Recovery {
        return Err(Error::input(
            "write.at_once: a limit on writes at once needs write.cost = \"line\" or \"row\"",
        ));
    }
    let refresh = match &w.refresh {
        None => None,
        Some(r) => {
            let every = time("refresh.t_refi", &r.t_refi)?;
            let takes = time("refresh.t_rfc", &r.t_rfc)?;
            if every <= takes {
                return Err(Error::input(format!(
                    "refresh.t_refi = {}: expected more than t_rfc ({})",
                    r.t_refi, r.t_rfc
                )));
            }
            Some((every, takes))
        }
    };
    Ok(Memory {
        title: w.title.clone(),
        source: w.source.clone(),
        channels: channels as u32,
        ranks: ranks as u32,
        banks: banks as u32,
        row_bytes: row,
        line_bytes: line,
        map,
        t_rcd: time("timing.t_rcd", &t.t_rcd)?,
        t_cl: time("timing.t_cl", &t.t_cl)?,
        t_cwl: time("timing.t_cwl", &t.t_cwl)?,
        t_rp: time("timing.t_rp", &t.t_rp)?,
        t_rtp: time("timing.t_rtp", &t.t_rtp)?,
        t_ccd: time("timing.t_ccd", &t.t_ccd)?.max(1),
        t_wr: time("timing.t_wr", &t.t_wr)?,
        t_burst,
        t_wtr: t.t_wtr.as_ref().map(|t| time("timing.t_wtr", t)).transpose()?,
        t_rtw: t.t_rtw.as_ref().map_or(Ok(0), |t| time("timing.t_rtw", t))?,
        link: t.link.as_ref().map_or(Ok(0), |t| time("timing.link", t))?,
        cost,
        at_once,
        pause_step,
        buffer,
        high,
        low,
        when_idle: w.write.when_idle.unwrap_or(true),
        scheduler,
        queue: count("controller.queue", w.controller.queue, 1, 4096)? as usize,
        bank_queue,
        frees_early,
        look_ahead,
        command_cycle: of_commands("controller.command_cycle", &w.controller.command_cycle)?,
        t_rrd: of_commands("timing.t_rrd", &t.t_rrd)?,
        t_faw: of_commands("timing.t_faw", &t.t_faw)?,
        t_ppd: of_commands("timing.t_ppd", &t.t_ppd)?,
        refresh,
    })
}

/// Bank functions as written, or single address bits: those above a row (`row`) or above a line (`line`).
fn functions(g: &Geometry, bits: u32, line: u64, row: u64) -> Result<Vec<u64>> {
    match (&g.interleave, &g.bank_functions) {
        (Some(by), None) => {
            let first = match by.as_str() {
                "row" => row,
                "line" => line,
                other => {
                    return Err(ftlab_core::error::unknown(
                        "geometry.interleave",
                        other,
                        &["row", "line"],
                    ));
                }
            };
            Ok((0..bits).map(|bit| first << bit).collect())
        }
        (None, Some(masks)) => {
            if masks.len() != bits as usize {
                return Err(Error::input(format!(
                    "geometry.bank_functions: {} functions, expected {bits} for {} channels, {} ranks and {} banks",
                    masks.len(),
                    g.channels,
                    g.ranks,
                    g.banks
                )));
            }
            masks.iter().map(|text| mask(text)).collect()
        }
        _ => Err(Error::input(
            "geometry: expected either interleave = \"row\" or \"line\", or bank_functions",
        )),
    }
}

fn mask(text: &str) -> Result<u64> {
    text.strip_prefix("0x")
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| {
            Error::input(format!(
                "geometry.bank_functions: `{text}`, expected a mask such as \"0x22000\""
            ))
        })
}

/// High and low water in places: writes are drained from `high` on, until `low` are left.
fn marks(w: &Write, buffer: usize) -> Result<(usize, usize)> {
    let (high, low) = (w.high.unwrap_or(0.5), w.low.unwrap_or(0.3));
    if !(low >= 0.0 && low < high && high <= 1.0) {
        return Err(Error::input(format!(
            "write.high = {high}, write.low = {low}: expected 0 <= low < high <= 1"
        )));
    }
    let high = ((buffer as f64 * high).round() as usize).max(1);
    let low = ((buffer as f64 * low).round() as usize).min(high - 1);
    Ok((high, low))
}

fn count(key: &str, value: u64, least: u64, most: u64) -> Result<u64> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::input(format!("{key} = {value}: expected {least} to {most}")))
}

fn power(key: &str, value: u64, most: u64) -> Result<u64> {
    if value.is_power_of_two() && value <= most {
        return Ok(value);
    }
    Err(Error::input(format!(
        "{key} = {value}: expected a power of two from 1 to {most}"
    )))
}

fn size(key: &str, text: &str, least: u64) -> Result<u64> {
    let bytes = units::bytes(text).map_err(|e| Error::input(format!("{key}: {e}")))?;
    if bytes.is_power_of_two() && bytes >= least && bytes <= 1 << 46 {
        return Ok(bytes);
    }
    Err(Error::input(format!(
        "{key} = {text}: expected a power of two of at least {}",
        units::show_bytes(least)
    )))
}

fn time(key: &str, text: &str) -> Result<Ps> {
    let expected = || Error::input(format!("{key} = {text}: expected a time such as \"14.16ns\", up to 1s"));
    picoseconds(text).ok_or_else(expected)
}

/// Picoseconds from "14.16ns", "3.9us", "625ps", up to a second.
pub fn picoseconds(text: &str) -> Option<Ps> {
    let trimmed = text.trim();
    for (suffix, factor) in [("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)] {
        if let Some(number) = trimmed.strip_suffix(suffix)
            && let Ok(value) = number.trim().parse::<f64>()
        {
            let ps = value * factor;
            return (0.0..=1e12).contains(&ps).then_some(ps.round() as Ps);
        }
    }
    None
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
