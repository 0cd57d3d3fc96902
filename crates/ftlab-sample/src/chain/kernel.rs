//! What a text is taken apart into.

use ftlab_core::{Error, Result};
use regex::bytes::Regex;
use serde::Deserialize;

use crate::record::Explode;

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kernel", rename_all = "snake_case", deny_unknown_fields)]
pub enum Kernel {
    /// Words of letters and digits, in lower case.
    Words,
    /// Targets of `[[links]]`.
    Links,
    /// The n-th piece between white space, from 1 on.
    Fields { number: usize },
    /// What a regular expression finds: its first group, else the whole of it.
    Regex { pattern: Pattern },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(Regex);

impl TryFrom<String> for Pattern {
    type Error = Error;

    fn try_from(text: String) -> Result<Pattern> {
        let found = Regex::new(&text);
        found.map(Pattern).map_err(|e| {
            // The last line of its message says what is wrong.
            let said = e.to_string();
            let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Error::input(format!("regex {text}: {last}, expected a regular expression"))
        })
    }
}

/// What becomes of the pieces of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The first, or null.
    Map,
    /// Each is a record.
    FlatMap,
    /// The text stays if it has any.
    Filter,
}

impl Kernel {
    /// Calls `each` with the pieces of a text, as long as it says so. `lower` is room for letters in lower case.
    pub fn pieces(&self, text: &[u8], lower: &mut Vec<u8>, mut each: impl FnMut(&[u8]) -> bool) {
        match self {
            Kernel::Words | Kernel::Links => {
                let explode = match self {
                    Kernel::Words => Explode::Words,
                    _ => Explode::Links,
                };
                // Its error is how it is ended.
                let _ = explode.pieces(text, lower, |piece| match each(piece) {
                    true => Ok(()),
                    false => Err(crate::expression::Wrong(String::new())),
                });
            }
            Kernel::Fields { number } => {
                let pieces = text.split(u8::is_ascii_whitespace).filter(|piece| !piece.is_empty());
                if let Some(piece) = pieces.into_iter().nth(number.saturating_sub(1)) {
                    each(piece);
                }
            }
            Kernel::Regex { pattern } if pattern.0.captures_len() > 1 => {
                for found in pattern.0.captures_iter(text) {
                    if found.get(1).is_some_and(|group| !each(group.as_bytes())) {
                        break;
                    }
                }
            }
            Kernel::Regex { pattern } => {
                for found in pattern.0.find_iter(text) {
                    if !each(found.as_bytes()) {
                        break;
                    }
                }
            }
        }
    }

    /// Takes a text its way; `each` gets what comes of it, null as none.
    pub fn apply(&self, way: Way, text: Option<&[u8]>, lower: &mut Vec<u8>, each: &mut dyn FnMut(Option<&[u8]>)) {
        let Some(text) = text else {
            if way == Way::Map {
                each(None);
            }
            return;
        };
        let mut any = false;
        self.pieces(text, lower, |piece| {
            any = true;
            match way {
                Way::Filter => return false,
                Way::Map | Way::FlatMap => each(Some(piece)),
            }
            way == Way::FlatMap
        });
        match way {
            Way::Map if !any => each(None),
            Way::Filter if any => each(Some(text)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(kernel: &str, way: Way, text: &str) -> Vec<Option<String>> {
        let kernel: Kernel = serde_json::from_str(kernel).unwrap();
        let mut found = Vec::new();
        kernel.apply(way, Some(text.as_bytes()), &mut Vec::new(), &mut |piece| {
            found.push(piece.map(|piece| String::from_utf8_lossy(piece).into_owned()));
        });
        found
    }

    #[test]
    fn kernels_three_ways() {
        let some = |texts: &[&str]| texts.iter().map(|text| Some((*text).to_owned())).collect::<Vec<_>>();
        let (words, number) = (r#"{"kernel":"words"}"#, r#"{"kernel":"regex","pattern":"n=([0-9]+)"}"#);
        assert_eq!(applied(words, Way::FlatMap, "One, two"), some(&["one", "two"]));
        assert_eq!(applied(words, Way::Map, "One, two"), some(&["one"]));
        assert_eq!(applied(words, Way::Filter, "One, two"), some(&["One, two"]));
        assert_eq!(applied(words, Way::Filter, "..."), []);
        assert_eq!(applied(number, Way::FlatMap, "n=1 m=2 n=3"), some(&["1", "3"]));
        assert_eq!(applied(number, Way::Map, "m=2"), [None]);
        let field = r#"{"kernel":"fields","number":2}"#;
        assert_eq!(applied(field, Way::Map, " a  b\tc"), some(&["b"]));
        assert_eq!(applied(field, Way::Map, "a"), [None]);
        let plain = r#"{"kernel":"regex","pattern":"[0-9]+"}"#;
        assert_eq!(applied(plain, Way::FlatMap, "a1b22"), some(&["1", "22"]));
    }
}
