//! The fields of one line between separators of any kind, as spreadsheets write them.
//!
//! Blanks around a field do not count. A field in double quotes may hold the separator, and quotes of its own, each written
//! as two (RFC 4180); it ends with a quote before a separator or the end of the line. With a blank as the separator any run
//! of blanks is one.

use std::borrow::Cow;

use memchr::memchr;

use super::dates;
use crate::columns::{Columns, to_bytes};
use crate::health::{Defect, Parsed};
use crate::settings::TimeUnit;

pub struct Fields<'a> {
    line: &'a [u8],
    /// Beyond the line's length once the last field has been given out.
    at: usize,
    separator: u8,
    column: u8,
    /// Whether the field given out last stands in quotes.
    in_quotes: bool,
}

impl<'a> Fields<'a> {
    #[inline]
    pub fn new(line: &'a [u8], separator: u8) -> Self {
        Fields {
            line,
            at: 0,
            separator,
            column: 0,
            in_quotes: false,
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
        self.in_quotes = false;
        if rest.first() == Some(&b'"')
            && let Some(field) = self.quoted(at)
        {
            self.in_quotes = true;
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
        let mut second = None;
        let end = memchr::memchr_iter(b'"', inside).find(|end| {
            if second == Some(*end) {
                return false;
            }
            second = (inside.get(end + 1) == Some(&b'"')).then_some(end + 1);
            second.is_none() && closes(end)
        })?;
        let behind = at + 1 + end + 1;
        self.at = match self.separator {
            b' ' => behind,
            separator => behind + memchr(separator, &self.line[behind..]).map_or(self.line.len() + 1, |n| n + 1),
        };
        Some(&inside[..end])
    }

    /// The field given out last as a text: two quotes within quotes are one.
    #[inline]
    pub fn text(&self, field: &'a [u8]) -> Cow<'a, [u8]> {
        match self.in_quotes && memchr(b'"', field).is_some() {
            true => Cow::Owned(without_doubling(field)),
            false => Cow::Borrowed(field),
        }
    }

    /// All that follows the last field given out.
    pub fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or(b"")
    }

    /// A defect of the field given out last.
    #[cold]
    pub fn defect(&self, expected: &'static str) -> Defect {
        Defect {
            at: self.column.into(),
            expected,
        }
    }

    /// The field as a whole number.
    #[inline]
    pub fn number(&self, field: &[u8]) -> Parsed<u64> {
        self.bytes(field, 1)?.ok_or_else(|| self.defect("a whole number"))
    }

    /// The field in units of so many bytes, in bytes: a number that makes whole ones. `None` beyond 64 bits.
    #[inline]
    pub fn bytes(&self, field: &[u8], unit: u64) -> Parsed<Option<u64>> {
        let mut columns = Columns::<b','>::new(field);
        match columns.number() {
            Ok(value) if columns.is_done() => Ok(value.checked_mul(unit)),
            _ => self.other_number(field, unit).ok_or_else(|| match unit {
                1 => self.defect("a whole number"),
                _ => self.defect("a number that makes whole bytes"),
            }),
        }
    }

    /// The field as a number of sectors of 512 bytes, in bytes.
    #[inline]
    pub fn sectors(&self, field: &[u8], expected: &'static str) -> Parsed<u64> {
        to_bytes(self.number(field)?, 512).ok_or_else(|| self.defect(expected))
    }

    /// The field as a time in `unit`, in nanoseconds.
    #[inline]
    pub fn time(&self, field: &[u8], unit: TimeUnit) -> Parsed<u64> {
        let mut columns = Columns::<b','>::new(field);
        match columns.time(unit) {
            Ok(value) if columns.is_done() => Ok(value),
            _ => self.other_time(field, unit),
        }
    }
}

impl Fields<'_> {
    /// A date, or a time with a decimal comma, which cannot be the separator then.
    #[cold]
    fn other_time(&self, field: &[u8], unit: TimeUnit) -> Parsed<u64> {
        let time = dates::nanoseconds(field).or_else(|| {
            let with_point = self.with_point(field)?;
            let mut columns = Columns::<b','>::new(&with_point);
            columns.time(unit).ok().filter(|_| columns.is_done())
        });
        time.ok_or_else(|| self.defect("a time: a number that is not negative, or a date"))
    }

    #[cold]
    fn other_number(&self, field: &[u8], unit: u64) -> Option<Option<u64>> {
        let with_point = self.with_point(field);
        other_number(with_point.as_deref().unwrap_or(field), unit)
    }

    /// A number with a decimal comma, written with a point.
    fn with_point(&self, field: &[u8]) -> Option<Vec<u8>> {
        let at = field
            .iter()
            .position(|&b| b == b',')
            .filter(|_| self.separator != b',')?;
        let mut text = field.to_vec();
        text[at] = b'.';
        Some(text)
    }
}

/// `0x1f`, fractions that the unit makes whole, and what floating-point tables make of whole numbers: `4096.0`, `4.096e3`.
#[cold]
fn other_number(field: &[u8], unit: u64) -> Option<Option<u64>> {
    let text = std::str::from_utf8(field).ok()?;
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16)
            .ok()
            .map(|value| value.checked_mul(unit));
    }
    if text.contains(['e', 'E']) {
        let bytes = text.parse::<f64>().ok()? * unit as f64;
        return (bytes >= 0.0 && bytes.fract() == 0.0).then(|| (bytes < 1.8e19).then_some(bytes as u64));
    }
    let (whole, fraction) = text.split_once('.')?;
    let fraction = fraction.trim_end_matches('0');
    // A point alone is no number, and a sign is no digit.
    if text.len() < 2 || fraction.len() > 18 || !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let parts = format!("0{whole}{fraction}").parse::<u128>().ok()?;
    let parts = parts.checked_mul(unit.into())?;
    let scale = 10u128.pow(fraction.len() as u32);
    parts.is_multiple_of(scale).then(|| u64::try_from(parts / scale).ok())
}

