//! Writers of traces: one file per form, one line each in the catalogue.
//!
//! ```text
//! batches ─ reduced to what the form holds (losses counted) ─ the form's rows ─► sink
//! ```
//!
//! Write what was opened with `Volumes::Merge`, which leaves addresses as they are in their volumes; a reader lays
//! volumes out again. A form without volumes ([`VolumeNames::One`]) is better fed with `Volumes::SideBySide`.
//!
//! What a form can hold is data ([`Holds`]); what it cannot hold is left out, rounded or cut, and counted ([`Loss`]).
//! MOST's event lists are read and not written: their labels are paths of files, which no other trace has.
//! With `strict` any such loss is an error instead.
//!
//! ```
//! # fn main() -> ftlab_core::Result<()> {
//! use ftlab_trace::write::{self, Names, Options, Writer};
//! # let mut batch = ftlab_core::Batch::default();
//! batch.push(1_500, ftlab_core::OpKind::Trim, 0, 4096, 0, 0);
//! batch.push(1_500, ftlab_core::OpKind::Write, 0, 4096, 0, 0);
//! let mut writer = Writer::new("mqsim", &Options::parse("time_unit=us")?, Vec::new())?;
//! writer.names(&Names { volumes: vec!["4".into()], labels: vec![] });
//! writer.write(&batch)?;
//! let written = writer.finish()?;
//! assert_eq!(written.sink, b"1 4 0 8 0\n");
//! assert_eq!(written.lost[0].to_string(), "trims left out: 1 (mqsim has reads and writes only)");
//! # Ok(()) }
//! ```

pub mod alibaba;
pub mod android;
pub mod arc;
pub mod blkparse;
pub mod blktrace;
pub mod cloudphysics;
pub mod csv;
pub mod disksim;
pub mod fio;
pub mod fiu;
pub mod ftlab;
mod holds;
pub mod lcs;
mod losses;
pub mod midas;
pub mod mqsim;
pub mod msr;
pub mod nexus5;
mod options;
pub mod oracle_general;
pub mod pixel6a;
mod reduce;
mod rows;
pub mod spc;
pub mod ssdsim;
pub mod systor;
pub mod tencent;
mod text;
mod times;
mod volumes;
pub mod vscsi;
pub mod wiscsee;

use std::io::Write;

use ftlab_core::catalogue as core_catalogue;
use ftlab_core::{Batch, Error, Result, error};

pub use crate::formats::ftlab::Names;
pub use crate::synth::Keys;
pub use holds::{ALL_FLAGS, Content, Holds, LabelNames, VolumeNames};
pub use losses::Loss;
use losses::{Kind, Losses};
pub use options::Options;
use reduce::Reducer;
use volumes::{LabelTexts, VolumeTexts};

/// One form that can be written.
pub struct Format {
    /// Its name, which is that of its reader and of its file.
    pub name: &'static str,
    source: &'static str,
    /// Endings of file names that mean this form.
    pub endings: &'static [&'static str],
    new: New,
}

/// Makes a form of its options.
type New = fn(&mut Keys) -> Result<(Box<dyn Form>, Holds)>;

/// `forms!(a, b)`: the forms of these modules, each under its module's name.
macro_rules! forms {
    ($($module:ident),+ $(,)?) => {
        &[$(Format {
            name: stringify!($module),
            source: include_str!(concat!(stringify!($module), ".rs")),
            endings: $module::ENDINGS,
            new: $module::new,
        }),+]
    };
}

/// All forms that can be written, in the order of the readers' catalogue.
#[rustfmt::skip]
pub fn catalogue() -> &'static [Format] {
    forms!(
        ftlab, csv, pixel6a, cloudphysics, blktrace, vscsi, lcs, oracle_general, fio,
        blkparse, fiu, android, wiscsee, nexus5, msr, spc, alibaba, tencent, systor,
        mqsim, ssdsim, disksim, midas, arc
    )
}

/// Names of all forms that can be written.
pub fn names() -> Vec<&'static str> {
    catalogue().iter().map(|f| f.name).collect()
}

