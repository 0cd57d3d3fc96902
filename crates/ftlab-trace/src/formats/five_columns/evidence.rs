//! What the values of five columns tell about their units.
//!
//! # Time unit
//! The first plausible one of the format's list (MQSim and SSDSim: ns, µs, ms, s, ps; DiskSim, and any time with a decimal
//! point: ms, s, µs, ns). A unit is plausible when the sample runs at [`SLOWEST`] to [`FASTEST`] requests a second, for at
//! most [`LONGEST_SPAN`], and moves at most [`LINK`] bytes a second per device. Two things come before that list: a first
//! stamp that lies between 2001 and 2039 when read as time since 1970, and seven to nine decimals, which in ms would be
//! finer than a nanosecond and so mean seconds. Times with a decimal point that in ms would be more than [`BUSIEST`] requests a
//! second mean seconds as well. Fewer than [`ENOUGH`] requests, or times without any span, tell nothing:
//! the list's first unit stands.
//!
//! # Address and size unit
//! Sectors of 512 bytes, unless the requests say otherwise: bytes, where all numbers are multiples of 512 and sectors would
//! be out of scale, or another reading by which far more of them continue one another (`continuity`, in the folder of the
//! formats). For sector addresses with sizes of 4 KiB a tenth of the sizes must be no multiples of 8, which in sectors would
//! be strange requests and keeps strides of whole pages from looking like them.
//!
//! # Which of the three
//! A decimal point in a time, or an operation other than 0 and 1, is DiskSim's. Whole numbers of ns that start at 0, with
//! three or more devices and addresses below 2^31, are SSDSim's (its reader holds addresses in 32 bits and takes ns only);
//! all else is MQSim's, which takes any unit. Where they cannot be told apart the meaning is the same.

use crate::columns::Columns;
use crate::formats::continuity::{Continuity, ENOUGH, Reading};
use crate::lines::VolumeTable;
use crate::settings::TimeUnit;

use super::{Dialect, flag_word};

/// One request a day, and fifty million a second: no block trace is slower or faster as a whole.
const SLOWEST: f64 = 1.0 / 86_400.0;
const FASTEST: f64 = 50e6;
/// Requests a second of a whole trace in ms with decimals, beyond which seconds are the more plausible unit: the geometric mean
/// of a thousand and a million.
const BUSIEST: f64 = 31_623.0;
/// Seconds; 366 days.
const LONGEST_SPAN: f64 = 366.0 * 86_400.0;
/// Bytes a second that a link of four PCIe 5.0 lanes carries (32 GT/s, 128b/130b): no drive of these traces has a faster one.
const LINK: f64 = 15.75e9;
/// Larger requests are not the block layer's, and no evidence of a drive's speed.
const LARGEST_REQUEST: u64 = 16 << 20;
/// Sectors in a page of 4 KiB.
const PAGE: u64 = 8;
pub(super) const SECTOR: u64 = 512;

/// What the sample's lines say. Times, addresses and sizes are in the file's own units.
#[derive(Default)]
pub(super) struct Evidence {
    rows: u64,
    first: f64,
    low: f64,
    high: f64,
    /// Some time has a decimal point.
    fraction: bool,
    /// The most decimals of a time, zeros at the end not counted.
    decimals: usize,
    ties: u64,
    /// Shortest and longest step ahead; a step back makes the longest infinite.
    steps: Option<(f64, f64)>,
    /// The greatest common divisor of all times, where they are whole numbers.
    divisor: u64,
    devices: usize,
    highest_address: u64,
    sizes: Sizes,
    continued: Continuity,
    /// Operations other than 0 and 1.
    flags: bool,
    pub more_columns: usize,
}

#[derive(Default)]
struct Sizes {
    largest: u64,
    /// Requests of one unit; of 4096 units or more; of no whole number of pages, in sectors.
    ones: u64,
    thousands: u64,
    parts: u64,
    /// Sum over requests that are small enough in sectors, in 4 KiB, in bytes.
    sums: [u64; 3],
}

