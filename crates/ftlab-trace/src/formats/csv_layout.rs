//! How a CSV is laid out, and guesses from its rows of what the names leave open. Part of the format `csv`.

use super::Sample;
use super::block_events::Events;
use super::csv_header::{Column, Names};
use super::csv_units;
use super::dates;
use super::fields::{Fields, split};
use super::operations::is_code;
use super::scsi;
use crate::lines::VolumeTable;
use crate::settings::{Codes, Order, Setting, Settings, TimeUnit};

/// How a CSV is to be read, with a guess for everything that its names leave open, and why.
#[derive(Debug)]
pub struct Layout {
    pub separator: u8,
    /// Whether the first line names the columns, or at least is no row.
    pub header: bool,
    pub names: Names,
    /// SCSI opcodes are decimal numbers.
    pub decimal_opcodes: bool,
    /// There are operations, and none needs codes.
    pub has_only_words: bool,
    /// Sizes are one unit larger than they say, as they count from 0 or are ends that belong to the request.
    pub one_beyond: bool,
    pub guess: Settings,
    pub reason: String,
}

/// Rows that guesses look at.
const ROWS: usize = 5000;

impl Layout {
    /// Understands the beginning of a file; `Err` says in one clause why it is not possible.
    pub fn of(sample: &Sample<'_>, given: Option<&str>) -> Result<Self, String> {
        let first = *sample.lines.first().ok_or("no line: expected a header and rows")?;
        let in_comment = match given {
            None => names_in_comment(sample.bytes),
            Some(_) => None,
        };
        let from_comment = in_comment.is_some();
        let given = given.or(in_comment.as_deref());
        let separator = separator(first, given.map(|names| names.split(',').count()));
        let header = Names::read(split(first, separator).into_iter());
        let (names, is_header) = match (given.map(Names::given).transpose()?, header) {
            (Some(given), Ok(header)) if given.text != header.text => {
                return Err(format!(
                    "the first line names the columns {}, and they were given as {}: expected the same names, or a file \
                     without a header",
                    header.text, given.text
                ));
            }
            (Some(given), header) => {
                let row = header.is_err() && time_of(first, separator, &given).is_some();
                (given, !row)
            }
            (None, header) => (header?, true),
        };
        let rows = sample
            .bytes
            .split(|&b| b == b'\n')
            .filter(|line| !matches!(line.first(), None | Some(b'#')));
        let rows: Vec<&[u8]> = rows.skip(usize::from(is_header)).take(ROWS).collect();
        let mut layout = Layout {
            separator,
            header: is_header,
            decimal_opcodes: false,
            has_only_words: false,
            one_beyond: false,
            reason: match (is_header, given) {
                _ if from_comment => "a comment that names time, op, address and size: CSV".to_owned(),
                (_, Some(_)) => "columns as given: CSV".to_owned(),
                _ => "a header line that names time, op, address and size: CSV".to_owned(),
            },
            guess: Settings {
                columns: Some(names.text.clone()),
                ..Settings::default()
            },
            names,
        };
        layout.guess_time(&rows, sample);
        layout.guess_bytes(&rows, sample);
        layout.guess_codes(&rows, sample);
        layout.guess_opcodes(&rows);
        layout.guess_event(&rows, sample);
        layout.name_ignored();
        Ok(layout)
    }

