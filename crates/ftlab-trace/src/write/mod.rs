//! Writers of traces, for conversion and for tests that read back what was written.
//!
//! Write what was opened with `Volumes::Merge`, which leaves addresses as they are in their volumes; a reader lays
//! volumes out again.

pub mod csv;
pub mod ftlab;
pub mod mqsim;
pub mod msr;

use std::io::Write;

use ftlab_core::{Batch, Error, Result, error};

pub use crate::formats::ftlab::Names;

/// Writes a trace, batch by batch.
pub trait Writer: Send {
    /// Refuses what the form cannot say (a trim in a form without trims) with a sentence.
    fn write(&mut self, batch: &Batch) -> Result<()>;
    /// Completes the file; without it the file is cut off.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Formats that can be written.
pub const FORMATS: [&str; 4] = ["ftlab", "csv", "mqsim", "msr"];

/// A writer of the named format. `names` says what the volumes are called; numbers are used where it is silent.
pub fn to(format: &str, sink: Box<dyn Write + Send>, names: &Names) -> Result<Box<dyn Writer>> {
    Ok(match format {
        "ftlab" => Box::new(ftlab::Ftlab::new(sink, names, false)?),
        "csv" => Box::new(csv::Csv::new(sink, names)),
        "mqsim" => Box::new(mqsim::Mqsim::new(sink)),
        "msr" => Box::new(msr::Msr::new(sink, names)),
        other => return Err(error::unknown("format to write", other, &FORMATS)),
    })
}

/// A sink that collects text and passes it on in large pieces.
struct Text {
    sink: Box<dyn Write + Send>,
    pending: Vec<u8>,
}

impl Text {
    fn new(sink: Box<dyn Write + Send>) -> Self {
        Text {
            sink,
            pending: Vec::new(),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing into a vector cannot fail.
        let _ = self.pending.write_fmt(line);
        self.pending.push(b'\n');
    }

    fn pass_on(&mut self) -> Result<()> {
        self.sink.write_all(&self.pending).map_err(|e| io(&e))?;
        self.pending.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.pass_on()?;
        self.sink.flush().map_err(|e| io(&e))
    }
}

fn io(cause: &std::io::Error) -> Error {
    Error::Io(format!("writing the trace: {cause}"))
}

/// A request that a form cannot hold.
fn refused(form: &str, batch: &Batch, i: usize, what: &str) -> Error {
    Error::input(format!(
        "a {} of {} bytes at offset {} cannot be written as {form}: {what}",
        batch.op[i].name(),
        batch.length[i],
        batch.offset[i]
    ))
}

#[cfg(test)]
pub(crate) mod testing {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    /// A sink whose bytes can be looked at afterwards.
    #[derive(Clone, Default)]
    pub struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Shared {
        pub fn bytes(&self) -> Vec<u8> {
            self.0.lock().unwrap().clone()
        }
    }

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
}
