//! What is taken together as one context: a call path, an activity (what goes through a function or a program, or to certain
//! files), or a kind of file.

use std::collections::BTreeSet;

use ftlab_core::{Error, Result, error};

use super::names::{is_called, last_part, short};
use crate::file_kinds::{fits, kind_of};
use crate::recording::{Context, FileEntry, Tables};

/// Begins the name of an activity that stands for files.
const FILE: &str = "file:";
/// In place of all names: an activity for each kind of file.
const FILES: &str = "files";

/// Which context a write counts for.
pub(super) enum Grouping {
    /// Its own.
    Paths { contexts: usize },
    Activities {
        titles: Vec<String>,
        /// Number of the activity of each context, and of each file; the smaller one counts. Beyond the last title: none.
        of_context: Vec<u32>,
        of_file: Vec<u32>,
    },
}

impl Grouping {
    pub(super) fn new(tables: &Tables, by: &[String]) -> Self {
        match by {
            [] => Grouping::Paths {
                contexts: tables.contexts.len().max(1),
            },
            [one] if one == FILES => Self::kinds(tables),
            names => Self::named(tables, names),
        }
    }

    fn named(tables: &Tables, names: &[String]) -> Self {
        let of_context = tables.contexts.iter().map(|context| {
            let program = tables.processes.get(context.process as usize);
            let program = program.map_or("", |process| last_part(&process.program));
            let functions: Vec<String> = context.frames.iter().map(|frame| short(&frame.name)).collect();
            first(names, |name| {
                name == program || functions.iter().any(|function| is_called(function, name))
            })
        });
        let of_file = tables.files.iter().map(|file| {
            first(names, |name| {
                name.strip_prefix(FILE)
                    .is_some_and(|pattern| file.names().any(|path| fits(pattern, path)))
            })
        });
        Grouping::Activities {
            of_context: of_context.collect(),
            of_file: of_file.collect(),
            titles: names
                .iter()
                .map(String::as_str)
                .chain(["other"])
                .map(str::to_owned)
                .collect(),
        }
    }

    fn kinds(tables: &Tables) -> Self {
        let mut titles: Vec<String> = Vec::new();
        let of_file = tables.files.iter().map(|file| {
            let kind = kind_of(&file.path);
            let known = titles.iter().position(|title| *title == kind).unwrap_or_else(|| {
                titles.push(kind);
                titles.len() - 1
            });
            known as u32
        });
        let of_file: Vec<u32> = of_file.collect();
        titles.push("other".to_owned());
        Grouping::Activities {
            of_context: Vec::new(),
            of_file,
            titles,
        }
    }

    /// How many there can be.
    pub(super) fn count(&self) -> usize {
        match self {
            Grouping::Paths { contexts } => *contexts,
            Grouping::Activities { titles, .. } => titles.len(),
        }
    }

    pub(super) fn of(&self, context: u32, file: Option<u32>) -> u32 {
        match self {
            Grouping::Paths { .. } => context,
            Grouping::Activities {
                titles,
                of_context,
                of_file,
            } => {
                let of = |numbers: &[u32], at: u32| numbers.get(at as usize).copied().unwrap_or(u32::MAX);
                let by_file = file.map_or(u32::MAX, |file| of(of_file, file));
                of(of_context, context).min(by_file).min(titles.len() as u32 - 1)
            }
        }
    }

    /// What an activity is called; none for a context of its own.
    pub(super) fn title(&self, number: usize) -> Option<&str> {
        match self {
            Grouping::Paths { .. } => None,
            Grouping::Activities { titles, .. } => titles.get(number).map(String::as_str),
        }
    }

    /// The context that stands behind a number, where it is one.
    pub(super) fn context<'a>(&self, number: usize, tables: &'a Tables) -> Option<&'a Context> {
        match self {
            Grouping::Paths { .. } => tables.contexts.get(number),
            Grouping::Activities { .. } => None,
        }
    }
}

/// Refuses names that nothing in a recording has.
pub fn check_names(tables: &Tables, by: &[String]) -> Result<()> {
    let programs = tables
        .processes
        .iter()
        .map(|process| last_part(&process.program).to_owned());
    let programs: BTreeSet<String> = programs.collect();
    let frames = tables.contexts.iter().flat_map(|context| &context.frames);
    let functions: BTreeSet<String> = frames.map(|frame| short(&frame.name)).collect();
    for name in by.iter().filter(|name| *name != FILES) {
        if let Some(pattern) = name.strip_prefix(FILE) {
            if !tables
                .files
                .iter()
                .flat_map(FileEntry::names)
                .any(|path| fits(pattern, path))
            {
                return Err(Error::input(format!("by `{name}`: no file of the recording fits")));
            }
        } else if !programs.contains(name) && !functions.iter().any(|function| is_called(function, name)) {
            let known = programs.iter().chain(&functions).map(String::as_str);
            let hint = error::nearest(name, known).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
            return Err(Error::input(format!(
                "by `{name}`: no function and no program of the recording is called so{hint} (programs: {}; files: `file:*.log`, or \
                 `files` alone)",
                programs.join(", ")
            )));
        }
    }
    Ok(())
}

fn first(names: &[String], fits: impl FnMut(&String) -> bool) -> u32 {
    names.iter().position(fits).map_or(u32::MAX, |at| at as u32)
}
