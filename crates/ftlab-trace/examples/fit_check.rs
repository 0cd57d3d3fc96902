//! Fits a model to traces and holds what it generates against the originals, as inspection sees both:
//! `fit_check [-m] [-v] TRACE...`. With `-m` the model itself is printed, with `-v` every figure; seeds 1, 2 and 3.

use std::path::PathBuf;
use std::time::Instant;

use ftlab_core::{Result, Source};
use ftlab_trace::inspect::{InspectOptions, Inspection, inspect};
use ftlab_trace::{ReadOptions, model, open, synth};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| words.iter().any(|word| word == flag);
    for path in words.iter().filter(|word| !word.starts_with('-')) {
        check(path, has("-v"), has("-m"))?;
    }
    Ok(())
}

fn check(path: &str, verbose: bool, print: bool) -> Result<()> {
    let paths = [PathBuf::from(path)];
    let options = model::FitOptions {
        title: path.to_owned(),
        ..model::FitOptions::default()
    };
    let start = Instant::now();
    let fitted = model::fit(&mut open(&paths, &ReadOptions::default())?, &options)?.model;
    let fit_seconds = start.elapsed().as_secs_f64();
    let text = fitted.to_toml();
    if print {
        println!("{text}");
    }
    let original = seen(&mut open(&paths, &ReadOptions::default())?)?;
    let logical = (fitted.span + (1 << 20)).max(1 << 30);
    let mut met = Vec::new();
    let mut first = Vec::new();
    for seed in 1..=3 {
        let made = seen(&mut synth::parse(&text, logical, 4096, seed)?)?;
        let rows = model::deviations(&original, &made);
        met.push(rows.iter().filter(|row| row.by_bound <= 1.0).count().to_string());
        if seed == 1 {
            first = rows;
        }
    }
    println!(
        "{path}: {} of {} figures within bounds; model {} KB, {} classes, placed one by one below {}; fitted in {fit_seconds:.2} s",
        met.join(", "),
        first.len(),
        text.len() / 1000,
        fitted.classes.len(),
        fitted.least,
    );
    for row in first.iter().filter(|row| verbose || row.by_bound > 1.0) {
        let mark = if row.by_bound <= 1.0 { ' ' } else { '!' };
        println!(
            "  {mark} {:28} {:14.4} {:14.4}  ({})",
            row.figure, row.original, row.fitted, row.bound
        );
    }
    Ok(())
}

fn seen(source: &mut dyn Source) -> Result<Inspection> {
    let options = InspectOptions {
        merge_volumes: true,
        ..InspectOptions::default()
    };
    inspect(source, options)
}
