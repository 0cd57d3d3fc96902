//! What a memory file means: values with their units, within their ranges.

use ftlab_core::{Error, Result, units};

use super::written::{Geometry, Write, Written};
use super::{Memory, WriteCost};
use crate::Ps;
use crate::address::AddressMap;
use crate::schedule::Scheduler;

pub(super) fn resolve(w: &Written) -> Result<Memory> {
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
    let t_ccd = time("timing.t_ccd", &t.t_ccd)?;
    if t_ccd == 0 {
        return Err(Error::input("timing.t_ccd = 0ns: expected at least 1ps"));
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
        t_ccd,
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
    const MOST: u64 = 1 << 46;
    let bytes = units::bytes(text).ok();
    let sound = bytes.filter(|bytes| bytes.is_power_of_two() && (least..=MOST).contains(bytes));
    sound.ok_or_else(|| {
        Error::input(format!(
            "{key} = {text}: expected a size that is a power of two from {} to {}",
            units::show_bytes(least),
            units::show_bytes(MOST)
        ))
    })
}

fn time(key: &str, text: &str) -> Result<Ps> {
    let expected = || {
        Error::input(format!(
            "{key} = {text}: expected a time such as \"14.16ns\", 0ns or from 1ps to 1s"
        ))
    };
    picoseconds(text).ok_or_else(expected)
}

/// Picoseconds from "14.16ns", "3.9us", "625ps", up to a second, rounded to whole ones; nothing of a time between 0 and 1 ps.
pub fn picoseconds(text: &str) -> Option<Ps> {
    let trimmed = text.trim();
    for (suffix, factor) in [("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)] {
        if let Some(number) = trimmed.strip_suffix(suffix)
            && let Ok(value) = number.trim().parse::<f64>()
        {
            let ps = value * factor;
            // What is less than a picosecond would be no time at all.
            return (ps == 0.0 || (1.0..=1e12).contains(&ps)).then_some(ps.round() as Ps);
        }
    }
    None
}
