//! Errors in what the user gave: one sentence that names the place, the value and what was expected.

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
    /// An input error from any displayable sentence.
    pub fn input(sentence: impl Into<String>) -> Self {
        Error::Input(sentence.into())
    }

    /// An operating-system error with the file it concerns.
    pub fn io(file: &std::path::Path, cause: &std::io::Error) -> Self {
        Error::Io(format!("{}: {}", file.display(), cause))
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
    Error::Input(format!("unknown {what} `{name}`{hint} (known: {})", known.join(", ")))
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_the_misspelt_name_and_refuses_a_strange_one() {
        assert_eq!(nearest("gredy", ["greedy", "fifo"]), Some("greedy"));
        assert_eq!(nearest("op_ration", ["op_ratio", "victim"]), Some("op_ratio"));
        assert_eq!(nearest("banana", ["greedy", "fifo"]), None);
    }
}
