//! What volumes and labels are called in a form.
//!
//! # Volumes
//! Different ones stay different.
//! A name that the form can spell stays. Any other volume gets its own number, or the next that is free; a second volume
//! that would be spelled like an earlier one counts as such.

use rustc_hash::FxHashSet;

use super::holds::{LabelNames, VolumeNames};

/// The spelling of each volume, by number.
pub(super) struct VolumeTexts {
    kind: VolumeNames,
    texts: Vec<Vec<u8>>,
    taken: FxHashSet<Vec<u8>>,
    /// The lowest number that has not been tried for a volume whose name cannot stay.
    free: u64,
    pub renamed: u64,
}

impl VolumeTexts {
    pub fn new(kind: VolumeNames) -> Self {
        VolumeTexts {
            kind,
            texts: Vec::new(),
            taken: FxHashSet::default(),
            free: 0,
            renamed: 0,
        }
    }

    pub fn texts(&self) -> &[Vec<u8>] {
        &self.texts
    }

    /// Spells the volumes up to number `highest`; `names` says what they are called, numbers stand in where it is silent.
    pub fn extend(&mut self, highest: u16, names: &[String]) {
        if matches!(self.kind, VolumeNames::One | VolumeNames::Any) {
            return;
        }
        for volume in self.texts.len()..=usize::from(highest) {
            let number = volume.to_string();
            let name = names.get(volume).unwrap_or(&number);
            let text = match spelled(self.kind, name) {
                Some(text) if !self.taken.contains(&text) => text,
                _ => {
                    self.renamed += u64::from(volume < names.len());
                    self.stand_in(volume as u64)
                }
            };
            self.taken.insert(text.clone());
            self.texts.push(text);
        }
    }

    fn stand_in(&mut self, volume: u64) -> Vec<u8> {
        let own = numbered(self.kind, volume);
        if !self.taken.contains(&own) {
            return own;
        }
        loop {
            let text = numbered(self.kind, self.free);
            self.free += 1;
            if !self.taken.contains(&text) {
                return text;
            }
        }
    }
}

/// The name as the form writes it, if it can.
fn spelled(kind: VolumeNames, name: &str) -> Option<Vec<u8>> {
    let number = |text: &str, limit: u64| {
        // As it stands, so that 07 is not 7.
        let value: u64 = text.parse().ok().filter(|&v| v <= limit)?;
        (value.to_string() == text).then_some(value)
    };
    let word = |text: &str| {
        let fine = |b: u8| b.is_ascii_graphic() && !b",\"'\\".contains(&b);
        (!text.is_empty() && text.len() <= 200 && text.bytes().all(fine) && !text.starts_with('#')).then_some(())
    };
    match kind {
        VolumeNames::One | VolumeNames::Any => None,
        VolumeNames::Numbers(limit) => number(name, limit).map(|v| v.to_string().into_bytes()),
        VolumeNames::HostDisk => {
            let (host, disk) = name.rsplit_once('.')?;
            word(host)?;
            number(disk, u64::from(u32::MAX))?;
            Some(format!("{host},{disk}").into_bytes())
        }
        VolumeNames::MajorMinor => {
            let (major, minor) = name.split_once('.')?;
            number(major, 4095)?;
            number(minor, (1 << 20) - 1)?;
            Some(format!("{major},{minor}").into_bytes())
        }
        VolumeNames::Words => word(name).map(|()| name.as_bytes().to_vec()),
    }
}

/// A spelling for any volume. 259 is the major number of NVMe drives' block devices.
fn numbered(kind: VolumeNames, number: u64) -> Vec<u8> {
    match kind {
        VolumeNames::HostDisk => format!("ftlab,{number}"),
        VolumeNames::MajorMinor => format!("259,{number}"),
        VolumeNames::One | VolumeNames::Any | VolumeNames::Numbers(_) | VolumeNames::Words => number.to_string(),
    }
    .into_bytes()
}

/// The spelling of each label, by number.
pub(super) struct LabelTexts {
    kind: LabelNames,
    texts: Vec<Vec<u8>>,
    pub respelled: u64,
}

impl LabelTexts {
    pub fn new(kind: LabelNames) -> Self {
        LabelTexts {
            kind,
            texts: Vec::new(),
            respelled: 0,
        }
    }

    pub fn texts(&self) -> &[Vec<u8>] {
        &self.texts
    }

    /// Spells the labels up to number `highest`; numbers stand in where `names` is silent.
    pub fn extend(&mut self, highest: u16, names: &[String]) {
        let allowed: fn(u8) -> bool = match self.kind {
            LabelNames::None | LabelNames::Any => return,
            LabelNames::Names => |b| (b.is_ascii_graphic() || b == b' ') && !b",\"".contains(&b),
            LabelNames::Words => |b| b.is_ascii_graphic() && !b",\"'+".contains(&b),
        };
        for label in self.texts.len()..=usize::from(highest) {
            let number = label.to_string();
            let name = names.get(label).unwrap_or(&number);
            let letters = name.trim().bytes().take(255);
            let mut text: Vec<u8> = letters.map(|b| if allowed(b) { b } else { b'_' }).collect();
            if text.is_empty() {
                text.push(b'_');
            }
            self.respelled += u64::from(text != name.as_bytes());
            self.texts.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spell(kind: VolumeNames, names: &[&str]) -> (Vec<String>, u64) {
        let names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
        let mut volumes = VolumeTexts::new(kind);
        // One by one, as they appear.
        (0..names.len()).for_each(|v| volumes.extend(v as u16, &names[..=v]));
        let texts = volumes.texts().iter().map(|t| String::from_utf8(t.clone()).unwrap());
        (texts.collect(), volumes.renamed)
    }

    #[test]
    fn names_that_can_be_spelled_stay_and_none_is_given_twice() {
        // `sda` is volume 1 and becomes 1; the volume called 1 is number 2 then.
        let (texts, renamed) = spell(VolumeNames::Numbers(100), &["7", "sda", "1", "101", "007"]);
        assert_eq!(texts, ["7", "1", "2", "3", "4"]);
        assert_eq!(renamed, 4);
        // Its own number, 1, is taken.
        assert_eq!(spell(VolumeNames::Numbers(100), &["1", "sda"]).0, ["1", "0"]);
        let (texts, renamed) = spell(VolumeNames::HostDisk, &["prxy.0", "prxy.1", "sda", "a b.0", "a.b.7"]);
        assert_eq!(texts, ["prxy,0", "prxy,1", "ftlab,2", "ftlab,3", "a.b,7"]);
        assert_eq!(renamed, 2);
        let (texts, _) = spell(VolumeNames::MajorMinor, &["8.0", "8.16", "8", "8.0"]);
        assert_eq!(texts, ["8,0", "8,16", "259,2", "259,3"]);
        let (texts, _) = spell(VolumeNames::Words, &["left", "", "a,b", "left"]);
        assert_eq!(texts, ["left", "1", "2", "3"]);
    }

    #[test]
    fn volumes_without_names_are_numbers() {
        let mut volumes = VolumeTexts::new(VolumeNames::Words);
        volumes.extend(2, &[]);
        assert_eq!((volumes.texts().len(), volumes.renamed), (3, 0));
        assert_eq!(volumes.texts()[2], b"2");
    }
}
