//! Names of the label column: processes and kinds of file, numbered as they appear.

use crate::carried;
use crate::numbered::Numbered;

/// Labels are 16 bits wide; names beyond these share the last number.
const MOST: usize = u16::MAX as usize;
/// Bytes of a name that count and are shown.
const LONGEST: usize = 255;

/// A table of at most 65 535 names and, behind them, `other` for all further ones.
#[derive(Debug, Default)]
pub struct Names(Numbered);

impl Names {
    /// The number of `name`; an empty one is called `unknown`, which is [no label](crate::labels::UNNAMED).
    #[inline]
    pub fn id(&mut self, name: &[u8]) -> u16 {
        let name = match name.get(..LONGEST) {
            Some(cut) if !carried::is_marked(name) => cut,
            _ => name,
        };
        self.0.find(name).unwrap_or_else(|| self.enter(name))
    }

    #[cold]
    fn enter(&mut self, name: &[u8]) -> u16 {
        let shown = match name {
            _ if self.all().len() >= MOST => "other".to_owned(),
            b"" => "unknown".to_owned(),
            name => carried::name(name)
                .unwrap_or_else(|| String::from_utf8_lossy(name).replace(|c: char| c.is_control(), " ")),
        };
        self.0.enter(name, shown).unwrap_or(MOST as u16)
    }

    /// The names by number.
    pub fn all(&self) -> &[String] {
        self.0.names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Names::default();
        let ids: Vec<u16> = ["java", "java", "", "a\tb", "java"]
            .iter()
            .map(|n| names.id(n.as_bytes()))
            .collect();
        assert_eq!(ids, [0, 0, 1, 2, 0]);
        assert_eq!(names.all(), ["java", "unknown", "a b"]);
    }

    #[test]
    fn names_beyond_the_width_of_a_label_share_one() {
        let mut names = Names::default();
        for i in 0..70_000u32 {
            let id = names.id(format!("p{i}").as_bytes());
            assert_eq!(u32::from(id), i.min(65_535));
        }
        assert_eq!(names.id(b"p5"), 5);
        assert_eq!((names.all().len(), names.all()[65_535].as_str()), (65_536, "other"));
    }

    #[test]
    fn long_names_are_cut() {
        let mut names = Names::default();
        let id = names.id(&[b'x'; 300]);
        assert_eq!((id, names.id(&[b'x'; 255]), names.all()[0].len()), (0, 0, 255));
    }
}
