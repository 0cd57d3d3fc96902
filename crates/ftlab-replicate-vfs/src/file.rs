//! The main file of a database.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ftlab_replicate::store::Refusal;
use ftlab_replicate::{Fault, Store};
use libsqlite3_sys as sql;

use crate::{BASE, api, guarded, leave, say, settings, store};

/// What SQLite has room for, at an address that eight divides; the file of the default file system lies behind it.
#[repr(C)]
struct Opened {
    /// What SQLite sees.
    file: sql::sqlite3_file,
    store: Option<Arc<Store>>,
}

pub const SIZE: c_int = size_of::<Opened>() as c_int;
const _: () = assert!(align_of::<Opened>() <= 8 && size_of::<Opened>().is_multiple_of(8));

static METHODS: sql::sqlite3_io_methods = sql::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// The file of the default file system.
unsafe fn below(file: *mut sql::sqlite3_file) -> *mut sql::sqlite3_file {
    // SAFETY: SQLite gave room for both, one behind the other.
    unsafe { file.cast::<Opened>().add(1).cast() }
}

/// Calls a method of the file below, or answers with a code if it has none.
macro_rules! pass {
    ($file:ident, $method:ident, $otherwise:expr $(, $argument:expr)*) => {{
        // SAFETY: the file below is open as long as this one, and takes what SQLite gives.
        unsafe {
            let below = below($file);
            match (*below).pMethods.as_ref().and_then(|methods| methods.$method) {
                Some(method) => method(below $(, $argument)*),
                None => $otherwise,
            }
        }
    }};
}

unsafe fn its_store<'a>(file: *mut sql::sqlite3_file) -> Option<&'a Store> {
    // SAFETY: a file that `open` has made, until `close`.
    unsafe { (*file.cast::<Opened>()).store.as_deref() }
}

/// `xOpen`: other files than main ones are left to the default file system.
pub unsafe extern "C" fn open(
    _: *mut sql::sqlite3_vfs,
    name: *const c_char,
    file: *mut sql::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let base = BASE.load(Ordering::Acquire);
    // SAFETY: set by the entry to a table that stays.
    let Some(base_open) = (unsafe { (*base).xOpen }) else {
        return sql::SQLITE_CANTOPEN;
    };
    if name.is_null() || flags & sql::SQLITE_OPEN_MAIN_DB == 0 {
        // SAFETY: there is more room than it asks for.
        return unsafe { base_open(base, name, file, flags, out_flags) };
    }
    guarded(|| {
        // SAFETY: room for `Opened`, which SQLite does not look into while there are no methods.
        unsafe {
            ptr::write(
                file.cast::<Opened>(),
                Opened {
                    file: sql::sqlite3_file { pMethods: ptr::null() },
                    store: None,
                },
            );
            (*below(file)).pMethods = ptr::null();
        }
        // SAFETY: a text of SQLite's.
        let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
        let create = flags & sql::SQLITE_OPEN_CREATE != 0;
        if !create && !path.exists() {
            return sql::SQLITE_CANTOPEN;
        }
        let found = settings::of(name)
            .map_err(Refusal::Other)
            .and_then(|options| store(path, options, create));
        let found = match found {
            Ok(found) => found,
            Err(Refusal::Busy(_)) => return sql::SQLITE_BUSY,
            Err(Refusal::Other(error)) => {
                say(sql::SQLITE_CANTOPEN, &error.to_string());
                return sql::SQLITE_CANTOPEN;
            }
        };
        // SAFETY: the room behind `Opened` is for this.
        let code = unsafe { base_open(base, name, below(file), flags, out_flags) };
        if code != sql::SQLITE_OK {
            leave(found);
            return code;
        }
        // SAFETY: as above; from now on it is a file with methods.
        unsafe {
            (*file.cast::<Opened>()).store = Some(found);
            (*file).pMethods = &raw const METHODS;
        }
        sql::SQLITE_OK
    })
}

/// The file below goes first: if it were still open when the store lets go of its descriptor, the kernel would drop its locks.
unsafe extern "C" fn close(file: *mut sql::sqlite3_file) -> c_int {
    let code = pass!(file, xClose, sql::SQLITE_OK);
    guarded(|| {
        // SAFETY: a file that `open` has made.
        if let Some(store) = unsafe { (*file.cast::<Opened>()).store.take() } {
            leave(store);
        }
        code
    })
}

fn code(fault: &Fault, what: c_int) -> c_int {
    match fault {
        Fault::Full => sql::SQLITE_FULL,
        Fault::Device(why) => {
            say(what, why);
            what
        }
    }
}

unsafe extern "C" fn read(file: *mut sql::sqlite3_file, into: *mut c_void, amount: c_int, at: i64) -> c_int {
    guarded(|| {
        // SAFETY: as many bytes as SQLite says; a file of `open`.
        let (bytes, store) = unsafe {
            (
                std::slice::from_raw_parts_mut(into.cast::<u8>(), amount.max(0) as usize),
                its_store(file),
            )
        };
        let Some(store) = store else {
            return sql::SQLITE_IOERR_READ;
        };
        match store.read(at.max(0) as u64, bytes) {
            Ok(there) if there == bytes.len() => sql::SQLITE_OK,
            Ok(there) => {
                bytes[there..].fill(0);
                sql::SQLITE_IOERR_SHORT_READ
            }
            Err(fault) => code(&fault, sql::SQLITE_IOERR_READ),
        }
    })
}

