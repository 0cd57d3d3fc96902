//! To which kinds of files a context writes.

use rustc_hash::FxHashMap;

use super::FileReport;
use crate::file_kinds::{kind_of, role_of};
use crate::recording::Tables;

/// The kinds of a recording's files. Files of one kind that are for different things count apart: `000042` of PostgreSQL's
/// tables and of its log.
pub(super) struct Kinds {
    named: Vec<(String, Option<&'static str>)>,
    of_file: Vec<u32>,
}

impl Kinds {
    pub(super) fn new(tables: &Tables) -> Self {
        let mut named = Vec::new();
        let mut numbers = FxHashMap::default();
        let of_file = tables.files.iter().map(|file| {
            let key = (kind_of(&file.path), role_of(&file.path));
            *numbers.entry(key).or_insert_with_key(|key| {
                named.push(key.clone());
                named.len() as u32 - 1
            })
        });
        Kinds {
            of_file: of_file.collect(),
            named,
        }
    }

    /// The number of a file's kind; that of no kind for a file that the recording does not know.
    pub(super) fn of(&self, file: u32) -> u32 {
        self.of_file.get(file as usize).copied().unwrap_or(u32::MAX)
    }
}

/// What one context has written to files of each kind, of which there are few.
#[derive(Clone, Default)]
pub(super) struct Written(Vec<Amounts>);

#[derive(Clone, Copy)]
pub(super) struct Amounts {
    kind: u32,
    pub bytes: u64,
    pub pages: u64,
}

impl Written {
    pub(super) fn of(&mut self, kind: u32) -> &mut Amounts {
        let at = self
            .0
            .iter()
            .position(|amounts| amounts.kind == kind)
            .unwrap_or_else(|| {
                self.0.push(Amounts {
                    kind,
                    bytes: 0,
                    pages: 0,
                });
                self.0.len() - 1
            });
        &mut self.0[at]
    }

    /// Those that most pages went to first, then those that most was written to by calls.
    pub(super) fn report(&self, kinds: &Kinds) -> Vec<FileReport> {
        let mut found: Vec<FileReport> = Vec::new();
        for amounts in &self.0 {
            // The first file of a recording is the one without a path, for what is about no file.
            if let Some((kind, role)) = kinds
                .named
                .get(amounts.kind as usize)
                .filter(|(kind, _)| !kind.is_empty())
            {
                found.push(FileReport {
                    kind: kind.clone(),
                    role: *role,
                    bytes: amounts.bytes,
                    pages: amounts.pages,
                });
            }
        }
        found.sort_by(|a, b| {
            (b.pages, b.bytes)
                .cmp(&(a.pages, a.bytes))
                .then_with(|| a.kind.cmp(&b.kind))
        });
        found
    }
}