    /// Values of a column in these rows.
    fn values<'a>(&self, rows: &[&'a [u8]], column: Column) -> Vec<&'a [u8]> {
        let Some(at) = self
            .names
            .columns
            .iter()
            .position(|n| n.is_some_and(|n| n.column == column))
        else {
            return Vec::new();
        };
        let values = rows.iter().filter_map(|row| {
            let mut fields = Fields::new(row, self.separator);
            (0..at).try_for_each(|_| fields.next().map(|_| ()))?;
            fields.next()
        });
        values.collect()
    }

    fn guess_time(&mut self, rows: &[&[u8]], sample: &Sample<'_>) {
        let named = self.names.of(Column::Time).and_then(|n| n.time_unit);
        self.guess.time_unit = Some(named.unwrap_or_else(|| {
            let (unit, why) = time_unit(&self.values(rows, Column::Time));
            if sample.leaves_open(Setting::TimeUnit) {
                self.reason += &format!("; times in {}: {why}", unit.name());
            }
            unit
        }));
    }

    /// Device, address, and size or end, of the rows that have all of them.
    fn requests(&self, rows: &[&[u8]], size: Column) -> Vec<(u64, u64, u64)> {
        let place = |column| {
            let mut columns = self.names.columns.iter();
            columns.position(|n| n.is_some_and(|n| n.column == column))
        };
        let (Some(address), Some(size)) = (place(Column::Offset), place(size)) else {
            return Vec::new();
        };
        let device = place(Column::Volume);
        let mut devices = VolumeTable::default();
        let requests = rows.iter().filter_map(|row| {
            let fields = split(row, self.separator);
            let device = device.map_or(Some(0), |at| devices.id(fields.get(at)?).ok())?;
            Some((device.into(), number(fields.get(address)?)?, number(fields.get(size)?)?))
        });
        requests.collect()
    }

    fn guess_bytes(&mut self, rows: &[&[u8]], sample: &Sample<'_>) {
        let column = match self.names.has(Column::End) {
            true => Column::End,
            false => Column::Length,
        };
        let mut requests = self.requests(rows, column);
        let (address, size) = (self.names.said(Column::Offset), self.names.said(column));
        let (reading, mut why) = match column {
            Column::End => {
                let inclusive = csv_units::ends_inclusive(&requests);
                self.one_beyond = inclusive;
                csv_units::of_ends(&requests, inclusive, address)
            }
            _ => {
                let counts_from_0 =
                    self.names.word(Column::Length) == Some("nlb") && csv_units::counts_from_0(&requests);
                self.one_beyond = counts_from_0;
                requests
                    .iter_mut()
                    .for_each(|(.., size)| *size += u64::from(counts_from_0));
                csv_units::of(&requests, address, size)
            }
        };
        if self.one_beyond && column == Column::Length {
            why += if why.is_empty() { "" } else { ", " };
            why += "nlb counts from 0, as NVMe's commands do";
        }
        let open = sample.leaves_open(Setting::AddressUnit) && sample.leaves_open(Setting::SizeUnit);
        if !why.is_empty() && open {
            self.reason += &format!("; {why}");
        }
        self.guess.address_unit = Some(reading.address as u32);
        self.guess.size_unit = Some(reading.size as u32);
    }

    /// The event of the block layer that stands for a request, where a column says what each row is.
    fn guess_event(&mut self, rows: &[&[u8]], sample: &Sample<'_>) {
        let mut events = Events::default();
        let values = self.values(rows, Column::Event);
        let known = values.iter().filter(|value| events.count(value)).count();
        if known == 0 || known * 10 < values.len() * 9 {
            return;
        }
        let (event, why) = events.choose();
        self.guess.event = Some(event);
        self.guess.order = Some(Order::Time);
        if sample.leaves_open(Setting::Event) {
            self.reason += &format!("; {why}");
        }
    }

    /// What 0 and 1 mean, where operations are written so.
    fn guess_codes(&mut self, rows: &[&[u8]], sample: &Sample<'_>) {
        let operations = self.values(rows, Column::Op);
        let coded = operations.iter().any(|&v| matches!(v, b"0" | b"1"));
        let words = |word: &str| {
            self.guess
                .columns
                .as_deref()
                .is_some_and(|c| c.split(',').any(|name| name == word))
        };
        let (codes, why) = if words("is_write") {
            (Codes::ReadIsZero, "as the column's name says")
        } else if words("is_read") {
            (Codes::ReadIsOne, "as the column's name says")
        } else if coded {
            (
                Codes::ReadIsOne,
                "as DiskSim and MQSim have it; Tencent has the opposite",
            )
        } else {
            self.has_only_words = !operations.is_empty() && !operations.into_iter().any(is_code);
            return;
        };
        self.guess.codes = Some(codes);
        if sample.leaves_open(Setting::Codes) {
            self.reason += &format!("; {}, {why}", codes.name());
        }
    }

    fn guess_opcodes(&mut self, rows: &[&[u8]]) {
        self.decimal_opcodes = scsi::are_decimal(&self.values(rows, Column::Op));
        if self.decimal_opcodes {
            self.reason += "; SCSI opcodes in decimal, because none can only be hexadecimal";
        }
    }

    fn name_ignored(&mut self) {
        let ignored = &self.names.ignored;
        if ignored.is_empty() {
            return;
        }
        let shown = ignored
            .iter()
            .take(6)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ");
        let more = ignored.len().saturating_sub(6);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        self.reason += &format!("; ignored: {shown}{more}");
    }
}

/// The separator of a line: a tab if it has one, else a bar, a semicolon, a comma, blanks; the first that makes as many
/// columns as have names, where these are given.
fn separator(line: &[u8], columns: Option<usize>) -> u8 {
    let all = [b'\t', b'|', b';', b',', b' '];
    let makes_all = |&separator: &u8| columns.is_some_and(|names| split(line, separator).len() >= names);
    let has = |separator: &u8| line.contains(separator);
    let fitting = all.into_iter().find(|separator| has(separator) && makes_all(separator));
    fitting.or_else(|| all.into_iter().find(has)).unwrap_or(b' ')
}

