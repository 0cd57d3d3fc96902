//! Memory files that come with ftlab.

use ftlab_core::{Error, Result};

macro_rules! presets {
    ($($name:literal),+) => {
        pub const PRESETS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../memories/", $name, ".toml")))),+];
    };
}

presets!("archsampler", "pcm", "stt-mram", "optane-like", "ddr5", "cxl");

/// The text of a preset by name, or of a file by path (anything that ends in `.toml`), and what errors call it.
pub fn text(name: &str) -> Result<(String, String)> {
    if name.ends_with(".toml") {
        let path = std::path::Path::new(name);
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, &e))?;
        return Ok((text, name.to_owned()));
    }
    match PRESETS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(((*text).to_owned(), format!("memory `{name}`"))),
        None => {
            let known: Vec<&str> = PRESETS.iter().map(|(known, _)| *known).collect();
            let unknown = ftlab_core::error::unknown("memory", name, &known);
            Err(Error::input(format!("{unknown}, or a file that ends in .toml")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    /// Every preset can be used, and every time in it names where it comes from.
    #[test]
    fn each_time_has_a_source_or_says_assumed() {
        for (name, text) in PRESETS {
            Memory::load(name, &[]).unwrap();
            for line in text.lines().filter(|l| l.starts_with("t_") || l.starts_with("link")) {
                assert!(line.contains(" # "), "{name}: {line}");
            }
        }
    }
}
