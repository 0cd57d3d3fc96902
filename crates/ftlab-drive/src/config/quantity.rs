//! Values of a drive file that carry their unit in a string, and values with a small vocabulary of their own.
//!
//! Each is read by [`serde`] from what the user wrote and shown again in the same notation.

use std::fmt;

use ftlab_core::{PolicySpec, units};
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Reads a string with `parse`; anything but a string is refused with `wanted`.
struct Text<T> {
    wanted: &'static str,
    parse: fn(&str) -> ftlab_core::Result<T>,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $wanted:expr, $parse:expr, $show:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text { wanted: $wanted, parse: $parse }).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&$show(self.0))
            }
        }
    };
}

quantity! {
    /// Bytes.
    Size(u64), "a size such as \"4KiB\" or \"1TB\"", units::bytes, exact_bytes
}
quantity! {
    /// Nanoseconds.
    Time(u64), "a time such as \"75us\" or \"3.8ms\"", units::nanoseconds, exact_time
}
quantity! {
    /// Bytes per second; `None`: without limit, and so without cost.
    Bandwidth(Option<u64>), "a rate such as \"4GB/s\", or \"none\"", bandwidth, |rate| match rate {
        Some(rate) => exact_rate(rate),
        None => "none".to_owned(),
    }
}
quantity! {
    /// Picoseconds per byte on a flash channel, from a rate ("533MT/s") or a time per byte ("3ns/B").
    ByteTime(u64), "a rate such as \"533MT/s\", or a time such as \"3ns/B\"", byte_time, exact_byte_time
}
quantity! {
    /// Bytes between two events; `None`: the event never happens.
    Interval(Option<u64>), "a size such as \"1GiB\", or \"none\"", interval, |bytes| match bytes {
        Some(bytes) => exact_bytes(bytes),
        None => "none".to_owned(),
    }
}

fn bandwidth(text: &str) -> ftlab_core::Result<Option<u64>> {
    if text == "none" {
        return Ok(None);
    }
    units::bytes_per_second(text).map(Some)
}

fn interval(text: &str) -> ftlab_core::Result<Option<u64>> {
    if text == "none" {
        return Ok(None);
    }
    units::bytes(text).map(Some)
}

fn byte_time(text: &str) -> ftlab_core::Result<u64> {
    let wanted = || {
        ftlab_core::Error::input(format!(
            "`{text}` is not a rate such as \"533MT/s\", or a time such as \"3ns/B\""
        ))
    };
    let picoseconds = match text.trim().strip_suffix("/B") {
        Some(time) => {
            let (number, factor) = match (time.strip_suffix("ns"), time.strip_suffix("ps")) {
                (Some(number), _) => (number, 1e3),
                (_, Some(number)) => (number, 1.0),
                _ => return Err(wanted()),
            };
            number.trim().parse::<f64>().map_err(|_| wanted())? * factor
        }
        // A rate of zero would take for ever, which the bound below refuses; a channel without cost is "0ns/B".
        None => 1e12 / units::bytes_per_second(text).map_err(|_| wanted())? as f64,
    };
    let out_of_range = || {
        ftlab_core::Error::input(format!(
            "`{text}`: expected 0.001MT/s to 2000000MT/s, 1ps/B to 1000000ns/B, or \"0ns/B\" where a byte costs nothing"
        ))
    };
    // Whole picoseconds are kept: what rounds to none would cost nothing, which "0ns/B" says.
    let is_lost = picoseconds > 0.0 && picoseconds.round() == 0.0;
    if (0.0..1e9).contains(&picoseconds) && !is_lost {
        Ok(picoseconds.round() as u64)
    } else {
        Err(out_of_range())
    }
}

/// Bytes in the largest binary unit that holds them without a remainder: "16KiB", "1000000B".
fn exact_bytes(n: u64) -> String {
    largest(
        n,
        &[
            (1 << 40, "TiB"),
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
            (1, "B"),
        ],
    )
}