/// The form of this name.
pub fn named(name: &str) -> Result<&'static Format> {
    let found = catalogue().iter().find(|f| f.name == name);
    found.ok_or_else(|| error::unknown("format to write", name, &names()))
}

impl Format {
    /// The head of its file, as Markdown: what is written, and the options.
    pub fn documentation(&self) -> String {
        core_catalogue::documentation(self.source)
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> String {
        core_catalogue::summary(self.source)
    }

    /// What it can hold with these options.
    pub fn holds(&self, options: &Options) -> Result<Holds> {
        self.form(options).map(|(_, holds)| holds)
    }

    fn form(&self, options: &Options) -> Result<(Box<dyn Form>, Holds)> {
        let mut keys = Keys::new("format to write", self.name, options.keys.clone());
        let form = (self.new)(&mut keys)?;
        keys.finish()?;
        Ok(form)
    }
}

/// Turns requests into a form's bytes. What it is given has been reduced to what it [holds](Holds); columns that it does
/// not hold may still be there and are passed over.
pub trait Form: Send {
    /// What stands in front; `first` is the first batch, empty for a trace of no requests. A form whose columns go by the
    /// first batch says so in `holds`.
    fn start(&mut self, _first: &Batch, _named: Named<'_>, _holds: &mut Holds, _out: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()>;

    /// What stands behind. The answer is written over the start of the file where that is possible: totals of a header.
    fn finish(&mut self, _named: Named<'_>, _out: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// What the numbers in a batch are called.
#[derive(Clone, Copy)]
pub struct Named<'a> {
    pub names: &'a Names,
    /// The spelling of each volume in this form, by number; empty where it has none.
    pub volumes: &'a [Vec<u8>],
    /// The spelling of each label, by number; empty where the form has none.
    pub labels: &'a [Vec<u8>],
}

impl<'a> Named<'a> {
    /// The volume of request `i`.
    #[inline]
    pub fn volume(&self, batch: &Batch, i: usize) -> &'a [u8] {
        self.volumes
            .get(usize::from(batch.volume[i]))
            .map_or(b"0", Vec::as_slice)
    }

    /// The label of request `i`, or `other` where it has none.
    #[inline]
    pub fn label(&self, batch: &Batch, i: usize, other: &'a str) -> &'a [u8] {
        let label = batch
            .label
            .get(i)
            .and_then(|&label| self.labels.get(usize::from(label)));
        label.map_or(other.as_bytes(), Vec::as_slice)
    }
}

/// Process id of request `i`; 0 where the column is absent.
#[inline]
fn pid_of(batch: &Batch, i: usize) -> u32 {
    batch.pid.get(i).copied().unwrap_or(0)
}

/// Writes a trace to `sink`, batch by batch.
pub struct Writer<W: Write> {
    form: Box<dyn Form>,
    holds: Holds,
    reducer: Reducer,
    losses: Losses,
    reduced: Batch,
    names: Names,
    volumes: VolumeTexts,
    labels: LabelTexts,
    started: bool,
    out: Vec<u8>,
    sink: W,
    requests: u64,
    bytes: u64,
}

/// A written trace.
#[derive(Debug)]
pub struct Written<W> {
    pub sink: W,
    /// Requests in the file.
    pub requests: u64,
    /// Bytes given to the sink.
    pub bytes: u64,
    pub lost: Vec<Loss>,
    /// Bytes that belong over the start of the file where it can be rewound (totals in a header); without them the file
    /// is complete all the same.
    pub head: Option<Vec<u8>>,
}

/// Bytes that a writer gathers before it passes them on.
const PIECE: usize = 64 << 10;

impl<W: Write> Writer<W> {
    /// A writer of the named form.
    pub fn new(form: &str, options: &Options, sink: W) -> Result<Self> {
        let format = named(form)?;
        let (form, holds) = format.form(options)?;
        Ok(Writer {
            form,
            volumes: VolumeTexts::new(holds.volumes),
            labels: LabelTexts::new(holds.label),
            holds,
            reducer: Reducer {
                form: format.name,
                strict: options.strict,
            },
            losses: Losses::default(),
            reduced: Batch::default(),
            names: Names::default(),
            started: false,
            out: Vec::new(),
            sink,
            requests: 0,
            bytes: 0,
        })
    }

    /// What the volumes and labels are called from here on: the names so far with new ones behind them. Numbers are used
    /// where there are no names.
    pub fn names(&mut self, names: &Names) {
        if self.names != *names {
            self.names = names.clone();
        }
    }

    /// What the form holds; some columns of some forms are settled by the first batch.
    pub fn holds(&self) -> &Holds {
        &self.holds
    }

    fn lost(&self) -> Vec<Loss> {
        let mut losses = self.losses.clone();
        losses.add(Kind::Renamed, self.volumes.renamed);
        losses.add(Kind::Respelled, self.labels.respelled);
        losses.list(self.reducer.form, &self.holds)
    }

    fn refuse_losses(&self) -> Result<()> {
        let lost = self.lost();
        if lost.is_empty() {
            return Ok(());
        }
        let sentences: Vec<String> = lost
            .iter()
            .map(|loss| format!("{} ({})", loss.what, loss.detail))
            .collect();
        Err(Error::input(format!(
            "cannot be written as {} as it is: {}",
            self.reducer.form,
            sentences.join("; ")
        )))
    }

    /// Writes requests, which must be ordered by time over all calls.
    pub fn write(&mut self, batch: &Batch) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let batch = if Reducer::fits(batch, &self.holds) {
            batch
        } else {
            self.reducer
                .reduce(batch, &self.holds, &mut self.losses, &mut self.reduced)?;
            &self.reduced
        };
        if let Some(&highest) = batch.volume.iter().max() {
            self.volumes.extend(highest, &self.names.volumes);
        }
        if let Some(&highest) = batch.label.iter().max() {
            self.labels.extend(highest, &self.names.labels);
        }
        let named = Named {
            names: &self.names,
            volumes: self.volumes.texts(),
            labels: self.labels.texts(),
        };
        if !self.started {
            self.started = true;
            self.form.start(batch, named, &mut self.holds, &mut self.out)?;
        }
        self.losses.columns(batch, &self.holds);
        if self.reducer.strict {
            self.refuse_losses()?;
        }
        self.form.rows(batch, named, &mut self.out)?;
        self.requests += batch.len() as u64;
        if self.out.len() >= PIECE {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Completes the file; without it the file is cut off.
    pub fn finish(mut self) -> Result<Written<W>> {
        let named = Named {
            names: &self.names,
            volumes: self.volumes.texts(),
            labels: self.labels.texts(),
        };
        if !self.started {
            self.form
                .start(&Batch::default(), named, &mut self.holds, &mut self.out)?;
        }
        let head = self.form.finish(named, &mut self.out)?;
        self.pass_on()?;
        self.sink.flush().map_err(|e| io(&e))?;
        Ok(Written {
            lost: self.lost(),
            sink: self.sink,
            requests: self.requests,
            bytes: self.bytes,
            head,
        })
    }

    fn pass_on(&mut self) -> Result<()> {
        self.sink.write_all(&self.out).map_err(|e| io(&e))?;
        self.bytes += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }
}

/// Requests written into memory, with the options at their defaults.
pub fn to_bytes(form: &str, batch: &Batch, names: &Names) -> Result<Vec<u8>> {
    let mut writer = Writer::new(form, &Options::default(), Vec::new())?;
    writer.names(names);
    writer.write(batch)?;
    writer.finish().map(|written| written.sink)
}

fn io(cause: &std::io::Error) -> Error {
    Error::Io(format!("writing the trace: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::OpKind;

    fn batch() -> Batch {
        let mut batch = Batch::default();
        batch.push(0, OpKind::Write, 0, 4096, 0, 0);
        batch.push(5, OpKind::Trim, 0, 4096, 0, 0);
        batch.push(1234, OpKind::Read, 700, 4096, 0, 2);
        batch.push(9000, OpKind::Flush, 0, 0, 0, 0);
        batch
    }

    #[test]
    fn losses_are_counted_and_said() {
        let mut writer = Writer::new("msr", &Options::default(), Vec::new()).unwrap();
        writer.write(&batch()).unwrap();
        let written = writer.finish().unwrap();
        let lost: Vec<String> = written
            .lost
            .iter()
            .map(|l| format!("{}: {}", l.what, l.count))
            .collect();
        assert_eq!(
            lost,
            [
                "trims left out: 1",
                "flushes left out: 1",
                "times rounded down to 100 ns: 1",
                "flags left out: 1"
            ]
        );
        assert_eq!(written.requests, 2);
    }

    /// Of two writes with contents one has ids of its chunks: CSV says that it leaves them out, the binary form holds them, MSR's
    /// has no contents at all.
    #[test]
    fn chunks_left_out_are_said() {
        let mut batch = Batch::default();
        for (at, chunks) in [(0, [0; 4]), (4096, [1, 2, 3, 4])] {
            batch.push(0, OpKind::Write, at, 4096, 0, 0);
            batch.content.push(9);
            batch.content_end.push(batch.content.len() as u32);
            batch.chunk.extend(chunks);
        }
        let lost = |form: &str| {
            let mut writer = Writer::new(form, &Options::default(), Vec::new()).unwrap();
            writer.write(&batch).unwrap();
            let lost = writer.finish().unwrap().lost;
            lost.iter()
                .map(|l| format!("{}: {}", l.what, l.count))
                .collect::<Vec<_>>()
        };
        assert_eq!(lost("csv"), ["ids of chunks of 1 KiB left out: 1"]);
        assert_eq!(lost("msr"), ["content ids left out: 2"]);
        assert!(lost("ftlab").is_empty());
        let strict = Options::parse("strict=true").unwrap();
        let error = Writer::new("csv", &strict, Vec::new())
            .unwrap()
            .write(&batch)
            .unwrap_err();
        assert!(error.to_string().contains("ids of chunks of 1 KiB left out"), "{error}");
    }

    #[test]
    fn strict_writing_refuses_with_the_request() {
        let options = Options::parse("strict=true").unwrap();
        let mut writer = Writer::new("mqsim", &options, Vec::new()).unwrap();
        let error = writer.write(&batch()).unwrap_err().to_string();
        assert_eq!(
            error,
            "a trim of 4096 bytes at offset 0 cannot be written as mqsim: it has reads and writes only"
        );
        let mut unaligned = Batch::default();
        unaligned.push(0, OpKind::Read, 700, 4096, 0, 0);
        let error = writer.write(&unaligned).unwrap_err().to_string();
        assert!(error.ends_with("it counts in sectors of 512 bytes"), "{error}");
        let mut with_context = Batch::default();
        with_context.push(0, OpKind::Read, 0, 4096, 0, 0);
        writer.write(&with_context).unwrap();
        with_context.pc.push(0x40_1000);
        let error = writer.write(&with_context).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot be written as mqsim as it is: program contexts left out (mqsim has no place for them)"
        );
    }

    #[test]
    fn unknown_forms_and_options_are_refused_with_the_known_ones() {
        let error = |form: &str, options: &str| {
            let options = Options::parse(options).unwrap();
            Writer::new(form, &options, Vec::new()).err().unwrap().to_string()
        };
        assert!(error("mqsin", "").contains("did you mean `mqsim`"));
        assert!(error("mqsim", "unit=us").contains("unknown key of `mqsim` `unit`"));
        assert_eq!(
            error("mqsim", "time_unit=h"),
            "format to write `mqsim`: `time_unit`: time unit `h`: expected ps, ns, 100ns, us, ms or s"
        );
        assert!(Options::parse("time_unit").is_err());
    }

    #[test]
    fn every_form_is_documented_and_has_a_reader() {
        for format in catalogue() {
            assert!(format.summary().starts_with("Writes "), "{}", format.name);
            assert!(crate::formats::names().contains(&format.name), "{}", format.name);
            format.holds(&Options::default()).unwrap();
        }
    }
}
