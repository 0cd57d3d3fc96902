//! Records of text: lines, and the fields in them.
//!
//! # Model
//! * `text`: a record is a line; its one field is `line`.
//! * `csv` (comma), `tsv` (tab, no quotes), or any `delimiter`: fields by position. Quotes as in RFC 4180. A field with nothing in it is null, unless it is quoted. Blank
//!   lines are no records.
//! * `json`: an object on each line; `a.b` is a field of a nested object. Absent fields are null. Of a name that an object has twice the last counts, as in Python. Blank lines are no records.
//!
//! * `parquet`: no lines, see `row_groups`.
//!
//! A carriage return in front of a line end belongs to it. The last line need not end.
//!
//! # Errors
//! A CSV record without a field that is asked for, or with more fields than the header names; a line that is no JSON object. Records of which no
//! field is asked for (`count(*)`) are lines.

use std::borrow::Cow;

use ftlab_core::error::unknown;
use ftlab_core::{Error, Result};

use crate::expression::{Value, Wrong};

pub const FORMS: [&str; 5] = ["text", "csv", "tsv", "json", "parquet"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Csv { delimiter: u8, quotes: bool },
    Json,
    Parquet,
}

impl Form {
    pub fn parse(name: &str, delimiter: Option<&str>) -> Result<Form> {
        let form = match name {
            "text" => Form::Text,
            "csv" => Form::Csv {
                delimiter: b',',
                quotes: true,
            },
            "tsv" => Form::Csv {
                delimiter: b'\t',
                quotes: false,
            },
            "json" => Form::Json,
            "parquet" => Form::Parquet,
            _ => return Err(unknown("format", name, &FORMS)),
        };
        match (form, delimiter) {
            (Form::Csv { quotes, .. }, Some(given)) => match given.as_bytes() {
                b"\\t" => Ok(Form::Csv {
                    delimiter: b'\t',
                    quotes,
                }),
                [delimiter] if !matches!(delimiter, b'\n' | b'\r' | b'"') => Ok(Form::Csv {
                    delimiter: *delimiter,
                    quotes,
                }),
                _ => Err(Error::input(format!("--delimiter {given}: expected one character"))),
            },
            (_, Some(given)) => Err(Error::input(format!(
                "--delimiter {given}: expected nothing with --format {name}, which has none"
            ))),
            (form, None) => Ok(form),
        }
    }

    /// What the end of a name says.
    pub fn of_name(name: &str) -> Form {
        let name = name.to_ascii_lowercase();
        // What it is compressed with says nothing of its records.
        let packed = [".gz", ".bgz", ".bgzf", ".zst", ".zstd"];
        let name = packed.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        let end = name.rsplit('.').next().unwrap_or_default();
        let form = match end {
            "csv" => "csv",
            "tsv" | "tab" => "tsv",
            "json" | "jsonl" | "ndjson" => "json",
            "parquet" | "pq" => "parquet",
            _ => "text",
        };
        Form::parse(form, None).unwrap_or(Form::Text)
    }

    pub fn name(&self) -> &'static str {
        match self {
            Form::Text => "text",
            Form::Csv { delimiter: b'\t', .. } => "tsv",
            Form::Csv { .. } => "csv",
            Form::Json => "json",
            Form::Parquet => "parquet",
        }
    }
}

/// Whether a place lies within quotes, told quote by quote. A quote opens a field only where the field begins, and one behind a closing
/// quote stands for itself; any other in a field without quotes is text (`5" disk`).
#[derive(Clone, Copy, Debug)]
pub struct Quotes {
    delimiter: u8,
    pub within: bool,
    closed: Option<u64>,
}

impl Quotes {
    pub fn new(delimiter: u8) -> Self {
        Quotes {
            delimiter,
            within: false,
            closed: None,
        }
    }

    /// A quote at `place`, behind the byte `before`; none where a record begins. True if it opens a field.
    pub fn meets(&mut self, place: u64, before: Option<u8>) -> bool {
        if self.within {
            (self.within, self.closed) = (false, Some(place));
            return false;
        }
        let opens = before.is_none_or(|byte| byte == b'\n' || byte == self.delimiter);
        let doubles = place > 0 && self.closed == Some(place - 1);
        self.within = opens || doubles;
        opens
    }
}

