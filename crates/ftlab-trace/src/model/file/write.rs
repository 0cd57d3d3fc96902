//! Model files written, with a comment on every key.

use std::fmt::Write as _;

use serde_json::Value;

use super::VERSION;
use crate::model::{BIRTH_PARTS, Class, Model, OPS, Weights, Word};

impl Model {
    /// The text of the model's file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write_file(self, &mut text);
        text
    }
}

fn write_file(model: &Model, text: &mut String) -> std::fmt::Result {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    writeln!(
        text,
        "# A workload: `ftlab run FILE`, `ftlab generate FILE`. Distributions are value*weight; large numbers are"
    )?;
    writeln!(
        text,
        "# lower edges of bins, four an octave. Keys that may be added: requests, footprint, span, rate, qd, seed."
    )?;
    writeln!(text, "kind = \"fitted\"\nversion = {VERSION}")?;
    writeln!(
        text,
        "title = {}\nsource = {}",
        quoted(&model.title),
        quoted(&model.source)
    )?;
    writeln!(text, "\n[trace]")?;
    writeln!(
        text,
        "requests = {}   # reads, writes and trims of an episode",
        model.requests
    )?;
    writeln!(
        text,
        "pages = {}   # of 4 KiB, touched by reads and writes",
        model.pages
    )?;
    writeln!(text, "span = \"{}B\"   # over which they lie", model.span)?;
    writeln!(text, "flush = {}   # flushes per write", model.flush)?;
    writeln!(
        text,
        "least = {}   # references from which on an object's are planned together",
        model.least
    )?;
    writeln!(text, "\n[pages]")?;
    writeln!(
        text,
        "clusters = \"{}\"   # lengths of contiguous touched ranges",
        model.clusters.write()
    )?;
    writeln!(
        text,
        "room = {}   # pages over which they are spread, per page touched",
        model.room
    )?;
    let touched: Vec<String> = model.first_touches.iter().map(|share| format!("{share:.4}")).collect();
    writeln!(
        text,
        "# Share of the pages that have been touched after each equal part of an episode."
    )?;
    writeln!(text, "touched = [{}]", touched.join(", "))?;
    writeln!(text, "\n[runs]")?;
    writeln!(
        text,
        "# Requests from one of a run to its next.\nstride = \"{}\"",
        model.stride.write()
    )?;
    for (op, rows) in OPS.iter().zip(&model.follow).filter(|(_, rows)| !rows.is_empty()) {
        writeln!(
            text,
            "# Sizes behind a run's head, by the octave (bytes) of the size before plus the head's; `=` is the same size."
        )?;
        write_rows(text, &format!("runs.{op}"), rows)?;
    }
    for (op, rows) in OPS.iter().zip(&model.last).filter(|(_, rows)| !rows.is_empty()) {
        writeln!(text, "# The same at the end of runs.")?;
        write_rows(text, &format!("runs.last.{op}"), rows)?;
    }
    for (op, over) in OPS.iter().zip(&model.overlap).filter(|(_, over)| !over.ages.is_empty()) {
        writeln!(
            text,
            "\n# Objects born on touched pages: requests since the last touch; share that begins where that did;\n# share of the runs that end on fresh pages, and on pages touched about when the first was."
        )?;
        writeln!(
            text,
            "[overlap.{op}]\nages = \"{}\"\naligned = {:.4}\nfresh = {:.4}\ntogether = {:.4}",
            over.ages.write(),
            over.aligned,
            over.fresh,
            over.together
        )?;
    }
    if let Some(gaps) = &model.gaps {
        writeln!(
            text,
            "\n# Nanoseconds between arrivals, by the octave of the gap before."
        )?;
        writeln!(text, "[arrivals]\nmean = \"{}ns\"", gaps.mean_ns)?;
        write_rows(text, "arrivals.next", &gaps.next)?;
    }
    if model.flags.iter().any(|flags| !flags.is_empty()) {
        writeln!(text, "\n# Bits: 1 FUA, 2 synchronous, 4 metadata.\n[flags]")?;
        for (op, flags) in OPS.iter().zip(&model.flags) {
            writeln!(text, "{op} = \"{}\"", flags.write())?;
        }
    }
    if let Some(values) = &model.contents {
        writeln!(text, "\n[contents]")?;
        writeln!(
            text,
            "repeat = {:.6}   # share of the page writes that write what is there",
            values.repeat
        )?;
        writeln!(
            text,
            "written = \"{}\"   # times a value is written * values",
            values.written.write()
        )?;
        writeln!(
            text,
            "found = \"{}\"   # pages that hold a value nobody wrote * values",
            values.found.write()
        )?;
        writeln!(
            text,
            "found_written = {:.6}   # share of pages first read whose value was written elsewhere",
            values.found_written
        )?;
    }
    writeln!(
        text,
        "\n# Classes: objects (pages where runs begin), mean references of one, share born on touched pages, births by"
    )?;
    writeln!(
        text,
        "# sixteenths of the leeway, operation first done, requests to the next reference by operations (rw: a read, then"
    )?;
    writeln!(
        text,
        "# a write), and size+sector:run of the first and the later\n# references by operation, these by the octave (bytes) of the one before plus that of its run; `=` is as before."
    )?;
    for class in &model.classes {
        write_class(text, class)?;
    }
    Ok(())
}

fn write_class(text: &mut String, class: &Class) -> std::fmt::Result {
    writeln!(
        text,
        "\n[[class]]\nobjects = {}\nreferences = {}",
        class.objects, class.references
    )?;
    if class.overlap > 0.0 {
        writeln!(text, "overlap = {:.4}", class.overlap)?;
    }
    if class.parts != BIRTH_PARTS {
        writeln!(text, "parts = {}", class.parts)?;
    }
    if class.births.0.len() < class.parts as usize || class.births.0.iter().any(|(_, w)| *w != class.births.0[0].1) {
        writeln!(text, "births = \"{}\"", class.births.write())?;
    }
    if let Some(over) = &class.over {
        writeln!(
            text,
            "over = {{ ages = \"{}\", aligned = {:.3}, fresh = {:.3}, together = {:.3} }}",
            over.ages.write(),
            over.aligned,
            over.fresh,
            over.together
        )?;
    }
    let start: Vec<String> = OPS
        .iter()
        .zip(class.start)
        .filter(|(_, weight)| *weight > 0.0)
        .map(|(op, weight)| format!("{op} = {weight}"))
        .collect();
    writeln!(text, "start = {{ {} }}", start.join(", "))?;
    for (from, row) in class.next.iter().enumerate() {
        for (to, gaps) in row.iter().enumerate().filter(|(_, gaps)| !gaps.is_empty()) {
            writeln!(text, "next.{}{} = \"{}\"", &OPS[from][..1], &OPS[to][..1], gaps.write())?;
        }
    }
    for (op, heads) in OPS.iter().zip(&class.first).filter(|(_, heads)| !heads.is_empty()) {
        writeln!(text, "{op} = \"{}\"", heads.write())?;
    }
    for (op, rows) in OPS.iter().zip(&class.later) {
        for (row, heads) in rows {
            writeln!(text, "later.{op}.{row} = \"{}\"", heads.write())?;
        }
    }
    Ok(())
}

fn write_rows<T: Word>(text: &mut String, table: &str, rows: &[(u64, Weights<T>)]) -> std::fmt::Result {
    writeln!(text, "[{table}]")?;
    for (row, weights) in rows {
        writeln!(text, "{row} = \"{}\"", weights.write())?;
    }
    Ok(())
}
