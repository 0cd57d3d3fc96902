//! What the content of a trace may leave open: units, codes, columns. Guessed by the format, settled by options.

use ftlab_core::{Error, OpKind, Result, error, units};
use ftlab_record::replay;

/// One thing that a format leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Unit of the time column.
    TimeUnit,
    /// Meaning of 0 and 1 in the column of operations.
    Codes,
    /// Bytes of one unit of the address column.
    AddressUnit,
    /// Bytes of one unit of the size column.
    SizeUnit,
    /// Names of the columns, where there is no header line.
    Columns,
    /// Which event of the block layer is taken as the request.
    Event,
    /// What a reference without an operation is.
    Op,
    /// How recorded calls become requests.
    Replay,
    /// Whether requests come in the order of their stamps or of the file; open in every format.
    Order,
}

impl Setting {
    pub const ALL: [Setting; 9] = [
        Setting::TimeUnit,
        Setting::Codes,
        Setting::AddressUnit,
        Setting::SizeUnit,
        Setting::Columns,
        Setting::Event,
        Setting::Op,
        Setting::Replay,
        Setting::Order,
    ];

    /// What [`Settings::with_units`] settles.
    pub(crate) const UNITS: &[Setting] = &[
        Setting::TimeUnit,
        Setting::Codes,
        Setting::AddressUnit,
        Setting::SizeUnit,
    ];

    /// Its name as an option, a key of a sidecar, and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Setting::TimeUnit => "time_unit",
            Setting::Codes => "codes",
            Setting::AddressUnit => "address_unit",
            Setting::SizeUnit => "size_unit",
            Setting::Columns => "columns",
            Setting::Event => "event",
            Setting::Op => "op",
            Setting::Replay => "replay",
            Setting::Order => "order",
        }
    }
}

/// Values of the settings; `None` leaves one to the format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub time_unit: Option<TimeUnit>,
    pub codes: Option<Codes>,
    /// Bytes, 1 to 16 MiB.
    pub address_unit: Option<u32>,
    /// Bytes, 1 to 16 MiB.
    pub size_unit: Option<u32>,
    /// Names between commas, as a CSV header has them; `-` for a column to be passed over.
    pub columns: Option<String>,
    /// `Q` queued, `D` issued, `C` completed.
    pub event: Option<char>,
    pub op: Option<OpKind>,
    /// `page_cache=off,memory=1GiB`.
    pub replay: Option<replay::Options>,
    pub order: Option<Order>,
}

/// Units and codes of a format's columns, settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub time: TimeUnit,
    pub codes: Codes,
    pub address: u64,
    pub size: u64,
}

impl Settings {
    /// Nothing is settled.
    pub const NONE: Settings = Settings {
        time_unit: None,
        codes: None,
        address_unit: None,
        size_unit: None,
        columns: None,
        event: None,
        op: None,
        replay: None,
        order: None,
    };

    pub(crate) const fn with_time_unit(mut self, unit: TimeUnit) -> Self {
        self.time_unit = Some(unit);
        self
    }

    pub(crate) const fn with_references(mut self, block: u32, op: OpKind) -> Self {
        self.address_unit = Some(block);
        self.op = Some(op);
        self
    }

    pub(crate) const fn with_event(mut self, event: char) -> Self {
        self.event = Some(event);
        self
    }

    /// With all of [`Units`].
    pub(crate) const fn with_units(mut self, time: TimeUnit, codes: Codes, address: u32, size: u32) -> Self {
        self.time_unit = Some(time);
        self.codes = Some(codes);
        self.address_unit = Some(address);
        self.size_unit = Some(size);
        self
    }

    /// Units and codes, all of which the format's defaults settle that it leaves open.
    pub(crate) fn units(&self) -> Units {
        Units {
            time: self.time_unit.unwrap_or(TimeUnit::Seconds),
            codes: self.codes.unwrap_or(Codes::ReadIsZero),
            address: self.address_unit.map_or(512, u64::from),
            size: self.size_unit.map_or(512, u64::from),
        }
    }