#[cold]
fn without_doubling(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(field.len());
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        text.push(byte);
        if byte == b'"' && bytes.as_slice().first() == Some(&b'"') {
            bytes.next();
        }
    }
    text
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
    fn two_quotes_within_quotes_are_one() {
        let texts = |line: &str| {
            let mut fields = Fields::new(line.as_bytes(), b',');
            let mut texts = Vec::new();
            while let Some(field) = fields.next() {
                texts.push(String::from_utf8(fields.text(field).into_owned()).unwrap());
            }
            texts
        };
        assert_eq!(texts(r#""say ""hi""",2"#), [r#"say "hi""#, "2"]);
        assert_eq!(texts(r#""a"", b",2"#), [r#"a", b"#, "2"]);
        assert_eq!(texts(r#""""","""""",x"#), [r#"""#, r#""""#, "x"]);
        assert_eq!(texts(r#""",x"#), ["", "x"]);
        // Other quotes are text.
        assert_eq!(texts(r#"a""b,"c "d" e",f"#), [r#"a""b"#, r#"c "d" e"#, "f"]);
    }

    #[test]
    fn numbers_in_the_forms_that_tables_have() {
        let fields = Fields::new(b"", b',');
        let number = |text: &str| fields.number(text.as_bytes()).ok();
        assert_eq!(
            (number("12"), number("4096.0"), number("0x1F")),
            (Some(12), Some(4096), Some(31))
        );
        for bad in [
            "", "-1", "1 2", "x", ".", "4096.5", "4096.5.0", "1.5e0", "1e-3", "-1.0", "1e30x",
        ] {
            assert_eq!(number(bad), None, "{bad}");
        }
        assert_eq!(
            (number("7."), number(".0"), number("4.096e3")),
            (Some(7), Some(0), Some(4096))
        );
        let bytes = |text: &str, unit| fields.bytes(text.as_bytes(), unit).ok();
        assert_eq!(
            (bytes("32.5", 1024), bytes("0.0625", 512)),
            (Some(Some(33_280)), Some(Some(32)))
        );
        assert_eq!(
            (bytes(".5", 4096), bytes("1.25e1", 1024)),
            (Some(Some(2048)), Some(Some(12_800)))
        );
        assert_eq!(
            (bytes("0.001", 512), bytes("99999999999999999", 1 << 24)),
            (None, Some(None))
        );
        assert_eq!(fields.time(b"1.5", TimeUnit::Microseconds), Ok(1500));
        assert!(fields.time(b"-1.5", TimeUnit::Seconds).is_err());
        // A decimal comma, where it separates no columns.
        assert!(fields.time(b"1,5", TimeUnit::Seconds).is_err());
        let fields = Fields::new(b"", b';');
        assert_eq!(fields.time(b"1,5", TimeUnit::Microseconds), Ok(1500));
        assert_eq!(fields.bytes(b"32,5", 1024), Ok(Some(33_280)));
        assert!(fields.time(b"1,5,0", TimeUnit::Seconds).is_err() && fields.bytes(b"1,234", 1).is_err());
    }
}
