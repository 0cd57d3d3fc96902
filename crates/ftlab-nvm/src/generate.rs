//! Accesses made by a rule: `NAME:KEY=VALUE,...`.
//!
//! | name | accesses |
//! | --- | --- |
//! | `sequential` | line after line; each core in a part of its own |
//! | `rows` | whole rows drawn at random, line after line |
//! | `random` | one line of a row drawn at random |
//! | `chain` | one line of each row of one bank in turn: a conflict each time |
//!
//! Parameters: `requests` [1e6], `read` [1] (share), `span` [the memory], `cores` [8], `outstanding` [16], `think` [0ns] between accesses of a
//! core, `bank` (only addresses in this bank), and for an open loop `gap` (mean time between arrivals) with `arrivals` [constant] or poisson.

use ftlab_core::Stream as Random;
use ftlab_core::{Error, Result, units};

use crate::feed::{Step, Stream};
use crate::{LATEST, Memory, Ps, TOO_LATE};

pub const NAMES: [&str; 4] = ["sequential", "rows", "random", "chain"];

const KEYS: [&str; 9] = [
    "requests",
    "read",
    "span",
    "cores",
    "outstanding",
    "think",
    "bank",
    "gap",
    "arrivals",
];

/// A workload: the streams of cores, or one stream of arrivals.
pub struct Made {
    pub streams: Vec<Stream>,
    pub outstanding: u32,
    pub is_open: bool,
}

struct Parameters {
    kind: usize,
    requests: u64,
    read: f64,
    span: u64,
    cores: u64,
    outstanding: u32,
    think: Ps,
    bank: Option<u64>,
    gap: Option<Ps>,
    poisson: bool,
}

pub fn is_generator(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    NAMES.contains(&name)
}

fn parse(text: &str, memory: &Memory) -> Result<Parameters> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let kind = NAMES
        .iter()
        .position(|known| *known == name)
        .ok_or_else(|| ftlab_core::error::unknown("generator", name, &NAMES))?;
    let mut p = Parameters {
        kind,
        requests: 1_000_000,
        read: 1.0,
        span: memory.map.capacity,
        cores: 8,
        outstanding: 16,
        think: 0,
        bank: None,
        gap: None,
        poisson: false,
    };
    let mut given = std::collections::BTreeSet::new();
    for pair in rest.split(',').filter(|pair| !pair.is_empty()) {
        let bad = |wanted: &str| Error::input(format!("generator `{name}`: `{pair}`, expected {wanted}"));
        let (key, value) = pair.split_once('=').ok_or_else(|| bad("KEY=VALUE"))?;
        if !given.insert(key) {
            return Err(Error::input(format!("generator `{name}`: {key} is given twice")));
        }
        let whole = |least: u64, most: u64| {
            units::count(value)
                .ok()
                .filter(|n| (least..=most).contains(n))
                .ok_or_else(|| bad(&format!("a whole number from {least} to {most}")))
        };
        let time = || crate::time(value).map_err(|e| Error::input(format!("generator `{name}`: {key}: {e}")));
        match key {
            "requests" => p.requests = whole(1, 1 << 40)?,
            "read" => {
                p.read = value
                    .parse()
                    .ok()
                    .filter(|share| (0.0..=1.0).contains(share))
                    .ok_or_else(|| bad("a share from 0 to 1"))?;
            }
            "span" => {
                let bytes = units::bytes(value).map_err(|e| Error::input(format!("generator `{name}`: {key}: {e}")))?;
                let least = memory.row_bytes * memory.banks_in_all() as u64;
                if !(least..=memory.map.capacity).contains(&bytes) {
                    return Err(bad(&format!(
                        "{} (a row of each bank) to {} (the memory)",
                        units::show_bytes(least),
                        units::show_bytes(memory.map.capacity)
                    )));
                }
                p.span = bytes;
            }
            "cores" => p.cores = whole(1, 1024)?,
            "outstanding" => p.outstanding = whole(1, 1024)? as u32,
            "think" => p.think = time()?,
            "bank" => p.bank = Some(whole(0, memory.banks_in_all() as u64 - 1)?),
            "gap" => p.gap = Some(time()?),
            "arrivals" => match value {
                "constant" => p.poisson = false,
                "poisson" => p.poisson = true,
                _ => return Err(bad("constant or poisson")),
            },
            _ => return Err(ftlab_core::error::unknown("parameter of a generator", key, &KEYS)),
        }
    }
    if p.gap.is_none() && p.poisson {
        return Err(Error::input(format!(
            "generator `{name}`: arrivals=poisson needs gap=TIME, the mean time between them"
        )));
    }
    if p.gap.is_some() {
        p.cores = 1;
    }
    // Of arrivals that are drawn, one that is too late is refused when it comes.
    let wait = p.gap.filter(|_| !p.poisson).unwrap_or(p.think);
    if wait.saturating_mul(p.requests / p.cores) >= LATEST {
        return Err(Error::input(format!(
            "generator `{text}`: the last request comes too late, expected {TOO_LATE}"
        )));
    }
    Ok(p)
}

