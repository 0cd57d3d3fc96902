//! Expressions of SQL over the fields of a record.
//!
//! # Model
//! A value is null, a number (64-bit float), a whole number that such floats do not hold, text or a truth. Text is read as a number where it is compared or computed with one, and where two fields of a format
//! without types are compared that both are numbers. Logic has three values, as in SQL; where a condition is null the record is left out. `like` knows `%` and `_`, which is a character.
//!
//! # Errors
//! Text that is no number where one is needed.

mod number;

pub use number::{EXACT, ordered};
use number::{Real, parse_number, parse_real};

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What is wrong with a record; its place is added by who knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong(pub String);

#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    Null,
    Number(f64),
    /// Beyond `EXACT`; what is no larger is a `Number`.
    Whole(i128),
    Text(Cow<'a, [u8]>),
    Bool(bool),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A field, by its slot.
    Slot(usize),
    Null,
    Number(f64),
    /// Beyond `EXACT`.
    Whole(i128),
    Text(Vec<u8>),
    Bool(bool),
    Compare(Comparison, Texts, Box<Expression>, Box<Expression>),
    Compute(Operator, Box<Expression>, Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    IsNull(Box<Expression>),
    Like(Box<Expression>, Vec<u8>),
    AsNumber(Box<Expression>),
    Lower(Box<Expression>),
    Upper(Box<Expression>),
    Length(Box<Expression>),
    /// Text, first character from 1 on, number of characters.
    Substring(Box<Expression>, Box<Expression>, Option<Box<Expression>>),
    /// The n-th piece, from 1 on, of a text cut at white space.
    Field(Box<Expression>, usize),
}

impl Expression {
    /// Whether it can only be true, false or null.
    pub fn is_truth(&self) -> bool {
        matches!(
            self,
            Expression::Bool(_)
                | Expression::Compare(..)
                | Expression::And(..)
                | Expression::Or(..)
                | Expression::Not(_)
                | Expression::IsNull(_)
                | Expression::Like(..)
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What two texts are compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    Texts,
    /// Both are fields without a type, or one is and the other a truth: numbers, where they can be read so.
    Untyped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

type Evaluated<T> = std::result::Result<T, Wrong>;

impl Value<'_> {
    /// A whole number of any size.
    pub fn whole(number: i128) -> Value<'static> {
        if number.unsigned_abs() <= EXACT {
            Value::Number(number as f64)
        } else {
            Value::Whole(number)
        }
    }

    /// The same, which borrows its text.
    pub fn borrowed(&self) -> Value<'_> {
        match self {
            Value::Null => Value::Null,
            Value::Number(number) => Value::Number(*number),
            Value::Whole(number) => Value::Whole(*number),
            Value::Text(text) => Value::Text(Cow::Borrowed(text)),
            Value::Bool(truth) => Value::Bool(*truth),
        }
    }

    /// The same, which owns its text.
    pub fn owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Number(number) => Value::Number(number),
            Value::Whole(number) => Value::Whole(number),
            Value::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Value::Bool(truth) => Value::Bool(truth),
        }
    }

    /// As text; none of null.
    pub fn text(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Value::Null => None,
            Value::Text(text) => Some(Cow::Borrowed(text)),
            Value::Number(number) => Some(Cow::Owned(number.to_string().into_bytes())),
            Value::Whole(number) => Some(Cow::Owned(number.to_string().into_bytes())),
            Value::Bool(truth) => Some(Cow::Owned(truth.to_string().into_bytes())),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// As a number; none of null.
    pub fn number(&self) -> Evaluated<Option<f64>> {
        match self {
            Value::Null => Ok(None),
            Value::Number(number) => Ok(Some(*number)),
            Value::Whole(number) => Ok(Some(*number as f64)),
            Value::Bool(truth) => Ok(Some(f64::from(u8::from(*truth)))),
            Value::Text(text) => parse_number(text)
                .map(Some)
                .ok_or_else(|| Wrong(format!("`{}`: expected a number", String::from_utf8_lossy(text)))),
        }
    }

    /// As a truth; none of null.
    pub fn truth(&self) -> Evaluated<Option<bool>> {
        match self {
            Value::Null => Ok(None),
            Value::Bool(truth) => Ok(Some(*truth)),
            Value::Number(number) => Ok(Some(*number != 0.0)),
            Value::Whole(_) => Ok(Some(true)),
            Value::Text(text) if text.eq_ignore_ascii_case(b"true") => Ok(Some(true)),
            Value::Text(text) if text.eq_ignore_ascii_case(b"false") => Ok(Some(false)),
            Value::Text(text) => Err(Wrong(format!(
                "`{}`: expected a condition",
                String::from_utf8_lossy(text)
            ))),
        }
    }

    /// As bytes that tell values of groups apart: their kind, then their text.
    pub fn write_key(&self, key: &mut Vec<u8>) {
        let before = key.len();
        key.extend([0; 4]);
        match self {
            Value::Null => key.push(b'-'),
            Value::Bool(truth) => key.extend([b'b', u8::from(*truth)]),
            Value::Number(number) => {
                key.push(b'n');
                // Zeros are one group, and so are all that are no number.
                let number = if *number == 0.0 {
                    0.0
                } else if number.is_nan() {
                    f64::NAN
                } else {
                    *number
                };
                key.extend(number.to_bits().to_be_bytes());
            }
            Value::Text(text) => {
                key.push(b't');
                key.extend(&**text);
            }
            // By its digits: no two are to be one group.
            Value::Whole(number) => {
                key.push(b'i');
                key.extend(number.to_string().into_bytes());
            }
        }
        let length = (key.len() - before - 4) as u32;
        key[before..before + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Whether `key` is what `write_key` writes of so many values.
    pub fn are_keys(mut key: &[u8], count: usize) -> bool {
        let mut found = 0;
        while let Some((length, rest)) = key.split_first_chunk::<4>() {
            let Some((value, after)) = rest.split_at_checked(u32::from_be_bytes(*length) as usize) else {
                return false;
            };
            let right = match value {
                [b'-'] | [b'b', 0 | 1] | [b't', ..] => true,
                [b'n', bits @ ..] => bits.len() == 8,
                [b'i', digits @ ..] => whole_of(digits).is_some(),
                _ => false,
            };
            if !right {
                return false;
            }
            found += 1;
            key = after;
        }
        key.is_empty() && found == count
    }

    /// Of what `write_key` has written.
    pub fn read_keys(key: &[u8]) -> impl Iterator<Item = Value<'_>> {
        parts(key).map(|value| match value {
            [b'b', truth] => Value::Bool(*truth != 0),
            [b'n', bits @ ..] => Value::Number(number_of(bits)),
            [b't', text @ ..] => Value::Text(Cow::Borrowed(text)),
            [b'i', digits @ ..] => whole_of(digits).map_or(Value::Null, Value::Whole),
            _ => Value::Null,
        })
    }

    /// As a number, with all digits of a whole one; none of null and of texts that are no numbers.
    fn real(&self) -> Option<Real> {
        match self {
            Value::Null => None,
            Value::Number(number) => Some(Real::of(*number)),
            Value::Whole(number) => Some(Real::of_whole(*number)),
            Value::Bool(truth) => Some(Real::of(f64::from(u8::from(*truth)))),
            Value::Text(text) => parse_real(text),
        }
    }
}

/// For sorting results: null, truths, numbers, texts. Numbers that are written in several ways are told apart by their text, so that the order is always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank<'a> {
    Null,
    Bool(bool),
    Number(Real, &'a [u8]),
    Text(&'a [u8]),
}

impl<'a> Rank<'a> {
    /// Of what `Value::write_key` has written. Texts that are numbers are sorted as such.
    pub fn read(key: &'a [u8]) -> impl Iterator<Item = Rank<'a>> {
        parts(key).map(|value| match value {
            [b'b', truth] => Rank::Bool(*truth != 0),
            [b'n', bits @ ..] => Rank::Number(Real::of(number_of(bits)), b""),
            [b'i', digits @ ..] => Rank::Number(Real::of_whole(whole_of(digits).unwrap_or_default()), b""),
            [b't', text @ ..] => match parse_real(text) {
                Some(number) => Rank::Number(number, text),
                None => Rank::Text(text),
            },
            _ => Rank::Null,
        })
    }

    /// A number that is no larger than that of a larger rank: most ranks are told apart by it.
    pub fn beginning(&self) -> u64 {
        let (kind, rest) = match self {
            Rank::Null => (0u64, 0),
            Rank::Bool(truth) => (1, u64::from(*truth)),
            Rank::Number(number, _) => (2, ordered(number.float) >> 8),
            Rank::Text(text) => {
                let bytes = text.iter().take(7).enumerate();
                (
                    3,
                    bytes.fold(0, |all, (at, &byte)| all | u64::from(byte) << (48 - 8 * at)),
                )
            }
        };
        kind << 56 | rest
    }
}

/// What `write_key` has written of each value: its kind, and its text.
fn parts(mut key: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = key.split_first_chunk::<4>()?;
        let (value, after) = rest.split_at(u32::from_be_bytes(*length) as usize);
        key = after;
        Some(value)
    })
}

fn number_of(bits: &[u8]) -> f64 {
    f64::from_bits(u64::from_be_bytes(bits.try_into().unwrap_or_default()))
}

fn whole_of(digits: &[u8]) -> Option<i128> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Expression {
    pub fn evaluate<'v>(&'v self, slots: &'v [Value<'_>]) -> Evaluated<Value<'v>> {
        let truth = |found: Option<bool>| found.map_or(Value::Null, Value::Bool);
        Ok(match self {
            Expression::Slot(slot) => slots[*slot].borrowed(),
            Expression::Null => Value::Null,
            Expression::Number(number) => Value::Number(*number),
            Expression::Whole(number) => Value::Whole(*number),
            Expression::Text(text) => Value::Text(Cow::Borrowed(text)),
            Expression::Bool(truth) => Value::Bool(*truth),
            Expression::Compare(how, texts, a, b) => {
                truth(compare(*how, *texts, &a.evaluate(slots)?, &b.evaluate(slots)?)?)
            }
            Expression::Compute(how, a, b) => {
                let (a, b) = (a.evaluate(slots)?.number()?, b.evaluate(slots)?.number()?);
                match (a, b) {
                    (Some(a), Some(b)) => compute(*how, a, b),
                    _ => Value::Null,
                }
            }
            Expression::And(a, b) => {
                let a = a.evaluate(slots)?.truth()?;
                if a == Some(false) {
                    return Ok(Value::Bool(false));
                }
                match (a, b.evaluate(slots)?.truth()?) {
                    (_, Some(false)) => Value::Bool(false),
                    (Some(true), Some(true)) => Value::Bool(true),
                    _ => Value::Null,
                }
            }
            Expression::Or(a, b) => {
                let a = a.evaluate(slots)?.truth()?;
                if a == Some(true) {
                    return Ok(Value::Bool(true));
                }
                match (a, b.evaluate(slots)?.truth()?) {
                    (_, Some(true)) => Value::Bool(true),
                    (Some(false), Some(false)) => Value::Bool(false),
                    _ => Value::Null,
                }
            }
            Expression::Not(a) => truth(a.evaluate(slots)?.truth()?.map(|truth| !truth)),
            Expression::IsNull(a) => Value::Bool(a.evaluate(slots)?.is_null()),
            Expression::Like(a, pattern) => match a.evaluate(slots)?.text() {
                Some(text) => Value::Bool(like(&text, pattern)),
                None => Value::Null,
            },
            Expression::AsNumber(a) => a.evaluate(slots)?.number()?.map_or(Value::Null, Value::Number),
            Expression::Lower(a) => of_text(&a.evaluate(slots)?, |text| text.to_ascii_lowercase()),
            Expression::Upper(a) => of_text(&a.evaluate(slots)?, |text| text.to_ascii_uppercase()),
            Expression::Length(a) => match a.evaluate(slots)?.text() {
                Some(text) => Value::Number(String::from_utf8_lossy(&text).chars().count() as f64),
                None => Value::Null,
            },
            Expression::Substring(a, from, count) => {
                let from = from.evaluate(slots)?.number()?;
                let count = match count {
                    Some(count) => count.evaluate(slots)?.number()?,
                    None => Some(f64::INFINITY),
                };
                match (a.evaluate(slots)?.text(), from, count) {
                    (Some(text), Some(from), Some(count)) => {
                        let (start, end) = ((from - 1.0).max(0.0) as usize, (from - 1.0 + count).max(0.0) as usize);
                        Value::Text(Cow::Owned(characters(&text, start, end)))
                    }
                    _ => Value::Null,
                }
            }
            Expression::Field(a, number) => match a.evaluate(slots)? {
                Value::Text(Cow::Borrowed(text)) => piece(text, *number).map_or(Value::Null, |p| Value::Text(p.into())),
                Value::Text(Cow::Owned(text)) => {
                    piece(&text, *number).map_or(Value::Null, |p| Value::Text(p.to_vec().into()))
                }
                _ => Value::Null,
            },
        })
    }
}

