//! Smaller chunks of a recording, which holds ids of each 1 KiB beside those of pages.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ftlab_core::{Error, OpKind, Result};
use ftlab_record::recording::{Calls, Reader};
use ftlab_record::replay::{Options, Replay};

use super::live::Span;
use super::written::Written;

/// Bytes of a chunk with an id.
pub const CHUNK_BYTES: u64 = 1024;
const PAGE: u64 = 4 * CHUNK_BYTES;

/// Reads the recording once more, replayed in the same way, and counts chunks as units.
pub fn chunks(path: &Path, options: &Options, memory: u64) -> Result<Written> {
    let file = File::open(path).map_err(|e| Error::io(path, &e))?;
    let mut reader = Reader::new(&path.display().to_string(), BufReader::new(file))?;
    let mut replay = Replay::new(options.clone(), reader.tables());
    let (mut written, mut calls) = (Written::new(memory, true), Calls::default());
    loop {
        reader.read(&mut calls)?;
        if calls.ops.is_empty() {
            break;
        }
        for (op, contents) in calls.iter() {
            replay.apply(op, contents)?;
            count(&mut replay, &mut written);
        }
    }
    replay.finish()?;
    count(&mut replay, &mut written);
    Ok(written)
}

fn count(replay: &mut Replay, written: &mut Written) {
    let mut from = 0;
    for request in replay.requests() {
        let contents = replay.contents().get(from..request.contents_end).unwrap_or(&[]);
        from = request.contents_end;
        let end = request.offset + u64::from(request.length);
        let span = |start: u64| Span {
            volume: 0,
            start,
            end: end.min(start + CHUNK_BYTES),
        };
        if request.op == OpKind::Trim {
            written.trim(Span {
                end,
                ..span(request.offset)
            });
        }
        if !matches!(request.op, OpKind::Read | OpKind::Write) {
            continue;
        }
        // Contents are those of whole pages; a chunk that begins within one of the page's own is unknown.
        let first_page = request.offset / PAGE;
        for start in (request.offset..end).step_by(CHUNK_BYTES as usize) {
            let content = contents.get((start / PAGE - first_page) as usize);
            let id = content.map_or(0, |content| content.chunks[(start % PAGE / CHUNK_BYTES) as usize]);
            let known = id != 0 && start.is_multiple_of(CHUNK_BYTES);
            written.chunk(request.op, span(start), request.time_ns, known.then_some(id));
        }
    }
    replay.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log's page is written at 1 ms; the table's two later, the second of which holds what the log holds; that one is written
    /// again with a third content when the log is still there.
    #[test]
    fn chunks_of_the_sample() {
        let path = std::env::temp_dir().join(format!("ftlab-dedup-{}-chunks.ftlrec", std::process::id()));
        std::fs::write(&path, ftlab_record::recording::sample().unwrap()).unwrap();
        let written = chunks(&path, &Options::default(), 1 << 20).unwrap();
        std::fs::remove_file(&path).unwrap();
        // Four pages of four chunks, of which one page is a duplicate.
        assert_eq!((written.known, written.known_bytes), (16, 16384));
        assert_eq!(written.distinct().value, 12.0);
        assert_eq!(written.stored().value, 12.0);
    }
}
