//! Saved drive states: one file that holds the resolved drive and everything the FTL knows.
//!
//! Layout: the magic `FTLABST4`, the length of the head (4 bytes, little-endian), the head (JSON: version, seed, the drive
//! file), then the FTL's state compressed with zstd, then the BLAKE3 hash of everything before it (32 bytes).
//! A state is written to a neighbouring file and renamed, so that a full disk leaves nothing half written.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use ftlab_core::{Error, Result};
use ftlab_ftl::{Counting, Ftl};
use serde_json::{Value, json};

use crate::config::DriveConfig;
use crate::new_file::{NewFile, refuse_foreign};

const MAGIC: &[u8; 8] = b"FTLABST4";
const HASH: usize = 32;
/// A head is a drive file; a longer one is no state.
const MOST_HEAD: usize = 1 << 20;

/// Refuses a place at which something else than a state lies, before the run whose state is to be saved there.
pub fn may_save(path: &Path) -> Result<()> {
    refuse_foreign(path, MAGIC)
}

/// Saves the state of `ftl`, a drive made from `config`, as after a clean shutdown.
pub fn save(path: &Path, config: &DriveConfig, ftl: &mut Ftl<Counting>) -> Result<()> {
    ftl.shut_down();
    let (new, file) = NewFile::begin(path, MAGIC)?;
    write(file, config, ftl).map_err(|error| Error::io(path, &error))?;
    new.finish()
}

fn write(file: File, config: &DriveConfig, ftl: &mut Ftl<Counting>) -> std::io::Result<()> {
    let mut out = Hashing {
        inner: BufWriter::new(file),
        hash: blake3::Hasher::new(),
    };
    let head = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "drive": config.resolved_toml(),
        "seed": config.ftl.seed,
    });
    let head = head.to_string();
    out.write_all(MAGIC)?;
    out.write_all(&(head.len() as u32).to_le_bytes())?;
    out.write_all(head.as_bytes())?;
    let mut compressed = zstd::Encoder::new(&mut out, 1)?;
    ftl.save(&mut compressed)?;
    compressed.finish()?;
    let hash = *out.hash.finalize().as_bytes();
    out.inner.write_all(&hash)?;
    out.inner.into_inner().map_err(|e| e.into_error())?.sync_all()
}

/// The end of the hash of a saved state, by which other files may name it.
pub fn name(path: &Path) -> Result<[u8; 16]> {
    let mut file = File::open(path).map_err(|error| Error::io(path, &error))?;
    let mut name = [0; 16];
    file.seek(SeekFrom::End(-16))
        .and_then(|_| file.read_exact(&mut name))
        .map_err(|error| Error::io(path, &error))?;
    Ok(name)
}

/// Loads a state and the drive it belongs to, without judging it.
pub fn load(path: &Path) -> Result<(DriveConfig, Ftl<Counting>)> {
    let (config, body) = open(path)?;
    let mut ftl = Ftl::new(config.layout.clone(), config.ftl.clone())?;
    fill(path, &mut ftl, &body)?;
    Ok((config, ftl))
}

/// Loads a state into `ftl`, a new drive made from `config`, which must have the geometry and frontiers of the saved one.
pub fn load_into(path: &Path, config: &DriveConfig, ftl: &mut Ftl<Counting>) -> Result<()> {
    let (saved, body) = open(path)?;
    let facts = |c: &DriveConfig| {
        let (layout, ftl) = (&c.layout, &c.ftl);
        (
            layout.geometry.clone(),
            layout.reclaim,
            ftl.logical_units,
            ftl.mapping.clone(),
            ftl.placement.clone(),
            ftl.gc.clone(),
            ftl.dedup.clone(),
            ftl.replication.clone(),
        )
    };
    if facts(&saved) != facts(config) {
        return Err(Error::input(format!(
            "{}: the state of drive `{}` ({} raw units, {} logical) does not fit drive `{}` ({} raw, {} logical): geometry, \
             size, mapping, placement, gc, dedup and replication must be those of the saved drive",
            path.display(),
            saved.name,
            saved.layout.slots(),
            saved.ftl.logical_units,
            config.name,
            config.layout.slots(),
            config.ftl.logical_units,
        )));
    }
    fill(path, ftl, &body)?;
    ftl.check()
        .map_err(|fault| Error::input(format!("{}: the state breaks an invariant: {fault}", path.display())))?;
    ftl.resume();
    Ok(())
}

fn fill(path: &Path, ftl: &mut Ftl<Counting>, body: &[u8]) -> Result<()> {
    let broken = |error: std::io::Error| Error::input(format!("{}: not a whole drive state: {error}", path.display()));
    let mut input = zstd::Decoder::new(body).map_err(broken)?;
    ftl.load(&mut input).map_err(broken)
}

/// Checks the frame of a state file; returns its drive and the compressed body.
fn open(path: &Path) -> Result<(DriveConfig, Vec<u8>)> {
    if path.is_dir() {
        return Err(Error::input(format!(
            "{}: is a folder: expected a state written by --save-state, such as {}",
            path.display(),
            path.join("state").display()
        )));
    }
    let file = File::open(path).map_err(|error| Error::io(path, &error))?;
    let mut bytes = Vec::new();
    BufReader::new(file)
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io(path, &error))?;
    let not = |what: &str| {
        Error::input(format!(
            "{}: {what}; expected a state written by --save-state",
            path.display()
        ))
    };
    if bytes.len() < MAGIC.len() + 4 + HASH || &bytes[..MAGIC.len()] != MAGIC {
        if bytes.starts_with(&MAGIC[..MAGIC.len() - 1]) {
            return Err(not("a drive state of another version of ftlab"));
        }
        return Err(not("not a drive state"));
    }
    let (content, hash) = bytes.split_at(bytes.len() - HASH);
    if blake3::hash(content).as_bytes() != hash {
        return Err(not(&format!(
            "{} bytes whose checksum is wrong (truncated or damaged)",
            bytes.len()
        )));
    }
    let length = u32::from_le_bytes([content[8], content[9], content[10], content[11]]) as usize;
    let head = content
        .get(12..12 + length)
        .filter(|_| length <= MOST_HEAD)
        .ok_or_else(|| not("its head is cut off"))?;
    let head: Value = serde_json::from_slice(head).map_err(|_| not("its head is not readable"))?;
    let text = head["drive"].as_str().ok_or_else(|| not("its head names no drive"))?;
    let mut config = DriveConfig::parse(text, &path.display().to_string(), &[])?;
    config.ftl.seed = head["seed"].as_u64().unwrap_or(1);
    Ok((config, content[12 + length..].to_vec()))
}

/// A writer that hashes what passes.
struct Hashing<W> {
    inner: W,
    hash: blake3::Hasher,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