/// Units that a size may count, by their place in arrays.
const SIZE_UNITS: [u64; 3] = [SECTOR, SECTOR * PAGE, 1];

impl Evidence {
    pub fn gather(bytes: &[u8]) -> Self {
        let mut evidence = Evidence::default();
        let mut volumes = VolumeTable::default();
        let mut last = None;
        // The last line of the sample may be cut.
        let end = memchr::memrchr(b'\n', bytes).unwrap_or(bytes.len());
        for line in bytes[..end].split(|&b| b == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let _ = evidence.add(line, &mut volumes, &mut last);
        }
        evidence
    }

    fn add(&mut self, line: &[u8], volumes: &mut VolumeTable, last: &mut Option<f64>) -> Option<()> {
        let mut columns = Columns::<b' '>::new(line);
        let stamp = columns.key().ok()?;
        let time: f64 = std::str::from_utf8(stamp).ok()?.parse().ok()?;
        let device = volumes.id(columns.key().ok()?).ok()?;
        let (address, size) = (columns.number().ok()?, columns.number().ok()?);
        let code = flag_word(columns.key().ok()?)?;
        if !(0.0..1.9e19).contains(&time) {
            return None;
        }
        let mut more = 0;
        while !columns.is_done() && more < 100 {
            columns.text().ok()?;
            more += 1;
        }
        self.more_columns = self.more_columns.max(more);
        if let Some(point) = stamp.iter().position(|&b| b == b'.') {
            let kept = stamp.iter().rposition(|&b| b != b'0').unwrap_or(point);
            self.fraction = true;
            self.decimals = self.decimals.max(kept.saturating_sub(point));
        }
        let whole: Option<u64> = std::str::from_utf8(stamp).ok()?.parse().ok();
        self.divisor = match (whole, self.rows) {
            (Some(whole), 0) => whole,
            (Some(whole), _) => greatest_common_divisor(self.divisor, whole),
            (None, _) => 1,
        };
        match *last {
            None => (self.first, self.low, self.high) = (time, time, time),
            Some(before) if time == before => self.ties += 1,
            Some(before) => {
                let step = if time > before { time - before } else { f64::INFINITY };
                let (shortest, longest) = self.steps.unwrap_or((step, step));
                self.steps = Some((shortest.min(step), longest.max(step)));
            }
        }
        *last = Some(time);
        (self.low, self.high) = (self.low.min(time), self.high.max(time));
        self.devices = self.devices.max(usize::from(device) + 1);
        self.highest_address = self.highest_address.max(address);
        self.sizes.largest = self.sizes.largest.max(size);
        self.sizes.ones += u64::from(size == 1);
        self.sizes.thousands += u64::from(size >= 4096);
        self.sizes.parts += u64::from(!size.is_multiple_of(PAGE));
        for (sum, unit) in self.sizes.sums.iter_mut().zip(SIZE_UNITS) {
            if size <= LARGEST_REQUEST / unit {
                *sum += size;
            }
        }
        self.continued.add(device.into(), address, size);
        self.flags |= code > 1;
        self.rows += 1;
        Some(())
    }

