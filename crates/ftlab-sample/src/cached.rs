//! Numbers about a file that took a reading of it, kept in the user's cache.
//!
//! # Model
//! They lie in `$XDG_CACHE_HOME/ftlab`, else `~/.cache/ftlab`, under the file's name, inode, size and times, and with a checksum. The time of change is one of them, as programs that copy set
//! that of the content to what they please. What is damaged, or cannot be kept, is found again.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"ftlabix3";

/// Where numbers of a file are kept; `of` says which.
pub fn place(path: &Path, meta: &Metadata, of: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let whole = fs::canonicalize(path).ok()?;
    let key = format!(
        "{} {} {} {} {} {} {} {} {of}",
        whole.display(),
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    );
    let name = blake3::hash(key.as_bytes()).to_hex();
    Some(cache.join("ftlab").join(format!("{name}.index")))
}

/// What was kept, if it is whole.
pub fn load(kept: &Path) -> Option<Vec<u64>> {
    let content = fs::read(kept).ok()?;
    let numbers = content.strip_prefix(MAGIC)?;
    let mut numbers: Vec<u64> = numbers
        .chunks(8)
        .filter_map(|c| Some(u64::from_le_bytes(c.try_into().ok()?)))
        .collect();
    let check = numbers.pop()?;
    (check == checksum(&numbers)).then_some(numbers)
}

pub fn save(kept: &Path, numbers: &[u64]) -> std::io::Result<()> {
    let mut content = MAGIC.to_vec();
    for number in numbers.iter().copied().chain([checksum(numbers)]) {
        content.extend(number.to_le_bytes());
    }
    let folder = kept.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let unfinished = kept.with_extension(format!("{}.unfinished", std::process::id()));
    fs::write(&unfinished, content)?;
    fs::rename(&unfinished, kept)
}

pub fn checksum(numbers: &[u64]) -> u64 {
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

    #[test]
    fn what_is_kept_is_read_back_and_a_damaged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("sub").join("x.index");
        save(&kept, &[0, 5, 9]).unwrap();
        assert_eq!(load(&kept), Some(vec![0, 5, 9]));
        let mut content = fs::read(&kept).unwrap();
        content[10] ^= 1;
        fs::write(&kept, content).unwrap();
        assert_eq!(load(&kept), None);
        save(&kept, &[]).unwrap();
        assert_eq!(load(&kept), Some(vec![]));
    }
}
