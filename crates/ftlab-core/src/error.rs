//! Errors in what the user gave: one sentence that names the place, the value and what was expected.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Wrong input (exit code 2), as opposed to a wrong program (a panic with values) or a worn-out device (a result).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A drive file, option, trace or state that cannot be used as given.
    #[error("{0}")]
    Input(String),
    /// The operating system refused (missing file, full disk, no permission).
    #[error("{0}")]
    Io(String),
    /// The user asked the run to stop.
    #[error("interrupted")]
    Interrupted,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An input error from any displayable sentence. What it quotes of the input may be long or hold line ends: it stays one line
    /// that can be read, the middle of a very long one left out.
    pub fn input(sentence: impl Into<String>) -> Self {
        let mut sentence: String = sentence.into();
        if sentence.contains(|c: char| c.is_control()) {
            let escaped = |c: char| {
                if c.is_control() {
                    c.escape_default().collect()
                } else {
                    c.to_string()
                }
            };
            sentence = sentence.chars().map(escaped).collect();
        }
        if sentence.len() > LONGEST_SENTENCE {
            let from_end = sentence.chars().rev().take(300).count();
            let end: String = sentence.chars().skip(sentence.chars().count() - from_end).collect();
            let start: String = sentence.chars().take(300).collect();
            sentence = format!("{start} … {end}");
        }
        Error::Input(sentence)
    }

    /// An operating-system error with the file it concerns.
    pub fn io(file: &std::path::Path, cause: &std::io::Error) -> Self {
        Error::Io(format!("{}: {}", file.display(), without_number(cause)))
    }

    /// The same of a file that was to be written.
    pub fn unwritable(file: &std::path::Path, cause: &std::io::Error) -> Self {
        Error::Io(format!(
            "output {}: cannot be written: {}",
            file.display(),
            without_number(cause)
        ))
    }
}

/// What the operating system says, without the number that it has there.
fn without_number(cause: &std::io::Error) -> String {
    let said = cause.to_string();
    match cause.raw_os_error() {
        Some(number) => said.trim_end_matches(&format!(" (os error {number})")).to_owned(),
        None => said,
    }
}

/// Bytes of a sentence that is left as it is: the longest list of names is not half as long.
const LONGEST_SENTENCE: usize = 1900;

/// A message of serde in the words of who wrote the value, on one line: "integer `-3`, expected u32" names a type of Rust.
pub fn in_words(message: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some(sentence) = about_a_name(&message) {
        return sentence;
    }
    let wrong = ["invalid value: ", "invalid type: "];
    let Some((found, wanted)) = wrong
        .iter()
        .find_map(|start| message.strip_prefix(start))
        .and_then(|rest| rest.rsplit_once(", expected "))
    else {
        return message;
    };
    let wanted = match wanted {
        "u8" => "a whole number below 2^8",
        "u16" => "a whole number below 2^16",
        "u32" => "a whole number below 2^32",
        "u64" | "usize" => "a whole number of at least 0",
        "i32" | "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text",
        "string or map" | "string key" => "a word",
        other => other,
    };
    let found = found.trim_end_matches(" as i128").trim_end_matches(" as u128");
    let kinds = ["integer ", "floating point ", "boolean ", "string "];
    let found = kinds
        .iter()
        .find_map(|kind| found.strip_prefix(kind))
        .map_or_else(|| found.to_owned(), |value| value.replace('"', "`"));
    format!("{found}: expected {wanted}")
}

/// What serde says of names: of keys that are missing, unknown or given twice, and of words that are none of a list.
fn about_a_name(message: &str) -> Option<String> {
    let name = |start: &str| message.strip_prefix(start)?.split('`').next();
    if let Some(name) = name("missing field `") {
        return Some(format!("`{name}` is missing"));
    }
    if let Some(name) = name("duplicate field `") {
        return Some(format!("`{name}` is given twice"));
    }
    let (found, listed) = message.rsplit_once(", expected ")?;
    let known: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    if let Some(found) = found.strip_prefix("unknown field `") {
        return Some(unknown("field", found.strip_suffix('`')?, &known).to_string());
    }
    let found = found.strip_prefix("unknown variant `")?.strip_suffix('`')?;
    Some(format!("`{found}`: expected {}", either(&known)))
}

