//! The two promises of a recorder: the program is not disturbed, and what is missed is said.

#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use common::*;
use ftlab_record::spool::{self, NoteKind, Op, op_flags};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("promises.c", "promises", &["-ldl"]))
}

fn recorded(arguments: &[&str]) -> Case {
    let case = run(arguments[0], program(), arguments, &[(spool::ENV_CONTENT, "1")]);
    assert!(case.status.success(), "{arguments:?} was disturbed: {}", case.status);
    case
}

fn traced(arguments: &[&str]) -> Case {
    let case = common::traced_program(program(), arguments);
    assert!(case.status.success(), "{arguments:?} was disturbed: {}", case.status);
    case
}

fn writes(case: &Case) -> Vec<(String, u64, u64)> {
    let writes = case.ops().filter(|(op, _)| op.op == Op::Write);
    writes.map(|(op, name)| (name.clone(), op.offset, op.length)).collect()
}

/// The plug-in and the library that it alone sees.
fn plugin(way: &str) -> PathBuf {
    let library = compile(
        "plugin.c",
        &format!("libown{way}.so"),
        &["-shared", "-fPIC", &format!("-DLIBRARY={way}")],
    );
    let (library, folder) = (library.to_str().unwrap(), library.parent().unwrap().to_str().unwrap());
    let runs = format!("-Wl,-rpath,{folder}");
    compile("plugin.c", "plugin.so", &["-shared", "-fPIC", library, &runs])
}

/// R1 and R3: the library is not among those that a search by name finds, and makes the call itself or by `syscall`.
#[test]
fn a_plug_in_hands_requests_in_by_a_library_of_its_own_and_each_counts_once() {
    for way in ["1", "2"] {
        let plugin = plugin(way);
        let arguments = ["plugin", plugin.to_str().unwrap()];
        for case in [recorded(&arguments), traced(&arguments)] {
            assert_eq!(writes(&case), vec![("a".to_owned(), 8192, 4096); 3], "way {way}");
            assert!(
                case.ops()
                    .filter(|(op, _)| op.op == Op::Write)
                    .all(|(op, _)| op.flags & op_flags::ASYNCHRONOUS != 0)
            );
            assert_eq!(case.noted(NoteKind::Aio), 3);
        }
        // Contents come from the program's memory.
        let page = spool::page_ids(&[7; spool::PAGE], spool::PAGE, spool::CHUNK);
        let case = recorded(&arguments);
        assert!(
            case.spools[0]
                .content
                .iter()
                .all(|content| (content.1, content.2) == (2, page[0]))
        );
        assert_eq!(case.spools[0].content.len(), 3);
    }
}

/// R4: a folder's descriptor is closed within the C library, and its number used again by mkstemp.
#[test]
fn temporary_files_are_recorded_though_their_numbers_were_folders() {
    for case in [recorded(&["temporary"]), traced(&["temporary"])] {
        let lengths: Vec<u64> = writes(&case).iter().map(|write| write.2).collect();
        assert_eq!(lengths, (100..110).collect::<Vec<u64>>());
        assert_eq!(case.count(Op::Fsync), 10);
    }
}

/// R2: a record takes calls for which the kernel would kill.
#[test]
fn a_program_that_forbids_itself_system_calls_is_left_alone_and_named() {
    for case in ["strict", "kills", "kills_by_number"] {
        let case = recorded(&[case]);
        assert_eq!(writes(&case), [("a".to_owned(), 0, 10)]);
        assert_eq!(case.noted(NoteKind::Sandboxed), 1);
    }
}

#[test]
fn a_filter_that_allows_what_a_record_takes_changes_nothing() {
    let case = recorded(&["allows"]);
    assert_eq!((writes(&case).len(), case.noted(NoteKind::Sandboxed)), (5001, 0));
}

/// R7: each way to start a program, with an environment that has lost what the library needs.
#[test]
fn programs_started_with_a_changed_environment_are_recorded() {
    for way in ["0", "1", "2", "3", "4", "5", "6", "7", "8"] {
        let case = recorded(&["changed", way]);
        assert_eq!(writes(&case), [("one".to_owned(), 0, 100)], "way {way}");
    }
}

