//! Names of files: a file goes by the last one that it had.
//!
//! # Model
//! What a program does with names, in order of time. A rename gives a file another name; a link gives it one more, which becomes
//! its name when the one that it goes by is taken away (link and unlink is how git and mailers give a finished file its name). A name that
//! a descriptor has when it is met, and that nothing recorded gave it, was given by somebody else. The name that goes last is kept.
//! # Not modelled
//! Folders that are renamed, until a file in them is opened again. Of a file with several names from before the recording, which of them
//! counts: it is the one that it was opened by last.

use std::collections::BTreeMap;

use ftlab_record::recording::FileEntry;
use ftlab_record::spool::{FileFacts, Op, OpFacts};

/// How a file is connected with a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// It has the name.
    Met,
    Renamed,
    Linked,
    /// The name is gone, others are left.
    Lost,
    /// Nothing is said of names: the last one is gone, or had gone before.
    Gone,
}

impl Named {
    /// By the first call after a description.
    pub(super) fn by(op: &OpFacts, facts: &FileFacts) -> Self {
        match op.op {
            // A file without a name is given one: the call names it by its descriptor.
            Op::Rename => Named::Renamed,
            Op::Link => Named::Linked,
            Op::Unlink if op.file == facts.id && op.length > 0 => Named::Lost,
            Op::Unlink if op.file == facts.id => Named::Gone,
            _ => Named::Met,
        }
    }
}

/// What was said of the names of each file that has had more than one: time, what, and the name.
#[derive(Default)]
pub(super) struct Naming(BTreeMap<u32, Vec<(u64, Named, String)>>);

impl Naming {
    pub(super) fn add(&mut self, file: u32, time_ns: u64, named: Named, path: &[u8]) {
        let named = if path.ends_with(b" (deleted)") {
            Named::Gone
        } else {
            named
        };
        if named == Named::Gone {
            return;
        }
        let path = String::from_utf8_lossy(path);
        let said = self.0.entry(file).or_default();
        match said.last_mut() {
            // Opened again and again.
            Some((time, Named::Met, last)) if named == Named::Met && *last == path => *time = time_ns.max(*time),
            _ => said.push((time_ns, named, path.into_owned())),
        }
    }

    /// Gives files their last names; those that they were first seen by are kept beside.
    pub(super) fn apply(self, files: &mut [FileEntry]) {
        for (file, mut said) in self.0 {
            said.sort_by_key(|&(time, ..)| time);
            let Some(entry) = files.get_mut(file as usize) else {
                continue;
            };
            let last = last_name(&said);
            if let Some(last) = last.filter(|last| *last != entry.path) {
                entry.first_path = std::mem::replace(&mut entry.path, last.to_owned());
            }
        }
    }
}

fn last_name(said: &[(u64, Named, String)]) -> Option<&str> {
    let mut current: Option<&str> = None;
    let mut others: Vec<&str> = Vec::new();
    for (_, named, path) in said {
        let path = path.as_str();
        match named {
            Named::Met if others.contains(&path) => {}
            Named::Met | Named::Renamed => current = Some(path),
            Named::Linked => others.push(path),
            Named::Lost => {
                if let Some(at) = others.iter().position(|other| *other == path) {
                    others.remove(at);
                } else if current.is_none_or(|name| last_part(name) == last_part(path)) {
                    // A program's own path may lead through other folders than the kernel's.
                    current = others.pop().or(current);
                }
            }
            Named::Gone => {}
        }
    }
    current
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file's name after what was said, and the first where that is another.
    fn names(first: &str, said: &[(Named, &str)]) -> (String, String) {
        let mut naming = Naming::default();
        // The order of spools is not that of time.
        for (time, (named, path)) in said.iter().enumerate().rev() {
            naming.add(0, time as u64, *named, path.as_bytes());
        }
        let mut files = [FileEntry {
            path: first.to_owned(),
            ..FileEntry::default()
        }];
        naming.apply(&mut files);
        let [file] = files;
        (file.path, file.first_path)
    }

    #[test]
    fn a_file_goes_by_its_last_name() {
        use Named::*;
        for (said, last) in [
            (&[(Met, "/a/x.part"), (Renamed, "/a/x")][..], "/a/x"),
            (
                &[(Met, "/a/x.part"), (Renamed, "/a/x"), (Met, "/a/x"), (Gone, "/a/x")],
                "/a/x",
            ),
            (
                &[(Met, "/a/x.part"), (Renamed, "/a/x"), (Met, "/a/x (deleted)")],
                "/a/x",
            ),
            (
                &[(Met, "/a/x.part"), (Renamed, "/a/x"), (Renamed, "/a/x.old")],
                "/a/x.old",
            ),
            // By link and unlink, through a link to the folder.
            (&[(Met, "/a/x.part"), (Linked, "/b/x"), (Lost, "/c/x.part")], "/b/x"),
            // One more name, which stays one, or is taken away.
            (&[(Met, "/a/x.part"), (Linked, "/b/x"), (Met, "/b/x")], "/a/x.part"),
            (&[(Met, "/a/x.part"), (Linked, "/b/x"), (Lost, "/b/x")], "/a/x.part"),
            // Renamed by a program that was not recorded.
            (&[(Met, "/a/x.part"), (Met, "/a/y")], "/a/y"),
        ] {
            let first = if last == "/a/x.part" { "" } else { "/a/x.part" };
            assert_eq!(names("/a/x.part", said), (last.to_owned(), first.to_owned()));
        }
        assert_eq!(names("/a/#7 (deleted)", &[(Renamed, "/a/x")]).0, "/a/x");
    }
}
