//! Drives the fuzz targets with mutated samples, the same ones on every run.

use ftlab_core::Stream;
use ftlab_trace::formats;
use ftlab_trace::fuzz::*;

type Run = Box<dyn Fn(&[u8]) + std::panic::RefUnwindSafe>;

struct Target {
    name: &'static str,
    run: Run,
    seeds: Vec<Vec<u8>>,
}

/// One target per format, one for detection, one for specs of generators.
fn targets() -> Vec<Target> {
    let mut targets: Vec<Target> = formats::catalogue()
        .iter()
        .map(|format| Target {
            name: format.name,
            run: Box::new(|bytes| fuzz_format(format.name, bytes)),
            seeds: vec![format.sample()],
        })
        .collect();
    let mut any: Vec<Vec<u8>> = formats::catalogue().iter().map(|f| f.sample()).collect();
    any.push(zstd::encode_all(&any[1].repeat(300)[..], 3).unwrap());
    targets.push(Target {
        name: "detect",
        run: Box::new(fuzz_detect),
        seeds: any,
    });
    let specs = [
        "hotcold:hot=0.2/0.8,read=0.5,size=4KiB*0.5/8KiB*0.5,requests=1e3,flush=10,spread=true",
        "mixed:sequential=0.3,streams=2,run=64KiB,theta=0.9,rate=100k,arrivals=fixed",
        "kind = \"zipf\"\ntheta = 1.1\nscramble = false\nspan = \"1MiB\"\nbytes = \"2x\"\n",
        "sequential:streams=3,align=512B,trim=0.1,seed=9,qd=4",
        "correlated:groups=20,members=2..5,gap=0..3,read=0.9,region=64KiB,region_pairs=3,order=random,background=1",
    ];
    targets.push(Target {
        name: "spec",
        run: Box::new(fuzz_spec),
        seeds: specs.iter().map(|s| s.as_bytes().to_vec()).collect(),
    });
    targets
}

#[test]
fn every_target_is_there_for_libfuzzer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");
    let manifest = std::fs::read_to_string(format!("{folder}/Cargo.toml")).unwrap();
    for target in targets() {
        let name = target.name;
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "fuzz/Cargo.toml lacks {name}"
        );
        let code = std::fs::read_to_string(format!("{folder}/fuzz_targets/{name}.rs")).unwrap();
        assert!(code.contains("fuzz_target!"), "{name}");
    }
}

/// A few edits: bits flipped, bytes replaced by telling ones, pieces cut, doubled, taken from another sample.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Stream) {
    const TELLING: &[u8] = b"\0\n\r\t ,.-+0159:=/*#\"xeEW\xff\x80";
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let end = (at + random.below(24) as usize).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = TELLING[random.below(TELLING.len() as u64) as usize],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 if !other.is_empty() => {
                let from = random.below(other.len() as u64) as usize;
                let piece = other[from..(from + 30).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => bytes.truncate(at),
            _ => bytes.insert(at, random.next_u64() as u8),
        }
    }
}

#[test]
fn fuzz_smoke() {
    let iterations = std::env::var("FTLAB_FUZZ_ITERATIONS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(4000);
    for Target { name, run, seeds } in targets() {
        let mut random = Stream::new(1, name);
        run(b"");
        for seed in &seeds {
            run(seed);
            for cut in 0..seed.len().min(400) {
                run(&seed[..cut]);
            }
        }
        for _ in 0..iterations {
            let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
            let other = seeds[random.below(seeds.len() as u64) as usize].clone();
            mutate(&mut bytes, &other, &mut random);
            if std::panic::catch_unwind(|| run(&bytes)).is_err() {
                panic!("{name} panics on {:?} ({bytes:?})", String::from_utf8_lossy(&bytes));
            }
        }
    }
}
