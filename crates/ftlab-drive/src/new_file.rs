//! Files that are written whole or not at all, and never in the place of somebody else's.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use ftlab_core::{Error, Result};

/// A file under way: it lies beside its place until it is put there, and goes away if it never is.
pub struct NewFile {
    place: PathBuf,
    beside: PathBuf,
}

impl NewFile {
    /// Begins a file at `place`. What lies there already is replaced at the end if it is empty or begins with `mark`, as all
    /// files of this kind do.
    ///
    /// # Errors
    /// Something else lies at `place`, or no file can be made beside it.
    pub fn begin(place: &Path, mark: &[u8]) -> Result<(Self, File)> {
        refuse_foreign(place, mark)?;
        let mut name = OsString::from(".");
        name.push(place.file_name().unwrap_or_default());
        name.push(format!(".unfinished-{}", std::process::id()));
        let new = NewFile {
            place: place.to_owned(),
            beside: place.with_file_name(name),
        };
        let file = File::create(&new.beside).map_err(|e| Error::io(place, &e))?;
        Ok((new, file))
    }

    /// The file is written: it takes its place.
    pub fn finish(self) -> Result<()> {
        std::fs::rename(&self.beside, &self.place).map_err(|e| Error::io(&self.place, &e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After a rename it is gone already.
        let _ = std::fs::remove_file(&self.beside);
    }
}

/// Refuses a place at which something lies that does not begin with `mark`. An empty file is nobody's.
pub fn refuse_foreign(place: &Path, mark: &[u8]) -> Result<()> {
    let file = match File::open(place) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(place, &error)),
    };
    let mut start = Vec::new();
    let read = file.take(mark.len() as u64).read_to_end(&mut start);
    read.map_err(|e| Error::io(place, &e))?;
    if start == mark || start.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "{}: exists and is something else; expected a new name",
        place.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_files_of_the_same_kind_are_replaced_and_only_by_whole_ones() {
        let folder = std::env::temp_dir().join(format!("ftlab-new-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let place = folder.join("a");
        std::fs::write(&place, "a trace").unwrap();
        let refused = NewFile::begin(&place, b"ours").err().unwrap().to_string();
        assert!(
            refused.ends_with("a: exists and is something else; expected a new name"),
            "{refused}"
        );
        std::fs::write(&place, "").unwrap();
        assert!(NewFile::begin(&place, b"ours").is_ok());
        std::fs::write(&place, "ours, old").unwrap();
        let (new, mut file) = NewFile::begin(&place, b"ours").unwrap();
        file.write_all(b"ours, half").unwrap();
        drop(new);
        assert_eq!(std::fs::read(&place).unwrap(), b"ours, old");
        let (new, mut file) = NewFile::begin(&place, b"ours").unwrap();
        file.write_all(b"ours, new").unwrap();
        new.finish().unwrap();
        assert_eq!(std::fs::read(&place).unwrap(), b"ours, new");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
