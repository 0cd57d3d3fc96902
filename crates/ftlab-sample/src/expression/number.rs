//! Texts as numbers, and numbers with all their digits.

use std::cmp::Ordering;

/// Whole numbers up to this size are numbers of 64 bits.
pub const EXACT: u128 = 1 << 53;

/// A float, and what tells whole numbers apart that round to the same: 0 where floats do.
#[derive(Clone, Copy, Debug)]
pub struct Real {
    pub float: f64,
    whole: i128,
}

impl Real {
    pub fn of(float: f64) -> Real {
        Real {
            float,
            whole: if float.abs() < EXACT as f64 { 0 } else { float as i128 },
        }
    }

    pub fn of_whole(whole: i128) -> Real {
        Real {
            whole,
            ..Real::of(whole as f64)
        }
    }

    /// As SQL compares: none where one is no number.
    pub fn compare(&self, other: &Real) -> Option<Ordering> {
        let order = self.float.partial_cmp(&other.float)?;
        Some(order.then(self.whole.cmp(&other.whole)))
    }
}

impl Ord for Real {
    fn cmp(&self, other: &Real) -> Ordering {
        self.float.total_cmp(&other.float).then(self.whole.cmp(&other.whole))
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Real) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Real) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Real {}

/// A number with all digits, if it is a whole one.
pub fn parse_real(text: &[u8]) -> Option<Real> {
    if let Some(float) = parse_decimal(text) {
        return Some(Real::of(float));
    }
    // Nothing else is a number that is read here, and most texts are none.
    let first = text.trim_ascii_start().first()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let real = Real::of(parse_number(text)?);
    let whole = || std::str::from_utf8(text).ok()?.trim().parse().ok();
    let is_large = real.whole != 0;
    Some(is_large.then(whole).flatten().map_or(real, Real::of_whole))
}

/// A number that is larger of a larger float, as `total_cmp` has it.
pub fn ordered(float: f64) -> u64 {
    let bits = float.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// Powers of ten that are exact.
const TENS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

pub fn parse_number(text: &[u8]) -> Option<f64> {
    if let Some(number) = parse_decimal(text) {
        return Some(number);
    }
    let text = std::str::from_utf8(text).ok()?.trim();
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Most numbers are short: at most 15 digits and perhaps a point. They and the power of ten are exact, so that one division rounds as it should; it takes
/// a tenth to a third of the time of the library's parser.
fn parse_decimal(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut sum, mut point) = (0u64, None);
    for (at, &byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            sum = sum * 10 + u64::from(digit);
        } else if byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let places = point.map_or(0, |point| digits.len() - 1 - point);
    let count = digits.len() - usize::from(point.is_some());
    if count == 0 || count > 15 {
        return None;
    }
    let number = sum as f64 / TENS[places];
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200,000 numbers of up to 17 digits, with the point anywhere, as the library reads them, to the bit.
    #[test]
    fn short_numbers_are_rounded_as_long_ones() {
        let mut random = ftlab_core::Stream::new(1, "numbers");
        for _ in 0..200_000 {
            let count = 1 + random.below(17);
            let mut text: String = (0..count).map(|_| char::from(b'0' + random.below(10) as u8)).collect();
            text.insert(random.below(count + 1) as usize, '.');
            if random.below(2) == 0 {
                text.insert(0, '-');
            }
            let wanted: f64 = text.parse().unwrap();
            assert_eq!(
                parse_number(text.as_bytes()).map(f64::to_bits),
                Some(wanted.to_bits()),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers() {
        for (text, wanted) in [
            ("007", Some(7.0)),
            (" -1.5e3 ", Some(-1500.0)),
            ("999999999999999", Some(999_999_999_999_999.0)),
            ("", None),
            ("1,5", None),
            ("inf", None),
            (".", None),
            ("-", None),
            ("1.2.3", None),
            ("--1", None),
            (".5", Some(0.5)),
            ("-7.", Some(-7.0)),
            ("0.1234567890123456", Some(0.123_456_789_012_345_6)),
            ("9999999999999999", Some(1e16)),
        ] {
            assert_eq!(parse_number(text.as_bytes()), wanted, "{text}");
        }
    }
}
