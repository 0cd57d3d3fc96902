//! A loadable extension of SQLite: the virtual file system `ftlab`, whose databases lie on a replicating store.
//!
//! # Model
//! `.load` registers a copy of the default file system that differs in how it opens the main file of a database: its pages go to a
//! [`ftlab_replicate::Store`]. Journals, write-ahead logs and temporary files are the default file system's, and so are locks and the shared memory
//! of a write-ahead log, on the same file. Options come from the parameters of the URI, and before these from the environment
//! (`FTLAB_REPLICATE_PARTITIONS=8`). Connections of one process share a store; another process finds the database locked.
//! `PRAGMA ftlab_report` gives the figures as JSON.
//!
//! # Not modelled
//! Memory-mapped I/O of the database file. A fork with a database open, as with SQLite itself.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "C calls in and out; each place has its proof")]

mod file;
mod settings;

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ftlab_replicate::Store;
use ftlab_replicate::store::Refusal;
use libsqlite3_sys as sql;

/// Functions of the SQLite that has loaded the library.
static API: AtomicPtr<sql::sqlite3_api_routines> = AtomicPtr::new(ptr::null_mut());
/// The default file system.
static BASE: AtomicPtr<sql::sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());
/// Stores that connections of this process have open.
static STORES: Mutex<Vec<(PathBuf, Weak<Store>)>> = Mutex::new(Vec::new());

const NAME: &CStr = c"ftlab";

fn api() -> &'static sql::sqlite3_api_routines {
    // SAFETY: set once, by the entry, to a table of SQLite's that stays; nothing here runs before.
    unsafe { &*API.load(Ordering::Acquire) }
}

/// The code of an answer; a panic is an I/O error, as it must not reach C.
fn guarded(answer: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or(sql::SQLITE_IOERR)
}

/// Says why a database cannot be opened: SQLite itself has a code only.
fn say(code: c_int, sentence: &str) {
    let _ = writeln!(std::io::stderr(), "ftlab: {sentence}");
    let text: Vec<u8> = sentence.bytes().filter(|&byte| byte != 0).chain([0]).collect();
    if let Some(log) = api().log {
        // SAFETY: the format takes one text, which ends with the only zero.
        unsafe { log(code, c"%s".as_ptr(), text.as_ptr().cast::<c_char>()) };
    }
}

fn stores() -> MutexGuard<'static, Vec<(PathBuf, Weak<Store>)>> {
    STORES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store of a path, which may be open.
fn store(path: &Path, options: ftlab_replicate::Options, create: bool) -> Result<Arc<Store>, Refusal> {
    let mut open = stores();
    open.retain(|(_, store)| store.strong_count() > 0);
    if let Some(store) = open
        .iter()
        .find_map(|(of, store)| (of == path).then(|| store.upgrade())?)
    {
        return Ok(store);
    }
    let store = Arc::new(Store::open(path, options, create)?);
    open.push((path.to_owned(), Arc::downgrade(&store)));
    Ok(store)
}

/// A connection is done with a store. Held against opening, so that none finds it half closed.
fn leave(store: Arc<Store>) {
    let _open = stores();
    drop(store);
}

/// What SQLite calls when it has loaded the library.
///
/// # Safety
/// `functions` is SQLite's table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    _: *mut sql::sqlite3,
    _: *mut *mut c_char,
    functions: *mut sql::sqlite3_api_routines,
) -> c_int {
    API.store(functions, Ordering::Release);
    let (Some(find), Some(register)) = (api().vfs_find, api().vfs_register) else {
        return sql::SQLITE_ERROR;
    };
    // SAFETY: SQLite's functions with its own values; the new table is never freed, as SQLite keeps it.
    unsafe {
        if !find(NAME.as_ptr()).is_null() {
            return sql::SQLITE_OK_LOAD_PERMANENTLY;
        }
        let base = find(ptr::null());
        if base.is_null() {
            return sql::SQLITE_ERROR;
        }
        BASE.store(base, Ordering::Release);
        // All but opening is as there, with the data of there.
        let mut made = *base;
        made.zName = NAME.as_ptr();
        made.pNext = ptr::null_mut();
        made.szOsFile += file::SIZE;
        made.xOpen = Some(file::open);
        match register(Box::into_raw(Box::new(made)), 0) {
            sql::SQLITE_OK => sql::SQLITE_OK_LOAD_PERMANENTLY,
            code => code,
        }
    }
}
