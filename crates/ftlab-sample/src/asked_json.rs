//! What is asked as JSON: what is wrong with it, in one sentence.

use ftlab_core::error::{in_words, read_value};
use ftlab_core::{Error, Result};
use serde::de::DeserializeOwned;

/// What `json` means; `what` stands in front of what is wrong with it.
pub(crate) fn read<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    let refuse = |said: &str| Error::input(format!("{what}: {said}"));
    let value = serde_json::from_str(json).map_err(|_| refuse("no JSON, expected an object of options"))?;
    read_value(value).map_err(|e| refuse(&in_words(&e.to_string())))
}

#[cfg(test)]
mod tests {
    use crate::array::ArraySpec;
    use crate::job::SampleSpec;

    #[test]
    fn what_is_wrong_is_said_in_a_sentence() {
        for (json, says) in [
            ("", "sample: no JSON, expected an object of options"),
            ("{", "sample: no JSON, expected an object of options"),
            ("{}", "sample: `query` is missing"),
            (r#"{"query": 5}"#, "sample: query `5`: expected a text"),
            (
                r#"{"query": "", "level": "high"}"#,
                "sample: level `high`: expected a number",
            ),
            (
                r#"{"query": "", "seed": -3}"#,
                "sample: seed `-3`: expected a whole number of at least 0",
            ),
            (
                r#"{"query": "", "disks": [1]}"#,
                "sample: disks[0] `1`: expected a text",
            ),
            (
                r#"{"query": "", "header": null}"#,
                "sample: header null: expected true or false",
            ),
            (
                r#"{"query": "", "disk": []}"#,
                "sample: unknown field `disk`; did you mean `disks`? (known: query, ",
            ),
        ] {
            let said = SampleSpec::parse(json).unwrap_err().to_string();
            assert!(said.starts_with(says) && !said.contains(" line "), "{said}");
        }
        let said = ArraySpec::parse(r#"{"disks": "many"}"#).unwrap_err().to_string();
        assert!(said.starts_with("array: disks `many`: expected "), "{said}");
    }
}
