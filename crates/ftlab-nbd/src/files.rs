//! Exports as files of a folder, by FUSE: the kernel asks the engine itself, and no protocol lies between.
//!
//! # Model
//! Each export is a regular file of fixed size, in what it does as like a block device as a file can be: buffered writes wait in the
//! kernel's page cache until they are synchronised or the kernel writes them back; direct ones are whole sectors; what lies behind the end
//! has no room. A hole that is punched is zeros, so that it is a write-zeroes of the drive, and ranges that are allocated are nothing.
//! What the file is asked for is not counted among the connections.
//!
//! # Not modelled
//! Where data lies (`SEEK_HOLE`): the whole file is data. Other users than the one of the server, and root.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SendError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use ftlab_core::{Error, Result};
use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Session, TimeOrNow, WriteFlags,
};
use rustix::fs::FallocateFlags;
use rustix::mount::{UnmountFlags, unmount};

use crate::Export;
use crate::poll::Ringing;
use crate::protocol::{Command, RequestHead, SECTOR, command_flag, error};
use crate::request::{Answer, Asker, Body, Message, Request};

/// The name of an export that has none.
const UNNAMED: &str = "disk";
/// Nothing but the server changes what the files are.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);
/// Requests that the kernel may have under way for programs that do not wait for them.
const UNDER_WAY: u16 = 256;
/// Largest request.
const MOST: u32 = 1 << 20;
/// Pieces in which a longer range is cleared.
const PIECE: u64 = 1 << 30;
const FIRST_FILE: u64 = 2;

/// The folder in which the files are, until it is dropped.
pub struct Files {
    folder: PathBuf,
    session: Option<BackgroundSession>,
}

