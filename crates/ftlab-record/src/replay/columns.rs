//! Requests of a replay as columns of a batch, with names for the kinds of files.

use ftlab_core::Batch;
use rustc_hash::FxHashMap;

use super::Request;
use super::options::{Labels as By, Options, Pids};
use crate::file_kinds::{kind_of, role_of};
use crate::recording::{Context, Frame, Process, Tables};
use crate::replay::Content;
use crate::spool::{mix, signature};

/// Names of the `label` column: what kind of file a request is for.
///
/// Files with an ending are called by it (`*.sst`), others by their name with numbers made alike (`MANIFEST-#`), or, if asked for, by
/// what files of such names are for where that is known (`table`); flushes and the journal have a label of their own, 0.
struct Labels {
    names: Vec<String>,
    of_file: Vec<u16>,
}

/// Of flushes and the journal.
const NO_FILE: &str = "no file";
/// Of files of further kinds when there are too many of them.
const OTHER: &str = "other";
const MOST: usize = 4096;

impl Labels {
    fn new(tables: &Tables, by: By) -> Self {
        let mut names = vec![NO_FILE.to_owned(), OTHER.to_owned()];
        let mut numbers: FxHashMap<String, u16> = FxHashMap::default();
        let mut of_file = Vec::with_capacity(tables.files.len());
        for file in &tables.files {
            let role = if by == By::Role { role_of(&file.path) } else { None };
            let kind = role.map_or_else(|| kind_of(&file.path), str::to_owned);
            let number = match numbers.get(&kind) {
                Some(&number) => number,
                None if names.len() >= MOST => 1,
                None => {
                    let number = names.len() as u16;
                    names.push(kind.clone());
                    numbers.insert(kind, number);
                    number
                }
            };
            of_file.push(number);
        }
        Labels { names, of_file }
    }

    fn names(&self) -> &[String] {
        &self.names
    }

    fn of(&self, file: Option<u32>) -> u16 {
        file.map_or(0, |file| self.of_file.get(file as usize).copied().unwrap_or(1))
    }
}

/// Of each process, the pid of the one that the command started itself and of which it descends. The first process is the command. Where
/// the way up ends at a process that has made no call, as a shell that only starts others, that one stands for all that it started.
fn jobs(processes: &[Process]) -> Vec<u32> {
    let mut newest: FxHashMap<u32, usize> = FxHashMap::default();
    let mut jobs: Vec<u32> = Vec::with_capacity(processes.len());
    for (number, process) in processes.iter().enumerate() {
        jobs.push(match newest.get(&process.parent) {
            _ if number == 0 || process.parent == 0 => process.pid,
            // A child of the command itself.
            Some(0) => process.pid,
            // A pid that was given twice is that of the process that came last.
            Some(&parent) => jobs[parent],
            None => process.parent,
        });
        newest.insert(process.pid, number);
    }
    jobs
}

/// The signatures of the contexts' `count` innermost frames; those of shorter paths are as they were.
fn cut_short(tables: &Tables, count: usize) -> Vec<u64> {
    let ids: Vec<u64> = tables
        .modules
        .iter()
        .map(|module| id_of_text(&module.build_id))
        .collect();
    let frame_id = |frame: &Frame| {
        // Code that lies in no file goes by its name.
        let of_module = ids.get(frame.module as usize).copied().unwrap_or(0);
        (mix(of_module ^ mix(id_of_text(&frame.name))), frame.offset)
    };
    let of_context = |context: &Context| match context.frames.get(..count) {
        Some(innermost) if context.frames.len() > count => {
            let frames: Vec<(u64, u64)> = innermost.iter().map(frame_id).collect();
            signature(&frames)
        }
        _ => context.signature,
    };
    tables.contexts.iter().map(of_context).collect()
}

fn id_of_text(text: &str) -> u64 {
    text.bytes().fold(0, |id, byte| mix(id ^ u64::from(byte)))
}

/// Turns requests into columns.
///
/// Every batch of a recording has the same columns: program contexts by their signatures, process ids, labels, streams where calls give
/// write-lifetime hints, and content ids where the recording has contents. A page of unknown content counts as one that is like no other.
pub struct Columns {
    labels: Labels,
    pcs: Vec<u64>,
    pids: Vec<u32>,
    content: bool,
    hints: bool,
    /// Of how many smaller chunks with ids a chunk of 1 KiB consists; 1: there are none.
    pieces: usize,
    /// Makes ids of one recording differ from those of another.
    salt: u64,
    unknown: u64,
}

impl Columns {
    pub fn new(tables: &Tables, options: &Options) -> Self {
        Columns {
            labels: Labels::new(tables, options.labels),
            pcs: match options.frames {
                None => tables.contexts.iter().map(|context| context.signature).collect(),
                Some(count) => cut_short(tables, count as usize),
            },
            pids: match options.pids {
                Pids::Process => tables.processes.iter().map(|process| process.pid).collect(),
                Pids::Job => jobs(&tables.processes),
            },
            content: tables.content,
            hints: tables.hints,
            pieces: tables.pieces(),
            salt: id_of(tables.started_ns, tables.contexts.len() as u64),
            unknown: 1 << 63,
        }
    }

    pub fn label_names(&self) -> &[String] {
        self.labels.names()
    }

