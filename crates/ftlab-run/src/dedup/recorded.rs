//! Smaller chunks of a recording, which holds ids of each 1 KiB beside those of pages, or of 512 or 256 B.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ftlab_core::request::larger;
use ftlab_core::{Error, OpKind, Result};
use ftlab_record::recording::{Calls, Reader};
use ftlab_record::replay::{Content, Options, Replay, Request};

use super::live::Span;
use super::written::Written;

/// Bytes of the largest chunk with an id.
pub const CHUNK_BYTES: u64 = 1024;
const PAGE: u64 = 4 * CHUNK_BYTES;

/// Chunks of one size and what was counted of them.
pub struct Chunks {
    pub bytes: u64,
    pub written: Written,
}

/// Reads the recording once more, replayed in the same way, and counts chunks as units: those of 1 KiB, then those of each smaller
/// size that it knows. `memory` is for each size.
pub fn chunks(path: &Path, options: &Options, memory: u64) -> Result<Vec<Chunks>> {
    let file = File::open(path).map_err(|e| Error::io(path, &e))?;
    let mut reader = Reader::new(&path.display().to_string(), BufReader::new(file))?;
    let mut replay = Replay::new(options.clone(), reader.tables());
    let pieces = reader.tables().pieces();
    let sizes = [1, 2, 4].into_iter().filter(|parts| pieces.is_multiple_of(*parts));
    let mut all: Vec<Chunks> = sizes
        .map(|parts| Chunks {
            bytes: CHUNK_BYTES / parts as u64,
            written: Written::new(memory, true),
        })
        .collect();
    let mut calls = Calls::default();
    loop {
        reader.read(&mut calls)?;
        if calls.ops.is_empty() {
            break;
        }
        for (op, contents) in calls.iter() {
            replay.apply(op, contents)?;
            count(&replay, reader.pieces(), pieces, &mut all);
            replay.clear();
        }
    }
    replay.finish()?;
    count(&replay, reader.pieces(), pieces, &mut all);
    Ok(all)
}

/// Counts the requests of a replay; `each` of `pieces` make a chunk of 1 KiB.
fn count(replay: &Replay, pieces: &[u64], each: usize, all: &mut [Chunks]) {
    let mut from = 0;
    for request in replay.requests() {
        let contents = replay.contents().get(from..request.contents_end).unwrap_or(&[]);
        from = request.contents_end;
        for Chunks { bytes, written } in all.iter_mut() {
            of_request(request, contents, written, *bytes, |chunk| {
                let parts = (CHUNK_BYTES / *bytes) as usize;
                part(chunk, pieces, each, parts)
            });
        }
    }
}

/// Counts the chunks of one request; `ids` gives those of what chunk number `n` of 1 KiB consists of.
fn of_request(
    request: &Request,
    contents: &[Content],
    written: &mut Written,
    bytes: u64,
    ids: impl Fn(u64) -> [u64; 4],
) {
    let end = request.offset + u64::from(request.length);
    let span = |start: u64| Span {
        volume: 0,
        start,
        end: end.min(start + bytes),
    };
    if request.op == OpKind::Trim {
        written.trim(Span {
            end,
            ..span(request.offset)
        });
    }
    if !matches!(request.op, OpKind::Read | OpKind::Write) {
        return;
    }
    // Contents are those of whole pages; a chunk that begins within one of the page's own is unknown.
    let first_page = request.offset / PAGE;
    for start in (request.offset..end).step_by(bytes as usize) {
        let content = contents.get((start / PAGE - first_page) as usize);
        let chunk = content.map_or(0, |content| content.chunks[(start % PAGE / CHUNK_BYTES) as usize]);
        let id = ids(chunk)[(start % CHUNK_BYTES / bytes) as usize];
        let known = id != 0 && start.is_multiple_of(bytes);
        written.chunk(request.op, span(start), request.time_ns, known.then_some(id));
    }
}

/// The ids of the `parts` of which a chunk of 1 KiB consists; 0 is unknown.
fn part(chunk: u64, pieces: &[u64], each: usize, parts: usize) -> [u64; 4] {
    let mut ids = [chunk, 0, 0, 0];
    if parts > 1 {
        let of = (chunk as usize)
            .checked_sub(1)
            .and_then(|at| pieces.chunks_exact(each).nth(at));
        let larger = larger(of.unwrap_or(&[0; 4]), each / parts);
        ids.iter_mut().zip(larger).for_each(|(to, id)| *to = id);
    }
    ids
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
        let all = chunks(&path, &Options::default(), 1 << 20).unwrap();
        std::fs::remove_file(&path).unwrap();
        let [Chunks { bytes: 1024, written }] = all.as_slice() else {
            panic!("{} sizes", all.len());
        };
        // Four pages of four chunks, of which one page is a duplicate.
        assert_eq!((written.known, written.known_bytes), (16, 16384));
        assert_eq!(written.distinct().value, 12.0);
        assert_eq!(written.stored().value, 12.0);
    }

    /// The same calls with ids of 256 B. The second half of each KiB is the first half of the first one: 12 different KiB consist of 12
    /// different halves and 24 different quarters.
    #[test]
    fn small_chunks_of_the_sample() {
        let path = std::env::temp_dir().join(format!("ftlab-dedup-{}-small.ftlrec", std::process::id()));
        std::fs::write(&path, ftlab_record::recording::sample_of_small_chunks().unwrap()).unwrap();
        let all = chunks(&path, &Options::default(), 1 << 20).unwrap();
        std::fs::remove_file(&path).unwrap();
        let counted: Vec<_> = all
            .iter()
            .map(|of| (of.bytes, of.written.known, of.written.distinct().value))
            .collect();
        assert_eq!(counted, [(1024, 16, 12.0), (512, 32, 12.0), (256, 64, 24.0)]);
    }
}