/// Calls `each` with every record of `bytes`, and its place there. With `quoted`, line ends within quotes do not end a record.
pub fn records<'a>(
    form: &Form,
    quoted: bool,
    bytes: &'a [u8],
    mut each: impl FnMut(usize, &'a [u8]) -> std::result::Result<(), Wrong>,
) -> std::result::Result<(), (usize, Wrong)> {
    let mut start = 0;
    let mut give = |start: usize, end: usize| {
        let line = &bytes[start..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let is_blank = match form {
            Form::Text => false,
            Form::Json => line.trim_ascii().is_empty(),
            _ => line.is_empty(),
        };
        if is_blank {
            return Ok(());
        }
        each(start, line).map_err(|wrong| (start, wrong))
    };
    if let (true, Form::Csv { delimiter, .. }) = (quoted, form) {
        let mut quotes = Quotes::new(*delimiter);
        for at in memchr::memchr2_iter(b'"', b'\n', bytes) {
            if bytes[at] == b'"' {
                quotes.meets(at as u64, at.checked_sub(1).map(|before| bytes[before]));
            } else if !quotes.within {
                give(start, at)?;
                start = at + 1;
            }
        }
    } else {
        for at in memchr::memchr_iter(b'\n', bytes) {
            give(start, at)?;
            start = at + 1;
        }
    }
    if start < bytes.len() {
        give(start, bytes.len())?;
    }
    Ok(())
}

/// Which field of a record goes where.
#[derive(Clone, Debug, PartialEq)]
pub enum Pick {
    Line,
    Field(usize),
    Path(Vec<String>),
}

/// Puts the picked fields of a record into `slots`.
pub fn fields<'a>(
    form: &Form,
    picks: &[Pick],
    names: &[String],
    line: &'a [u8],
    slots: &mut [Value<'a>],
) -> std::result::Result<(), Wrong> {
    match form {
        Form::Text => slots[..picks.len()].fill_with(|| Value::Text(Cow::Borrowed(line))),
        Form::Csv { delimiter, quotes } if !quotes || memchr::memchr(b'"', line).is_none() => {
            plain_fields(*delimiter, picks, names, line, slots)?;
        }
        Form::Csv { delimiter, quotes } => {
            let mut next = 0;
            // Picks are in the order of fields.
            let mut rest = Some(line);
            let mut number = 0;
            while next < picks.len() {
                let Some(text) = rest else {
                    let Pick::Field(wanted) = picks[next] else {
                        unreachable!()
                    };
                    return Err(too_few(number, wanted, names));
                };
                let wanted = picks[next] == Pick::Field(number);
                let (value, after) = field(text, *delimiter, *quotes, wanted)?;
                if wanted {
                    slots[next] = value;
                    next += 1;
                }
                rest = after;
                number += 1;
            }
            if let (Some(text), false) = (rest, picks.is_empty()) {
                number += fields_in(text, *delimiter, *quotes)?;
            }
            if number > names.len() {
                return Err(too_many(number, names));
            }
        }
        Form::Parquet => unreachable!("rows of Parquet are no lines"),
        Form::Json => {
            let object: serde_json::Value = serde_json::from_slice(line).map_err(|e| no_json(&e))?;
            if !object.is_object() {
                return Err(Wrong("JSON, but no object; expected one on each line".to_owned()));
            }
            for (pick, slot) in picks.iter().zip(slots.iter_mut()) {
                let Pick::Path(path) = pick else { unreachable!() };
                let found = path.iter().try_fold(&object, |object, name| object.get(name));
                *slot = match found {
                    None | Some(serde_json::Value::Null) => Value::Null,
                    Some(serde_json::Value::Bool(value)) => Value::Bool(*value),
                    // No two ids are to be one number.
                    Some(serde_json::Value::Number(number)) => match number.as_i128() {
                        Some(whole) => Value::whole(whole),
                        _ => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
                    },
                    Some(serde_json::Value::String(text)) => Value::Text(Cow::Owned(text.clone().into_bytes())),
                    Some(other) => Value::Text(Cow::Owned(other.to_string().into_bytes())),
                };
            }
        }
    }
    Ok(())
}

#[cold]
fn no_json(error: &serde_json::Error) -> Wrong {
    let said = error.to_string();
    let halves = ["surrogate", "unexpected end of hex escape"];
    Wrong(if halves.iter().any(|half| said.contains(half)) {
        "half of a surrogate pair (`\\ud800` alone is no character), expected texts of whole characters".to_owned()
    } else {
        format!("no JSON ({said}), expected an object on each line")
    })
}

/// The picked fields of a line that has no quotes.
fn plain_fields<'a>(
    delimiter: u8,
    picks: &[Pick],
    names: &[String],
    line: &'a [u8],
    slots: &mut [Value<'a>],
) -> std::result::Result<(), Wrong> {
    let wanted_of = |next: usize| match picks.get(next) {
        Some(Pick::Field(number)) => *number,
        _ => usize::MAX,
    };
    let (mut next, mut wanted) = (0, wanted_of(0));
    if picks.is_empty() {
        return Ok(());
    }
    let (mut number, mut start) = (0, 0);
    let mut take = |at: usize| {
        if number == wanted {
            slots[next] = match &line[start..at] {
                [] => Value::Null,
                inside => Value::Text(Cow::Borrowed(inside)),
            };
            next += 1;
            wanted = wanted_of(next);
        }
        number += 1;
        start = at + 1;
    };
    each_place(line, delimiter, &mut take);
    take(line.len());
    if next < picks.len() {
        return Err(too_few(number, wanted, names));
    }
    if number > names.len() {
        return Err(too_many(number, names));
    }
    Ok(())
}

/// Calls `each` with every place of `byte` in `line`. Fields are short, so that eight bytes at a time are quicker than calls that look for one place each.
#[inline]
fn each_place(line: &[u8], byte: u8, mut each: impl FnMut(usize)) {
    const LOWS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let pattern = u64::from_ne_bytes([byte; 8]);
    let mut at = 0;
    while let Some(eight) = line.get(at..).and_then(<[u8]>::first_chunk) {
        let other = u64::from_le_bytes(*eight) ^ pattern;
        let mut found = !(((other & LOWS) + LOWS) | other | LOWS);
        while found != 0 {
            each(at + found.trailing_zeros() as usize / 8);
            found &= found - 1;
        }
        at += 8;
    }
    for (more, &other) in line[at.min(line.len())..].iter().enumerate() {
        if other == byte {
            each(at + more);
        }
    }
}

#[cold]
fn too_few(number: usize, wanted: usize, names: &[String]) -> Wrong {
    Wrong(format!(
        "a record of {number} fields, expected at least {} (`{}`)",
        wanted + 1,
        names[wanted]
    ))
}

#[cold]
fn too_many(number: usize, names: &[String]) -> Wrong {
    Wrong(format!("a record of {number} fields, expected {}", names.len()))
}

/// How many fields there are in `text`.
fn fields_in(text: &[u8], delimiter: u8, quotes: bool) -> std::result::Result<usize, Wrong> {
    if !quotes || memchr::memchr(b'"', text).is_none() {
        return Ok(memchr::memchr_iter(delimiter, text).count() + 1);
    }
    let (mut count, mut rest) = (0, Some(text));
    while let Some(text) = rest {
        rest = field(text, delimiter, quotes, false)?.1;
        count += 1;
    }
    Ok(count)
}

/// The first field of `text`, and what follows its delimiter.
fn field<'a>(
    text: &'a [u8],
    delimiter: u8,
    quotes: bool,
    wanted: bool,
) -> std::result::Result<(Value<'a>, Option<&'a [u8]>), Wrong> {
    if quotes && text.first() == Some(&b'"') {
        let mut at = 1;
        let mut doubled = false;
        loop {
            let Some(found) = memchr::memchr(b'"', &text[at..]) else {
                return Err(Wrong(
                    "a quote that does not close, expected `\"` before the line's end".to_owned(),
                ));
            };
            at += found;
            if text.get(at + 1) != Some(&b'"') {
                break;
            }
            doubled = true;
            at += 2;
        }
        let inside = &text[1..at];
        let value = match (wanted, doubled) {
            (false, _) => Value::Null,
            (true, false) => Value::Text(Cow::Borrowed(inside)),
            (true, true) => {
                let mut plain = Vec::with_capacity(inside.len());
                let mut skip = false;
                for &byte in inside {
                    if byte == b'"' && !std::mem::take(&mut skip) {
                        skip = true;
                        plain.push(byte);
                    } else if byte != b'"' {
                        plain.push(byte);
                    }
                }
                Value::Text(Cow::Owned(plain))
            }
        };
        return match text.get(at + 1) {
            None => Ok((value, None)),
            Some(&byte) if byte == delimiter => Ok((value, Some(&text[at + 2..]))),
            Some(_) => Err(Wrong("text behind a closing quote, expected the delimiter".to_owned())),
        };
    }
    let (inside, after) = match memchr::memchr(delimiter, text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let value = match inside {
        [] => Value::Null,
        _ => Value::Text(Cow::Borrowed(inside)),
    };
    Ok((value, after))
}

/// Names in a header line.
pub fn header_fields(line: &[u8], delimiter: u8, quotes: bool) -> Vec<String> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let mut names = Vec::new();
    let mut rest = Some(line);
    while let Some(text) = rest {
        let (value, after) = field(text, delimiter, quotes, true).unwrap_or((Value::Null, None));
        names.push(match value {
            Value::Text(name) => String::from_utf8_lossy(&name).into_owned(),
            _ => format!("c{}", names.len() + 1),
        });
        rest = after;
    }
    names
}