/// R9: the spool takes a descriptor for a moment.
#[test]
fn a_program_with_a_full_table_of_descriptors_is_recorded_or_said() {
    assert_eq!(writes(&recorded(&["full_table"])).len(), 1);
    let case = recorded(&["full_table_all"]);
    assert!(writes(&case).is_empty());
    let said: Vec<(NoteKind, String)> = case.words();
    assert_eq!(said, [(NoteKind::NoRoom, program().display().to_string())]);
}

#[test]
fn a_program_that_changes_its_root_says_so() {
    if !is_root() {
        return;
    }
    let case = recorded(&["another_root"]);
    assert_eq!(case.noted(NoteKind::Confined), 1);
}

#[test]
fn bytes_that_pass_the_library_are_counted() {
    let case = recorded(&["past"]);
    assert_eq!((writes(&case).len(), case.noted(NoteKind::PastLibrary)), (1, 1000));
    assert_eq!(recorded(&["temporary"]).noted(NoteKind::PastLibrary), 0);
}

/// R5: what a program hands to a ring by `syscall` is recorded; the tracer sees every way.
#[test]
fn requests_of_rings_are_recorded() {
    let expected = |registered: bool| {
        let mut expected = vec![(Op::Write, 0, 1)];
        for round in 0..3 {
            expected.extend([
                (Op::Write, 8192 * round, 4096),
                (Op::Write, 8192 * round + 4096, 4096),
                (Op::Fsync, 0, 0),
            ]);
        }
        if registered {
            expected.push((Op::Write, 100, 50));
        }
        expected
    };
    let list = |case: &Case| -> Vec<(Op, u64, u64)> {
        case.ops()
            .filter(|(op, _)| op.op != Op::Close)
            .map(|(op, _)| (op.op, op.offset, op.length))
            .collect()
    };
    for (case, registered) in [
        (recorded(&["rings"]), true),
        (traced(&["rings"]), true),
        (traced(&["own_rings"]), false),
    ] {
        if case.count(Op::Truncate) == 1 {
            return; // The machine allows no rings.
        }
        assert_eq!(list(&case), expected(registered));
        assert_eq!(
            (case.noted(NoteKind::IoUring), case.noted(NoteKind::Aio)),
            (0, 9 + u64::from(registered))
        );
    }
    // Whole pages have their contents.
    let page = spool::page_ids(&[7; spool::PAGE], spool::PAGE, spool::CHUNK)[0];
    let contents = recorded(&["rings"]).spools[0]
        .content
        .iter()
        .filter(|content| content.2 == page)
        .count();
    assert_eq!(contents, 6);
}

/// Past the library: the kernel has counted 12 requests.
#[test]
fn requests_that_pass_the_library_are_counted() {
    let case = recorded(&["own_rings"]);
    if case.count(Op::Truncate) == 0 {
        assert_eq!((writes(&case).len(), case.noted(NoteKind::IoUring)), (1, 12));
        // Set up, handed in and unmapped by the program alone.
        assert_eq!(recorded(&["ended_rings"]).noted(NoteKind::IoUring), 12);
    }
}

/// R6: what is stored through mappings is found by comparison, however they end.
#[test]
fn stores_into_shared_mappings_are_recorded() {
    for case in [recorded(&["stores"]), traced(&["stores"])] {
        let mut stored: Vec<(String, u64, u64)> = case
            .ops()
            .filter(|(op, _)| op.op == Op::MapSync)
            .map(|(op, name)| (name.clone(), op.offset, op.length))
            .collect();
        stored.sort();
        let expected = [
            ("a", 0, 8192),        // at msync
            ("a", 4096, 4096),     // at munmap
            ("a", 5 * 4096, 4096), // at the end
            ("b", 12288, 4096),
            ("c", 0, 4096),
            ("c", 3 * 4096, 4096), // before mremap
            ("d", 4096, 4096),     // in memory that cannot be read
        ];
        let expected = expected.map(|(name, offset, length)| (name.to_owned(), offset, length));
        assert_eq!(stored, expected);
        assert_eq!(case.noted(NoteKind::Uncompared), 0);
        assert!(
            case.ops()
                .filter(|(op, _)| op.op == Op::MapSync)
                .all(|(op, _)| op.flags & op_flags::STORED != 0)
        );
    }
}

fn stored(case: &Case) -> Vec<(String, u64, u64)> {
    let stored = case.ops().filter(|(op, _)| op.op == Op::MapSync);
    let mut stored: Vec<_> = stored
        .map(|(op, name)| (name.clone(), op.offset / 4096, op.length / 4096))
        .collect();
    stored.sort();
    stored
}

