//! What recording costs per call: a C program makes calls of one byte under paths of several depths, with and without the
//! library, with each kind of signature. `cargo run --release --package ftlab-preload --example cost`.
//!
//! The figure of a signature is what a call costs more than one that is recorded without. For comparison: the unwinders of
//! libunwind and of the C library, called alone.

use std::path::{Path, PathBuf};
use std::process::Command;

const DEPTHS: [u32; 3] = [8, 16, 32];
const CALLS: &str = "10000";

fn main() -> std::io::Result<()> {
    let folder = std::env::temp_dir().join(format!("ftlab-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("cost");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cost.c");
    let flags = ["-O1", "-w", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    let built = Command::new("cc")
        .args(flags)
        .arg("-o")
        .args([&program, &source])
        .arg("-ldl")
        .status()?;
    assert!(built.success(), "cc failed");
    let library = std::env::current_exe()?.with_file_name("../deps/libftlab_preload.so");

    println!(
        "{:<28}{:>10}{:>10}{:>10}   ns per call, depth 8, 16, 32",
        "", DEPTHS[0], DEPTHS[1], DEPTHS[2]
    );
    let run = |arguments: &[&str], method: Option<&str>| measure(&program, &folder, arguments, method, &library);
    let plain = run(&[], None)?;
    row("the call alone", plain);
    let recorded = run(&[], Some("none"))?;
    row("recorded without signature", recorded);
    for method in ["fp", "unwind", "auto", "scan"] {
        let taken = run(&[], Some(method))?;
        row(
            &format!("  + {method}"),
            std::array::from_fn(|depth| taken[depth] - recorded[depth]),
        );
    }
    row("libunwind, unw_backtrace", run(&["u"], None)?);
    row("C library, backtrace", run(&["b"], None)?);
    std::fs::remove_dir_all(&folder)
}

fn row(name: &str, taken: [f64; DEPTHS.len()]) {
    let taken: String = taken.iter().map(|ns| format!("{ns:>10.0}")).collect();
    println!("{name:<28}{taken}");
}

fn measure(
    program: &Path,
    folder: &Path,
    arguments: &[&str],
    method: Option<&str>,
    library: &PathBuf,
) -> std::io::Result<[f64; DEPTHS.len()]> {
    let mut taken = [0.0; DEPTHS.len()];
    for (taken, depth) in taken.iter_mut().zip(DEPTHS) {
        let spools = folder.join("spools");
        std::fs::create_dir_all(&spools)?;
        let mut command = Command::new(program);
        command
            .arg(depth.to_string())
            .arg(CALLS)
            .args(arguments)
            .current_dir(folder);
        if let Some(method) = method {
            command.env("LD_PRELOAD", library);
            command.env(ftlab_record::spool::ENV_DIR, &spools);
            command.env(ftlab_record::spool::ENV_SIGNATURE, method);
        }
        let output = command.output()?;
        *taken = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .unwrap_or(f64::NAN);
        std::fs::remove_dir_all(&spools)?;
    }
    Ok(taken)
}
