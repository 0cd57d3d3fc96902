use super::*;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

fn tables(sizes: &[u64]) -> Tables {
    let file = |&size: &u64| FileEntry {
        size,
        ..FileEntry::default()
    };
    Tables {
        files: sizes.iter().map(file).collect(),
        ..Tables::default()
    }
}

/// A call of context 1 + the file's number.
fn op(time_ns: u64, call: Call, file: u32, offset: u64, length: u64) -> Op {
    Op {
        time_ns,
        duration_ns: 0,
        call,
        flags: 0,
        file,
        offset,
        length,
        context: 1 + file,
        process: 0,
        tid: 1,
    }
}

/// Time, operation, page and pages of each request.
fn requests(options: &str, sizes: &[u64], calls: &[Op]) -> Vec<(u64, OpKind, u64, u64)> {
    let mut replay = Replay::new(Options::parse(options).unwrap(), &tables(sizes));
    for call in calls {
        replay.apply(call, &[]).unwrap();
    }
    replay.finish().unwrap();
    let short = |r: &Request| (r.time_ns, r.op, r.offset / PAGE, u64::from(r.length) / PAGE);
    replay.requests().iter().map(short).collect()
}

use OpKind::{Flush, Read, Trim, Write};

#[test]
fn a_page_written_three_times_goes_down_once_when_its_file_has_been_dirty_for_30_s() {
    let write = |time| op(time, Call::Write, 0, 0, 4096);
    // Dirty since 1 s; the background looks every 5 s and finds more than 30 s first at 35 s.
    let found = requests("", &[0], &[write(S), write(2 * S), write(29 * S)]);
    assert_eq!(found, [(35 * S, Write, 0, 1)]);
    // Without a cache each write goes down.
    let found = requests("page_cache=off", &[0], &[write(S), write(2 * S)]);
    assert_eq!(found, [(S, Write, 0, 1), (2 * S, Write, 0, 1)]);
}

#[test]
fn the_whole_file_goes_down_with_its_oldest_page() {
    let calls = [op(0, Call::Write, 0, 0, 4096), op(29 * S, Call::Write, 0, 8192, 4096)];
    // Looks at 30 s find exactly 30 s, which is not more; page 2 of the file gets the place behind page 0.
    assert_eq!(requests("", &[0], &calls), [(35 * S, Write, 0, 2)]);
}

#[test]
fn what_is_removed_in_time_never_reaches_the_device() {
    let calls = [
        op(0, Call::Write, 0, 0, 8192),
        op(10 * S, Call::Remove, 0, 0, 0),
        op(11 * S, Call::Write, 1, 0, 8192),
        op(12 * S, Call::Sync, 1, 0, 0),
        op(13 * S, Call::Remove, 1, 0, 0),
    ];
    let expected = [(12 * S, Write, 0, 2), (12 * S, Flush, 0, 0), (13 * S, Trim, 0, 2)];
    assert_eq!(requests("", &[0, 0], &calls), expected);
    // A journal's block is written before the flush; data lies behind the journal of 64 MiB.
    let journal = [
        (12 * S, Write, 16384, 2),
        (12 * S, Write, 0, 1),
        (12 * S, Flush, 0, 0),
        (13 * S, Trim, 16384, 2),
    ];
    assert_eq!(requests("journal=on", &[0, 0], &calls), journal);
}

#[test]
fn a_request_is_cut_where_the_last_writer_changes() {
    let mut second = op(1, Call::Write, 0, 4096, 4096);
    second.context = 7;
    let calls = [op(0, Call::Write, 0, 0, 12288), second, op(2, Call::Sync, 0, 0, 0)];
    let mut replay = Replay::new(Options::default(), &tables(&[0]));
    for call in &calls {
        replay.apply(call, &[]).unwrap();
    }
    let cut: Vec<(u32, u64)> = replay.requests().iter().map(|r| (r.context, r.offset / PAGE)).collect();
    assert_eq!(cut, [(1, 0), (7, 1), (1, 2), (0, 0)]);
}