    /// Address and size unit in bytes, and why.
    pub fn units(&self) -> (u64, u64, String) {
        let continued = &self.continued;
        let whole_sectors = continued.all_addresses(SECTOR) && continued.all_sizes(SECTOR);
        let mostly_large = self.rows >= ENOUGH && self.sizes.thousands * 2 > self.rows;
        // As sectors: requests of 16 MiB, or addresses behind 32 TiB.
        let out_of_scale = self.sizes.largest >= LARGEST_REQUEST / SECTOR || self.highest_address >> 36 > 0;
        if whole_sectors && mostly_large && out_of_scale {
            let why = format!(
                "{}, since all are multiples of 512 and most sizes 4096 or more",
                Reading::BYTES.show()
            );
            return (1, 1, why);
        }
        let fitting = |reading: &Reading| match reading.size {
            // Sizes in bytes are mostly large; sizes of 4 KiB are not mostly whole ones of eight.
            1 => mostly_large,
            _ if *reading == Reading::of(SECTOR, SECTOR * PAGE) => self.sizes.parts * 10 >= self.rows,
            _ => true,
        };
        let readings = Reading::UNEQUAL.into_iter().filter(fitting);
        if let Some((Reading { address, size }, why)) = continued.better(Reading::SECTORS, readings) {
            return (address, size, why);
        }
        let doubt = if self.rows >= ENOUGH && whole_sectors && mostly_large {
            "; bytes are possible, all being multiples of 512"
        } else if self.rows >= ENOUGH && self.sizes.ones * 3 > self.rows {
            ", though many sizes of 1 make pages of 4 KiB possible"
        } else {
            ""
        };
        (SECTOR, SECTOR, format!("{}{doubt}", Reading::SECTORS.show()))
    }

    pub fn time_unit(&self, dialect: Dialect, size_unit: u64) -> (TimeUnit, String) {
        use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Picoseconds, Seconds};
        let kind = if self.fraction {
            "with a decimal point"
        } else {
            "in whole numbers"
        };
        let list: &[TimeUnit] = match dialect {
            Dialect::Mqsim | Dialect::Ssdsim if !self.fraction => {
                &[Nanoseconds, Microseconds, Milliseconds, Seconds, Picoseconds]
            }
            _ => &[Milliseconds, Seconds, Microseconds, Nanoseconds],
        };
        let default = list[0];
        if self.rows < ENOUGH || self.high <= self.low {
            let name = default.name();
            let why = format!(
                "times {kind} are taken as {name}, the format's own, because there are too few lines, or no time span, to decide"
            );
            return (default, why);
        }
        let pace = |unit| self.pace(unit, size_unit);
        let refused = match pace(default).implausible(self.devices) {
            true => format!(
                " (as {} they would be {} from {})",
                default.name(),
                pace(default).show(),
                if self.devices == 1 {
                    "one device".to_owned()
                } else {
                    format!("{} devices", self.devices)
                }
            ),
            false => String::new(),
        };
        if let Some(unit) = self.since_1970(size_unit, !refused.is_empty()) {
            let name = unit.name();
            return (
                unit,
                format!("times {kind} are taken as {name} since 1970: {}", pace(unit).show()),
            );
        }
        if (7..=9).contains(&self.decimals) && !pace(Seconds).implausible(self.devices) {
            let why = format!(
                "times with {} decimals are taken as s, since in ms they would be finer than a ns: {}",
                self.decimals,
                pace(Seconds).show()
            );
            return (Seconds, why);
        }
        if self.fraction && pace(Milliseconds).requests > BUSIEST && !pace(Seconds).implausible(self.devices) {
            let why = format!(
                "times {kind} are taken as s: {} (as ms they would be {})",
                pace(Seconds).show(),
                pace(Milliseconds).show()
            );
            return (Seconds, why);
        }
        match list.iter().find(|&&unit| !pace(unit).implausible(self.devices)) {
            Some(&unit) => {
                let (name, pace) = (unit.name(), pace(unit).show());
                (unit, format!("times {kind} are taken as {name}: {pace}{refused}"))
            }
            None => {
                let name = default.name();
                let why =
                    format!("times {kind} are taken as {name}, though no unit gives them a plausible pace{refused}");
                (default, why)
            }
        }
    }

    /// The unit in which the first time is a date between 2001 and 2039.
    fn since_1970(&self, size_unit: u64, default_refused: bool) -> Option<TimeUnit> {
        let units = [
            TimeUnit::Seconds,
            TimeUnit::Milliseconds,
            TimeUnit::Microseconds,
            TimeUnit::Nanoseconds,
        ];
        units.into_iter().find(|&unit| {
            let date = self.first * nanoseconds(unit) / 1e9;
            let pace = self.pace(unit, size_unit);
            // Whole numbers of ten digits are more often a second or two in ns.
            let enough = unit != TimeUnit::Seconds || self.fraction || default_refused;
            (1e9..2.2e9).contains(&date) && enough && pace.requests > 0.1 && !pace.implausible(self.devices)
        })
    }

    fn pace(&self, unit: TimeUnit, size_unit: u64) -> Pace {
        let seconds = (self.high - self.low) * nanoseconds(unit) / 1e9;
        let sum = SIZE_UNITS
            .iter()
            .position(|&u| u == size_unit)
            .map_or(0, |i| self.sizes.sums[i]);
        Pace {
            seconds,
            requests: self.rows as f64 / seconds,
            bytes: sum as f64 * size_unit as f64 / seconds,
        }
    }

    /// Why the times cannot be a clock's.
    pub fn made_up(&self) -> Option<String> {
        let (shortest, longest) = self.steps.filter(|_| self.rows >= ENOUGH && self.ties == 0)?;
        if longest - shortest <= shortest * 1e-9 {
            return Some(format!("each lies {shortest} after the one before"));
        }
        let step = self.divisor as f64;
        (self.divisor > 1 && longest <= step * 100.0)
            .then(|| format!("all are multiples of {step}, no two equal, no step longer than {longest}"))
    }

    pub fn dialect(&self, unit: TimeUnit) -> Dialect {
        if self.fraction || self.flags {
            Dialect::Disksim
        } else if unit == TimeUnit::Nanoseconds
            && self.first == 0.0
            && self.devices >= 3
            && self.highest_address >> 31 == 0
        {
            Dialect::Ssdsim
        } else {
            Dialect::Mqsim
        }
    }
}

