//! Names numbered as they appear.

use rustc_hash::FxHashMap;

/// At most 65,536 names, each with the number of its first appearance.
#[derive(Debug, Default)]
pub struct Numbered {
    names: Vec<String>,
    numbers: FxHashMap<Box<[u8]>, u16>,
    /// Traces repeat a name many times in a row.
    last: Option<(Vec<u8>, u16)>,
}

impl Numbered {
    /// The names as they are shown, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of a name that has appeared.
    #[inline]
    pub fn find(&mut self, name: &[u8]) -> Option<u16> {
        match &self.last {
            Some((last, number)) if last.as_slice() == name => Some(*number),
            _ => self.look_up(name),
        }
    }

    fn look_up(&mut self, name: &[u8]) -> Option<u16> {
        let number = *self.numbers.get(name)?;
        let last = self.last.get_or_insert_default();
        last.0.clear();
        last.0.extend_from_slice(name);
        last.1 = number;
        Some(number)
    }

    /// The number of a name that has not appeared, which is shown as `shown`; `None` when there are too many.
    pub fn enter(&mut self, name: &[u8], shown: String) -> Option<u16> {
        let number = u16::try_from(self.names.len()).ok()?;
        self.names.push(shown);
        self.numbers.insert(name.into(), number);
        Some(number)
    }

    /// The number of a name that is shown as it is; `None` when there are too many.
    pub fn number(&mut self, name: &str) -> Option<u16> {
        let known = self.find(name.as_bytes());
        known.or_else(|| self.enter(name.as_bytes(), name.to_owned()))
    }
}
