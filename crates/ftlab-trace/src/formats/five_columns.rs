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

use ftlab_core::{Batch, Result};

use self::evidence::{Evidence, SECTOR};
use super::{Claim, Reader, Sample, Strength, midas};
use crate::input::Input;
use crate::report::Skipped;
use crate::settings::{Codes, Setting, Settings, TimeUnit};
use crate::text::{Columns, EMPTY, LineParser, Parsed, TextReader, VolumeTable, hexadecimal, left_out, time, to_bytes};

pub(super) const SETTINGS: &[Setting] = &[
    Setting::TimeUnit,
    Setting::Codes,
    Setting::AddressUnit,
    Setting::SizeUnit,
];

/// The parser of the three formats.
struct FiveColumns {
    unit: TimeUnit,
    codes: Codes,
    address_unit: u64,
    size_unit: u64,
    /// The operation is a word of hexadecimal flags of which the lowest counts.
    flags: bool,
    empty: u64,
}

impl FiveColumns {
    /// Where the settings are silent, units are those that the simulator itself has.
    fn new(settings: &Settings, dialect: Dialect) -> Self {
        FiveColumns {
            unit: settings.time_unit.unwrap_or(match dialect {
                Dialect::Mqsim | Dialect::Ssdsim => TimeUnit::Nanoseconds,
                Dialect::Disksim => TimeUnit::Milliseconds,
            }),
            codes: settings.codes.unwrap_or(Codes::ReadIsOne),
            address_unit: settings.address_unit.map_or(SECTOR, u64::from),
            size_unit: settings.size_unit.map_or(SECTOR, u64::from),
            flags: dialect == Dialect::Disksim,
            empty: 0,
        }
    }
}

impl LineParser for FiveColumns {
    #[inline]
    fn parse(&mut self, line: &[u8], batch: &mut Batch, volumes: &mut VolumeTable) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let time_ns = time(&mut columns, self.unit)?;
        let device = columns.key()?;
        let offset = to_bytes(columns.number()?, self.address_unit);
        let offset = offset.ok_or_else(|| columns.defect("an address below 2^60 bytes"))?;
        let bytes = to_bytes(columns.number()?, self.size_unit).and_then(|bytes| u32::try_from(bytes).ok());
        let length = bytes.ok_or_else(|| columns.defect("a size below 4 GiB"))?;
        let code = if self.flags {
            flag_word(columns.key()?).map(|flags| flags & 1)
        } else {
            Some(columns.number()?)
        };
        let op = code.and_then(|code| self.codes.operation(code));
        let op = op.ok_or_else(|| columns.defect(if self.flags { "hexadecimal flags" } else { "0 or 1" }))?;
        if length == 0 {
            self.empty += 1;
            return Ok(());
        }
        batch.push(time_ns, op, offset, length, volumes.id(device)?, 0);
        Ok(())
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[(EMPTY, self.empty)])
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
    let widest = Settings {
        time_unit: Some(TimeUnit::Nanoseconds),
        ..Settings::default()
    };
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
        more => format!("five columns between blanks and {more} more, passed over"),
    };
    let made_up = match evidence.made_up() {
        Some(why) => format!("; times look made up ({why}), so their pace means nothing"),
        None => String::new(),
    };
    let dialects = match evidence.dialect(time_unit) {
        Dialect::Disksim => "DiskSim ASCII".to_owned(),
        other => format!("{} ASCII (MQSim's and SSDSim's columns are the same)", other.name()),
    };
    let reason = format!("{columns}: {dialects}; 1 is taken as read; {why_time}{made_up}; {why_units}");
    let guess = Settings {
        time_unit: Some(time_unit),
        codes: Some(Codes::ReadIsOne),
        address_unit: Some(address_unit as u32),
        size_unit: Some(size_unit as u32),
        ..Settings::default()
    };
    let strength = if likely { Strength::Likely } else { Strength::Fits };
    Some(Claim {
        strength,
        reason,
        guess,
    })
}

/// The reader of one of the three formats.
pub(super) fn open(input: Input, settings: &Settings, dialect: Dialect) -> Result<Box<dyn Reader>> {
    Ok(Box::new(TextReader::new(FiveColumns::new(settings, dialect), input)))
}