/// Those from `start` up to `end`; what is no UTF-8 counts as it is shown.
fn characters(text: &[u8], start: usize, end: usize) -> Vec<u8> {
    let end = end.max(start);
    if text.is_ascii() {
        return text[start.min(text.len())..end.min(text.len())].to_vec();
    }
    let text = String::from_utf8_lossy(text);
    let some: String = text.chars().skip(start).take(end - start).collect();
    some.into_bytes()
}

fn piece(text: &[u8], number: usize) -> Option<&[u8]> {
    text.split(u8::is_ascii_whitespace)
        .filter(|piece| !piece.is_empty())
        .nth(number - 1)
}

fn compare(how: Comparison, texts: Texts, a: &Value<'_>, b: &Value<'_>) -> Evaluated<Option<bool>> {
    if a.is_null() || b.is_null() {
        return Ok(None);
    }
    let order = match (a, b) {
        (Value::Text(one), Value::Text(other)) => {
            let numbers = match texts {
                Texts::Untyped => parse_real(one).zip(parse_real(other)),
                Texts::Texts => None,
            };
            numbers.map_or_else(|| Some(one.cmp(other)), |(one, other)| one.compare(&other))
        }
        (Value::Bool(truth), number @ (Value::Number(_) | Value::Whole(_)))
        | (number @ (Value::Number(_) | Value::Whole(_)), Value::Bool(truth)) => {
            return Err(no_truth(&number.text().unwrap_or_default(), *truth));
        }
        (Value::Bool(truth), Value::Text(text)) | (Value::Text(text), Value::Bool(truth))
            if texts == Texts::Untyped && parse_real(text).is_some() =>
        {
            return Err(no_truth(text, *truth));
        }
        (Value::Bool(_), _) | (_, Value::Bool(_)) => match (a.truth(), b.truth()) {
            (Ok(a), Ok(b)) => a.partial_cmp(&b),
            // A text that is neither `true` nor `false` is another than both.
            _ => a.text().partial_cmp(&b.text()),
        },
        _ => match (a.real(), b.real()) {
            (Some(a), Some(b)) => a.compare(&b),
            // One of the two is text, and says which.
            _ => a.number()?.partial_cmp(&b.number()?),
        },
    };
    Ok(order.map(|order| match how {
        Comparison::Equal => order.is_eq(),
        Comparison::Unequal => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }))
}