#[test]
fn above_the_limits_the_oldest_file_goes_first() {
    // Background at 4 pages, limit at 8. The background may write 1 MiB/s: 256 pages a second, one in 4 ms.
    let options = "memory=1MiB,background=16KiB,limit=32KiB,bandwidth=1MiB/s,max_request=4KiB";
    let calls = [
        op(0, Call::Write, 0, 0, 4 * 4096),
        // Eight pages are dirty: four above the background limit, but no time has passed for it to write.
        op(0, Call::Write, 1, 0, 4 * 4096),
        // 8 ms later it may write two pages; the new page makes nine, one above the limit, which goes at once.
        op(8 * MS, Call::Write, 1, 4 * 4096, 4096),
        op(8 * MS, Call::Remove, 1, 0, 0),
        op(9 * MS, Call::Remove, 0, 0, 0),
    ];
    let found = requests(options, &[0, 0], &calls);
    // 8 ms of 1 MiB/s are 8388 bytes, two pages; all three are the first file's, in its order.
    let writes: Vec<_> = found.iter().filter(|r| r.1 == Write).copied().collect();
    assert_eq!(writes, [0, 1, 2].map(|page| (8 * MS, Write, page, 1)));
}

#[test]
fn reads_go_down_once_and_parts_of_pages_are_read_before() {
    // A file of three pages that was there before.
    let calls = [
        op(0, Call::Read, 0, 0, 8192),
        op(1, Call::Read, 0, 4096, 8192),
        op(2, Call::Read, 0, 0, 12288),
    ];
    assert_eq!(requests("", &[12288], &calls), [(0, Read, 0, 2), (1, Read, 2, 1)]);
    let part = [op(0, Call::Write, 0, 5000, 100), op(1, Call::Sync, 0, 0, 0)];
    assert_eq!(
        requests("", &[12288], &part),
        [(0, Read, 1, 1), (1, Write, 1, 1), (1, Flush, 0, 0)]
    );
    // Behind the end there is nothing to read.
    assert_eq!(requests("", &[0], &part), [(1, Write, 0, 1), (1, Flush, 0, 0)]);
}

#[test]
fn memory_that_is_full_forgets_what_was_used_the_longest_ago() {
    let read = |time, page: u64| op(time, Call::Read, 0, page * 4096, 4096);
    // 256 pages fit; page 0 is used again before page 256 comes, so page 1 goes.
    let mut calls: Vec<Op> = (0..256).map(|page| read(page, page)).collect();
    calls.extend([read(300, 0), read(301, 256), read(302, 0), read(303, 1)]);
    let found = requests("memory=1MiB", &[1 << 21], &calls);
    assert_eq!(found.len(), 258);
    assert_eq!(found[256..], [(301, Read, 256, 1), (303, Read, 1, 1)]);
}

#[test]
fn direct_and_synchronous_writes_do_not_wait() {
    let direct = Op {
        flags: op_flags::DIRECT,
        ..op(5, Call::Write, 0, 0, 4096)
    };
    let synchronous = Op {
        flags: op_flags::SYNC,
        ..op(7, Call::Write, 0, 8192, 4096)
    };
    let calls = [
        op(0, Call::Write, 0, 0, 8192),
        direct,
        synchronous,
        op(8, Call::Remove, 0, 0, 0),
    ];
    // The dirty page in the way of the direct write goes down before it; page 1 is still dirty when the file is removed.
    let found = requests("", &[0], &calls);
    let expected = [
        (5, Write, 0, 1),
        (5, Write, 0, 1),
        (7, Write, 1, 1),
        (7, Flush, 0, 0),
        (8, Trim, 0, 2),
    ];
    assert_eq!(found, expected);
}

#[test]
fn pages_written_through_a_mapping_are_those_whose_contents_are_given() {
    let mut replay = Replay::new(Options::default(), &tables(&[16384]));
    let known = Content {
        page: 9,
        chunks: [0; 4],
    };
    let contents = [Content::default(), known, Content::default(), Content::default()];
    replay.apply(&op(0, Call::Mapped, 0, 0, 16384), &contents).unwrap();
    replay.apply(&op(1, Call::Sync, 0, 0, 0), &[]).unwrap();
    let written: Vec<u64> = replay
        .requests()
        .iter()
        .filter(|r| r.op == Write)
        .map(|r| r.offset / PAGE)
        .collect();
    assert_eq!((written, replay.contents()), (vec![0], &[known][..]));
}

#[test]
fn a_file_without_a_name_is_written_back_while_it_is_open_and_goes_with_its_last_descriptor() {
    let mut remove = op(1, Call::Remove, 0, 0, 0);
    let write = op(0, Call::Write, 0, 0, 8192);
    let (sync, close) = (op(2, Call::Sync, 0, 0, 0), op(3, Call::Close, 0, 0, 0));
    assert_eq!(requests("", &[0], &[write, remove, sync, close]), [(2, Flush, 0, 0)]);
    remove.flags = op_flags::OPEN;
    let found = requests("", &[0], &[write, remove, sync, close]);
    assert_eq!(found, [(2, Write, 0, 2), (2, Flush, 0, 0), (3, Trim, 0, 2)]);
    // Closed before it was written back: it never reaches the device.
    assert_eq!(requests("", &[0], &[write, remove, close]), []);
}

