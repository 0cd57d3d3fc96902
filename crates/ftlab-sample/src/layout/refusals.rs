//! Files that are refused by their first bytes.

use std::path::Path;

use ftlab_core::{Error, Result};

/// Refuses lines that end with carriage returns alone, of which all would be one record.
pub(super) fn refuse_old_ends(path: &Path, start: &[u8]) -> Result<()> {
    let within = &start[..start.len() - 1];
    if within.contains(&b'\r') && !start.contains(&b'\n') {
        return Err(Error::input(format!(
            "{}: carriage returns and no line feed in its first {} bytes, expected lines that end with a line feed",
            path.display(),
            start.len()
        )));
    }
    Ok(())
}

/// First bytes of what is compressed, with its name and what unpacks it.
const PACKED: [(&[u8], &str, &str); 5] = [
    (b"\x1f\x8b", "gzip", "gzip -dc"),
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ\0", "xz", "xz -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
];

/// Frames of what is no text.
pub(super) fn refuse_nested(path: &Path, start: &[u8]) -> Result<()> {
    let others: [(&[u8], &str); 2] = [(b"\x28\xb5\x2f\xfd", "zstd"), (b"PAR1", "Parquet")];
    let known = PACKED.iter().map(|&(magic, name, _)| (magic, name)).chain(others);
    match known.into_iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, name)) => Err(Error::input(format!(
            "{}: {name} once it is unpacked, expected text",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Text of two or four bytes a character, of which a line end or delimiter is a part only.
pub(super) fn refuse_wide(path: &Path, start: &[u8]) -> Result<()> {
    let is_marked = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    let (pairs, _) = start[..start.len().min(16)].as_chunks::<2>();
    let is_half = |at: usize| pairs.len() > 1 && pairs.iter().all(|pair| pair[at] == 0 && pair[1 - at] != 0);
    if is_marked || is_half(0) || is_half(1) {
        return Err(Error::input(format!(
            "{}: UTF-16 by its first bytes, expected UTF-8 (`iconv -f UTF-16 -t UTF-8`)",
            path.display()
        )));
    }
    Ok(())
}

/// Files that cannot be entered in the middle.
pub(super) fn refuse_packed(path: &Path, start: &[u8]) -> Result<()> {
    if start.starts_with(b"PAR1") {
        return Err(Error::input(format!(
            "{}: Parquet by its first bytes, expected a name that ends in .parquet, or --format parquet",
            path.display()
        )));
    }
    match PACKED.iter().find(|(magic, ..)| start.starts_with(magic)) {
        Some((_, name, unpack)) => Err(Error::input(format!(
            "{}: compressed with {name}, which cannot be entered in the middle; expected an unpacked file, or BGZF (`{unpack} FILE | bgzip > NEW.gz`)",
            path.display()
        ))),
        None => Ok(()),
    }
}