/// How fast a sample runs if its times are in some unit.
struct Pace {
    seconds: f64,
    /// A second.
    requests: f64,
    bytes: f64,
}

impl Pace {
    fn implausible(&self, devices: usize) -> bool {
        !(SLOWEST..=FASTEST).contains(&self.requests)
            || self.seconds > LONGEST_SPAN
            || self.bytes > LINK * devices.max(1) as f64
    }

    fn show(&self) -> String {
        let (requests, bytes, span) = (number(self.requests), rate(self.bytes), number(self.seconds));
        format!("{requests} requests/s and {bytes} over {span} s")
    }
}

fn nanoseconds(unit: TimeUnit) -> f64 {
    match unit {
        TimeUnit::Picoseconds => 1e-3,
        TimeUnit::Nanoseconds => 1.0,
        TimeUnit::FileTime => 100.0,
        TimeUnit::Microseconds => 1e3,
        TimeUnit::Milliseconds => 1e6,
        TimeUnit::Seconds => 1e9,
    }
}

/// Three digits that matter.
fn number(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e4 => format!("{:.0} k", v / 1e3),
        v if v >= 10.0 => format!("{v:.0}"),
        v if v >= 0.001 => format!("{v:.3}"),
        v => format!("{v:.1e}"),
    }
}

