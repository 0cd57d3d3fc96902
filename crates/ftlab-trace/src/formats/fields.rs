//! The fields of one line between separators of any kind, as spreadsheets write them.
//!
//! Blanks around a field do not count. A field in double quotes may hold the separator; it ends with a quote before a
//! separator or the end of the line. With a blank as the separator any run of blanks is one.

use memchr::memchr;

use crate::settings::TimeUnit;
use crate::text::{Columns, Defect, Parsed, time};

pub struct Fields<'a> {
    line: &'a [u8],
    /// Beyond the line's length once the last field has been given out.
    at: usize,
    separator: u8,
    column: u8,
}

impl<'a> Fields<'a> {
    #[inline]
    pub fn new(line: &'a [u8], separator: u8) -> Self {
        Fields {
            line,
            at: 0,
            separator,
            column: 0,
        }
    }

    /// The next field; `None` behind the last one.
    #[inline]
    pub fn next(&mut self) -> Option<&'a [u8]> {
        let mut at = self.at;
        while self
            .line
            .get(at)
            .is_some_and(|&b| b == b' ' || (b == b'\t' && self.separator != b'\t'))
        {
            at += 1;
        }
        if at > self.line.len() || (self.separator == b' ' && at == self.line.len()) {
            self.at = self.line.len() + 1;
            return None;
        }
        self.column = self.column.saturating_add(1);
        let rest = &self.line[at..];
        if rest.first() == Some(&b'"')
            && let Some(field) = self.quoted(at)
        {
            return Some(field);
        }
        let length = match self.separator {
            b' ' => rest.iter().position(|&b| b == b' ' || b == b'\t'),
            separator => memchr(separator, rest),
        };
        let mut field = &rest[..length.unwrap_or(rest.len())];
        self.at = at + field.len() + 1;
        while let [before @ .., b' ' | b'\t' | b'\r'] = field {
            field = before;
        }
        Some(field)
    }

    /// The field whose opening quote is at `at`, if it has a closing one.
    fn quoted(&mut self, at: usize) -> Option<&'a [u8]> {
        let inside = &self.line[at + 1..];
        let closes = |&end: &usize| {
            let behind = inside[end + 1..]
                .iter()
                .find(|&&b| b == self.separator || !b.is_ascii_whitespace());
            behind.is_none_or(|&b| b == self.separator)
        };
        let end = memchr::memchr_iter(b'"', inside).find(closes)?;
        let behind = at + 1 + end + 1;
        self.at = match self.separator {
            b' ' => behind,
            separator => behind + memchr(separator, &self.line[behind..]).map_or(self.line.len() + 1, |n| n + 1),
        };
        Some(&inside[..end])
    }

    /// All that follows the last field given out.
    pub fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or(b"")
    }

    /// A defect of the field given out last.
    #[cold]
    pub fn defect(&self, expected: &'static str) -> Defect {
        Defect {
            column: self.column,
            expected,
        }
    }

    /// The field as a whole number; one with a fraction is rounded down.
    #[inline]
    pub fn number(&self, field: &[u8]) -> Parsed<u64> {
        let mut columns = Columns::<b','>::new(field);
        match columns.number() {
            Ok(value) if columns.is_done() => Ok(value),
            _ => self.other_number(field),
        }
    }

    /// `0x1f`, or what floating-point tables make of whole numbers: `4096.0`.
    #[cold]
    fn other_number(&self, field: &[u8]) -> Parsed<u64> {
        if let Some(digits) = field.strip_prefix(b"0x").or_else(|| field.strip_prefix(b"0X")) {
            let digits = std::str::from_utf8(digits).unwrap_or("");
            return u64::from_str_radix(digits, 16).map_err(|_| self.defect("a whole number"));
        }
        let mut columns = Columns::<b','>::new(field);
        match columns.decimal(0) {
            Ok(value) if columns.is_done() => Ok(value),
            _ => Err(self.defect("a whole number")),
        }
    }

    /// The field as a time in `unit`, in nanoseconds.
    #[inline]
    pub fn time(&self, field: &[u8], unit: TimeUnit) -> Parsed<u64> {
        let mut columns = Columns::<b','>::new(field);
        match time(&mut columns, unit) {
            Ok(value) if columns.is_done() => Ok(value),
            _ => Err(self.defect("a time that is not negative")),
        }
    }
}

/// All fields of a line.
pub fn split(line: &[u8], separator: u8) -> Vec<&[u8]> {
    let mut fields = Fields::new(line, separator);
    std::iter::from_fn(|| fields.next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str, separator: u8) -> Vec<&str> {
        let fields = super::split(line.as_bytes(), separator).into_iter();
        fields.map(|f| std::str::from_utf8(f).unwrap()).collect()
    }

    #[test]
    fn fields_are_split_at_any_separator() {
        assert_eq!(split(" a, b c ,,d", b','), ["a", "b c", "", "d"]);
        assert_eq!(split("a\t b\t\tc\t", b'\t'), ["a", "b", "", "c", ""]);
        assert_eq!(split("a; b", b';'), ["a", "b"]);
        assert_eq!(split("  a \t b  ", b' '), ["a", "b"]);
        assert_eq!(split("", b','), [""]);
        assert_eq!(split("", b' '), [""; 0]);
    }

    #[test]
    fn quotes_keep_separators() {
        assert_eq!(split("1,\"a, b\",2", b','), ["1", "a, b", "2"]);
        assert_eq!(split("\"a \"\"x\"\" b\" , \"\",3", b','), ["a \"\"x\"\" b", "", "3"]);
        assert_eq!(split("\"a b\" \"c\"", b' '), ["a b", "c"]);
        assert_eq!(split("1,\"a,2", b','), ["1", "\"a", "2"]);
        assert_eq!(split("1,\"a\"", b','), ["1", "a"]);
    }

    #[test]
    fn numbers_in_the_forms_that_tables_have() {
        let fields = Fields::new(b"", b',');
        let number = |text: &str| fields.number(text.as_bytes()).ok();
        assert_eq!(
            (number("12"), number("4096.0"), number("0x1F")),
            (Some(12), Some(4096), Some(31))
        );
        assert_eq!(
            (number(""), number("-1"), number("1 2"), number("x")),
            (None, None, None, None)
        );
        assert_eq!(fields.time(b"1.5", TimeUnit::Microseconds), Ok(1500));
        assert!(fields.time(b"-1.5", TimeUnit::Seconds).is_err());
    }
}
