//! Small C programs, recorded: what is in their spools, and that they were not disturbed. And the same by the exact tracer,
//! which must tell the same.

#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

mod common;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use common::*;
use ftlab_record::spool::{self, NoteKind, Op, op_flags};
use ftlab_recorder::exact;

/// What `calls` in programs.c does, from its source. After the first write the position is 4096, after the second 4106, so
/// writev starts there. posix_fallocate makes the file 10000 bytes long; `b` is appended to, so the write at 0 lands at 50.
fn what_calls_does() -> Vec<(Op, &'static str, u64, u64, u16)> {
    use op_flags::*;
    vec![
        (Op::Write, "a", 0, 4096, 0),
        (Op::Write, "a", 4096, 10, 0),
        (Op::Write, "a", 8192, 20, 0),
        (Op::Write, "a", 4106, 128, 0),
        (Op::Write, "a", 5000, 128, 0),
        (Op::Write, "a", 6000, 128, SYNC),
        (Op::Fsync, "a", 0, 0, 0),
        (Op::Fdatasync, "a", 0, 0, 0),
        (Op::SyncRange, "a", 0, 4096, 0),
        (Op::Truncate, "a", 3000, 8212, 0),
        (Op::Fallocate, "a", 0, 10000, 0),
        (Op::Punch, "a", 4096, 4096, KEEP_SIZE),
        (Op::Write, "a", 7000, 30, 0),
        (Op::Write, "a", 9000, 40, 0),
        (Op::Close, "a", 0, 0, 0),
        (Op::Close, "a", 0, 0, 0),
        (Op::Write, "b", 0, 50, APPEND),
        (Op::Write, "b", 50, 60, APPEND),
        (Op::Close, "b", 0, 0, APPEND),
        (Op::Write, "c", 0, 1000, COPIED),
        (Op::Close, "c", 0, 0, 0),
        (Op::Write, "d", 0, 17, STDIO),
        (Op::Close, "d", 0, 0, 0),
        (Op::Unlink, "d", 0, 0, REPLACED),
        (Op::Rename, "d", 0, 0, 0),
        (Op::Link, "e", 0, 0, 0),
        (Op::Unlink, "d", 0, 1, 0),
        (Op::Unlink, "e", 0, 0, 0),
        (Op::Truncate, "a", 5, 10000, 0),
        (Op::OpenTruncate, "a", 0, 5, 0),
        (Op::Close, "a", 0, 0, 0),
        (Op::Write, "f", 0, 16, STDIO),
    ]
}

#[test]
fn every_kind_of_call_is_told() {
    let case = recorded("calls");
    assert_eq!(case.list(), what_calls_does());
    assert_eq!(case.spools.len(), 1);
    assert!(case.spools[0].command.ends_with(b"calls\0"));
    assert!(
        case.spools[0].bytes < 20 << 10,
        "{} bytes are left",
        case.spools[0].bytes
    );
}

/// Hints are told as they were given, by function and by number, and those that the kernel refuses are not.
#[test]
fn write_lifetime_hints_are_told() {
    for case in [recorded("hints"), traced("hints")] {
        let told: Vec<_> = case.list().into_iter().filter(|call| call.1 == "a").collect();
        let expected = [
            (Op::Hint, "a", 0, 2, 0),
            (Op::Write, "a", 0, 4096, 0),
            (Op::Hint, "a", 0, 5, 0),
            (Op::Write, "a", 4096, 4096, 0),
        ];
        assert_eq!(told, expected);
        assert!(
            case.ops()
                .filter(|(op, _)| op.op != Op::Close)
                .all(|(op, _)| op.signature != 0)
        );
    }
}

#[test]
fn what_earlier_records_left_on_the_stack_is_no_part_of_a_scan() {
    let case = run("remains", programs(), &["remains"], &[(spool::ENV_SIGNATURE, "scan")]);
    assert!(case.status.success(), "disturbed: {}", case.status);
    assert_eq!(case.signatures().len(), 20);
    let mut modules = case.spools.iter().flat_map(|spool| &spool.modules);
    assert!(!modules.any(|path| path.contains("libftlab_preload")));
}

