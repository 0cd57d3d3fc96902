//! What keeps the library out of a program, as its file tells.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ftlab_record::loading::{CAPABILITIES, Content, HEAD, Obstacle, Ownership, content};

/// Interpreters may be scripts themselves, four deep in Linux.
const DEEPEST: usize = 5;

/// Why the library is not loaded into what a file starts, and the file that it is for: the file's own or its interpreter's.
/// `user` and `group` are the real ids of who starts it.
pub fn obstacle(path: &Path, user: u32, group: u32) -> io::Result<Option<(PathBuf, Obstacle)>> {
    let mut path = path.to_owned();
    for _ in 0..DEEPEST {
        let mut head = Vec::new();
        File::open(&path)?.take(HEAD as u64).read_to_end(&mut head)?;
        match content(&head) {
            Content::NotLoaded(obstacle) => return Ok(Some((path, obstacle))),
            Content::Loaded => {
                let rights = gives_rights(&path, user, group)?;
                return Ok(rights.then_some((path, Obstacle::Rights)));
            }
            Content::Script(interpreter) => path = OsStr::from_bytes(interpreter).into(),
        }
    }
    Ok(None)
}

/// Whether a program starts with other rights than who starts it has.
pub fn gives_rights(path: &Path, user: u32, group: u32) -> io::Result<bool> {
    let metadata = std::fs::metadata(path)?;
    let ownership = Ownership {
        mode: metadata.mode(),
        owner: metadata.uid(),
        group: metadata.gid(),
        capabilities: has_capabilities(path),
        user,
        users_group: group,
    };
    Ok(ownership.gives_rights())
}

#[expect(unsafe_code, reason = "extended attributes have no safe interface")]
fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: two texts with their NULs; with length 0 nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), CAPABILITIES.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}