/// The names of columns in the last comment before the rows, if it is one of names.
fn names_in_comment(bytes: &[u8]) -> Option<String> {
    let lines = bytes.split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let comments = lines.take_while(|line| matches!(line.first(), None | Some(b'#')));
    let last = comments.filter(|line| !line.is_empty()).last()?;
    let line = &last[last.iter().take_while(|&&b| b == b'#').count()..];
    let names = Names::read(split(line, separator(line, None)).into_iter());
    names.ok().map(|names| names.text)
}

/// The time of a row, if it has one.
fn time_of(row: &[u8], separator: u8, names: &Names) -> Option<u64> {
    let at = names
        .columns
        .iter()
        .position(|n| n.is_some_and(|n| n.column == Column::Time))?;
    let fields = Fields::new(row, separator);
    fields.time(split(row, separator).get(at)?, TimeUnit::Nanoseconds).ok()
}

fn number(text: &[u8]) -> Option<u64> {
    Fields::new(b"", b',').number(text).ok()
}

/// A number with a decimal point or a decimal comma.
fn decimal(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.replace(',', ".").parse().ok()
}

/// The unit of times whose column does not say it, and why.
///
/// A first value that is a date of this century settles it. Otherwise the unit is the one in which the mean gap between
/// requests comes nearest to a millisecond, among those that the values' decimal point leaves.
fn time_unit(values: &[&[u8]]) -> (TimeUnit, String) {
    if values.first().is_some_and(|first| dates::nanoseconds(first).is_some()) {
        return (TimeUnit::Nanoseconds, "they are dates".to_owned());
    }
    let point = |v: &[u8]| v.iter().position(|b| matches!(b, b'.' | b','));
    let decimals = |v: &[u8]| point(v).map_or(0, |at| v.len() - at - 1);
    let decimals = values.iter().map(|v| decimals(v)).max().unwrap_or(0);
    let numbers = values.iter().filter_map(|v| decimal(v));
    let numbers: Vec<f64> = numbers.filter(|n| n.is_finite() && *n >= 0.0).collect();
    let first = numbers.first().copied().unwrap_or(0.0);
    let spread = numbers.iter().fold(first, |a, &b| a.max(b)) - numbers.iter().fold(first, |a, &b| a.min(b));
    let gap = spread / (numbers.len().max(2) - 1) as f64;
    let dates = [
        (1e9, 1e2, TimeUnit::Seconds),
        (1e12, 1e5, TimeUnit::Milliseconds),
        (1e15, 1e8, TimeUnit::Microseconds),
        (1e18, f64::MAX, TimeUnit::Nanoseconds),
    ];
    for (from, most, unit) in dates {
        if (from..2.2 * from).contains(&first) && gap <= most {
            return (unit, "the first one is then a date from 2001 to 2039".to_owned());
        }
    }
    if (1.1e17..1.4e17).contains(&first) {
        let why = "the first one is then a date from 1949 to 2044, as Windows counts them from 1601";
        return (TimeUnit::FileTime, why.to_owned());
    }
    if spread == 0.0 {
        let unit = if decimals > 0 {
            TimeUnit::Seconds
        } else {
            TimeUnit::Nanoseconds
        };
        return (unit, "assumed, because all are equal at the beginning".to_owned());
    }
    if decimals >= 7 {
        return (TimeUnit::Seconds, format!("they have {decimals} decimals"));
    }
    // A millisecond in each unit, times the square root of 1000 for the border to the next smaller unit.
    let border = 31.6;
    let unit = match decimals {
        0 if gap >= border * 1e3 => TimeUnit::Nanoseconds,
        _ if gap >= border => TimeUnit::Microseconds,
        _ if gap >= border / 1e3 => TimeUnit::Milliseconds,
        _ => TimeUnit::Seconds,
    };
    let rate = 1e9 / (gap * libm::pow(10.0, f64::from(unit.exponent())));
    (
        unit,
        format!(
            "{} requests a second at the beginning are then the most plausible rate",
            rounded(rate)
        ),
    )
}

