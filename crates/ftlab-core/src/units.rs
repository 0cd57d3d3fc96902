//! Quantities of configuration: sizes, times and rates written with their units ("4KiB", "75us", "533MT/s").

use crate::error::{Error, Result};

const SIZES: [(&str, f64); 13] = [
    ("TiB", 1099511627776.0),
    ("GiB", 1073741824.0),
    ("MiB", 1048576.0),
    ("KiB", 1024.0),
    ("PB", 1e15),
    ("TB", 1e12),
    ("GB", 1e9),
    ("MB", 1e6),
    ("KB", 1e3),
    ("kB", 1e3),
    ("PiB", 1125899906842624.0),
    ("bytes", 1.0),
    ("B", 1.0),
];
const TIMES: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86400e9),
    ("s", 1e9),
];

/// Bytes from "4KiB", "1.5GB", "512B". A bare number is refused: the unit is part of the value.
pub fn bytes(text: &str) -> Result<u64> {
    quantity(text, &SIZES, "a size such as \"4KiB\" or \"1TB\"")
}

/// Nanoseconds from "75us", "3.8ms", "30ns".
pub fn nanoseconds(text: &str) -> Result<u64> {
    quantity(text, &TIMES, "a time such as \"75us\" or \"3.8ms\"")
}

/// Bytes per second from "4GB/s" or "533MT/s" (a transfer is one byte on an 8-bit bus).
pub fn bytes_per_second(text: &str) -> Result<u64> {
    let wanted = "a rate such as \"4GB/s\" or \"533MT/s\"";
    let body = text.trim().strip_suffix("/s").ok_or_else(|| expected(text, wanted))?;
    let in_bytes = match body.strip_suffix('T') {
        Some(prefix) => format!("{prefix}B"),
        None => body.to_owned(),
    };
    quantity(&in_bytes, &SIZES, wanted).map_err(|_| expected(text, wanted))
}

/// A count such as "1e6", "100k", "2M", "1_000". What is left of a whole number by rounding alone is none ("1.1M" is 1,100,000).
pub fn count(text: &str) -> Result<u64> {
    let wanted = "a whole number such as 1000, \"1e6\" or \"100k\"";
    let body = text.trim().replace('_', "");
    let (number, factor) = match body.as_bytes().last() {
        Some(b'k' | b'K') => (&body[..body.len() - 1], 1e3),
        Some(b'm' | b'M') => (&body[..body.len() - 1], 1e6),
        Some(b'g' | b'G') => (&body[..body.len() - 1], 1e9),
        _ => (body.as_str(), 1.0),
    };
    let value = number.parse::<f64>().map_err(|_| expected(text, wanted))? * factor;
    if is_too_large(value, number) {
        return Err(too_large(text, "a whole number"));
    }
    let near = (value - value.round()).abs() <= 1e-9 * value;
    whole(value).filter(|_| near).ok_or_else(|| expected(text, wanted))
}

/// `n` bytes in the largest binary unit that keeps three digits: "16 GiB", "1.50 MiB".
pub fn show_bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < 5 {
        value /= 1024.0;
        unit += 1;
    }
    let name = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit];
    if value.fract() == 0.0 {
        format!("{value} {name}")
    } else {
        format!("{value:.2} {name}")
    }
}

fn quantity(text: &str, units: &[(&str, f64)], wanted: &str) -> Result<u64> {
    let trimmed = text.trim();
    for (suffix, factor) in units {
        if let Some(number) = trimmed.strip_suffix(suffix)
            && let Ok(value) = number.trim().replace('_', "").parse::<f64>()
        {
            if is_too_large(value * factor, number) {
                return Err(too_large(text, wanted));
            }
            return whole(value * factor).ok_or_else(|| expected(text, wanted));
        }
    }
    match trimmed.parse::<f64>().is_ok_and(f64::is_finite) {
        true => Err(Error::input(format!("`{text}` is not {wanted}: it has no unit"))),
        false => Err(expected(text, wanted)),
    }
}

/// Somewhat less than 2^63.
const BOUND: f64 = 9.2e18;

/// A non-negative value below [`BOUND`], rounded to a whole number.
fn whole(value: f64) -> Option<u64> {
    (0.0..BOUND).contains(&value).then(|| value.round() as u64)
}

/// Whether a value written in digits is beyond the bound; 1e400 is parsed as infinite.
fn is_too_large(value: f64, written: &str) -> bool {
    value >= BOUND && written.contains(|c: char| c.is_ascii_digit())
}

fn too_large(text: &str, wanted: &str) -> Error {
    Error::input(format!("`{text}` is too large: expected {wanted}, below {BOUND:e}"))
}

fn expected(text: &str, wanted: &str) -> Error {
    Error::input(format!("`{text}` is not {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_carry_their_units() {
        assert_eq!(bytes("4KiB").unwrap(), 4096);
        assert_eq!(bytes("1TB").unwrap(), 1_000_000_000_000);
        assert_eq!(bytes("512B").unwrap(), 512);
        assert_eq!(bytes("1.5 MiB").unwrap(), 1_572_864);
        assert_eq!(nanoseconds("75us").unwrap(), 75_000);
        assert_eq!(nanoseconds("3.8ms").unwrap(), 3_800_000);
        assert_eq!(bytes_per_second("533MT/s").unwrap(), 533_000_000);
        assert_eq!(bytes_per_second("4GB/s").unwrap(), 4_000_000_000);
        assert_eq!(count("1e6").unwrap(), 1_000_000);
        assert_eq!(count("100k").unwrap(), 100_000);
        assert_eq!(count("1.1M").unwrap(), 1_100_000);
        assert_eq!(count("1.5k").unwrap(), 1_500);
    }

    #[test]
    fn a_number_without_a_unit_or_out_of_range_is_refused_with_an_example() {
        for bad in ["4096", "KiB", "-1KiB", "nanKiB", "1e30TB", "", "4KiBs"] {
            assert!(bytes(bad).unwrap_err().to_string().contains("a size such as"), "{bad}");
        }
        let said = bytes("1e4").unwrap_err().to_string();
        assert_eq!(said, "`1e4` is not a size such as \"4KiB\" or \"1TB\": it has no unit");
        assert!(nanoseconds("75").is_err());
        for large in ["1e30", "1e400", "9300000000G"] {
            let said = count(large).unwrap_err().to_string();
            assert_eq!(
                said,
                format!("`{large}` is too large: expected a whole number, below 9.2e18")
            );
        }
        for large in [bytes("1e30TB"), nanoseconds("1e12d")] {
            assert!(large.unwrap_err().to_string().contains("is too large: expected a "));
        }
        assert!(count("inf").unwrap_err().to_string().contains("is not a whole number"));
        for bad in ["12.x", "1.5", "1.0005k", "-1", "nan"] {
            assert!(
                count(bad).unwrap_err().to_string().contains("is not a whole number"),
                "{bad}"
            );
        }
    }
}