pub fn make(text: &str, memory: &Memory, seed: u64) -> Result<Made> {
    let p = parse(text, memory)?;
    let streams = (0..p.cores).map(|core| stream(&p, core, memory, seed)).collect();
    Ok(Made {
        streams,
        outstanding: p.outstanding,
        is_open: p.gap.is_some(),
    })
}

fn stream(p: &Parameters, core: u64, memory: &Memory, seed: u64) -> Stream {
    let map = memory.map.clone();
    let banks = memory.banks_in_all() as u64;
    let lines = memory.row_bytes / memory.line_bytes;
    let rows = (p.span / memory.row_bytes / banks).max(1);
    let (line_bytes, span_lines) = (memory.line_bytes, p.span / memory.line_bytes);
    let (cores, chain_bank) = (p.cores, p.bank);
    let bank = move |random: &mut Random| chain_bank.unwrap_or_else(|| random.below(banks));
    let random = Random::new(seed, &format!("nvm {core}"));
    match (p.kind, chain_bank) {
        (0, None) => {
            let mut line = core * (span_lines / cores) % span_lines;
            let address = move |_, _: &mut Random| {
                let address = line * line_bytes;
                line = if line + 1 == span_lines { 0 } else { line + 1 };
                address
            };
            steps(p, core, random, address)
        }
        (0, Some(bank)) => {
            let first = core * (rows / cores);
            let address =
                move |index, _: &mut Random| map.address_in(bank, (first + index / lines) % rows, index % lines);
            steps(p, core, random, address)
        }
        (1, _) => {
            let mut row = (0, 0);
            let address = move |index, random: &mut Random| {
                if index % lines == 0 {
                    row = (bank(random), random.below(rows));
                }
                map.address_in(row.0, row.1, index % lines)
            };
            steps(p, core, random, address)
        }
        (2, _) => {
            let address = move |_, random: &mut Random| {
                let (bank, row) = (bank(random), random.below(rows));
                map.address_in(bank, row, random.below(lines))
            };
            steps(p, core, random, address)
        }
        _ => {
            let bank = chain_bank.unwrap_or(0);
            let address = move |index, _: &mut Random| map.address_in(bank, (core + index * cores) % rows, 0);
            steps(p, core, random, address)
        }
    }
}

/// The steps of a core at the addresses of a rule, which is asked for each index.
fn steps(
    p: &Parameters,
    core: u64,
    mut random: Random,
    mut address: impl FnMut(u64, &mut Random) -> u64 + 'static,
) -> Stream {
    let count = p.requests / p.cores + u64::from(core < p.requests % p.cores);
    let (read, think, gap, poisson) = (p.read, p.think, p.gap, p.poisson);
    let mut clock = 0.0f64;
    Box::new((0..count).map(move |index| {
        let address = address(index, &mut random);
        let write = read < 1.0 && random.unit() >= read;
        let time = match gap {
            None => think,
            Some(gap) => {
                let step = if poisson { -libm::log(1.0 - random.unit()) } else { 1.0 };
                clock += step * gap as f64;
                clock.round() as Ps
            }
        };
        Step { address, write, time }
    }))
}