#[test]
fn signatures_are_the_same_in_every_run_and_tell_calls_apart() {
    for method in ["auto", "fp", "unwind", "scan"] {
        let run = |name: &str| run(name, programs(), &["calls"], &[(spool::ENV_SIGNATURE, method)]);
        let (one, two) = (run(&format!("{method}-1")), run(&format!("{method}-2")));
        assert_eq!(one.signatures(), two.signatures(), "{method}");
        // All calls but the closes, which have none, come from places of their own; the one at exit has only main's caller.
        let distinct: BTreeSet<u64> = one
            .signatures()
            .into_iter()
            .filter(|&signature| signature != 0)
            .collect();
        // A rename that replaces a file is two records.
        let told_apart = |call: &&(Op, &str, u64, u64, u16)| call.0 != Op::Close && call.4 & op_flags::REPLACED == 0;
        let calls = what_calls_does().iter().filter(told_apart).count();
        // Scanning stops after five words, and the chain of frame pointers at the first function that keeps none, so some
        // calls of this one function look alike.
        let all = matches!(method, "auto" | "unwind");
        let enough = if all {
            distinct.len() == calls
        } else {
            2 * distinct.len() > calls
        };
        assert!(enough, "{method}: {distinct:x?}");
        let written: BTreeSet<u64> = one.spools[0].contexts.iter().map(|context| context.0).collect();
        assert_eq!(distinct, written, "{method}: contexts that were written");
    }
}

/// The tracer sees system calls: flags that tell streams apart it cannot know.
#[test]
fn the_exact_tracer_tells_the_same() {
    let exact = traced("calls");
    assert!(exact.status.success());
    let seen: Vec<_> = exact.list();
    let expected: Vec<_> = what_calls_does()
        .into_iter()
        .map(|(op, name, offset, length, flags)| (op, name, offset, length, flags & !op_flags::STDIO))
        .collect();
    assert_eq!(seen, expected);
    let library = run("same", programs(), &["calls"], &[(spool::ENV_SIGNATURE, "unwind")]);
    assert_eq!(exact.signatures(), library.signatures());
}

#[test]
fn a_program_that_is_not_there_is_one_sentence() {
    let folder = scratch("nothing");
    let error = exact::record(
        &["/no/such/program".into()],
        &folder,
        &exact::Options::default(),
        &|_| {},
    )
    .unwrap_err();
    let sentence = "/no/such/program: cannot be started under the tracer: No such file or directory (os error 2)";
    assert_eq!(error.to_string(), sentence);
}

#[test]
fn children_have_spools_of_their_own() {
    for case in [recorded("forked"), traced("forked")] {
        let writes = |told: &Told| told.ops.iter().filter(|(op, _)| op.op == Op::Write).count();
        let parent = case
            .spools
            .iter()
            .find(|told| writes(told) == 2)
            .expect("the parent's two writes");
        let children: Vec<&Told> = case.spools.iter().filter(|told| told.parent == parent.pid).collect();
        assert_eq!(children.len(), 4);
        assert!(
            children
                .iter()
                .all(|child| writes(child) == 1 && child.ops[0].0.length == 10)
        );
        let mut offsets: Vec<u64> = children.iter().map(|child| child.ops[0].0.offset).collect();
        offsets.sort_unstable();
        assert_eq!(offsets, [1000, 2000, 3000, 4000]);
    }
}

#[test]
fn programs_that_cannot_be_recorded_are_counted_however_they_are_started() {
    let fixed = compile("fixed.c", "fixed", &["-static"]);
    let case = run("started", programs(), &["started", fixed.to_str().unwrap()], &[]);
    assert!(case.status.success(), "disturbed: {}", case.status);
    let counted = case.spools.iter().flat_map(|spool| &spool.notes);
    let counts: u64 = counted
        .filter(|(kind, ..)| *kind == NoteKind::NotLoaded)
        .map(|(_, count, _)| count)
        .sum();
    assert_eq!(counts, 12);
}

