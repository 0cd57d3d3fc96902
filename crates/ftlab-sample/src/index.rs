//! Where records begin in a CSV file whose quoted fields hold line ends.
//!
//! # Model
//! Whether a line end lies within quotes is known only from the file's beginning on. So such a file is read once, and what was found is kept in the user's
//! cache (`$XDG_CACHE_HOME/ftlab`, else `~/.cache/ftlab`) under the file's name, inode, size, time and partition size: nothing where no line end is within
//! quotes, else for each partition the first byte of its first record. What a quote means is told by what stands before it ([`Quotes`]).
//!
//! # Errors
//! A file that ends within quotes.
//!
//! # Cost
//! 8 bytes a partition, in files that need it; the file is read once.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};

use crate::record::Quotes;

const MAGIC: &[u8; 8] = b"ftlabix3";

#[derive(Debug, PartialEq, Eq)]
pub struct Index {
    /// Of each partition the first record at or behind its first byte; one more, the file's end.
    pub starts: Vec<u64>,
}

impl Index {
    /// The index of a file, none if it needs none; and the bytes that were read to make it.
    pub fn of(
        path: &Path,
        file: &File,
        meta: &Metadata,
        partition_bytes: u64,
        delimiter: u8,
    ) -> Result<(Option<Index>, u64)> {
        let kept = place(path, meta, partition_bytes, delimiter);
        if let Some(found) = kept.as_deref().and_then(|kept| load(kept, meta.len(), partition_bytes)) {
            return Ok((found, 0));
        }
        let made = scan(path, file, meta.len(), partition_bytes, delimiter)?;
        if let Some(kept) = kept {
            // Without a cache the file is read again next time.
            let _ = save(&kept, made.as_ref());
        }
        Ok((made, meta.len()))
    }
}

/// Reads the whole file.
fn scan(path: &Path, mut file: &File, bytes: u64, partition_bytes: u64, delimiter: u8) -> Result<Option<Index>> {
    let mut starts = vec![0];
    let mut buffer = vec![0; 1 << 20];
    let (mut at, mut any, mut opened) = (0u64, false, 0u64);
    let (mut quotes, mut before) = (Quotes::new(delimiter), None);
    loop {
        let count = file.read(&mut buffer).map_err(|e| Error::io(path, &e))?;
        if count == 0 {
            break;
        }
        for found in memchr::memchr2_iter(b'"', b'\n', &buffer[..count]) {
            let place = at + found as u64;
            if buffer[found] == b'"' {
                let byte = found.checked_sub(1).map(|at| buffer[at]).or(before);
                // A mark of UTF-8 stands before the first field.
                let byte = byte.filter(|&byte| !(place == 3 && byte == 0xbf));
                if quotes.meets(place, byte) {
                    opened = place;
                }
            } else if quotes.within {
                any = true;
            } else {
                while starts.len() as u64 * partition_bytes <= place + 1
                    && starts.len() as u64 * partition_bytes < bytes
                {
                    starts.push(place + 1);
                }
            }
        }
        at += count as u64;
        before = Some(buffer[count - 1]);
    }
    if quotes.within {
        return Err(Error::input(format!(
            "{}: the file ends within quotes that opened at byte {opened}; expected a closing quote, or --no-quoted-newlines where quotes mean nothing",
            path.display()
        )));
    }
    if !any {
        return Ok(None);
    }
    starts.resize(bytes.div_ceil(partition_bytes) as usize + 1, bytes);
    Ok(Some(Index { starts }))
}

fn place(path: &Path, meta: &Metadata, partition_bytes: u64, delimiter: u8) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let whole = fs::canonicalize(path).ok()?;
    let key = format!(
        "{} {} {} {} {} {} {partition_bytes} {delimiter}",
        whole.display(),
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec()
    );
    let name = blake3::hash(key.as_bytes()).to_hex();
    Some(cache.join("ftlab").join(format!("{name}.index")))
}

/// What was kept, if it is whole: `Some(None)` says that the file needs no index.
fn load(kept: &Path, bytes: u64, partition_bytes: u64) -> Option<Option<Index>> {
    let content = fs::read(kept).ok()?;
    let numbers = content.strip_prefix(MAGIC)?;
    let numbers: Vec<u64> = numbers
        .chunks(8)
        .filter_map(|c| Some(u64::from_le_bytes(c.try_into().ok()?)))
        .collect();
    let (&check, starts) = numbers.split_last()?;
    if check != checksum(starts) {
        return None;
    }
    if starts.is_empty() {
        return Some(None);
    }
    let whole = starts.len() as u64 == bytes.div_ceil(partition_bytes) + 1
        && starts.is_sorted()
        && starts.last() == Some(&bytes);
    whole.then(|| {
        Some(Index {
            starts: starts.to_vec(),
        })
    })
}

fn save(kept: &Path, made: Option<&Index>) -> std::io::Result<()> {
    let starts = made.map_or(&[][..], |index| &index.starts);
    let mut content = MAGIC.to_vec();
    for number in starts.iter().copied().chain([checksum(starts)]) {
        content.extend(number.to_le_bytes());
    }
    let folder = kept.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let unfinished = kept.with_extension(format!("{}.unfinished", std::process::id()));
    fs::write(&unfinished, content)?;
    fs::rename(&unfinished, kept)
}

fn checksum(numbers: &[u64]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for number in numbers {
        hasher.update(&number.to_le_bytes());
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(text: &str, partition_bytes: u64) -> Result<Option<Index>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, text).unwrap();
        scan(
            &path,
            &File::open(&path).unwrap(),
            text.len() as u64,
            partition_bytes,
            b',',
        )
    }

    /// Records begin at 0, 4 and 13 (the line end at 8 is within quotes); the file ends at 17. Partitions of 4 bytes begin at 0, 4, 8, 12, 16.
    #[test]
    fn records_within_quotes_are_whole() {
        let index = indexed("a,b\n1,\"x\ny\"z\n2,3\n", 4).unwrap().unwrap();
        assert_eq!(index.starts, [0, 4, 13, 13, 17, 17]);
        assert_eq!(indexed("a,b\n1,\"x\"\n", 4).unwrap(), None);
        // Inches are text; a doubled quote within quotes is one.
        assert_eq!(indexed("a,b\n1,5\" disk\n2,6\" disk\n", 4).unwrap(), None);
        assert_eq!(
            indexed("a\n\"x\"\"\ny\"\nz\n", 4).unwrap().unwrap().starts,
            [0, 10, 10, 12]
        );
        let error = indexed("a,\"b\n", 4).unwrap_err().to_string();
        assert!(error.contains("ends within quotes that opened at byte 2"), "{error}");
    }

    #[test]
    fn what_is_kept_is_read_back_and_a_damaged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("sub").join("x.index");
        let index = Index { starts: vec![0, 5, 9] };
        save(&kept, Some(&index)).unwrap();
        assert_eq!(load(&kept, 9, 5), Some(Some(index)));
        let mut content = fs::read(&kept).unwrap();
        content[10] ^= 1;
        fs::write(&kept, content).unwrap();
        assert_eq!(load(&kept, 9, 5), None);
        save(&kept, None).unwrap();
        assert_eq!(load(&kept, 9, 5), Some(None));
    }
}
