//! One function per parser that takes any bytes: it must neither panic nor read past its input.
//!
//! The test `fuzz_smoke` drives them on every run with mutated samples; `fuzz/` at the top of the repository has a
//! libFuzzer target for each.

use crate::recording::{self, Calls, Reader};
use crate::replay::{Options, Replay};
use crate::spool::{Record, Spool};

/// Pages beyond which calls are not replayed, so that one input cannot cost seconds.
const FEW_PAGES: u64 = 20_000;

/// The reader of spools.
pub fn fuzz_spool(bytes: &[u8]) {
    let spool = match Spool::parse("fuzzed", bytes) {
        Ok(spool) => spool,
        Err(error) => return check_sentence(&error),
    };
    let mut ended = false;
    for record in spool.records() {
        assert!(!ended, "a record after the error");
        match record {
            Ok(Record::Context(context)) => assert!(context.frames().count() <= crate::spool::MOST_FRAMES),
            Ok(Record::Content(content)) => assert!(content.pages().count() <= crate::spool::MOST_PAGES),
            Ok(_) => {}
            Err(error) => {
                check_sentence(&error);
                ended = true;
            }
        }
    }
}

/// The reader of recordings, and the replay of what it reads.
pub fn fuzz_recording(bytes: &[u8]) {
    read(bytes);
    // What lies behind checksums and compression is reached only with the right ones.
    if let Some((&n, columns)) = bytes.split_first() {
        match recording::with_columns(u32::from(n), columns) {
            Ok(whole) => read(&whole),
            Err(error) => check_sentence(&error),
        }
    }
}

fn read(bytes: &[u8]) {
    let mut reader = match Reader::new("fuzzed", bytes) {
        Ok(reader) => reader,
        Err(error) => return check_sentence(&error),
    };
    let small = "memory=1MiB,background=16KiB,limit=64KiB,bandwidth=1MiB/s,journal=on,extents=real,device=8GiB";
    let options = [Options::parse(small), Options::parse("page_cache=off")];
    for options in options.into_iter().flatten() {
        replay(&mut reader, options);
    }
}

fn replay(reader: &mut Reader<&[u8]>, options: Options) {
    let mut replay = Replay::new(options, reader.tables());
    let (mut calls, mut time, mut pages) = (Calls::default(), 0, 0u64);
    loop {
        if let Err(error) = reader.read(&mut calls) {
            check_sentence(&error);
            break;
        }
        if calls.ops.is_empty() {
            break;
        }
        for (op, contents) in calls.iter() {
            pages += op.length.div_ceil(4096);
            if pages > FEW_PAGES {
                return;
            }
            if let Err(error) = replay.apply(op, contents) {
                return check_sentence(&error);
            }
        }
    }
    if let Err(error) = replay.finish() {
        return check_sentence(&error);
    }
    for request in replay.requests() {
        assert!(request.time_ns >= time, "time goes back");
        assert!(request.offset % 4096 == 0 && request.length % 4096 == 0);
        time = request.time_ns;
    }
    assert!(replay.contents().len() >= replay.requests().last().map_or(0, |request| request.contents_end));
}

fn check_sentence(error: &ftlab_core::Error) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.contains('\n'), "{text:?} is not one line");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any columns, made of bytes that small numbers are made of: what the decoder lets through, the replay must stand.
    #[test]
    fn calls_of_any_kind_are_replayed_or_refused() {
        let mut state = 1u64;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..400 {
            // Time, duration, call and flags, file, offset, length in two bytes, context, process, tid, no contents.
            let n = 1 + random(12);
            let mut columns = vec![n as u8];
            for most in [100, 3, 120, 1, 64, 128, 3, 1, 2, 1] {
                for _ in 0..n {
                    match most {
                        1 => columns.push(0),
                        // Signed: an even number goes forward.
                        64 | 2 => columns.push(2 * random(most) as u8),
                        120 => columns.push((random(12) + 16 * random(8)) as u8),
                        128 => columns.extend([0x80 | random(128) as u8, random(128) as u8]),
                        most => columns.push(random(most) as u8),
                    }
                }
            }
            fuzz_recording(&columns);
        }
    }
}