/// Nanoseconds in the largest unit that holds them with at most three decimals: "1.5ms", "32.725us", "290ns".
fn exact_time(ns: u64) -> String {
    for (factor, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if ns >= factor && ns.is_multiple_of(factor / 1000) {
            let decimals = format!("{:03}", ns % factor / (factor / 1000));
            let number = format!("{}.{decimals}", ns / factor);
            return format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{ns}ns")
}

fn exact_rate(rate: u64) -> String {
    largest(
        rate,
        &[
            (1_000_000_000, "GB/s"),
            (1_000_000, "MB/s"),
            (1_000, "kB/s"),
            (1, "B/s"),
        ],
    )
}

fn exact_byte_time(ps: u64) -> String {
    let mega = (1e6 / ps as f64).round();
    if ps > 0 && mega > 0.0 && (1e6 / mega).round() as u64 == ps {
        format!("{mega}MT/s")
    } else {
        format!("{ps}ps/B")
    }
}

fn largest(n: u64, units: &[(u64, &str)]) -> String {
    let exact = units
        .iter()
        .find(|(factor, _)| n >= *factor && n.is_multiple_of(*factor));
    match exact.or(units.last()) {
        Some((factor, unit)) => format!("{}{unit}", n / factor),
        None => n.to_string(),
    }
}

/// A number of reclaim units, or a share of those in a pool: `2` or `"5%"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    Units(u32),
    Percent(f64),
}

impl Threshold {
    /// The number of units in a pool of `pool` units, rounded up.
    pub fn units(self, pool: u32) -> u32 {
        match self {
            Threshold::Units(units) => units,
            Threshold::Percent(percent) => (f64::from(pool) * percent / 100.0).ceil() as u32,
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Threshold;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of reclaim units, or a share of the pool such as \"5%\"")
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Threshold, E> {
                let units =
                    u32::try_from(units).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(units), &self))?;
                Ok(Threshold::Units(units))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Threshold, E> {
                let percent = text
                    .trim()
                    .strip_suffix('%')
                    .and_then(|number| number.trim().parse::<f64>().ok());
                match percent {
                    Some(percent) if (0.0..=100.0).contains(&percent) => Ok(Threshold::Percent(percent)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Memory for the map: bytes, a share of the whole map, or what a block-mapped drive's table takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MapCache {
    BlockTable,
    Bytes(u64),
    Percent(f64),
}

impl MapCache {
    /// In bytes, for a map of `map` bytes and `blocks` erase blocks of logical capacity.
    pub fn bytes(self, map: u64, blocks: u64) -> u64 {
        match self {
            MapCache::BlockTable => 4 * blocks,
            MapCache::Bytes(bytes) => bytes,
            MapCache::Percent(percent) => (map as f64 * percent / 100.0) as u64,
        }
    }
}

impl<'de> Deserialize<'de> for MapCache {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let text = text.trim();
        let percent = text
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok());
        match (text, percent) {
            ("block_table", _) => Ok(MapCache::BlockTable),
            (_, Some(percent)) if (0.0..=100.0).contains(&percent) => Ok(MapCache::Percent(percent)),
            _ => units::bytes(text).map(MapCache::Bytes).map_err(|_| {
                de::Error::custom(format!(
                    "`{text}`: expected bytes such as \"256KiB\", a share of the whole map such as \"5%\", or \"block_table\""
                ))
            }),
        }
    }
}

/// A count with a word for its absence: `3000` or `"none"`, `8` or `"all"`.
fn count_or<'de, D: Deserializer<'de>>(deserializer: D, word: &'static str) -> Result<Option<u32>, D::Error> {
    struct Either(&'static str);
    impl Visitor<'_> for Either {
        type Value = Option<u32>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a whole number below 2^32, or \"{}\"", self.0)
        }

        fn visit_u64<E: de::Error>(self, n: u64) -> Result<Option<u32>, E> {
            u32::try_from(n)
                .map(Some)
                .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(n), &self))
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<u32>, E> {
            if text == self.0 {
                Ok(None)
            } else {
                Err(E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
    }
    deserializer.deserialize_any(Either(word))
}

pub(super) fn count_or_all<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    count_or(deserializer, "all")
}

pub(super) fn count_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    count_or(deserializer, "none")
}

