//! The files that a conversion writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use ftlab_core::{Error, Result};
use liblzma::write::XzEncoder;

use super::{ConvertedFile, Target};
use crate::packing::Packing;
use crate::write::Written;

/// A file, compressed or not, that has its name only once it is complete.
pub(super) struct Output {
    packer: Packer,
    path: PathBuf,
    /// Removed unless the file was completed.
    part: Option<PartFile>,
}

enum Packer {
    Plain(Stored),
    Gzip(GzEncoder<Stored>),
    Zstandard(zstd::Encoder<'static, Stored>),
    Xz(XzEncoder<Stored>),
    Bzip2(BzEncoder<Stored>),
}

/// What lies below the compression.
struct Stored {
    sink: Box<dyn Write + Send>,
    /// The same file, where it can be rewound.
    file: Option<File>,
    bytes: u64,
}

impl Write for Stored {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.sink.write(bytes)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

struct PartFile(PathBuf);

impl Drop for PartFile {
    fn drop(&mut self) {
        // Nothing better can be done about a file that cannot be removed.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Output {
    pub fn create(path: &Path, target: &Target<'_>) -> Result<Self> {
        let failed = |e: io::Error| Error::unwritable(path, &e);
        let mut part = None;
        let stored = if path == Path::new("-") {
            Stored::new(Box::new(io::stdout()), None)
        } else {
            let metadata = path.metadata().ok();
            let special = metadata.as_ref().is_some_and(|m| !m.is_file() && !m.is_dir());
            let file = if special {
                OpenOptions::new().write(true).open(path).map_err(failed)?
            } else {
                if metadata.as_ref().is_some_and(std::fs::Metadata::is_dir) {
                    return Err(Error::input(format!(
                        "{}: is a directory: expected a file's name",
                        path.display()
                    )));
                }
                if metadata.is_some() && !target.options.force {
                    return Err(exists(path, "the file exists already"));
                }
                let mut name = path.as_os_str().to_owned();
                name.push(".part");
                let name = PathBuf::from(name);
                let mut how = OpenOptions::new();
                how.write(true);
                if target.options.force {
                    how.create(true).truncate(true);
                } else {
                    how.create_new(true);
                }
                let file = how.open(&name).map_err(|e| match e.kind() {
                    io::ErrorKind::AlreadyExists => {
                        exists(&name, "another conversion is writing it, or one was killed")
                    }
                    // The name under which it is written is nobody's concern.
                    _ => failed(e),
                })?;
                part = Some(PartFile(name));
                file
            };
            let again = if special { None } else { file.try_clone().ok() };
            Stored::new(Box::new(file), again)
        };
        let packer = match target.packing {
            Packing::Plain => Packer::Plain(stored),
            Packing::Gzip => Packer::Gzip(GzEncoder::new(stored, flate2::Compression::default())),
            Packing::Zstandard => Packer::Zstandard(zstd::Encoder::new(stored, 3).map_err(failed)?),
            Packing::Xz => Packer::Xz(XzEncoder::new(stored, 6)),
            Packing::Bzip2 => Packer::Bzip2(BzEncoder::new(stored, bzip2::Compression::default())),
        };
        Ok(Output {
            packer,
            path: path.to_owned(),
            part,
        })
    }

    /// Ends the compression, gives the file its name.
    pub fn complete(written: Written<Output>, target: &Target<'_>, volume: Option<String>) -> Result<ConvertedFile> {
        let Output { packer, path, part } = written.sink;
        let failed = |e: io::Error| Error::unwritable(&path, &e);
        let plain = matches!(packer, Packer::Plain(_));
        let mut stored = packer.finish().map_err(failed)?;
        stored.flush().map_err(failed)?;
        if let Some(file) = &mut stored.file {
            if let (Some(head), true) = (&written.head, plain) {
                file.rewind().and_then(|()| file.write_all(head)).map_err(failed)?;
            }
            // Some file systems say only here that the disk is full.
            file.sync_all().map_err(failed)?;
        }
        if let Some(part) = part {
            if !target.options.force && path.exists() {
                return Err(exists(&path, "the file has appeared meanwhile"));
            }
            std::fs::rename(&part.0, &path).map_err(failed)?;
            // It has another name now.
            std::mem::forget(part);
        }
        Ok(ConvertedFile {
            path,
            volume,
            requests: written.requests,
            bytes: stored.bytes,
        })
    }
}

fn exists(path: &Path, what: &str) -> Error {
    Error::input(format!("{}: {what}: expected another name, or --force", path.display()))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.packer {
            Packer::Plain(to) => to.write(bytes),
            Packer::Gzip(to) => to.write(bytes),
            Packer::Zstandard(to) => to.write(bytes),
            Packer::Xz(to) => to.write(bytes),
            Packer::Bzip2(to) => to.write(bytes),
        }
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", self.path.display())))
    }

    fn flush(&mut self) -> io::Result<()> {
        // Compressors are ended by `complete`; a flush before that would only make their output longer.
        Ok(())
    }
}

impl Packer {
    fn finish(self) -> io::Result<Stored> {
        match self {
            Packer::Plain(to) => Ok(to),
            Packer::Gzip(to) => to.finish(),
            Packer::Zstandard(to) => to.finish(),
            Packer::Xz(to) => to.finish(),
            Packer::Bzip2(to) => to.finish(),
        }
    }
}

impl Stored {
    fn new(sink: Box<dyn Write + Send>, file: Option<File>) -> Self {
        Stored { sink, file, bytes: 0 }
    }
}