/// What a record is taken apart into, if into anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explode {
    /// Letters, digits and what stands for letters beyond ASCII, in lower case: each a row with `word`.
    Words,
    /// What stands in `[[...]]` up to `|` or `#`: each a row with `target`.
    Links,
}

impl Explode {
    pub fn column(self) -> &'static str {
        match self {
            Explode::Words => "word",
            Explode::Links => "target",
        }
    }

    /// Calls `each` with every piece of a line. `lower` is room for its letters in lower case.
    #[inline]
    pub fn pieces(
        self,
        line: &[u8],
        lower: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]) -> std::result::Result<(), Wrong>,
    ) -> std::result::Result<(), Wrong> {
        match self {
            Explode::Words => {
                lower.clear();
                lower.extend(line.iter().map(|&byte| LETTERS[usize::from(byte)]));
                let mut start = 0;
                for at in memchr::memchr_iter(0, lower) {
                    if at > start {
                        each(&lower[start..at])?;
                    }
                    start = at + 1;
                }
                if start < lower.len() {
                    each(&lower[start..])?;
                }
            }
            Explode::Links => {
                let mut rest = line;
                while let Some(at) = memchr::memmem::find(rest, b"[[") {
                    let inside = &rest[at + 2..];
                    let Some(end) = memchr::memmem::find(inside, b"]]") else {
                        break;
                    };
                    let target = &inside[..end];
                    let cut = memchr::memchr2(b'|', b'#', target).unwrap_or(target.len());
                    let target = target[..cut].trim_ascii();
                    if !target.is_empty() {
                        each(target)?;
                    }
                    rest = &inside[end + 2..];
                }
            }
        }
        Ok(())
    }
}

