//! Drives the fuzz targets with mutated samples, the same ones on every run.

use ftlab_core::Stream;
use ftlab_trace::fuzz::*;
use ftlab_trace::write::{self, Names};

type Target = (&'static str, fn(&[u8]), Vec<Vec<u8>>);

fn targets() -> Vec<Target> {
    let spc = b"0,20941264,8192,W,0.551706\n0,20939840,8192,w,0.554041\n1,3436288,15872,r,1.011732,x\n".to_vec();
    let msr = b"128166372003061629,hm,0,Read,383496192,32768,413\n128166372016382155,prxy,1,Write,2822144,4096,1121\n"
        .to_vec();
    let mqsim = b"938513000 4 264719034 16 0\n938828000\t3 197570570  16 1\n938944000 4 93230992 32 0\n".to_vec();
    let disksim = b"26.214000\t0\t303574\t1\t0\n26.5\t0\t240840\t1\t1\n1.5e3 0 55596 8 1\n".to_vec();
    let csv = b"op,time_us,length,offset,flags,volume,stream,pc,pid,comment\nwrite,1.5,4096,8192,SM,a,3,0xff,77,x\n\
                T,2,5000000000,0,,b,,,,\nflush,3,,,-,a,0,12,1,x\n"
        .to_vec();
    let specs = [
        "hotcold:hot=0.2/0.8,read=0.5,size=4KiB*0.5/8KiB*0.5,requests=1e3,flush=10,spread=true",
        "mixed:sequential=0.3,streams=2,run=64KiB,theta=0.9,rate=100k,arrivals=fixed",
        "kind = \"zipf\"\ntheta = 1.1\nscramble = false\nspan = \"1MiB\"\nbytes = \"2x\"\n",
        "sequential:streams=3,align=512B,trim=0.1,seed=9,qd=4",
    ];
    let packed = vec![
        zstd::encode_all(&msr[..], 3).unwrap(),
        zstd::encode_all(&mqsim.repeat(300)[..], 3).unwrap(),
    ];
    let every = [
        spc.clone(),
        msr.clone(),
        mqsim.clone(),
        disksim.clone(),
        csv.clone(),
        own_form(),
    ];
    vec![
        ("detect", fuzz_detect, every.into_iter().chain(packed).collect()),
        ("csv", fuzz_csv, vec![csv]),
        ("disksim", fuzz_disksim, vec![disksim]),
        ("ftlab", fuzz_ftlab, vec![own_form()]),
        ("mqsim", fuzz_mqsim, vec![mqsim]),
        ("msr", fuzz_msr, vec![msr]),
        ("spc", fuzz_spc, vec![spc]),
        ("spec", fuzz_spec, specs.iter().map(|s| s.as_bytes().to_vec()).collect()),
    ]
}

/// A small file of the binary form with every column.
fn own_form() -> Vec<u8> {
    use ftlab_core::{Batch, OpKind};
    let mut batch = Batch::default();
    for i in 0..5u16 {
        batch.push(
            u64::from(i),
            OpKind::ALL[usize::from(i) % 4],
            u64::from(i) << 12,
            4096,
            i % 2,
            1,
        );
        batch.stream.push(i);
        batch.pc.push(u64::from(i) << 40);
        batch.pid.push(7);
        batch.label.push(i % 3);
        batch.content.push(u64::from(i));
        batch.content_end.push(batch.content.len() as u32);
    }
    let path = std::env::temp_dir().join(format!("ftlab-trace-fuzz-{}", std::process::id()));
    let sink = Box::new(std::fs::File::create(&path).unwrap());
    let mut writer = write::to("ftlab", sink, &Names::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    bytes
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
    for (name, target, seeds) in targets() {
        let mut random = Stream::new(1, name);
        target(b"");
        for seed in &seeds {
            target(seed);
            for cut in 0..seed.len().min(400) {
                target(&seed[..cut]);
            }
        }
        for _ in 0..iterations {
            let mut bytes = seeds[random.below(seeds.len() as u64) as usize].clone();
            let other = seeds[random.below(seeds.len() as u64) as usize].clone();
            mutate(&mut bytes, &other, &mut random);
            if std::panic::catch_unwind(|| target(&bytes)).is_err() {
                panic!("{name} panics on {:?} ({bytes:?})", String::from_utf8_lossy(&bytes));
            }
        }
    }
}