    /// Appends requests to a batch; `contents` are those of all of them, and `pieces` what the reader knows of smaller chunks.
    pub fn append(&mut self, batch: &mut Batch, requests: &[Request], contents: &[Content], pieces: &[u64]) {
        let mut from = 0;
        for request in requests {
            batch.push(
                request.time_ns,
                request.op,
                request.offset,
                request.length,
                0,
                request.flags,
            );
            batch
                .pc
                .push(self.pcs.get(request.context as usize).copied().unwrap_or(0));
            batch
                .pid
                .push(self.pids.get(request.process as usize).copied().unwrap_or(0));
            batch.label.push(self.labels.of(request.file));
            if self.hints {
                batch.stream.push(request.stream);
            }
            if self.content {
                for content in contents.get(from..request.contents_end).unwrap_or(&[]) {
                    self.unknown += u64::from(content.page == 0);
                    let number = if content.page == 0 { self.unknown } else { content.page };
                    batch.content.push(id_of(number, self.salt));
                    self.chunks(content, pieces, &mut batch.chunk);
                }
                batch.content_end.push(batch.content.len() as u32);
            }
            from = request.contents_end;
        }
    }
}

impl Columns {
    /// Ids of the chunks of a page; of one that is known those behind the file's end hold what all such hold.
    fn chunks(&self, content: &Content, pieces: &[u64], into: &mut Vec<u64>) {
        let past_end = match content.page {
            0 => 0,
            _ => id_of(u64::MAX, self.salt),
        };
        for chunk in content.chunks {
            if chunk == 0 {
                into.extend(std::iter::repeat_n(past_end, self.pieces));
            } else if self.pieces == 1 {
                into.push(id_of(chunk | 1 << 62, self.salt));
            } else {
                let numbers = pieces.chunks_exact(self.pieces).nth(chunk as usize - 1);
                let id = |&number: &u64| {
                    if number == 0 {
                        0
                    } else {
                        id_of(number | 1 << 61, self.salt)
                    }
                };
                into.extend(numbers.unwrap_or(&[0; 4][..self.pieces]).iter().map(id));
            }
        }
    }
}

/// A content id from its number in the recording, one to one: the finaliser of SplitMix64.
fn id_of(number: u64, salt: u64) -> u64 {
    let mut z = number ^ salt;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::FileEntry;

    /// 1 is the command. It starts 2 and 7: 2 starts 3, which starts 4, and 7 starts another process with the number 3, which starts 5.
    /// 8 and 9 come of 600, which has made no call; 6 has no parent.
    #[test]
    fn a_job_is_what_the_command_starts_itself() {
        let process = |(pid, parent)| Process {
            pid,
            parent,
            ..Process::default()
        };
        let tree = [
            (1, 500),
            (2, 1),
            (3, 2),
            (4, 3),
            (7, 1),
            (3, 7),
            (5, 3),
            (8, 600),
            (9, 600),
            (6, 0),
        ]
        .map(process);
        assert_eq!(jobs(&tree), [1, 2, 2, 2, 7, 7, 7, 600, 600, 6]);
    }

    /// Paths `a < b < c` and `a < b < d` of a module, and `a < b` alone; frames without a file go by their names.
    #[test]
    fn paths_that_are_cut_short_are_told_apart_by_what_is_left() {
        let frame = |module, offset, name: &str| Frame {
            module,
            offset,
            name: name.to_owned(),
        };
        let context = |signature, frames: &[Frame]| Context {
            signature,
            frames: frames.to_vec(),
            ..Context::default()
        };
        let [a, b, c, d] = [10, 20, 30, 40].map(|offset| frame(1, offset, ""));
        let java = |name| frame(0, 4, name);
        let module = |build_id: &str| crate::recording::Module {
            build_id: build_id.to_owned(),
            ..Default::default()
        };
        let tables = Tables {
            modules: vec![module(""), module("1f"), module("2e")],
            contexts: vec![
                Context::default(),
                context(11, &[a.clone(), b.clone(), c]),
                context(12, &[a.clone(), b.clone(), d]),
                context(13, &[a, b]),
                context(14, &[frame(2, 10, ""), frame(2, 20, ""), frame(2, 30, "")]),
                context(15, &[java("write"), java("flush"), java("put")]),
                context(16, &[java("write"), java("compact"), java("put")]),
            ],
            ..Tables::default()
        };
        let two = cut_short(&tables, 2);
        assert_eq!((two[0], two[3]), (0, 13), "nothing is cut off");
        assert_eq!(two[1], two[2]);
        let different: std::collections::BTreeSet<u64> = two.iter().copied().collect();
        assert_eq!(different.len(), 6, "{two:?}");
        let one = cut_short(&tables, 1);
        assert_eq!((one[1], one[5]), (one[3], one[6]));
        assert!(one[1] != one[4] && one[4] != one[5]);
        assert_eq!(cut_short(&tables, 3), [0, 11, 12, 13, 14, 15, 16]);
    }

    /// PostgreSQL's relations and log segments are all numbers; their folders say what they are for.
    #[test]
    fn labels_are_kinds_or_roles() {
        let file = |path: &str| FileEntry {
            path: path.to_owned(),
            ..FileEntry::default()
        };
        let paths = [
            "",
            "/pg/pg_wal/000000010000000000000001",
            "/pg/base/5/16384",
            "/x/notes.txt",
        ];
        let tables = Tables {
            files: paths.map(file).into(),
            ..Tables::default()
        };
        let names = |by| {
            let labels = Labels::new(&tables, by);
            let of = |file| labels.names()[usize::from(labels.of(Some(file)))].clone();
            [1, 2, 3].map(of)
        };
        assert_eq!(names(By::Kind), ["#", "#", "*.txt"]);
        assert_eq!(names(By::Role), ["write-ahead log", "table or index", "*.txt"]);
    }
}