    /// Sets one from its text.
    pub fn set(&mut self, setting: Setting, text: &str) -> Result<()> {
        let text = text.trim();
        match setting {
            Setting::TimeUnit => self.time_unit = Some(TimeUnit::parse(text)?),
            Setting::Codes => self.codes = Some(Codes::parse(text)?),
            Setting::AddressUnit => self.address_unit = Some(unit_bytes(setting, text)?),
            Setting::SizeUnit => self.size_unit = Some(unit_bytes(setting, text)?),
            Setting::Columns if text.is_empty() => {
                return Err(Error::input(
                    "columns ``: expected names such as time_us,op,offset,length",
                ));
            }
            Setting::Columns => self.columns = Some(text.to_owned()),
            Setting::Event => {
                self.event = Some(match text {
                    "Q" | "q" => 'Q',
                    "D" | "d" => 'D',
                    "C" | "c" => 'C',
                    _ => {
                        return Err(Error::input(format!(
                            "event `{text}`: expected Q (queued), D (issued) or C (completed)"
                        )));
                    }
                });
            }
            Setting::Op => {
                let op = OpKind::ALL.into_iter().find(|op| op.name() == text);
                self.op = Some(op.ok_or_else(|| Error::input(format!("op `{text}`: expected read, write or trim")))?);
            }
            Setting::Replay => self.replay = Some(replay::Options::parse(text)?),
            Setting::Order => self.order = Some(Order::parse(text)?),
        }
        Ok(())
    }

    /// A setting as text, if it has a value.
    pub fn get(&self, setting: Setting) -> Option<String> {
        match setting {
            Setting::TimeUnit => self.time_unit.map(|u| u.name().to_owned()),
            Setting::Codes => self.codes.map(|c| c.name().to_owned()),
            Setting::AddressUnit => self.address_unit.map(|b| units::show_bytes(b.into())),
            Setting::SizeUnit => self.size_unit.map(|b| units::show_bytes(b.into())),
            Setting::Columns => self.columns.clone(),
            Setting::Event => self.event.map(String::from),
            Setting::Op => self.op.map(|op| op.name().to_owned()),
            Setting::Replay => self.replay.as_ref().map(replay::Options::show),
            Setting::Order => self.order.map(|order| order.name().to_owned()),
        }
    }

    /// These settings, completed by `other`'s where they are silent.
    pub fn or(&self, other: &Settings) -> Settings {
        Settings {
            time_unit: self.time_unit.or(other.time_unit),
            codes: self.codes.or(other.codes),
            address_unit: self.address_unit.or(other.address_unit),
            size_unit: self.size_unit.or(other.size_unit),
            columns: self.columns.clone().or_else(|| other.columns.clone()),
            event: self.event.or(other.event),
            op: self.op.or(other.op),
            replay: self.replay.clone().or_else(|| other.replay.clone()),
            order: self.order.or(other.order),
        }
    }
}

fn unit_bytes(setting: Setting, text: &str) -> Result<u32> {
    // A bare number means bytes here: "512" is what people write.
    let bytes = text.parse().or_else(|_| units::bytes(text)).ok();
    bytes
        .and_then(|bytes| u32::try_from(bytes).ok())
        .filter(|b| (1..=16 << 20).contains(b))
        .ok_or_else(|| {
            Error::input(format!(
                "{} `{text}`: expected 1 byte to 16 MiB, such as 512 or 4KiB",
                setting.name()
            ))
        })
}

/// What 0 and 1 mean in a column of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codes {
    /// 1 = read, 0 = write: DiskSim, SSDSim, MQSim.
    ReadIsOne,
    /// 0 = read, 1 = write: Tencent, MiDAS.
    ReadIsZero,
}

impl Codes {
    /// Parses `read=1` or `read=0`.
    pub fn parse(text: &str) -> Result<Self> {
        match text.trim() {
            "read=1" => Ok(Codes::ReadIsOne),
            "read=0" => Ok(Codes::ReadIsZero),
            other => Err(error::unknown("codes", other, &["read=1", "read=0"])),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Codes::ReadIsOne => "read=1",
            Codes::ReadIsZero => "read=0",
        }
    }

