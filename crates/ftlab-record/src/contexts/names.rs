//! Who a context is: the functions of its call path, and from where on they tell it from others.

use rustc_hash::FxHashMap;

use super::{ContextReport, FrameReport};
use crate::recording::{Context, Tables};

/// Fills in who a context is.
pub(super) fn name(known: ContextReport, context: &Context, tables: &Tables) -> ContextReport {
    let frames = context.frames.iter().map(|frame| FrameReport {
        module: tables
            .modules
            .get(frame.module as usize)
            .map_or(String::new(), |module| module.path.clone()),
        offset: frame.offset,
        name: frame.name.clone(),
    });
    let frames: Vec<FrameReport> = frames.collect();
    let process = tables.processes.get(context.process as usize);
    ContextReport {
        signature: format!("{:016x}", context.signature),
        program: process.map_or(String::new(), |process| last_part(&process.program).to_owned()),
        path: path(&frames),
        frames,
        ..known
    }
}

/// Leaves out the innermost functions that more than half of the contexts of a program go through: the way every write takes.
pub(super) fn find_telling(contexts: &mut [ContextReport]) {
    let mut users: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    let mut all: FxHashMap<&str, usize> = FxHashMap::default();
    for context in contexts.iter() {
        *all.entry(&context.program).or_default() += 1;
        let mut functions: Vec<&str> = context.path.iter().map(String::as_str).collect();
        functions.sort_unstable();
        functions.dedup();
        for function in functions {
            *users.entry((&context.program, function)).or_default() += 1;
        }
    }
    let starts = contexts.iter().map(|context| {
        let of_all = all.get(context.program.as_str()).copied().unwrap_or(0);
        let rare = |function: &String| {
            let users = users
                .get(&(context.program.as_str(), function.as_str()))
                .copied()
                .unwrap_or(0);
            2 * users <= of_all
        };
        context.path.iter().position(rare).unwrap_or(0)
    });
    let starts: Vec<usize> = starts.collect();
    for (context, start) in contexts.iter_mut().zip(starts) {
        context.telling = context.path[start..].to_vec();
        context.telling.dedup();
    }
}

/// The named functions; where there are none, the places of the innermost frames.
fn path(frames: &[FrameReport]) -> Vec<String> {
    // What runs before `main` says nothing about a program.
    let tells = |f: &&FrameReport| !f.name.is_empty() && f.name != "_start" && !f.name.starts_with("__libc_start");
    let named: Vec<String> = frames.iter().filter(tells).map(|f| short(&f.name)).collect();
    if !named.is_empty() {
        return named;
    }
    let places = frames.iter().take(3);
    places
        .map(|f| format!("{}+{:#x}", last_part(&f.module), f.offset))
        .collect()
}

pub(super) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A function's name without parameters of functions and templates.
pub(super) fn short(name: &str) -> String {
    let mut shown = String::new();
    let mut depth = 0u32;
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !shown.is_empty() && !shown.ends_with(':') => break,
            c if depth == 0 => shown.push(c),
            _ => {}
        }
    }
    // Operators and the like have no letters left.
    if shown.chars().any(char::is_alphanumeric) {
        shown
    } else {
        name.to_owned()
    }
}

/// Whether a function goes by this name, with or without what it belongs to: `FlushJob::Run` names `rocksdb::FlushJob::Run`.
pub(super) fn is_called(function: &str, name: &str) -> bool {
    function
        .strip_suffix(name)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_parameters() {
        for (name, shown) in [
            (
                "rocksdb::log::Writer::AddRecord(rocksdb::Slice const&)",
                "rocksdb::log::Writer::AddRecord",
            ),
            (
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
                "std::vector::push_back",
            ),
            ("(anonymous namespace)::flush(int)", "(anonymous namespace)::flush"),
            ("main", "main"),
        ] {
            assert_eq!(short(name), shown);
        }
    }

    #[test]
    fn functions_go_by_their_last_names() {
        assert!(is_called("rocksdb::FlushJob::Run", "FlushJob::Run") && is_called("main", "main"));
        assert!(!is_called("domain", "main"));
    }

    #[test]
    fn the_telling_part_of_a_path_starts_where_contexts_part() {
        let context = |path: &[&str]| ContextReport {
            program: "store".to_owned(),
            path: path.iter().map(|&f| f.to_owned()).collect(),
            ..ContextReport::default()
        };
        let mut contexts = vec![
            context(&["write", "append", "log", "main"]),
            context(&["write", "append", "flush", "flush", "main"]),
            context(&["write", "compact", "main"]),
            context(&["write", "append", "main"]),
        ];
        find_telling(&mut contexts);
        // `write` and `main` are in all four, `append` in three; the last one has nothing of its own.
        let telling: Vec<String> = contexts.iter().map(|c| c.telling.join(" ")).collect();
        assert_eq!(telling, ["log main", "flush main", "compact main", "write append main"]);
    }
}