/// Two digits that count.
fn rounded(rate: f64) -> String {
    if rate >= 10.0 {
        format!("{rate:.0}")
    } else {
        format!("{rate:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str, given: Option<&str>) -> Result<Layout, String> {
        Layout::of(&Sample::new(text.as_bytes(), true), given)
    }

    fn guess(text: &str) -> (TimeUnit, u32, u32) {
        let guess = layout(text, None).unwrap().guess;
        (
            guess.time_unit.unwrap(),
            guess.address_unit.unwrap(),
            guess.size_unit.unwrap(),
        )
    }

    #[test]
    fn a_missing_or_doubled_name_is_one_clause() {
        let missing = layout("time_ns,op,offset\n1,r,0\n", None).unwrap_err();
        assert!(
            missing.starts_with("no column is named for the size (length, size"),
            "{missing}"
        );
        let doubled = layout("time_ns,op,offset,lba,length\n", None).unwrap_err();
        assert!(
            doubled.starts_with("`offset` and `lba` are both names for the address"),
            "{doubled}"
        );
        let unknown = layout("1,r,0,1\n", Some("time_ns,op,offset,lenght")).unwrap_err();
        assert!(unknown.starts_with("`lenght` is not the name of a column"), "{unknown}");
        let other = layout("time_ns,op,offset,length\n", Some("time_ns,op,length,offset")).unwrap_err();
        assert!(other.contains("expected the same names"), "{other}");
    }

    #[test]
    fn given_names_read_a_file_without_a_header_or_with_one_in_other_words() {
        let given = Some("time_us,op,lba,-,sectors");
        assert!(!layout("1,r,0,x,1\n", given).unwrap().header);
        assert!(layout("when,what,where,x,much\n1,r,0,x,1\n", given).unwrap().header);
        assert_eq!(layout("1;r;0;x;1\n", given).unwrap().separator, b';');
    }

    #[test]
    fn units_follow_from_names_and_values() {
        use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
        let rows = |header: &str, row: fn(u64) -> String| {
            header.to_owned() + "\n" + &(1..100).map(|i| row(i) + "\n").collect::<String>()
        };
        let text = rows("time,op,lba,size", |i| {
            format!("{},r,{},{}", i * 1000, i * 8, 8 + i % 2)
        });
        assert_eq!(guess(&text), (Microseconds, 512, 512));
        let text = rows("time,op,lba,size", |i| {
            format!("{},r,{},{}", i * 1_000_000, i * 8, 4096)
        });
        assert_eq!(guess(&text), (Nanoseconds, 512, 1));
        let text = rows("time,op,address,size", |i| format!("{},r,{},{}", i, i * 8, 8));
        assert_eq!(guess(&text), (Milliseconds, 512, 512));
        let text = rows("time,op,address,size", |i| format!("0.{i:04},r,{},{}", i * 512, 8192));
        assert_eq!(guess(&text), (Seconds, 1, 1));
        let text = rows("time,op,offset,size", |i| format!("{}.{i:03},r,{},{}", i * 7, i, 7));
        assert_eq!(guess(&text), (Milliseconds, 1, 1));
        let text = rows("time,op,offset,size", |i| {
            format!("{},r,{},{}", 1_577_808_000 + i / 50, i, 7)
        });
        assert_eq!(guess(&text).0, Seconds);
        let text = rows("time,op,offset,size", |i| {
            format!("{},r,{},{}", 1_577_808_000_000_000 + i, i, 7)
        });
        assert_eq!(guess(&text).0, Microseconds);
        let text = rows("time,op,offset,size", |i| {
            format!("{},r,{},{}", 1_500_000_000 + i * 90_000, i, 7)
        });
        assert_eq!(guess(&text).0, Nanoseconds);
        let reason = layout(&text, None).unwrap().reason;
        assert!(reason.contains("times in ns: 11111 requests a second"), "{reason}");
    }

    #[test]
    fn byte_addresses_with_sizes_in_sectors_and_the_reverse() {
        let runs = |header: &str, address: u64, size: u64| {
            let rows = (0..60u64).map(|i| {
                let (run, part) = (i / 3 * 7919 % 1000 * 32, i % 3);
                format!("{i},r,{},{}\n", (run + part * 8) * 4096 / address, 8 * 4096 / size)
            });
            guess(&(header.to_owned() + "\n" + &rows.collect::<String>()))
        };
        assert_eq!(runs("time_us,op,address,size", 1, 512).1, 1);
        for (address, size) in [(1, 512), (512, 1), (512, 512), (4096, 1), (1, 1)] {
            let (_, found_address, found_size) = runs("time_us,op,address,size", address, size);
            assert_eq!((u64::from(found_address), u64::from(found_size)), (address, size));
            // What a word implies gives way to what the requests say.
            let (_, found_address, found_size) = runs("time_us,op,lba,size", address, size);
            assert_eq!((u64::from(found_address), u64::from(found_size)), (address, size));
        }
        // What it says does not, nor do this project's own names.
        assert_eq!(runs("time_us,op,address_512b,size", 1, 1).1, 512);
        assert_eq!(runs("time_us,op,offset,length", 512, 512).1, 1);
    }

    #[test]
    fn codes_are_guessed_where_operations_are_numbers() {
        let codes = |header: &str, op: &str| {
            let text = format!("time_ns,{header},offset,length,latency\n1,{op},0,1,9\n");
            let layout = layout(&text, None).unwrap();
            assert!(layout.reason.contains("ignored: latency"), "{}", layout.reason);
            layout.guess.codes
        };
        assert_eq!(codes("op", "R"), None);
        assert_eq!(codes("op", "1"), Some(Codes::ReadIsOne));
        assert_eq!(codes("is_write", "1"), Some(Codes::ReadIsZero));
    }
}