/// "a, b or c".
fn either(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// [`in_words`] of what a reader of TOML says of the `span` of a `text`; of a key that stands twice it does not tell the name.
pub fn in_words_of_toml(message: &str, text: &str, span: Option<std::ops::Range<usize>>) -> String {
    match span.and_then(|span| text.get(span)) {
        Some(key) if message == "duplicate key" => format!("`{}` is given twice", key.trim()),
        _ => in_words(message),
    }
}

/// What was said [in words](in_words) of a key, with the key in front: `KEY = VALUE: expected ...`. A `.` is no key.
pub fn of_key(key: &str, words: &str) -> String {
    match key {
        "." => words.to_owned(),
        key if words.starts_with('`') && words.contains("`: expected ") => format!("{key} = {words}"),
        key => format!("{key}: {words}"),
    }
}

/// A value read from JSON; what has a wrong type is said [in words](in_words), with its key in front.
pub fn read_value<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_path_to_error::deserialize(value)
        .map_err(|e| Error::input(of_value(&e.path().to_string(), &e.inner().to_string())))
}

/// A message of serde about the value of a key: [in words](in_words), if it is of the value's type, and with the key. What our
/// own types say of their texts names what is wrong.
pub fn of_value(key: &str, said: &str) -> String {
    let is_a_type = said.starts_with("invalid value: ") || said.starts_with("invalid type: ");
    match is_a_type && key != "." {
        true => format!("{key} {}", in_words(said)),
        false if said.starts_with("unknown variant ") => of_key(key, &in_words(said)),
        false => said.to_owned(),
    }
}

/// The known name nearest to `name`, for "did you mean" hints: at most a third of its letters may differ.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(name.len()) / 3).max(1))
        .map(|(_, candidate)| candidate)
}

/// "unknown X `name`; did you mean `y`? known: a, b, c".
pub fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let hint = nearest(name, known.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
    Error::input(format!("unknown {what} `{name}`{hint} (known: {})", known.join(", ")))
}

/// Letters to insert, remove, replace, or change places with their neighbour.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for i in 0..a.len() {
        let [older, old, row] = &mut rows;
        row[0] = i + 1;
        for j in 0..b.len() {
            let substituted = old[j] + usize::from(a[i] != b[j]);
            row[j + 1] = substituted.min(old[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(older[j - 1] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_the_misspelt_name_and_refuses_a_strange_one() {
        assert_eq!(nearest("gredy", ["greedy", "fifo"]), Some("greedy"));
        assert_eq!(nearest("op_ration", ["op_ratio", "victim"]), Some("op_ratio"));
        assert_eq!(nearest("haed", ["head", "shift"]), Some("head"));
        assert_eq!(nearest("banana", ["greedy", "fifo"]), None);
    }

    #[test]
    fn words_of_serde_about_names_become_ours() {
        for (theirs, ours) in [
            (
                "invalid value: integer `99999999999999999999` as i128, expected u32",
                "`99999999999999999999`: expected a whole number below 2^32",
            ),
            ("missing field `blocks`", "`blocks` is missing"),
            ("duplicate field `d`", "`d` is given twice"),
            (
                "unknown variant `XLC`, expected one of `SLC`, `MLC`, `TLC`",
                "`XLC`: expected SLC, MLC or TLC",
            ),
            ("unknown variant `x`, expected `a` or `b`", "`x`: expected a or b"),
            ("unknown variant `x`, expected `a`", "`x`: expected a"),
            (
                "unknown field `dd`, expected `d` or `replacement`",
                "unknown field `dd`; did you mean `d`? (known: d, replacement)",
            ),
            (
                "unknown field `x`, there are no fields",
                "unknown field `x`, there are no fields",
            ),
            (
                "invalid value: integer `-3`, expected u32",
                "`-3`: expected a whole number below 2^32",
            ),
        ] {
            assert_eq!(in_words(theirs), ours);
        }
        assert_eq!(
            in_words_of_toml("duplicate key", "a = 1\na = 2", Some(6..7)),
            "`a` is given twice"
        );
    }

    #[test]
    fn a_sentence_is_one_line_that_can_be_read() {
        let quoted = format!("`{}`\n: expected less", "é\t".repeat(5000));
        let sentence = Error::input(quoted).to_string();
        assert!(
            sentence.starts_with("`é\\té") && sentence.ends_with("é\\t`\\n: expected less"),
            "{sentence}"
        );
        assert!(sentence.len() < 1900 && sentence.contains(" … ") && !sentence.contains('\n'));
        assert_eq!(Error::input("plain").to_string(), "plain");
    }
}
