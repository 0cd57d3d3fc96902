//! What may be said about a form to write.

use ftlab_core::{Error, Result};
use serde_json::{Map, Value};

/// Options of a writer; the default fits any form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Refuse a request that would be left out, moved or cut, instead of counting it.
    pub strict: bool,
    /// What the form leaves open, by name: the form's documentation lists it.
    pub keys: Map<String, Value>,
}

impl Options {
    /// Parses `key=value,key=value`; `strict=true` is common to all forms.
    pub fn parse(text: &str) -> Result<Self> {
        let mut options = Options::default();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| Error::input(format!("`{pair}` in the options `{text}`: expected key=value")))?;
            options.set(key.trim(), value.trim())?;
        }
        Ok(options)
    }

    /// Sets one option from its text.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match (key, value) {
            ("strict", "true") => self.strict = true,
            ("strict", "false") => self.strict = false,
            ("strict", other) => return Err(Error::input(format!("strict `{other}`: expected true or false"))),
            _ => {
                self.keys.insert(key.to_owned(), value.into());
            }
        }
        Ok(())
    }
}
