//! Volumes or labels asked for by name, found among the numbers of a stream as they appear.

use ftlab_core::{Result, error};

pub struct Named {
    /// What the names are of, for messages.
    what: &'static str,
    wanted: Vec<String>,
    /// Whether each number seen so far is one of the wanted.
    numbers: Vec<bool>,
    /// Which of `wanted` have appeared.
    found: Vec<bool>,
    /// Names seen, for the message when one of the wanted never appears.
    seen: Vec<String>,
}

impl Named {
    /// `list` is names between commas.
    pub fn new(what: &'static str, list: &str) -> Self {
        let wanted: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        Named {
            what,
            found: vec![false; wanted.len()],
            wanted,
            numbers: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Looks at the numbers of a batch. A stream without names goes by the numbers themselves.
    pub fn look(&mut self, column: &[u16], names: impl FnOnce() -> Vec<String>) {
        let highest = usize::from(column.iter().copied().max().unwrap_or(0));
        if column.is_empty() || highest < self.numbers.len() {
            return;
        }
        let names = names();
        for number in self.numbers.len()..=highest {
            let name = names.get(number).cloned().unwrap_or_else(|| number.to_string());
            let at = self.wanted.iter().position(|wanted| *wanted == name);
            if let Some(at) = at {
                self.found[at] = true;
            }
            self.numbers.push(at.is_some());
            if self.seen.len() < 20 {
                self.seen.push(name);
            }
        }
    }

    /// Whether `number`, which was looked at, is one of the wanted.
    #[inline]
    pub fn has(&self, number: u16) -> bool {
        self.numbers.get(usize::from(number)).copied().unwrap_or(false)
    }

    /// At the end of a stream: each of the wanted must have appeared.
    pub fn finish(&self) -> Result<()> {
        match self.found.iter().position(|found| !found) {
            Some(at) => {
                let known: Vec<&str> = self.seen.iter().map(String::as_str).collect();
                Err(error::unknown(self.what, &self.wanted[at], &known))
            }
            None => Ok(()),
        }
    }
}