/// Lower case of letters and digits; 0 of what separates words.
pub static LETTERS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let it = byte as u8;
        table[byte] = if it.is_ascii_alphanumeric() || it >= 128 {
            it.to_ascii_lowercase()
        } else {
            0
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &Value<'_>) -> Option<String> {
        match value {
            Value::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }

    fn picked(form: &Form, picks: &[Pick], line: &str) -> std::result::Result<Vec<Option<String>>, Wrong> {
        let mut slots = vec![Value::Null; picks.len()];
        let names: Vec<String> = (1..5).map(|n| format!("c{n}")).collect();
        fields(form, picks, &names, line.as_bytes(), &mut slots)?;
        Ok(slots.iter().map(text).collect())
    }

    /// Lines of up to 40 bytes, of which every third is a delimiter, cut by hand.
    #[test]
    fn fields_without_quotes_are_the_pieces_of_their_line() {
        let mut random = ftlab_core::Stream::new(9, "fields");
        let names: Vec<String> = (0..50).map(|n| format!("c{n}")).collect();
        for _ in 0..5000 {
            let length = random.below(41);
            let line: String = (0..length)
                .map(|_| ['a', '\t', ';'][random.below(3) as usize])
                .collect();
            let pieces: Vec<&str> = line.split('\t').collect();
            let picks: Vec<Pick> = (0..pieces.len()).filter(|n| n % 2 == 0).map(Pick::Field).collect();
            let mut slots = vec![Value::Null; picks.len()];
            let tsv = Form::parse("tsv", None).unwrap();
            fields(&tsv, &picks, &names, line.as_bytes(), &mut slots).unwrap();
            let wanted = pieces
                .iter()
                .step_by(2)
                .map(|piece| Some(piece.to_string()).filter(|p| !p.is_empty()));
            assert_eq!(slots.iter().map(text).collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
            let past = fields(&tsv, &[Pick::Field(pieces.len())], &names, line.as_bytes(), &mut slots);
            assert!(
                past.unwrap_err()
                    .0
                    .starts_with(&format!("a record of {} fields", pieces.len()))
            );
        }
    }

    #[test]
    fn fields_of_csv() {
        let csv = Form::parse("csv", None).unwrap();
        let of = |line| picked(&csv, &[Pick::Field(0), Pick::Field(2)], line).unwrap();
        assert_eq!(of("a,b,c"), [Some("a".into()), Some("c".into())]);
        assert_eq!(
            of("\"a,\"\"x\"\"\",b,\"\",d"),
            [Some("a,\"x\"".into()), Some("".into())]
        );
        assert_eq!(of(",b,"), [None, None]);
        let short = picked(&csv, &[Pick::Field(2)], "a,b").unwrap_err();
        assert_eq!(short.0, "a record of 2 fields, expected at least 3 (`c3`)");
        for long in ["a,b,c,d,e", "a,b,\"c,c\",d,e"] {
            let long = picked(&csv, &[Pick::Field(2)], long).unwrap_err();
            assert_eq!(long.0, "a record of 5 fields, expected 4");
        }
        assert_eq!(of("a,b,c,\"d,\"\"e\"")[1], Some("c".into()));
        assert!(picked(&csv, &[Pick::Field(0)], "\"a").is_err());
        assert!(picked(&csv, &[Pick::Field(0)], "\"a\"b,c").is_err());
    }

    #[test]
    fn of_a_name_that_stands_twice_the_last_counts() {
        for (line, is) in [
            (r#"{"a": 1, "b": 2, "a": 3}"#, Value::Number(3.0)),
            (r#"{"a": 1, "a": null}"#, Value::Null),
            (r#"{"a": {"c": 1}, "\u0061": 4}"#, Value::Number(4.0)),
        ] {
            let mut slots = [Value::Number(9.0)];
            fields(
                &Form::Json,
                &[Pick::Path(vec!["a".to_owned()])],
                &[],
                line.as_bytes(),
                &mut slots,
            )
            .unwrap();
            assert_eq!(slots, [is], "{line}");
        }
        let inner = [Pick::Path(vec!["a".to_owned(), "c".to_owned()])];
        for (line, is) in [
            (r#"{"a": {"c": 1, "c": 2}}"#, Value::Number(2.0)),
            (r#"{"a": {"c": 1}, "a": {"d": 5}}"#, Value::Null),
            (r#"{"a": 5, "a": {"c": 6}}"#, Value::Number(6.0)),
        ] {
            let mut slots = [Value::Number(9.0)];
            fields(&Form::Json, &inner, &[], line.as_bytes(), &mut slots).unwrap();
            assert_eq!(slots, [is], "{line}");
        }
    }

    #[test]
    fn lines_words_and_links() {
        let mut found = Vec::new();
        let mut note = |at, line: &[u8]| {
            found.push((at, String::from_utf8_lossy(line).into_owned()));
            Ok(())
        };
        records(&Form::Text, false, b"one\r\n\nthree", &mut note).unwrap();
        records(
            &Form::parse("csv", None).unwrap(),
            true,
            b"a,\"x\ny\"\n\nb\n",
            &mut note,
        )
        .unwrap();
        let wanted = [(0, "one"), (5, ""), (6, "three"), (0, "a,\"x\ny\""), (9, "b")];
        assert_eq!(
            found.iter().map(|(at, line)| (*at, line.as_str())).collect::<Vec<_>>(),
            wanted
        );
        let mut pieces = Vec::new();
        for (explode, line) in [
            (Explode::Words, "It's 2 Häuser, no?"),
            (Explode::Links, "see [[A b|x]] or [[C#d]], [[ |e]] [[open"),
        ] {
            let mut note = |piece: &[u8]| {
                pieces.push(String::from_utf8_lossy(piece).into_owned());
                Ok(())
            };
            explode.pieces(line.as_bytes(), &mut Vec::new(), &mut note).unwrap();
        }
        assert_eq!(pieces, ["it", "s", "2", "häuser", "no", "A b", "C"]);
    }
}
