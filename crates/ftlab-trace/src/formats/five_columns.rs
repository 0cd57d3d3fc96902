//! What MQSim, SSDSim and DiskSim traces share: five columns of the same meaning, in units that the file does not name.
//!
//! A file is `time device address size operation` in each of them, so the values must tell the units. Looked at are the
//! complete lines of the beginning that detection sees, 2 MiB of a longer file.
//!
//! # Operation
//! 1 = read in all three. Nothing in a block trace tells reads from writes for sure, so this is never guessed otherwise.
//!
//! # Units
//! Guessed from the values by the rules of `evidence`, next to this file, and printed with the reason; each can be set.

mod evidence;

use ftlab_core::Result;

use self::evidence::{Evidence, SECTOR};
use super::{Claim, Reader, Sample, Strength, midas};
use crate::columns::{Columns, hexadecimal};
use crate::health::Parsed;
use crate::input::Input;
use crate::lines::{LineParser, Requests, TextReader};
use crate::settings::{Codes, Setting, Settings, TimeUnit, Units};

/// The parser of the three formats.
struct FiveColumns {
    units: Units,
    /// The operation is a word of hexadecimal flags of which the lowest counts.
    flags: bool,
}

impl FiveColumns {
    /// Where the settings are silent, units are those that the simulator itself has.
    fn new(settings: &Settings, dialect: Dialect) -> Self {
        let time = match dialect {
            Dialect::Mqsim | Dialect::Ssdsim => TimeUnit::Nanoseconds,
            Dialect::Disksim => TimeUnit::Milliseconds,
        };
        let own = Settings::NONE.with_units(time, Codes::ReadIsOne, SECTOR as u32, SECTOR as u32);
        FiveColumns {
            units: settings.or(&own).units(),
            flags: dialect == Dialect::Disksim,
        }
    }
}

impl LineParser for FiveColumns {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let time_ns = columns.time(self.units.time)?;
        let device = columns.key()?;
        let offset = columns.address(self.units.address, "an address below 2^60 bytes")?;
        let length = columns.length(self.units.size, "a size below 4 GiB")?;
        let op = if self.flags {
            let flags = flag_word(columns.key()?);
            let op = flags.and_then(|flags| self.units.codes.operation(flags & 1));
            op.ok_or_else(|| columns.defect("hexadecimal flags"))?
        } else {
            columns.code(self.units.codes, "0 or 1")?
        };
        to.push(time_ns, op, offset, length, device)
    }
}

/// DiskSim's flags: a word of at most 32 bits, as C's `%x` reads it.
#[inline]
fn flag_word(text: &[u8]) -> Option<u64> {
    hexadecimal(text, 8)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Mqsim,
    Ssdsim,
    Disksim,
}

impl Dialect {
    fn name(self) -> &'static str {
        match self {
            Dialect::Mqsim => "MQSim",
            Dialect::Ssdsim => "SSDSim",
            Dialect::Disksim => "DiskSim",
        }
    }
}

/// The claim of one of the three formats, with the guesses that it would read the file by.
pub(super) fn claim(sample: &Sample<'_>, dialect: Dialect) -> Option<Claim> {
    // DiskSim's is the widest of the three (all operations are hexadecimal words), in the unit of which every time fits.
    let widest = Settings::NONE.with_time_unit(TimeUnit::Nanoseconds);
    let mut parser = FiveColumns::new(&widest, Dialect::Disksim);
    if !Sample::fits(&sample.lines, &mut parser) {
        return None;
    }
    let evidence = Evidence::gather(sample.bytes);
    let (address_unit, size_unit, why_units) = evidence.units();
    let (time_unit, why_time) = evidence.time_unit(dialect, size_unit);
    let likely = evidence.dialect(time_unit) == dialect && midas::trait_of(sample).is_none();
    let columns = match evidence.more_columns {
        0 => "five columns between blanks".to_owned(),
        more => format!("five columns between blanks and {more} more, skipped"),
    };
    let made_up = match evidence.made_up() {
        Some(why) => format!("; times look made up ({why}), so their pace means nothing"),
        None => String::new(),
    };
    let dialects = match evidence.dialect(time_unit) {
        Dialect::Disksim => "DiskSim ASCII".to_owned(),
        other => format!("{} ASCII (MQSim's and SSDSim's columns are the same)", other.name()),
    };
    let units = sample.leaves_open(Setting::AddressUnit) && sample.leaves_open(Setting::SizeUnit);
    let clauses = [
        (sample.leaves_open(Setting::Codes), "; 1 is taken as read".to_owned()),
        (sample.leaves_open(Setting::TimeUnit), format!("; {why_time}")),
        (true, made_up),
        (units, format!("; {why_units}")),
    ];
    let open = clauses.into_iter().filter_map(|(open, clause)| open.then_some(clause));
    Some(Claim {
        strength: if likely { Strength::Likely } else { Strength::Fits },
        reason: format!("{columns}: {dialects}{}", open.collect::<String>()),
        guess: Settings::NONE.with_units(time_unit, Codes::ReadIsOne, address_unit as u32, size_unit as u32),
    })
}

/// The reader of one of the three formats.
pub(super) fn open(input: Input, settings: &Settings, dialect: Dialect) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader::after_lines(
        FiveColumns::new(settings, dialect),
        input,
        0,
    )))
}