/// One time for every page type, or a list with one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times(pub Vec<u64>);

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Times;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"75us\", or a list with one time for each page type")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Times, E> {
                units::nanoseconds(text).map(|ns| Times(vec![ns])).map_err(E::custom)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Times, A::Error> {
                let mut times = Vec::new();
                while let Some(Time(ns)) = list.next_element()? {
                    times.push(ns);
                }
                Ok(Times(times))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

/// A policy in any of its three spellings; whether it exists is checked where it is built.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy(pub PolicySpec);

impl Policy {
    pub fn named(name: &str) -> Self {
        Policy(PolicySpec::named(name))
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        PolicySpec::from_value(&value).map(Policy).map_err(de::Error::custom)
    }
}

/// The policy in TOML: the one-line form where it reads back as the same policy, else an inline table.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.0.show();
        if PolicySpec::parse(&line).as_ref() == Ok(&self.0) {
            return write!(f, "{}", toml::Value::String(line));
        }
        let mut table = toml::Table::new();
        table.insert("policy".to_owned(), toml::Value::String(self.0.name.clone()));
        for (key, value) in &self.0.params {
            if let Ok(value) = toml::Value::try_from(value) {
                table.insert(key.clone(), value);
            }
        }
        write!(f, "{}", toml::Value::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back_as_the_same_value() {
        for n in [0, 1, 512, 4096, 16384, 1_000_000, 480_000_000_000, 1 << 40, 3 << 30] {
            assert_eq!(units::bytes(&exact_bytes(n)).unwrap(), n);
        }
        for ns in [
            0,
            1,
            290,
            999,
            1_001,
            75_000,
            3_800_000,
            1_500_000,
            32_725,
            1_000_000_001,
            3_600_000_000_000,
            20_000_000_000,
        ] {
            assert_eq!(units::nanoseconds(&exact_time(ns)).unwrap(), ns);
        }
        for text in ["533MT/s", "3ns/B", "1876ps/B", "40MT/s", "25ns/B", "1200MT/s"] {
            let ps = byte_time(text).unwrap();
            assert_eq!(byte_time(&exact_byte_time(ps)).unwrap(), ps, "{text}");
        }
        for text in ["3000000MT/s", "0.0004ns/B", "0MT/s", "-1ns/B"] {
            assert!(byte_time(text).is_err(), "{text}");
        }
        assert_eq!(byte_time("0ns/B").unwrap(), 0);
        assert_eq!(exact_time(1_500_000), "1.5ms");
        assert_eq!(exact_time(32_725), "32.725us");
        assert_eq!(exact_time(20_000_000_000), "20s");
        assert_eq!(byte_time("533MT/s").unwrap(), 1876);
        assert_eq!(byte_time("3ns/B").unwrap(), 3000);
        assert_eq!(exact_byte_time(byte_time("533MT/s").unwrap()), "533MT/s");
    }

    #[test]
    fn policies_keep_parameters_that_a_line_cannot_hold() {
        let spec = |value| Policy(PolicySpec::from_value(&value).unwrap());
        let plain = spec(serde_json::json!("d_choices:d=5"));
        assert_eq!(plain.to_string(), "\"d_choices:d=5\"");
        let odd = spec(serde_json::json!({"policy": "midas", "groups": [1, 2], "label": "7"}));
        let read: toml::Value = odd.to_string().parse().unwrap();
        assert_eq!(read.try_into::<Policy>().unwrap(), odd);
    }

    #[test]
    fn a_share_of_a_pool_rounds_up() {
        assert_eq!(Threshold::Percent(5.0).units(2048), 103);
        assert_eq!(Threshold::Units(2).units(2048), 2);
    }
}