fn rate(bytes: f64) -> String {
    match bytes {
        b if b >= 1e9 => format!("{:.1} GB/s", b / 1e9),
        b if b >= 1e6 => format!("{:.1} MB/s", b / 1e6),
        b => format!("{:.1} kB/s", b / 1e3),
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};

    fn gathered(rows: u64, line: impl Fn(u64) -> String) -> Evidence {
        let text: String = (0..rows).map(|i| line(i) + "\n").collect();
        Evidence::gather(text.as_bytes())
    }

    /// The time unit of requests of 4 KiB at scattered places, stamped by `time`.
    fn unit(dialect: Dialect, time: impl Fn(u64) -> String) -> (TimeUnit, String) {
        let evidence = gathered(100, |i| format!("{} 0 {} 8 1", time(i), i * 7919 % 1000 * 8));
        evidence.time_unit(dialect, SECTOR)
    }

    #[test]
    fn the_first_plausible_unit_is_taken() {
        // 100 requests of 4 KiB, one each 1 000 units: in ns a million a second and 4 GB/s, which a drive can do.
        let whole = |step: u64| unit(Dialect::Mqsim, move |i| (i * step + i % 3).to_string());
        assert_eq!(whole(1000).0, Nanoseconds);
        // Each 100 units: in ns 41 GB/s, in µs 41 MB/s.
        let (unit_100, why) = whole(100);
        assert_eq!(unit_100, Microseconds);
        assert!(
            why.contains("as us") && why.contains("as ns") && why.contains("GB/s"),
            "{why}"
        );
        // DiskSim's list begins with ms: one each 100 ms.
        assert_eq!(unit(Dialect::Disksim, |i| (i * 100).to_string()).0, Milliseconds);
        // Each 20 days, if it were ms: so µs.
        assert_eq!(
            unit(Dialect::Disksim, |i| format!("{}.5", i * 1_728_000_000)).0,
            Microseconds
        );
    }

    #[test]
    fn dates_and_many_decimals_tell_the_unit() {
        let mqsim = |time: fn(u64) -> String| unit(Dialect::Mqsim, time).0;
        assert_eq!(mqsim(|i| format!("{}", 1_577_808_000_000_046 + i * 400)), Microseconds);
        assert_eq!(mqsim(|i| format!("{}", 1_577_808_000_000 + i)), Milliseconds);
        // Ten digits are rather a second and a half in ns.
        assert_eq!(mqsim(|i| format!("{}", 1_577_808_000 + i * 20_000)), Nanoseconds);
        let disksim = |time: fn(u64) -> String| unit(Dialect::Disksim, time).0;
        assert_eq!(disksim(|i| format!("{}.25", 1_577_808_000 + i)), Seconds);
        assert_eq!(disksim(|i| format!("0.{:09}", i * 1_234_567)), Seconds);
        // Zeros at the end are no decimals, and fifteen are floating point's.
        assert_eq!(disksim(|i| format!("{i}.250000000")), Milliseconds);
        assert_eq!(disksim(|i| format!("{i}.123456789012345")), Milliseconds);
        // 500 requests a second with six decimals, as `%f` prints them.
        assert_eq!(disksim(|i| format!("{}.{:06}", i / 500, i % 500 * 2000)), Seconds);
    }

    #[test]
    fn too_little_tells_nothing() {
        let few = gathered(49, |i| format!("{i} 0 {i} 8 1"));
        assert_eq!(few.time_unit(Dialect::Mqsim, SECTOR).0, Nanoseconds);
        assert_eq!(unit(Dialect::Mqsim, |_| "5".to_owned()).0, Nanoseconds);
        assert_eq!(few.units().0, SECTOR);
        let none = Evidence::gather(b"");
        assert_eq!(none.time_unit(Dialect::Disksim, SECTOR).0, Milliseconds);
        assert!(none.made_up().is_none());
    }

    #[test]
    fn continued_requests_tell_what_sizes_count() {
        let units = |line: fn(u64) -> String| {
            let (address, size, why) = gathered(100, line).units();
            (address, size, why)
        };
        // 3 and 5 pages in turn, each behind the one before.
        let (address, size, why) = units(|i| format!("{i} 0 {} {} 1", i / 2 * 64 + i % 2 * 24, 3 + i % 2 * 2));
        assert_eq!((address, size), (512, 4096), "{why}");
        assert!(why.contains("since 99 of 100"), "{why}");
        // The same in sectors.
        assert_eq!(
            units(|i| format!("{i} 0 {} {} 1", i / 2 * 8 + i % 2 * 3, 3 + i % 2 * 2)).1,
            512
        );
        // Pages of 4 KiB at every eighth page: sectors all the same.
        assert_eq!(units(|i| format!("{i} 0 {} 8 1", i * 64)).1, 512);
        // Two devices in turn, each in order.
        let (_, _, why) = units(|i| {
            format!(
                "{i} {} {} {} 1",
                i % 2,
                i % 2 * 999_999 + i / 4 * 64 + i / 2 % 2 * 24,
                3 + i / 2 % 2 * 2
            )
        });
        assert!(why.contains("since 98 of 100"), "{why}");
        // Byte addresses beside sizes in sectors, and pages beside bytes.
        let (address, size, why) = units(|i| format!("{i} 0 {} 8 1", i * 4096));
        assert_eq!((address, size), (1, 512), "{why}");
        assert!(why.contains("since 99 of 100"), "{why}");
        assert_eq!(units(|i| format!("{i} 0 {i} 4096 1")).1, 1);
        // Another device's requests continue nothing.
        assert_eq!(
            units(|i| format!("{i} {i} {} {} 1", i / 2 * 64 + i % 2 * 24, 3 + i % 2 * 2)).1,
            512
        );
        // Sectors and bytes; bytes and bytes.
        assert_eq!(units(|i| format!("{i} 0 {} 4096 1", i * 8)).1, 1);
        let (address, size, _) = units(|i| format!("{i} 0 {} 65536 1", i * 131_072));
        assert_eq!((address, size), (1, 1));
        // Requests of 2 MiB in sectors could be 4 KiB in bytes: said, not taken.
        let (address, size, why) = units(|i| format!("{i} 0 {} 4096 1", i * 8192));
        assert_eq!((address, size), (512, 512));
        assert!(why.contains("bytes are possible"), "{why}");
    }

    #[test]
    fn times_without_any_chance_in_them_look_made_up() {
        let made_up = |time: fn(u64) -> u64| gathered(100, |i| format!("{} 0 {i} 8 1", time(i))).made_up();
        assert!(made_up(|i| 10 * i).is_some());
        // Rows left out of such a trace.
        assert!(made_up(|i| 10 * (i * 5 + i % 5)).is_some());
        assert!(made_up(|i| i * 1000 + i * i % 77).is_none());
        // Equal stamps, or a pause of a thousand steps, are a clock's.
        assert!(made_up(|i| i / 2 * 1000).is_none());
        assert!(made_up(|i| i * 10 + i / 50 * 10_000).is_none());
    }

    #[test]
    fn the_dialects_differ_in_points_flags_and_reach() {
        let dialect = |line: fn(u64) -> String| gathered(60, line).dialect(Nanoseconds);
        let is = |found: Dialect, wanted: Dialect| found == wanted;
        assert!(is(dialect(|i| format!("{i} {} 5 8 1", i % 3)), Dialect::Ssdsim));
        assert!(is(dialect(|i| format!("{} {} 5 8 1", i + 1, i % 3)), Dialect::Mqsim));
        assert!(is(dialect(|i| format!("{i} {} 2147483648 8 1", i % 3)), Dialect::Mqsim));
        assert!(is(dialect(|i| format!("{i}.5 {} 5 8 1", i % 3)), Dialect::Disksim));
        assert!(is(dialect(|i| format!("{i} {} 5 8 81", i % 3)), Dialect::Disksim));
    }

    #[test]
    fn extreme_values_do_no_harm() {
        let most = u64::MAX / 10;
        for time in ["9999999999999999999", "1e18", "0", "0.0000000001"] {
            let evidence = gathered(120, |i| {
                let time = if i % 2 == 0 { time.to_owned() } else { i.to_string() };
                format!("{time} {i} {} {} ffffffff 1 2 3", most - i, most / (i + 1))
            });
            let (address_unit, size_unit, _) = evidence.units();
            assert!(address_unit <= 512 && size_unit <= 4096);
            for dialect in [Dialect::Mqsim, Dialect::Ssdsim, Dialect::Disksim] {
                assert!(!evidence.time_unit(dialect, size_unit).1.is_empty());
            }
            evidence.made_up();
        }
    }
}
