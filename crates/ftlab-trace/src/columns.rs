//! The columns of a line of text, and the numbers and words in them.

use ftlab_core::OpKind;

use crate::health::{Defect, Parsed};
use crate::settings::{Codes, TimeUnit};

/// Addresses and lengths beyond this (an exbibyte) are taken for damage; it keeps all later sums within 64 bits.
pub const LARGEST: u64 = 1 << 60;

/// The columns of one line, read from left to right. `SEPARATOR` is a comma, or a space for any run of blanks.
pub struct Columns<'a, const SEPARATOR: u8> {
    line: &'a [u8],
    at: usize,
    column: u8,
}

impl<'a, const SEPARATOR: u8> Columns<'a, SEPARATOR> {
    #[inline]
    pub fn new(line: &'a [u8]) -> Self {
        let mut columns = Columns { line, at: 0, column: 1 };
        columns.skip_blanks();
        columns
    }

    /// A defect of the column read last.
    #[cold]
    pub fn defect(&self, expected: &'static str) -> Defect {
        Defect {
            at: u16::from(self.column.saturating_sub(1)),
            expected,
        }
    }

    /// Byte position in the line.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// An unsigned whole number.
    #[inline]
    pub fn number(&mut self) -> Parsed<u64> {
        let from = self.at;
        let mut value = 0u64;
        while let Some(&byte) = self.line.get(self.at) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.at += 1;
        }
        let digits = self.at - from;
        // Nineteen digits always fit 64 bits; more are damage (or times of the year 2554 in picoseconds).
        if digits == 0 || digits > 19 || !self.end_column() {
            return Err(self.wrong("a whole number"));
        }
        Ok(value)
    }

    /// A decimal number times 10^`exponent`, rounded down; every digit that matters is exact.
    #[inline]
    pub fn decimal(&mut self, exponent: i32) -> Parsed<u64> {
        let from = self.at;
        let mut value = 0u64;
        let mut point = None;
        while let Some(&byte) = self.line.get(self.at) {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                // Digits behind the last one that counts are passed over.
                if point.is_none_or(|p| (self.at - p) as i32 <= exponent) {
                    value = match value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit))) {
                        Some(value) => value,
                        None => return Err(self.wrong("a smaller number")),
                    };
                }
            } else if byte == b'.' && point.is_none() {
                point = Some(self.at);
            } else {
                break;
            }
            self.at += 1;
        }
        if self.at - from == usize::from(point.is_some()) {
            return Err(self.wrong("a number"));
        }
        if matches!(self.line.get(self.at), Some(b'e' | b'E')) {
            self.at = from;
            return self.scientific(exponent);
        }
        let fraction = point.map_or(0, |p| (self.at - p - 1) as i32).min(exponent.max(0));
        if !self.end_column() {
            return Err(self.wrong("a number"));
        }
        scale(value, exponent - fraction).ok_or_else(|| self.defect("a smaller number"))
    }

    /// "1.5e-05" and the like, through floating point.
    #[cold]
    fn scientific(&mut self, exponent: i32) -> Parsed<u64> {
        let text = std::str::from_utf8(self.text()?).unwrap_or("");
        let value = text.parse::<f64>().unwrap_or(f64::NAN) * libm::pow(10.0, f64::from(exponent));
        if (0.0..1.8e19).contains(&value) {
            Ok(value as u64)
        } else {
            Err(self.defect("a number that is not negative"))
        }
    }

    /// A time in `unit`, as nanoseconds.
    #[inline]
    pub fn time(&mut self, unit: TimeUnit) -> Parsed<u64> {
        self.decimal(unit.exponent())
    }

    /// The address of a request, counted in units of so many bytes, in bytes.
    #[inline]
    pub fn address(&mut self, unit_bytes: u64, expected: &'static str) -> Parsed<u64> {
        to_bytes(self.number()?, unit_bytes).ok_or_else(|| self.defect(expected))
    }

    /// The length of a request likewise; it may be 0.
    #[inline]
    pub fn length(&mut self, unit_bytes: u64, expected: &'static str) -> Parsed<u32> {
        let bytes = to_bytes(self.number()?, unit_bytes);
        bytes
            .and_then(|bytes| u32::try_from(bytes).ok())
            .ok_or_else(|| self.defect(expected))
    }

    /// A letter or word that means read or write.
    #[inline]
    pub fn read_or_write(&mut self, expected: &'static str) -> Parsed<OpKind> {
        read_or_write(self.text()?).ok_or_else(|| self.defect(expected))
    }

    /// An operation as a number.
    #[inline]
    pub fn code(&mut self, codes: Codes, expected: &'static str) -> Parsed<OpKind> {
        codes.operation(self.number()?).ok_or_else(|| self.defect(expected))
    }

    #[inline]
    pub fn process_id(&mut self) -> Parsed<u32> {
        u32::try_from(self.number()?).map_err(|_| self.defect("a process id"))
    }

    /// The column as it stands, possibly empty.
    #[inline]
    pub fn text(&mut self) -> Parsed<&'a [u8]> {
        let rest = &self.line[self.at..];
        let length = rest
            .iter()
            .position(|&b| b == SEPARATOR || b == b'\t' || b == b' ')
            .unwrap_or(rest.len());
        self.at += length;
        if !self.end_column() {
            return Err(self.wrong("no blank inside"));
        }
        Ok(&rest[..length])
    }

    /// A column that must not be empty.
    #[inline]
    pub fn key(&mut self) -> Parsed<&'a [u8]> {
        let key = self.text()?;
        if key.is_empty() {
            return Err(self.defect("a name or number"));
        }
        Ok(key)
    }

    /// Passes a column whatever is in it.
    #[inline]
    pub fn skip(&mut self) {
        let rest = &self.line[self.at..];
        self.at += rest.iter().position(|&b| b == SEPARATOR).unwrap_or(rest.len());
        self.end_column();
    }

    /// The first byte of the next column; its separator where it is empty.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    /// True when the line has no further column.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.at >= self.line.len()
    }

    /// Passes blanks and one separator; false if something else follows the value.
    #[inline]
    fn end_column(&mut self) -> bool {
        self.column = self.column.saturating_add(1);
        match self.line.get(self.at) {
            None => true,
            Some(&byte) if byte == SEPARATOR => {
                self.at += 1;
                self.skip_blanks();
                true
            }
            Some(b' ' | b'\t') => {
                self.skip_blanks();
                if SEPARATOR == b' ' || self.is_done() {
                    return true;
                }
                let found = self.line[self.at] == SEPARATOR;
                if found {
                    self.at += 1;
                    self.skip_blanks();
                }
                found
            }
            Some(_) => false,
        }
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t') = self.line.get(self.at) {
            self.at += 1;
        }
    }

    /// A defect of the column being read, whether or not its end was passed.
    #[cold]
    fn wrong(&self, expected: &'static str) -> Defect {
        let from = self.line[..self.at.min(self.line.len())].iter();
        let column = if SEPARATOR == b' ' {
            let mut inside = false;
            let mut count = 0u16;
            for blank in from.chain(self.line.get(self.at)).map(|&b| b == b' ' || b == b'\t') {
                if !blank && !inside {
                    count = (count + 1).min(255);
                }
                inside = !blank;
            }
            count.max(1)
        } else {
            (from.filter(|&&b| b == SEPARATOR).count().min(250) as u16) + 1
        };
        Defect { at: column, expected }
    }
}