impl Files {
    /// Puts the files of `exports` in the place of `folder`, which must be empty.
    ///
    /// # Errors
    /// There is no such folder, there is something in it, an export has a name that no file can have, or the system refuses.
    pub fn show(folder: &Path, exports: Arc<[Export]>, to_engine: Ringing<Message>) -> Result<Self> {
        let refused = |what: String| Error::input(format!("fuse {}: {what}", folder.display()));
        let held = std::fs::read_dir(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotConnected => refused(format!(
                "the end of another server left it mounted; `fusermount3 -u {}` frees it",
                folder.display()
            )),
            _ => refused(format!("{error}; expected an empty folder")),
        })?;
        if held.count() > 0 {
            return Err(refused("expected an empty folder".to_owned()));
        }
        for export in exports.iter() {
            let name = name(export);
            if name.contains(['/', '\0']) || [".", ".."].contains(&name) || name.len() > 255 {
                return Err(refused(format!("export `{name}`: no file can have this name")));
            }
        }
        if exports.len() > 1 && exports.iter().filter(|export| name(export) == UNNAMED).count() > 1 {
            return Err(refused(format!("two exports would be the file `{UNNAMED}`")));
        }
        let folder = folder.canonicalize().map_err(|error| Error::io(folder, &error))?;
        let folder_of = Folder { exports, to_engine };
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("ftlab".to_owned()),
            MountOption::Subtype("ftlab".to_owned()),
            MountOption::DefaultPermissions,
        ];
        let session = Session::new(folder_of, &folder, &config).and_then(Session::spawn);
        Ok(Files {
            session: Some(session.map_err(|error| Error::Io(format!("fuse {}: {error}", folder.display())))?),
            folder,
        })
    }

    /// Where an export is.
    pub fn path(folder: &Path, export: &Export) -> PathBuf {
        folder.join(name(export))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // Also from under somebody who has a file open: he gets errors. Who may not do that himself has a program for it, which the
        // session calls.
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

fn name(export: &Export) -> &str {
    match export.name.as_str() {
        "" => UNNAMED,
        name => name,
    }
}

/// What the kernel asks.
struct Folder {
    exports: Arc<[Export]>,
    to_engine: Ringing<Message>,
}

impl Folder {
    fn export(&self, file: INodeNo) -> Option<(usize, &Export)> {
        let number = usize::try_from(file.0.checked_sub(FIRST_FILE)?).ok()?;
        Some((number, self.exports.get(number)?))
    }

    fn facts(&self, file: INodeNo) -> Option<FileAttr> {
        let size = match file {
            INodeNo::ROOT => 0,
            _ => self.export(file)?.1.size,
        };
        let is_folder = file == INodeNo::ROOT;
        Some(FileAttr {
            ino: file,
            size,
            blocks: size / SECTOR,
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind: if is_folder {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: if is_folder { 0o700 } else { 0o600 },
            nlink: 1,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Has the engine carry out a request to an export, at an offset in it.
    fn ask(&self, export: usize, what: RequestHead, data: Vec<u8>, answer: Answer) {
        let request = Request {
            head: RequestHead {
                offset: self.exports[export].offset + what.offset,
                ..what
            },
            export,
            // The engine says where the answer waits.
            asker: Asker::File(usize::MAX),
            data,
            carried: what.length.into(),
            arrived: Instant::now(),
        };
        let sent = self.to_engine.send(Message::Asked(Box::new(request), answer));
        if let Err(SendError(Message::Asked(_, answer))) = sent {
            answer(error::EIO, Body::None);
        }
    }
}

fn head(command: Command, flags: u16, offset: u64, length: u32) -> RequestHead {
    RequestHead {
        flags,
        command,
        cookie: 0,
        offset,
        length,
    }
}

/// What a program sees of an error of the engine's.
fn seen(number: u32) -> Errno {
    match number {
        error::ESHUTDOWN => Errno::EIO,
        number => Errno::from_i32(number.cast_signed()),
    }
}

/// Whether a range is whole sectors.
fn is_sectors(offset: u64, length: u64) -> bool {
    offset.is_multiple_of(SECTOR) && length.is_multiple_of(SECTOR)
}

/// An answer that comes when several requests are through: the last error, if there was any.
fn together(reply: ReplyEmpty, count: u64) -> impl Fn() -> Answer {
    let left = Arc::new((Mutex::new((count, Some(reply))), AtomicU32::new(0)));
    move || {
        let left = left.clone();
        Box::new(move |number, _| {
            let (waiting, failed) = &*left;
            if number != 0 {
                failed.store(number, Ordering::Relaxed);
            }
            let Ok(mut waiting) = waiting.lock() else { return };
            waiting.0 -= 1;
            if waiting.0 > 0 {
                return;
            }
            if let Some(reply) = waiting.1.take() {
                end(reply, failed.load(Ordering::Relaxed));
            }
        })
    }
}

fn end(reply: ReplyEmpty, number: u32) {
    match number {
        0 => reply.ok(),
        number => reply.error(seen(number)),
    }
}

impl Filesystem for Folder {
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        // Older kernels do without the one or the other.
        for wanted in [InitFlags::FUSE_WRITEBACK_CACHE, InitFlags::FUSE_ASYNC_DIO] {
            let _ = config.add_capabilities(wanted);
        }
        let _ = config.set_max_write(MOST);
        let _ = config.set_max_background(UNDER_WAY);
        Ok(())
    }

    fn lookup(&self, _: &fuser::Request, folder: INodeNo, wanted: &OsStr, reply: ReplyEntry) {
        let number = self.exports.iter().position(|export| wanted == name(export));
        let file = number
            .filter(|_| folder == INodeNo::ROOT)
            .map(|number| INodeNo(FIRST_FILE + number as u64));
        match file.and_then(|file| self.facts(file)) {
            Some(facts) => reply.entry(&FOR_EVER, &facts, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &fuser::Request, file: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.facts(file) {
            Some(facts) => reply.attr(&FOR_EVER, &facts),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Times and modes stay what they are. A device ignores it when it is cut to nothing on opening.
    fn setattr(
        &self,
        _: &fuser::Request,
        file: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.facts(file) {
            Some(facts) if size.is_none_or(|size| size == 0 || size == facts.size) => reply.attr(&FOR_EVER, &facts),
            Some(_) => reply.error(Errno::EPERM),
            None => reply.error(Errno::ENOENT),
        }
    }

    // What is in the folder is the drive's: nothing is made, taken away or renamed there.

    fn mknod(&self, _: &fuser::Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _: &fuser::Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &fuser::Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn readdir(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let own = [".", ".."].map(|name| (INodeNo::ROOT, FileType::Directory, name));
        let files = self.exports.iter().zip(FIRST_FILE..);
        let files = files.map(|(export, file)| (INodeNo(file), FileType::RegularFile, name(export)));
        for ((file, kind, name), next) in own.into_iter().chain(files).zip(1..).skip(offset as usize) {
            if reply.add(file, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &fuser::Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
    }

    fn read(
        &self,
        _: &fuser::Request,
        file: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some((number, export)) = self.export(file) else {
            return reply.error(Errno::EISDIR);
        };
        let length = export.size.saturating_sub(offset).min(size.into());
        if !is_sectors(offset, length) {
            return reply.error(Errno::EINVAL);
        }
        if length == 0 {
            return reply.data(&[]);
        }
        let answer = Box::new(|number, body| match (number, body) {
            (0, Body::Data(data)) => reply.data(&data),
            (number, _) => reply.error(seen(number.max(1))),
        });
        self.ask(
            number,
            head(Command::Read, 0, offset, length as u32),
            Vec::new(),
            answer,
        );
    }

    fn write(
        &self,
        _: &fuser::Request,
        file: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some((number, export)) = self.export(file) else {
            return reply.error(Errno::EISDIR);
        };
        let length = data.len() as u64;
        if offset + length > export.size {
            return reply.error(Errno::ENOSPC);
        }
        if !is_sectors(offset, length) {
            return reply.error(Errno::EINVAL);
        }
        let length = length as u32;
        let answer = Box::new(move |number, _| match number {
            0 => reply.written(length),
            number => reply.error(seen(number)),
        });
        self.ask(number, head(Command::Write, 0, offset, length), data.to_vec(), answer);
    }

    fn flush(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // A file is closed; that promises nothing.
        reply.ok();
    }

    fn fsync(&self, _: &fuser::Request, file: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.export(file) {
            Some((number, _)) => {
                let answer = Box::new(move |number, _| end(reply, number));
                self.ask(number, head(Command::Flush, 0, 0, 0), Vec::new(), answer);
            }
            None => reply.ok(),
        }
    }

    fn fallocate(
        &self,
        _: &fuser::Request,
        file: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let Some((number, export)) = self.export(file) else {
            return reply.error(Errno::EISDIR);
        };
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        let ends = offset.saturating_add(length);
        if ends > export.size && !mode.contains(FallocateFlags::PUNCH_HOLE) {
            return reply.error(Errno::ENOSPC);
        }
        let flags = match mode - FallocateFlags::KEEP_SIZE {
            FallocateFlags::PUNCH_HOLE => 0,
            FallocateFlags::ZERO_RANGE => command_flag::NO_HOLE,
            mode if mode.is_empty() => return reply.ok(),
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let ends = ends.min(export.size);
        if offset >= ends {
            return reply.ok();
        }
        if !is_sectors(offset, ends - offset) {
            return reply.error(Errno::EINVAL);
        }
        let answer = together(reply, (ends - offset).div_ceil(PIECE));
        let mut at = offset;
        while at < ends {
            let length = (ends - at).min(PIECE);
            let zeros = head(Command::WriteZeroes, flags, at, length as u32);
            self.ask(number, zeros, Vec::new(), answer());
            at += length;
        }
    }
}