#[test]
fn programs_started_with_their_own_environment_are_recorded() {
    for case in [recorded("executed"), traced("executed")] {
        let offsets: Vec<u64> = case
            .ops()
            .filter(|(_, name)| name == "one")
            .map(|(op, _)| op.offset)
            .collect();
        assert_eq!(
            offsets.iter().sum::<u64>(),
            100,
            "two writes of 100 bytes, one after the other: {offsets:?}"
        );
        assert_eq!(offsets.len(), 2);
        assert_eq!(case.ops().filter(|(_, name)| name == "before").count(), 2);
    }
}

#[test]
fn each_thread_has_its_spool() {
    for case in [recorded("threads"), traced("threads")] {
        assert_eq!(case.spools.len(), 8);
        for told in &case.spools {
            let offsets = told
                .ops
                .iter()
                .filter(|(op, _)| op.op == Op::Write)
                .map(|(op, _)| op.offset);
            assert!(offsets.eq((0..1000).map(|i| 10 * i)));
            // 1000 records of 48 bytes, 56 more each with content, and what describes them.
            let records = if told.content.is_empty() { 48_000 } else { 104_000 };
            assert!((records..records + 8_000).contains(&told.bytes), "{} bytes", told.bytes);
        }
    }
}

#[test]
fn a_thread_with_little_stack_is_recorded() {
    assert_eq!(recorded("small_stack").count(Op::Write), 1000);
}

/// On stacks that are not the thread's own there is no unwinding, but a signature all the same, the same in every run.
#[test]
fn other_stacks_are_not_overrun() {
    let (one, two) = (recorded("alternate_stack"), recorded("alternate_stack"));
    assert_eq!(one.count(Op::Write), 10);
    assert!(one.signatures().iter().all(|&signature| signature != 0));
    assert_eq!(one.signatures(), two.signatures());
    let (one, two) = (recorded("coroutines"), recorded("coroutines"));
    assert_eq!(one.count(Op::Write), 11);
    assert_eq!(one.signatures(), two.signatures());
}

#[test]
fn a_killed_program_loses_nothing() {
    let case = run("killed", programs(), &["killed"], &[]);
    assert_eq!(case.status.signal(), Some(9));
    let offsets: Vec<u64> = case.ops().map(|(op, _)| op.offset).collect();
    assert_eq!(offsets, (0..5000).map(|i| 10 * i).collect::<Vec<u64>>());
}

/// The first window of 128 KiB fits into the limit of 200 KiB, the second does not.
#[test]
fn without_room_the_recording_stops_and_the_program_goes_on() {
    let case = recorded("no_room");
    let written = case.count(Op::Write);
    assert!(
        (2000..2730).contains(&written),
        "{written} of 20000, 128 KiB of 48 bytes each"
    );
    assert!(case.folder.join("spools").join(spool::FULL).exists());
}

#[test]
fn a_full_disk_stops_the_recording_only() {
    let (mount, library, program) = (scratch("small-disk"), library(), programs());
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=600k", "none"])
        .arg(&mount)
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        // Only root may mount; the limit above takes the same path.
        return;
    }
    let status = Command::new(program)
        .arg("endless")
        .current_dir(scratch("full-work"))
        .env("LD_PRELOAD", library)
        .env(spool::ENV_DIR, &mount)
        .status()
        .unwrap();
    let kept = scratch("full-kept");
    let copied = Command::new("cp").arg("-a").arg(mount.join(".")).arg(&kept).status();
    // Before anything that can fail: the mount would outlive the test.
    Command::new("umount").arg(&mount).status().unwrap();
    assert!(copied.unwrap().success());
    let (spools, full) = (read(&kept), kept.join(spool::FULL).exists());
    assert!(status.success() && full);
    assert!(spools[0].ops.len() > 2000, "{}", spools[0].ops.len());
}

#[test]
fn descriptors_are_the_programs_own() {
    let case = recorded("many_descriptors");
    let lengths: Vec<u64> = case
        .ops()
        .filter(|(op, _)| op.op == Op::Write)
        .map(|(op, _)| op.length)
        .collect();
    // The write with no descriptor left may have found no room for its spool; then that is noted.
    let lost = case.noted(NoteKind::NoRoom);
    assert!(
        lengths == [10, 11, 12] || lengths == [11, 12] && lost > 0,
        "{lengths:?}, {lost} lost"
    );
}

