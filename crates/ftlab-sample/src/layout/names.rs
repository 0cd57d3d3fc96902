//! Files by their names: what a pattern means, each file once, and what its end says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};

use crate::record::Form;

/// Each file once, whatever it is called by: a symbolic link gives way to a name.
pub(super) fn once(found: Vec<(String, PathBuf)>) -> Result<Vec<(String, PathBuf)>> {
    let mut named: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    for (at, (_, path)) in found.iter().enumerate() {
        let meta = fs::metadata(path).map_err(|e| Error::io(path, &e))?;
        let kept = named.entry((meta.dev(), meta.ino())).or_insert(at);
        if found[*kept].1.is_symlink() && !path.is_symlink() {
            *kept = at;
        }
    }
    let kept: BTreeSet<usize> = named.into_values().collect();
    let all = found.into_iter().enumerate();
    Ok(all.filter(|(at, _)| kept.contains(at)).map(|(_, file)| file).collect())
}

/// Without the indices beside files of BGZF, which a pattern finds as well.
pub(super) fn without_indices(found: Vec<(String, PathBuf)>) -> Vec<(String, PathBuf)> {
    let paths: BTreeSet<PathBuf> = found.iter().map(|(_, path)| path.clone()).collect();
    let is_index =
        |path: &Path| path.extension().is_some_and(|end| end == "gzi") && paths.contains(&path.with_extension(""));
    found.into_iter().filter(|(_, path)| !is_index(path)).collect()
}

/// Files of a name or pattern, sorted.
pub fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    // A file whose name has a bracket in it is meant as it is.
    if Path::new(pattern).exists() {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let pieces: Vec<&str> = pattern.split('/').collect();
    let is_wild = |piece: &&str| piece.contains(['*', '?', '[']);
    let wild = pieces.iter().rposition(is_wild).map_or(0, |at| at + 1);
    for at in (0..wild).filter(|&at| is_wild(&pieces[at]) && pieces[at] != "**") {
        for folder in globbed(&joined(&pieces[..at]))? {
            names_are_text(&folder)?;
        }
    }
    let rest = pieces[wild..].join("/");
    let mut found = Vec::new();
    for path in globbed(&joined(&pieces[..wild]))? {
        let path = if rest.is_empty() { path } else { path.join(&rest) };
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() => found.push(path),
            Ok(_) => {}
            // A folder may do without the file; a link that leads nowhere is one of a disk that is not there.
            Err(e) if is_absent(&e) && std::fs::symlink_metadata(&path).is_err() => {}
            Err(e) => return Err(Error::io(&path, &e)),
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// The first pieces of a path; of one from the root on, at least that.
fn joined(pieces: &[&str]) -> String {
    match pieces {
        [""] => "/".to_owned(),
        _ => pieces.join("/"),
    }
}

/// What a pattern names; the present folder where it is empty.
fn globbed(pattern: &str) -> Result<Vec<PathBuf>> {
    if pattern.is_empty() {
        return Ok(vec![PathBuf::from(".")]);
    }
    let paths = glob::glob(pattern).map_err(|e| Error::input(format!("{pattern}: {}", e.msg)))?;
    let error = |e: glob::GlobError| Error::io(e.path(), e.error());
    paths.map(|path| path.map_err(error)).collect()
}

/// Refuses a folder in which a pattern would pass over a name.
fn names_are_text(folder: &Path) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let name = entry.map_err(|e| Error::io(folder, &e))?.file_name();
        if name.to_str().is_none() {
            return Err(Error::input(format!(
                "{}: the name `{}` is not UTF-8, expected none in a folder of a pattern, which would pass over it",
                folder.display(),
                name.to_string_lossy()
            )));
        }
    }
    Ok(())
}

pub(super) fn by_name(found: &[(String, PathBuf)]) -> Result<Form> {
    let form = |path: &Path| Form::of_name(&path.to_string_lossy());
    let first = form(&found[0].1);
    if let Some((_, other)) = found.iter().find(|(_, path)| form(path) != first) {
        return Err(Error::input(format!(
            "{}: {}, expected the same as {} ({}); --format NAME reads both alike",
            other.display(),
            form(other).name(),
            found[0].1.display(),
            first.name()
        )));
    }
    Ok(first)
}
