//! Where the groups come from: a file of a mining run, or pairs written in the parameters.

use std::path::Path;

use ftlab_core::{Error, Result};
use ftlab_mine::CorrelationSet;

use super::super::Setup;

const TWO_OR_MORE: &str = "expected two different LPNs or more, as in 1-9/4-30-31";

/// Groups, key first, best first; and how many LPNs lie beyond the drive and were left out.
pub struct Given {
    pub groups: Vec<Vec<u32>>,
    pub left_out: u64,
}

impl Given {
    /// From the file `correlations` and the groups of `pairs`; both may be empty.
    pub fn new(correlations: &str, pairs: &str, setup: &Setup) -> Result<Self> {
        let mut given = Given {
            groups: Vec::new(),
            left_out: 0,
        };
        if !correlations.is_empty() && correlations != "none" {
            given.read(Path::new(correlations), setup)?;
        }
        for group in pairs.split('/').filter(|_| !pairs.trim().is_empty()) {
            let lpns = written(group)
                .map_err(|expected| Error::input(format!("mapping policy `cpftl`: pairs: `{group}`: {expected}")))?;
            given.add(lpns, setup.logical_units);
        }
        Ok(given)
    }

    fn read(&mut self, path: &Path, setup: &Setup) -> Result<()> {
        let set = CorrelationSet::read(path).map_err(|error| match error {
            Error::Io(_) if path.is_dir() => Error::input(format!(
                "mapping policy `cpftl`: correlations = {}: a folder; expected a file of `ftlab mine`",
                path.display()
            )),
            Error::Io(said) => Error::Io(format!("mapping policy `cpftl`: correlations = {said}")),
            other => other,
        })?;
        if set.about().unit != setup.unit_bytes {
            return Err(Error::input(format!(
                "{}: mined in units of {} bytes; expected {}, the drive's mapping unit",
                path.display(),
                set.about().unit,
                setup.unit_bytes
            )));
        }
        for group in set.groups().iter() {
            let members = group.members.iter().map(|member| member.0);
            self.add(
                std::iter::once(group.key.0).chain(members).collect(),
                setup.logical_units,
            );
        }
        Ok(())
    }

    /// Without what lies beyond the drive, and each LPN of the group once.
    fn add(&mut self, lpns: Vec<u32>, units: u32) {
        let key_is_there = lpns.first().is_some_and(|&key| key < units);
        let mut group: Vec<u32> = Vec::new();
        for &lpn in lpns.iter().filter(|&&lpn| key_is_there && lpn < units) {
            if !group.contains(&lpn) {
                group.push(lpn);
            }
        }
        self.left_out += lpns.iter().filter(|&&lpn| lpn >= units).count() as u64;
        if group.len() > 1 {
            self.groups.push(group);
        }
    }
}

/// The LPNs of a group of `pairs`, or what was expected.
fn written(group: &str) -> std::result::Result<Vec<u32>, String> {
    let mut lpns = Vec::new();
    for word in group.split('-').map(str::trim) {
        let lpn = match word.parse() {
            Ok(lpn) => lpn,
            Err(_) if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(format!("LPN {word}: expected at most {}", u32::MAX));
            }
            Err(_) => return Err(TWO_OR_MORE.to_owned()),
        };
        lpns.push(lpn);
    }
    if lpns.iter().all(|&lpn| lpn == lpns[0]) {
        return Err(TWO_OR_MORE.to_owned());
    }
    match (1..lpns.len()).find(|&at| lpns[..at].contains(&lpns[at])) {
        Some(at) => Err(format!("LPN {} twice: expected each LPN of a group once", lpns[at])),
        None => Ok(lpns),
    }
}
