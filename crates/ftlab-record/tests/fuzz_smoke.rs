//! Drives the fuzz targets with mutated samples, the same ones on every run.

use std::ptr::NonNull;

use ftlab_core::Stream;
use ftlab_record::fuzz::fuzz_spool;
use ftlab_record::spool::{FileFacts, Method, NoteKind, Op, OpFacts, Recorder, Space, Start, Window, Writer, op_flags};

struct Target {
    name: &'static str,
    run: fn(&[u8]),
    seed: Vec<u8>,
}

fn targets() -> Vec<Target> {
    vec![Target {
        name: "spool",
        run: fuzz_spool,
        seed: spool(),
    }]
}

/// One window of memory in the place of a file.
struct Memory(Vec<u64>);

#[expect(unsafe_code, reason = "a window over a vector that is never resized")]
impl Space for Memory {
    fn next(&mut self, old: Option<Window>, _: u64) -> Option<Window> {
        let base = NonNull::new(self.0.as_mut_ptr().cast::<u8>())?;
        // SAFETY: the whole vector, whose elements are aligned to 8; given once.
        old.is_none().then(|| unsafe { Window::new(base, 8 * self.0.len(), 0) })
    }
}

/// A spool with records of every kind.
fn spool() -> Vec<u8> {
    let mut memory = Memory(vec![0; 16 << 10]);
    let start = Start {
        pid: 1,
        parent: 2,
        tid: 3,
        clock_ns: 4,
        wall_ns: 5,
        image: 6,
    };
    let mut writer = Writer::begin(&mut memory, &start).unwrap();
    writer.process(&mut memory, Recorder::Exact, b"/bin/x", b"x\0").unwrap();
    writer
        .file(
            &mut memory,
            &FileFacts {
                id: 1,
                inode: 9,
                ..FileFacts::default()
            },
            b"/tmp/f",
        )
        .unwrap();
    writer.module(&mut memory, 7, 4096..8192, &[1; 20], b"/bin/x").unwrap();
    writer
        .context(&mut memory, Method::FramePointers, 8, &[(7, 1), (7, 2), (1, 0)])
        .unwrap();
    let facts = OpFacts {
        op: Op::Write,
        flags: op_flags::STDIO,
        file: 1,
        duration_ns: 10,
        time_ns: 11,
        offset: 4000,
        length: 200,
        signature: 8,
    };
    writer.op(&mut memory, &facts).unwrap();
    writer.content(&mut memory, 1024, 0, 2, |page| [page + 1; 17]).unwrap();
    writer.note(&mut memory, NoteKind::Aio, 3).unwrap();
    writer.symbol(&mut memory, 12, b"A.main").unwrap();
    let written = writer.written() as usize;
    let bytes: Vec<u8> = memory.0.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes[..written + 16].to_vec()
}

#[test]
fn every_target_is_there_for_libfuzzer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");
    let manifest = std::fs::read_to_string(format!("{folder}/Cargo.toml")).unwrap();
    for Target { name, .. } in targets() {
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "fuzz/Cargo.toml lacks {name}"
        );
        let code = std::fs::read_to_string(format!("{folder}/fuzz_targets/{name}.rs")).unwrap();
        assert!(code.contains("fuzz_target!"), "{name}");
    }
}

/// Bits flipped, bytes replaced, pieces cut out or doubled.
fn mutate(bytes: &mut Vec<u8>, random: &mut Stream) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let end = (at + random.below(24) as usize).min(bytes.len());
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 1, 8, 0x7f, 0xff][random.below(5) as usize],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => bytes.truncate(at),
            _ => bytes.insert(at, random.next_u64() as u8),
        }
    }
}

#[test]
fn fuzz_smoke() {
    let iterations = std::env::var("FTLAB_FUZZ_ITERATIONS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(20_000);
    for Target { name, run, seed } in targets() {
        let mut random = Stream::new(1, name);
        for cut in 0..=seed.len() {
            run(&seed[..cut]);
        }
        for _ in 0..iterations {
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut random);
            if std::panic::catch_unwind(|| run(&bytes)).is_err() {
                panic!("{name} panics on {bytes:?}");
            }
        }
    }
}