unsafe extern "C" fn write(file: *mut sql::sqlite3_file, from: *const c_void, amount: c_int, at: i64) -> c_int {
    guarded(|| {
        // SAFETY: as many bytes as SQLite says; a file of `open`.
        let (bytes, store) = unsafe {
            (
                std::slice::from_raw_parts(from.cast::<u8>(), amount.max(0) as usize),
                its_store(file),
            )
        };
        let done = store.map(|store| store.write(at.max(0) as u64, bytes));
        ended(done, sql::SQLITE_IOERR_WRITE)
    })
}

unsafe extern "C" fn truncate(file: *mut sql::sqlite3_file, size: i64) -> c_int {
    // SAFETY: a file of `open`.
    guarded(|| {
        ended(
            unsafe { its_store(file) }.map(|store| store.truncate(size.max(0) as u64)),
            sql::SQLITE_IOERR_TRUNCATE,
        )
    })
}

unsafe extern "C" fn sync(file: *mut sql::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: a file of `open`.
    guarded(|| ended(unsafe { its_store(file) }.map(Store::sync), sql::SQLITE_IOERR_FSYNC))
}

fn ended(done: Option<Result<(), Fault>>, otherwise: c_int) -> c_int {
    match done {
        Some(Ok(())) => sql::SQLITE_OK,
        Some(Err(fault)) => code(&fault, otherwise),
        None => otherwise,
    }
}

unsafe extern "C" fn size(file: *mut sql::sqlite3_file, into: *mut i64) -> c_int {
    guarded(|| {
        // SAFETY: a file of `open`, and where SQLite wants the number.
        match unsafe { its_store(file) } {
            Some(store) => unsafe { *into = store.size() as i64 },
            None => return sql::SQLITE_IOERR_FSTAT,
        }
        sql::SQLITE_OK
    })
}

unsafe extern "C" fn lock(file: *mut sql::sqlite3_file, level: c_int) -> c_int {
    pass!(file, xLock, sql::SQLITE_IOERR_LOCK, level)
}

unsafe extern "C" fn unlock(file: *mut sql::sqlite3_file, level: c_int) -> c_int {
    pass!(file, xUnlock, sql::SQLITE_IOERR_UNLOCK, level)
}

unsafe extern "C" fn check_reserved_lock(file: *mut sql::sqlite3_file, into: *mut c_int) -> c_int {
    pass!(file, xCheckReservedLock, sql::SQLITE_IOERR_CHECKRESERVEDLOCK, into)
}

/// Only what concerns locks and names goes below: the rest would change the length of the file.
unsafe extern "C" fn control(file: *mut sql::sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    match operation {
        sql::SQLITE_FCNTL_LOCKSTATE
        | sql::SQLITE_FCNTL_LAST_ERRNO
        | sql::SQLITE_FCNTL_PERSIST_WAL
        | sql::SQLITE_FCNTL_TEMPFILENAME
        | sql::SQLITE_FCNTL_HAS_MOVED
        | sql::SQLITE_FCNTL_LOCK_TIMEOUT => pass!(file, xFileControl, sql::SQLITE_NOTFOUND, operation, argument),
        // SAFETY: what SQLite gives for this operation.
        sql::SQLITE_FCNTL_PRAGMA => guarded(|| unsafe { pragma(file, argument.cast()) }),
        _ => sql::SQLITE_NOTFOUND,
    }
}

/// `PRAGMA ftlab_report`. The argument is three texts: the answer, the name of the pragma and what it is set to.
unsafe fn pragma(file: *mut sql::sqlite3_file, texts: *mut *mut c_char) -> c_int {
    // SAFETY: as SQLite's documentation has it; the answer is SQLite's own memory, which it frees.
    unsafe {
        let name = *texts.add(1);
        if name.is_null() || !CStr::from_ptr(name).to_bytes().eq_ignore_ascii_case(b"ftlab_report") {
            return sql::SQLITE_NOTFOUND;
        }
        let (Some(store), Some(malloc)) = (its_store(file), api().malloc) else {
            return sql::SQLITE_NOTFOUND;
        };
        let text = store.report().to_string();
        let room = malloc(text.len() as c_int + 1).cast::<u8>();
        if room.is_null() {
            return sql::SQLITE_NOMEM;
        }
        ptr::copy_nonoverlapping(text.as_ptr(), room, text.len());
        *room.add(text.len()) = 0;
        *texts = room.cast();
    }
    sql::SQLITE_OK
}

unsafe extern "C" fn sector_size(file: *mut sql::sqlite3_file) -> c_int {
    // SAFETY: a file of `open`.
    unsafe { its_store(file) }.map_or(4096, |store| store.page_size() as c_int)
}

/// Bytes beside a written range stay as they are: a page is written whole to another slot.
unsafe extern "C" fn characteristics(_: *mut sql::sqlite3_file) -> c_int {
    sql::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

unsafe extern "C" fn shm_map(
    file: *mut sql::sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    into: *mut *mut c_void,
) -> c_int {
    pass!(file, xShmMap, sql::SQLITE_IOERR_SHMMAP, region, size, extend, into)
}

unsafe extern "C" fn shm_lock(file: *mut sql::sqlite3_file, at: c_int, count: c_int, flags: c_int) -> c_int {
    pass!(file, xShmLock, sql::SQLITE_IOERR_SHMLOCK, at, count, flags)
}

unsafe extern "C" fn shm_barrier(file: *mut sql::sqlite3_file) {
    pass!(file, xShmBarrier, ());
}

unsafe extern "C" fn shm_unmap(file: *mut sql::sqlite3_file, delete: c_int) -> c_int {
    pass!(file, xShmUnmap, sql::SQLITE_OK, delete)
}