#[test]
fn a_thread_can_be_cancelled_in_a_call() {
    assert_eq!(recorded("cancelled").count(Op::Write), 1);
}

/// Every write of the handler is either recorded or counted.
#[test]
fn signal_handlers_that_write_are_recorded_or_counted() {
    let case = recorded("interrupted");
    let handled = case.ops().find(|(op, _)| op.op == Op::Truncate).unwrap().0.offset;
    let seen = case
        .ops()
        .filter(|(op, name)| op.op == Op::Write && name == "signal")
        .count() as u64;
    assert_eq!(seen + case.noted(NoteKind::Interrupted), handled);
    assert_eq!(
        case.ops()
            .filter(|(op, name)| op.op == Op::Write && name == "a")
            .count(),
        200_000
    );
}

#[test]
fn errors_and_errno_are_the_programs_own() {
    let case = recorded("errors");
    let names: Vec<&str> = case
        .ops()
        .filter(|(op, _)| op.op == Op::Write)
        .map(|(_, name)| name.as_str())
        .collect();
    assert_eq!(names, ["a", "a", "b"]);
}

/// Page 0 of `a` holds 4096 sevens; of `b` after the third write too, before that 1000 and 4000 of them.
#[test]
fn content_is_that_of_the_whole_page() {
    let library = run("content", programs(), &["content"], &[(spool::ENV_CONTENT, "1")]);
    // The library reads a page that is written in pieces when it is complete.
    let whole: &[(usize, usize)] = &[(0, 4096), (3, 4096)];
    let each: &[(usize, usize)] = &[(0, 4096), (1, 1000), (2, 4000), (3, 4096)];
    for (case, expected) in [(library, whole), (traced("content"), each)] {
        let content = &case.spools[0].content;
        let page = |held: usize| {
            let mut page = [0; spool::PAGE];
            page[..held].fill(7);
            let ids = spool::page_ids(&page, held, spool::CHUNK);
            (ids[0], [ids[1], ids[2], ids[3], ids[4]])
        };
        let expected: Vec<_> = expected
            .iter()
            .map(|&(op, held)| (op, 0, page(held).0, page(held).1))
            .collect();
        assert_eq!(*content, expected);
    }
}

#[test]
fn shared_mappings_are_told() {
    let case = recorded("mapped");
    let list: Vec<_> = case
        .list()
        .into_iter()
        .map(|(op, _, offset, length, _)| (op, offset, length))
        .collect();
    let expected = [
        (Op::Truncate, 16384, 0),
        (Op::Map, 0, 16384),
        (Op::MapSync, 4096, 4096),
        (Op::Fdatasync, 0, 0),
        (Op::Close, 0, 0),
    ];
    assert_eq!(list, expected);
}

#[test]
fn no_memory_is_taken_from_the_program() {
    for (name, content) in [("malloc", "0"), ("malloc-content", "1")] {
        let program = compile("malloc.c", name, &[]);
        let case = run(&format!("{name}-run"), &program, &[], &[(spool::ENV_CONTENT, content)]);
        assert!(case.status.success(), "malloc or free was called: {}", case.status);
        assert_eq!(case.count(Op::Write), 100);
    }
}

/// Such a program has no loader that could load the library; the tracer needs none.
#[test]
fn static_programs_run_unrecorded() {
    let program = compile("programs.c", "static", &["-static"]);
    let case = run("static-run", &program, &["calls"], &[]);
    assert!(case.status.success() && case.spools.is_empty());
}

#[test]
fn without_a_folder_nothing_is_recorded() {
    let work = scratch("no-folder");
    let status = Command::new(programs())
        .arg("calls")
        .current_dir(&work)
        .env("LD_PRELOAD", library())
        .env_remove(spool::ENV_DIR)
        .status()
        .unwrap();
    assert!(status.success());
}
