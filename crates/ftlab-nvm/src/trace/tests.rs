//! Every form, and what is refused.

use super::*;

fn of(text: &str) -> Result<Trace> {
    let name = format!(
        "ftlab-nvm-{:x}-{}",
        std::process::id(),
        text.len() * 31 + text.bytes().map(usize::from).sum::<usize>()
    );
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let trace = read(&path, None, 2_000, 64);
    std::fs::remove_file(&path).unwrap();
    trace
}

#[test]
fn each_form_is_recognised_and_read() {
    let read = Step {
        address: 64,
        write: false,
        time: 10_000,
    };
    let write = Step {
        address: 4096,
        write: true,
        time: 20_000,
    };
    for (text, format) in [
        ("0x41 READ 5\n0x1000 WRITE 10\n", Format::Dramsim3),
        ("NVMV1\n5 R 0x41 00 0\n10 W 0x1000 00 00 0\n", Format::Nvmain),
        ("r,65,8,256,10000\nw,4096,64,0,20000,77\n", Format::Gem5),
    ] {
        let trace = of(text).unwrap();
        assert_eq!((trace.format, trace.steps), (format, vec![read, write]), "{text}");
    }
    let untimed = [Step { time: 0, ..read }, Step { time: 0, ..write }];
    for (text, format) in [
        ("0x41 R\n0x1000 W\n", Format::Ramulator),
        ("LD 65\nST 0x1000\n", Format::Ramulator2),
    ] {
        let trace = of(text).unwrap();
        assert_eq!((trace.format, trace.steps), (format, untimed.to_vec()), "{text}");
    }
}

/// Each simulator's own bases and names of commands.
#[test]
fn addresses_are_read_as_the_simulators_read_them() {
    let all = |text: &str| -> Vec<(u64, bool)> {
        let steps = of(text).unwrap().steps;
        steps.iter().map(|step| (step.address, step.write)).collect()
    };
    assert_eq!(
        all("100 READ 0\n1f00 read 0\n0X40 P_MEM_RD 0\n80 P_FETCH 1\n"),
        [(0x100, false), (0x1f00, false), (0x40, false), (0x80, false)]
    );
    assert_eq!(
        all("1f00 write 0\n100 P_MEM_WR 0\n0x40 BOFF 0\n"),
        [(0x1f00, true), (0x100, true), (0x40, true)]
    );
    assert_eq!(
        all("010000 R\n4096 W\n0x1000 R\n0 R\n"),
        [(4096, false), (4096, true), (4096, false), (0, false)]
    );
    assert_eq!(all("LD 0128\nST 0X80\n"), [(128, false), (128, true)]);
    assert!(
        of("0x40 R\n08 R\n")
            .unwrap_err()
            .to_string()
            .contains("line 2: `08 R`, expected")
    );
}

/// What is written is read back, in every format.
#[test]
fn what_is_written_is_read_back() {
    let steps = [
        Step {
            address: 128,
            write: false,
            time: 4_000,
        },
        Step {
            address: 1 << 33,
            write: true,
            time: 6_000,
        },
    ];
    for name in FORMATS {
        let format = Format::parse(name).unwrap();
        let text: String = steps.iter().map(|step| format.line(step, 2_000) + "\n").collect();
        let back = of(&text).unwrap();
        let wanted = steps.map(|step| Step {
            time: if format.is_timed() { step.time } else { 0 },
            ..step
        });
        assert_eq!((back.format, back.steps), (format, wanted.to_vec()));
    }
}

/// The number, flags and program counter are there or not; commands that are neither are counted; a byte order mark is none of it.
#[test]
fn packets_of_gem5_in_every_form() {
    for line in [
        "w,4096,64,20000",
        "w,4096,64,0,20000",
        "w,4096,64,0,20000,77",
        "3,w,4096,64,20000",
        "3,w,4096,64,0,20000",
        "3,w,4096,64,0,20000,77",
    ] {
        let trace = of(&format!("\u{feff}u,64,64,0,9000\n{line}\nu,64,0,0,1\n")).unwrap();
        let wanted = Step {
            address: 4096,
            write: true,
            time: 20_000,
        };
        assert_eq!(
            (trace.format, trace.steps, trace.skipped),
            (Format::Gem5, vec![wanted], 2),
            "{line}"
        );
    }
}

/// Flags and tick, or tick and program counter: ticks do not go back, and packets of one form have no flags or all have them.
#[test]
fn two_fields_are_what_the_trace_says() {
    let times = |text: &str| -> Vec<Ps> { of(text).unwrap().steps.iter().map(|step| step.time).collect() };
    assert_eq!(times("r,0,64,256,5\nr,0,64,0,6\nr,0,64,0,9\n"), [5, 6, 9]);
    assert_eq!(
        times("r,0,64,5,4198400\nr,0,64,6,4198800\nr,0,64,9,4198404\n"),
        [5, 6, 9]
    );
    assert_eq!(times("r,0,64,5,0x401000\nr,0,128,6,0x400ffc\n"), [5, 6, 6]);
    // A program counter of the kernel is later than all times.
    assert_eq!(
        times("r,0,64,5,18446744071579205632\nr,0,64,6,18446744071579205636\n"),
        [5, 6]
    );
    // Some packets have no program counter, so that others have one and no flags.
    assert_eq!(times("r,0,64,5\nr,0,64,6,4198400\nr,0,64,7,4198404\n"), [5, 6, 7]);
    // Some have all three, so that others have flags.
    assert_eq!(times("r,0,64,0,5\nr,0,64,2,6,4198400\nr,0,64,4,7\n"), [5, 6, 7]);
    assert_eq!(times("r,0,64,0,5\nr,0,64,0,8\n"), [5, 8]);
    let either = "r,0,64,1,5\nr,0,64,2,6\n";
    let said = of(either).unwrap_err().to_string();
    assert!(
        said.contains("can be flags and tick or tick and program counter"),
        "{said}"
    );
    let given = read_from(either.as_bytes(), Path::new("x"), Some(Format::Gem5), 1, 64).unwrap();
    assert_eq!(given.steps[1].time, 6);
    let said = of("r,0,64,5\nr,0,64,9,77\nr,0,64,8,78\n").unwrap_err().to_string();
    assert!(said.contains("line 3: the time goes back, from 9 to 8 ps"), "{said}");
}

#[test]
fn a_long_access_is_one_to_each_line_and_rubbish_is_named_by_its_line() {
    assert_eq!(of("r,100,100,0,5\n").unwrap().steps.len(), 3);
    for (text, part) in [
        ("", "no requests in it"),
        ("hello world\n", "line 1: `hello world` is of no known format"),
        (
            "0x40 READ 5\n0x40 REED 6\n",
            "line 2: `0x40 REED 6`, expected `0xADDRESS READ|WRITE CYCLE`",
        ),
        ("0x40 READ 5\n0x40 READ 4\n", "the time goes back, from 5 to 4 cycles"),
        (
            "r,64,64,0,5\nr,64,64,0,4\n",
            "the time goes back, from 5 to 4 ps, expected arrivals in order; the first of two fields after the size is always the same and is read as flags",
        ),
        (
            "0x40 READ 4611686018427388\n",
            "line 1: 4611686018427388 cycles of 2000 ps are too late, expected times before 2^63 ps",
        ),
        ("0x40 READ 18446744073709551615\n", "are too late"),
        ("r,18446744073709551600,200,0,5\n", "expected less than 2^63"),
        (
            "R 0,0,1,2,34,5\n",
            "Ramulator 2 reads as ReadWriteTrace, expected `LD|ST ADDRESS`",
        ),
    ] {
        let said = of(text).unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
}