/// `value × 10^power`, rounded down.
fn scale(value: u64, power: i32) -> Option<u64> {
    let factor = 10u64.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        value.checked_mul(factor)
    } else {
        Some(value / factor)
    }
}

/// `count` units of `unit_bytes` as bytes, refused beyond [`LARGEST`].
#[inline]
pub fn to_bytes(count: u64, unit_bytes: u64) -> Option<u64> {
    count.checked_mul(unit_bytes).filter(|&bytes| bytes <= LARGEST)
}

/// A request's length as the record holds it; a request of no bytes is no request.
#[inline]
pub fn to_length(bytes: u64) -> Option<u32> {
    u32::try_from(bytes).ok().filter(|&length| length > 0)
}

/// A number of at most `most` hexadecimal digits (16 at the most), with or without `0x`.
#[inline]
pub fn hexadecimal(text: &[u8], most: usize) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    if digits.is_empty() || digits.len() > most {
        return None;
    }
    digits.iter().try_fold(0, |number, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(number << 4 | u64::from(digit))
    })
}

/// Reads the letters and words that mean read and write.
#[inline]
pub fn read_or_write(text: &[u8]) -> Option<OpKind> {
    match text {
        [b'R' | b'r', ..] if text.len() == 1 || text.eq_ignore_ascii_case(b"read") => Some(OpKind::Read),
        [b'W' | b'w', ..] if text.len() == 1 || text.eq_ignore_ascii_case(b"write") => Some(OpKind::Write),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_in_nanoseconds() {
        let ns = |text: &str, unit: TimeUnit| Columns::<b','>::new(text.as_bytes()).decimal(unit.exponent());
        assert_eq!(ns("0.011413", TimeUnit::Seconds), Ok(11_413_000));
        assert_eq!(
            ns("1398405332.080820638", TimeUnit::Seconds),
            Ok(1_398_405_332_080_820_638)
        );
        assert_eq!(ns("26.2140009", TimeUnit::Milliseconds), Ok(26_214_000));
        assert_eq!(ns("7", TimeUnit::Seconds), Ok(7_000_000_000));
        assert_eq!(ns("7.", TimeUnit::Microseconds), Ok(7_000));
        assert_eq!(ns(".5", TimeUnit::Microseconds), Ok(500));
        assert_eq!(ns("123456.9", TimeUnit::Picoseconds), Ok(123));
        assert_eq!(ns("1.5e-05", TimeUnit::Seconds), Ok(15_000));
        assert_eq!(ns("12.75", TimeUnit::Nanoseconds), Ok(12));
        for bad in ["", ".", "-1", "1.2.3", "x", "99999999999999999999", "18446744074"] {
            assert!(ns(bad, TimeUnit::Seconds).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_are_told_apart_with_blanks_around_them() {
        let mut c = Columns::<b','>::new(b" 1 , 22,r ,");
        assert_eq!((c.number(), c.number()), (Ok(1), Ok(22)));
        assert_eq!(c.text(), Ok(&b"r"[..]));
        assert!(c.is_done());
        let mut c = Columns::<b' '>::new(b"1\t22  333");
        assert_eq!((c.number(), c.number(), c.number()), (Ok(1), Ok(22), Ok(333)));
    }

    #[test]
    fn a_defect_names_its_column() {
        let mut c = Columns::<b','>::new(b"1,2x,3");
        c.number().unwrap();
        assert_eq!(c.number().unwrap_err().at, 2);
        let mut c = Columns::<b' '>::new(b"1  2x 3");
        c.number().unwrap();
        assert_eq!(c.number().unwrap_err().at, 2);
        let mut c = Columns::<b','>::new(b"1");
        c.number().unwrap();
        assert!(c.number().is_err());
    }
}