/// Pages 0 to 3 are written; page 1 is taken out, so that what was page 2 is page 1 and lies where it lay.
#[test]
fn what_follows_a_collapsed_range_keeps_its_place() {
    let punch = |flags| Op {
        flags,
        ..op(1, Call::Punch, 0, 4096, 4096)
    };
    let write = op(0, Call::Write, 0, 0, 16384);
    let again = op(2, Call::Write, 0, 4096, 4096);
    let sync = op(3, Call::Sync, 0, 0, 0);
    let found = requests("", &[0], &[write, punch(op_flags::SHIFTED), again, sync]);
    // From page 1 on it is written back: to places 0 to 2. Page 0 then gets the place that page 1 had.
    assert_eq!(
        found,
        [(1, Write, 0, 3), (1, Trim, 0, 1), (3, Write, 0, 2), (3, Flush, 0, 0)]
    );
    // Inserted: what was page 1 is page 2, and page 1 is new.
    let found = requests("", &[0], &[write, punch(op_flags::SHIFTED | op_flags::UP), again, sync]);
    assert_eq!(found, [(1, Write, 0, 3), (3, Write, 3, 2), (3, Flush, 0, 0)]);
}

#[test]
fn what_is_cut_off_within_a_page_is_written_as_zeros() {
    let write = op(0, Call::Write, 0, 0, 16384);
    let (sync, cut) = (op(1, Call::Sync, 0, 0, 0), op(2, Call::Truncate, 0, 5000, 0));
    let found = requests("", &[0], &[write, sync, cut, op(3, Call::Sync, 0, 0, 0)]);
    let expected = [
        (1, Write, 0, 4),
        (1, Flush, 0, 0),
        (2, Trim, 2, 2),
        (3, Write, 1, 1),
        (3, Flush, 0, 0),
    ];
    assert_eq!(found, expected);
    // At a page's border nothing is left to write.
    let cut = op(2, Call::Truncate, 0, 8192, 0);
    let found = requests("", &[0], &[write, sync, cut, op(3, Call::Sync, 0, 0, 0)]);
    assert_eq!(
        found,
        [(1, Write, 0, 4), (1, Flush, 0, 0), (2, Trim, 2, 2), (3, Flush, 0, 0)]
    );
}

#[test]
fn pages_that_were_stored_into_are_written_up_to_the_end_of_the_file() {
    let stored = Op {
        flags: op_flags::STORED,
        ..op(0, Call::Mapped, 0, 4096, 16384)
    };
    let found = requests("", &[10_000], &[stored, op(1, Call::SyncData, 0, 0, 0)]);
    assert_eq!(found, [(0, Read, 1, 2), (1, Write, 1, 2), (1, Flush, 0, 0)]);
}

/// Numbers of hints are Linux's: 1 is none, 2 short, 5 extreme.
#[test]
fn a_hint_is_the_stream_of_what_is_written_to_its_file_while_it_holds() {
    let hint = |time, file, hint| op(time, Call::Hint, file, 0, hint);
    let direct = |page: u64| Op {
        flags: op_flags::DIRECT,
        ..op(4, Call::Write, 1, page * 4096, 4096)
    };
    let calls = [
        // Page 0 is still in the cache when the hint changes: it goes down with the later one, as it is the inode's.
        hint(0, 0, 2),
        op(1, Call::Write, 0, 0, 4096),
        hint(2, 0, 5),
        op(3, Call::Sync, 0, 0, 0),
        hint(4, 1, 3),
        direct(0),
        hint(4, 1, 2),
        direct(1),
        hint(4, 1, 1),
        direct(2),
        op(5, Call::Write, 2, 0, 4096),
        op(6, Call::SyncAll, 2, 0, 0),
    ];
    let mut replay = Replay::new(Options::default(), &tables(&[0, 0, 0]));
    calls.iter().for_each(|call| replay.apply(call, &[]).unwrap());
    let streams: Vec<_> = replay.requests().iter().map(|r| (r.op, r.file, r.stream)).collect();
    let expected = [
        (Write, Some(0), 4),
        (Flush, None, 0),
        // Pages that touch are one request only if they have one stream.
        (Write, Some(1), 2),
        (Write, Some(1), 1),
        (Write, Some(1), 0),
        (Write, Some(2), 0),
        (Flush, None, 0),
    ];
    assert_eq!(streams, expected);
}