    /// The operation of a code of 0 or 1.
    #[inline]
    pub fn operation(self, code: u64) -> Option<OpKind> {
        match (self, code) {
            (Codes::ReadIsOne, 1) | (Codes::ReadIsZero, 0) => Some(OpKind::Read),
            (Codes::ReadIsOne, 0) | (Codes::ReadIsZero, 1) => Some(OpKind::Write),
            _ => None,
        }
    }
}

/// The order in which the requests of a file arrive, where its stamps go back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That of their stamps: logs that were merged from several.
    Time,
    /// That of the file; a stamp before its predecessor's is taken for the predecessor's.
    File,
}

impl Order {
    /// Parses `time` or `file`.
    pub fn parse(text: &str) -> Result<Self> {
        match text.trim() {
            "time" => Ok(Order::Time),
            "file" => Ok(Order::File),
            other => Err(error::unknown("order", other, &["time", "file"])),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Order::Time => "time",
            Order::File => "file",
        }
    }
}

/// Unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    Picoseconds,
    Nanoseconds,
    /// 100 ns: Windows file times, whose zero is the year 1601.
    FileTime,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    /// Parses `ps`, `ns`, `100ns`, `us`, `ms` or `s`.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text.trim() {
            "ps" => TimeUnit::Picoseconds,
            "ns" => TimeUnit::Nanoseconds,
            "100ns" => TimeUnit::FileTime,
            "us" | "µs" => TimeUnit::Microseconds,
            "ms" => TimeUnit::Milliseconds,
            "s" => TimeUnit::Seconds,
            other => {
                return Err(Error::input(format!(
                    "time unit `{other}`: expected ps, ns, 100ns, us, ms or s"
                )));
            }
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Picoseconds => "ps",
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::FileTime => "100ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }

    /// The unit as a power of ten of a nanosecond: 9 for seconds, −3 for picoseconds.
    pub(crate) fn exponent(self) -> i32 {
        match self {
            TimeUnit::Picoseconds => -3,
            TimeUnit::Nanoseconds => 0,
            TimeUnit::FileTime => 2,
            TimeUnit::Microseconds => 3,
            TimeUnit::Milliseconds => 6,
            TimeUnit::Seconds => 9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_as_text() {
        let mut settings = Settings::default();
        let replay = replay::Options::default().show();
        let texts = [
            "us",
            "read=0",
            "512",
            "4KiB",
            "time_s,op,offset,length",
            "Q",
            "write",
            &replay,
            "time",
        ];
        for (setting, text) in Setting::ALL.into_iter().zip(texts) {
            assert_eq!(settings.get(setting), None);
            settings.set(setting, text).unwrap();
        }
        let shown: Vec<String> = Setting::ALL.into_iter().filter_map(|s| settings.get(s)).collect();
        assert_eq!(
            shown,
            [
                "us",
                "read=0",
                "512 B",
                "4 KiB",
                "time_s,op,offset,length",
                "Q",
                "write",
                &replay,
                "time"
            ]
        );
        assert_eq!(Settings::default().or(&settings), settings);
        let mut other = Settings::default();
        other.set(Setting::TimeUnit, "ns").unwrap();
        assert_eq!(other.or(&settings).time_unit, Some(TimeUnit::Nanoseconds));
    }

    #[test]
    fn a_wrong_value_says_what_was_expected() {
        let mut settings = Settings::default();
        for (setting, text, words) in [
            (Setting::TimeUnit, "hours", "expected ps"),
            (Setting::Codes, "1=read", "read=1"),
            (Setting::AddressUnit, "0", "expected 1 byte"),
            (Setting::SizeUnit, "4 parsecs", "4 parsecs"),
            (Setting::Columns, "", "expected names"),
            (Setting::Event, "X", "Q (queued)"),
            (Setting::Op, "erase", "expected read"),
            (Setting::Replay, "page_cache=maybe", "expected on or off"),
            (Setting::Order, "tine", "did you mean `time`"),
        ] {
            let error = settings.set(setting, text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn codes_are_opposite() {
        assert_eq!(Codes::ReadIsOne.operation(1), Some(OpKind::Read));
        assert_eq!(Codes::ReadIsZero.operation(1), Some(OpKind::Write));
        assert_eq!(Codes::ReadIsZero.operation(2), None);
    }
}