fn no_truth(number: &[u8], truth: bool) -> Wrong {
    let number = String::from_utf8_lossy(number);
    Wrong(format!(
        "`{number}` compared with `{truth}`: expected two truths or two numbers"
    ))
}

/// As in SQL, nothing is divided by zero: the result is null.
fn compute(how: Operator, a: f64, b: f64) -> Value<'static> {
    match how {
        Operator::Add => Value::Number(a + b),
        Operator::Subtract => Value::Number(a - b),
        Operator::Multiply => Value::Number(a * b),
        Operator::Divide | Operator::Remainder if b == 0.0 => Value::Null,
        Operator::Divide => Value::Number(a / b),
        Operator::Remainder => Value::Number(a % b),
    }
}

fn of_text(value: &Value<'_>, change: impl Fn(&[u8]) -> Vec<u8>) -> Value<'static> {
    value
        .text()
        .map_or(Value::Null, |text| Value::Text(Cow::Owned(change(&text))))
}

/// Where the character that begins at `at` ends.
fn after(text: &[u8], at: usize) -> usize {
    let further = text[at + 1..].iter().take_while(|&&byte| byte & 0xC0 == 0x80);
    at + 1 + further.count()
}

/// `%` stands for any bytes, `_` for a character.
fn like(text: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut in_pattern) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(in_pattern) {
            Some(b'%') => {
                again = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(b'_') => {
                at = after(text, at);
                in_pattern += 1;
            }
            Some(&byte) if byte == text[at] => {
                at += 1;
                in_pattern += 1;
            }
            _ => match again {
                Some((percent, from)) => {
                    in_pattern = percent + 1;
                    at = after(text, from);
                    again = Some((percent, at));
                }
                None => return false,
            },
        }
    }
    pattern[in_pattern..].iter().all(|&byte| byte == b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_told_apart_by_their_beginnings() {
        let numbers = [
            f64::NEG_INFINITY,
            -1e300,
            -2.0,
            -1.5,
            0.0,
            1e-300,
            1.0,
            9_007_199_254_740_992.0,
            f64::NAN,
        ];
        let texts = ["", "a", "a\0", "ab", "abcdefg", "abcdefgh", "abcdefgi", "b", "\u{fd}"];
        let whole = ["9007199254740993", "9007199254740994", "007", "7", "7.0"];
        let mut values = vec![Value::Null, Value::Bool(false), Value::Bool(true)];
        values.extend(numbers.map(Value::Number));
        values.extend(
            texts
                .iter()
                .chain(&whole)
                .map(|text| Value::Text(Cow::Borrowed(text.as_bytes()))),
        );
        let keys = values.iter().map(|value| {
            let mut key = Vec::new();
            value.write_key(&mut key);
            key
        });
        let keys: Vec<Vec<u8>> = keys.collect();
        let mut ranks: Vec<Rank<'_>> = keys.iter().flat_map(|key| Rank::read(key)).collect();
        ranks.sort();
        assert_eq!(ranks.len(), values.len());
        assert!(ranks.is_sorted_by_key(Rank::beginning), "{ranks:?}");
        assert!(ranks.windows(2).all(|two| two[0] < two[1]), "{ranks:?}");
        assert!(numbers.is_sorted_by_key(|&number| ordered(number)));
        let place = |text: &str| {
            ranks
                .iter()
                .position(|rank| matches!(rank, Rank::Number(_, of) if *of == text.as_bytes()))
        };
        assert!(place("007") < place("7") && place("9007199254740993") < place("9007199254740994"));
    }

    #[test]
    fn patterns() {
        for (text, pattern, wanted) in [
            ("banana", "%an%", true),
            ("banana", "b_n%a", true),
            ("banana", "%nab", false),
            ("", "%", true),
            ("", "_", false),
            ("aab", "%ab", true),
        ] {
            assert_eq!(like(text.as_bytes(), pattern.as_bytes()), wanted, "{text} {pattern}");
        }
    }

    #[test]
    fn keys_are_read_back_and_tell_kinds_apart() {
        let values = [
            Value::Null,
            Value::Text(Cow::Borrowed(b"")),
            Value::Number(-0.0),
            Value::Bool(true),
            Value::Text(Cow::Borrowed(b"a,b")),
        ];
        let mut key = Vec::new();
        values.iter().for_each(|value| value.write_key(&mut key));
        let mut wanted = values.to_vec();
        wanted[2] = Value::Number(0.0);
        assert_eq!(Value::read_keys(&key).collect::<Vec<_>>(), wanted);
        assert!(Value::are_keys(&key, 5) && Value::are_keys(b"", 0));
        assert!(!Value::are_keys(&key, 4));
        let cuts = (1..key.len()).filter(|&cut| (0..5).any(|count| Value::are_keys(&key[..cut], count)));
        assert_eq!(cuts.collect::<Vec<_>>(), [5, 10, 23, 29], "{key:?}");
        assert!(!Value::are_keys(b"\0\0\0\x02n0", 1) && !Value::are_keys(b"\0\0\0\0", 1));
    }
}