/// Pages 0 to 5 and 7 by children and a grandchild, then 6, and 0 once more, by the parent. One child syncs.
#[test]
fn stores_of_children_into_mappings_of_their_parent_are_recorded_once() {
    let expected: Vec<_> = [0, 0, 1, 2, 3, 4, 5, 6, 7].map(|page| ("a".to_owned(), page, 1)).into();
    let case = recorded(&["inherited"]);
    assert_eq!(stored(&case), expected);
    assert_eq!((case.count(Op::Fdatasync), case.noted(NoteKind::Uncompared)), (1, 0));
    // By whom.
    let parent = case
        .spools
        .iter()
        .find(|told| told.ops.iter().any(|(op, _)| op.op == Op::Map));
    let own = parent.unwrap().ops.iter().filter(|(op, _)| op.op == Op::MapSync);
    assert_eq!(own.map(|(op, _)| op.offset / 4096).collect::<Vec<_>>(), [0, 6]);
}

#[test]
fn stores_into_mappings_that_are_replaced_or_left_at_a_quick_end_are_recorded() {
    let case = recorded(&["replaced"]);
    let expected = [1, 2, 3].map(|page| ("a".to_owned(), page, 1));
    assert_eq!(stored(&case), expected);
}

/// The kernel writes them at msync, and lets go of them at the end of the mapping.
#[test]
fn stores_into_files_without_descriptor_and_name_reach_the_device() {
    for case in [recorded(&["unnamed"]), traced(&["unnamed"])] {
        assert_eq!(stored(&case), [("a".to_owned(), 0, 1), ("b".to_owned(), 1, 1)]);
        let requests = case.requests();
        let requests: Vec<_> = requests
            .iter()
            .map(|(op, at, pages)| (op.as_str(), *at, *pages))
            .collect();
        let expected = [
            ("Write", 0, 1),
            ("Flush", 0, 0),
            ("Write", 1, 1),
            ("Flush", 0, 0),
            ("Trim", 0, 1),
            ("Trim", 1, 1),
        ];
        assert_eq!(requests, expected);
    }
}

/// The tracer compares all of a mapping at the end of the last process that has it: of the children only what they sync is told by whom.
#[test]
fn the_tracer_tells_each_store_of_children_once() {
    let case = traced(&["inherited"]);
    let pages = stored(&case)
        .into_iter()
        .flat_map(|(_, first, pages)| first..first + pages);
    assert_eq!(pages.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((case.count(Op::Fdatasync), case.noted(NoteKind::Uncompared)), (1, 0));
    let by_child = case
        .spools
        .iter()
        .find(|told| told.ops.iter().any(|(op, _)| op.op == Op::Fdatasync));
    let calls = by_child
        .unwrap()
        .ops
        .iter()
        .map(|(op, name)| (op.op, name.as_str(), op.offset));
    assert_eq!(
        calls.collect::<Vec<_>>(),
        [(Op::MapSync, "a", 8192), (Op::Fdatasync, "a", 0)]
    );
}

/// R12: 10,000 bytes are three pages, read when they are complete or synced, and one more.
#[test]
fn a_page_written_byte_by_byte_is_read_once() {
    let case = recorded(&["bytes"]);
    let pages: Vec<(usize, u64)> = case.spools[0]
        .content
        .iter()
        .map(|content| (content.0, content.1))
        .collect();
    assert_eq!(pages, [(4095, 0), (8191, 1), (9999, 2), (10001, 0)]);
}

/// With O_APPEND or RWF_APPEND a write goes to the end of the file, whatever its offset.
#[test]
fn writes_that_append_are_told_where_they_went() {
    let expected: Vec<(String, u64, u64)> = [(0, 100)]
        .into_iter()
        .chain((0..6).map(|write| (100 + 4096 * write, 4096)))
        .map(|(offset, length)| ("a".to_owned(), offset, length))
        .collect();
    for case in [recorded(&["appended"]), traced(&["appended"])] {
        assert_eq!(writes(&case), expected);
        // The pages that were read back are those that were written to.
        let pages: BTreeSet<u64> = case
            .spools
            .iter()
            .flat_map(|told| &told.content)
            .map(|page| page.1)
            .collect();
        assert_eq!(pages, (0..=6).collect());
    }
}
