//! The modules of the process: where code lies, what it is called in every run, how its frames are unwound.
//!
//! # Model
//! Read from `/proc/self/maps` and the headers in memory, which needs no lock of the loader. The id of a module is a hash of
//! its build id, or of its headers if it has none: the same in every run and process, whatever address it got. Looked at again when the
//! loader knows an object that we do not (`_dl_find_object`, lock-free; before glibc 2.35: a limited number of times), and after
//! dlclose. Tables are replaced as a whole; readers never wait.
//! # Not modelled
//! Code without a file (just-in-time compilers): all of it is one module of id 1, offset 0. Modules unloaded by other means than dlclose.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use framehop::{ExplicitModuleSectionInfo, MustNotAllocateDuringUnwind, Unwinder as _};
use ftlab_record::elf::{self, Headers, UnwindTables};

use crate::process::Wiped;
use crate::sys;

/// Id of all code that has no file.
pub const ANONYMOUS: u64 = 1;
/// Tables made at most; each costs some ten kilobytes that are not given back.
const MOST_TABLES: u32 = 4096;
/// Without `_dl_find_object`: looks at the maps for an address that is in no module.
const MOST_BLIND_LOOKS: u32 = 64;

pub type Unwinder = framehop::x86_64::UnwinderX86_64<&'static [u8], MustNotAllocateDuringUnwind>;

pub struct Module {
    pub id: u64,
    pub base: u64,
    pub end: u64,
    pub path: &'static [u8],
    pub build_id: &'static [u8],
    /// The C library, the loader, this library: left out at the inner end of a call path.
    pub runtime: bool,
    /// This library: what earlier records left on the stack points into it.
    pub own: bool,
    /// A native library of the Java runtime whose functions write files.
    pub java: bool,
    /// Written to a spool.
    pub written: AtomicBool,
    /// 0 not looked at, 1 its functions keep frame pointers, 2 they do not.
    frame_pointers: AtomicU8,
    /// Code, the first stretch of it.
    code: (u64, u64),
}

/// What is known at one time.
pub struct Table {
    pub generation: u32,
    /// Stretches of code, ascending.
    code: Vec<(u64, u64, &'static Module)>,
    pub unwinder: Unwinder,
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());
static STALE: AtomicBool = AtomicBool::new(false);
static BLIND_LOOKS: AtomicU32 = AtomicU32::new(0);
/// `_dl_find_object`, if the loader has it.
static FIND_OBJECT: AtomicUsize = AtomicUsize::new(0);

/// Called once, before `main`.
pub fn start() {
    // SAFETY: a name with its NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    FIND_OBJECT.store(found as usize, Ordering::Release);
}

/// A library was closed: its place may be taken by another.
pub fn forget() {
    STALE.store(true, Ordering::Release);
}

/// The table of now.
pub fn table(wiped: &Wiped) -> Option<&'static Table> {
    let table = TABLE.load(Ordering::Acquire);
    if table.is_null() || STALE.load(Ordering::Acquire) {
        return look(wiped);
    }
    // SAFETY: tables are never freed.
    unsafe { table.as_ref() }
}

impl Table {
    pub fn modules(&self) -> impl Iterator<Item = &'static Module> {
        self.code.iter().map(|&(_, _, module)| module)
    }

    /// The module whose code an address lies in.
    pub fn find(&self, address: u64) -> Option<&'static Module> {
        let behind = self.code.partition_point(|&(start, _, _)| start <= address);
        let &(_, end, module) = self.code.get(behind.checked_sub(1)?)?;
        (address < end).then_some(module)
    }

    /// As `find`, in a newer table if the loader knows the address and this one does not.
    pub fn find_or_look(&'static self, wiped: &Wiped, address: u64) -> (Option<&'static Module>, &'static Table) {
        if let Some(module) = self.find(address) {
            return (Some(module), self);
        }
        if !unknown_object(wiped, address) {
            return (None, self);
        }
        match look(wiped) {
            Some(newer) => (newer.find(address), newer),
            None => (None, self),
        }
    }
}

/// Whether an address that is in no module may lie in one loaded since.
fn unknown_object(wiped: &Wiped, address: u64) -> bool {
    let find = FIND_OBJECT.load(Ordering::Acquire);
    if find == 0 {
        return BLIND_LOOKS.load(Ordering::Relaxed) < MOST_BLIND_LOOKS && {
            BLIND_LOOKS.fetch_add(1, Ordering::Relaxed);
            true
        };
    }
    // The loader's answer holds a start, an end and more; only whether there is one matters, and that it is code.
    let mut answer = [0u64; 16];
    // SAFETY: the function has this form since glibc 2.35; the answer has room for the 7 words it has and those reserved.
    let find: extern "C" fn(u64, *mut u64) -> i32 = unsafe { core::mem::transmute(find) };
    find(address, answer.as_mut_ptr()) == 0 && is_code(wiped, address)
}

/// An object's data lies between its start and end as well: looking again would not help.
fn is_code(wiped: &Wiped, address: u64) -> bool {
    let mut code = false;
    wiped.modules_lock.with(|| {
        each_mapping(wiped, |mapping| {
            if mapping.range.contains(&address) {
                code = mapping.code;
            }
            mapping.range.end <= address
        });
    });
    code
}

impl Module {
    /// Whether its functions keep frame pointers: half as many prologues `push rbp; mov rbp, rsp` as there are returns, in
    /// the first 256 KiB of its code.
    pub fn keeps_frame_pointers(&self) -> bool {
        match self.frame_pointers.load(Ordering::Relaxed) {
            1 => true,
            2 => false,
            _ => {
                let keeps = self.count_prologues();
                self.frame_pointers.store(if keeps { 1 } else { 2 }, Ordering::Relaxed);
                keeps
            }
        }
    }

    fn count_prologues(&self) -> bool {
        let (start, end) = self.code;
        if self.id == ANONYMOUS || end <= start {
            return false;
        }
        let len = (end - start).min(256 << 10) as usize;
        // SAFETY: mapped readable when the module was found, and code of a loaded module stays.
        let code = unsafe { core::slice::from_raw_parts(start as *const u8, len) };
        let (mut prologues, mut returns) = (0u32, 0u32);
        for (at, &byte) in code.iter().enumerate() {
            match byte {
                0xc3 => returns += 1,
                0x55 if matches!(code.get(at + 1..at + 4), Some([0x48, 0x89, 0xe5])) => prologues += 1,
                _ => {}
            }
        }
        prologues >= 8 && 2 * prologues >= returns
    }
}

/// Looks at the process anew.
fn look(wiped: &Wiped) -> Option<&'static Table> {
    wiped.modules_lock.with(|| {
        // SAFETY: tables are never freed.
        let old: Option<&'static Table> = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
        let generation = old.map_or(0, |table| table.generation + 1);
        if generation >= MOST_TABLES {
            return old;
        }
        STALE.store(false, Ordering::Release);
        let mut groups = Groups {
            old,
            groups: Vec::new(),
            own: own_address(),
        };
        each_mapping(wiped, |mapping| {
            groups.add(mapping);
            true
        });
        let table = groups.table(generation);
        let table = Box::into_raw(Box::new(table));
        TABLE.store(table, Ordering::Release);
        // SAFETY: just made, never freed.
        unsafe { table.as_ref() }
    })
}

fn own_address() -> u64 {
    own_address as *const () as u64
}

/// A line of `/proc/self/maps`.
struct Mapping<'a> {
    range: Range<u64>,
    readable: bool,
    writable: bool,
    code: bool,
    offset: u64,
    inode: u64,
    path: &'a [u8],
}

/// Adjacent mappings of one file.
struct Group {
    path: Vec<u8>,
    /// Start, end, readable, code.
    parts: Vec<(u64, u64, bool, bool)>,
    offset: u64,
}

struct Groups {
    old: Option<&'static Table>,
    groups: Vec<Group>,
    own: u64,
}

impl Groups {
    fn add(&mut self, mapping: &Mapping<'_>) {
        let part = (mapping.range.start, mapping.range.end, mapping.readable, mapping.code);
        if let Some(last) = self.groups.last_mut()
            && !mapping.path.is_empty()
            && last.path == mapping.path
            && mapping.offset != 0
        {
            last.parts.push(part);
        } else if !mapping.path.is_empty() || mapping.code {
            self.groups.push(Group {
                path: mapping.path.to_vec(),
                parts: vec![part],
                offset: mapping.offset,
            });
        }
    }

    fn table(&self, generation: u32) -> Table {
        let mut code = Vec::new();
        let mut unwinder = Unwinder::new();
        for group in self.groups.iter().filter(|group| group.parts.iter().any(|part| part.3)) {
            let headers = headers(group);
            let module = self.module(group, headers.as_ref());
            for &(start, end, _, _) in group.parts.iter().filter(|part| part.3) {
                code.push((start, end, module));
            }
            if let Some(info) = headers.and_then(|headers| unwind_info(&headers, group)) {
                let range = group.start()..group.end();
                unwinder.add_module(framehop::Module::new(String::new(), range, group.start(), info));
            }
        }
        code.sort_unstable_by_key(|&(start, _, _)| start);
        Table {
            generation,
            code,
            unwinder,
        }
    }

    /// The module of a group, the one known already if it is the same.
    fn module(&self, group: &Group, headers: Option<&Headers<'static>>) -> &'static Module {
        let code = group
            .parts
            .iter()
            .find(|part| part.3)
            .map_or((0, 0), |part| (part.0, part.1));
        let (id, build_id) = headers
            .and_then(|headers| identity(headers, group))
            .unwrap_or((ANONYMOUS, &[]));
        let known = self.old.and_then(|old| {
            let mut modules = old.code.iter().map(|&(_, _, module)| module);
            modules.find(|module| module.id == id && module.base == group.start() && module.end == group.end())
        });
        if let Some(known) = known {
            return known;
        }
        let name = group.path.rsplit(|&byte| byte == b'/').next().unwrap_or(&[]);
        let runtime = [
            &b"libc.so"[..],
            b"libc-2",
            b"ld-linux",
            b"ld-2",
            b"ld.so",
            b"libpthread",
        ]
        .iter()
        .any(|start| name.starts_with(start));
        let own = (group.start()..group.end()).contains(&self.own);
        Box::leak(Box::new(Module {
            id,
            base: group.start(),
            end: group.end(),
            path: Vec::leak(group.path.clone()),
            build_id: Vec::leak(build_id.to_vec()),
            runtime: runtime || own,
            own,
            java: name == b"libjava.so" || name == b"libnio.so",
            written: AtomicBool::new(false),
            frame_pointers: AtomicU8::new(0),
            code,
        }))
    }
}

impl Group {
    fn start(&self) -> u64 {
        self.parts.first().map_or(0, |part| part.0)
    }

    fn end(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.1)
    }

    /// Memory of the module, to the end of its readable stretch at most.
    fn memory(&self, address: u64, len: u64) -> Option<&'static [u8]> {
        let &(_, end, _, _) = self
            .parts
            .iter()
            .find(|&&(start, end, readable, _)| readable && start <= address && address < end)?;
        let len = usize::try_from(len.min(end - address)).ok()?;
        // SAFETY: mapped and readable a moment ago; a loaded module stays until dlclose, which makes us forget it.
        Some(unsafe { core::slice::from_raw_parts(address as *const u8, len) })
    }
}

/// The headers of a group's module.
fn headers(group: &Group) -> Option<Headers<'static>> {
    if !group.path.starts_with(b"/") || group.offset != 0 {
        return None;
    }
    let first = group.memory(group.start(), elf::FIRST as u64)?;
    Headers::parse(group.memory(group.start(), elf::needed(first)?)?)
}

/// Id and build id.
fn identity(headers: &Headers<'static>, group: &Group) -> Option<(u64, &'static [u8])> {
    let lowest = headers.lowest()?;
    let build_id = headers.segments(elf::NOTE).find_map(|segment| {
        let at = segment.address.checked_sub(lowest)?.checked_add(group.start())?;
        elf::build_id(group.memory(at, segment.len.min(4096))?)
    });
    Some((headers.id(build_id), build_id.unwrap_or(&[])))
}

fn unwind_info(headers: &Headers<'static>, group: &Group) -> Option<ExplicitModuleSectionInfo<&'static [u8]>> {
    let lowest = headers.lowest()?;
    let tables = UnwindTables::find(headers, |address, len| {
        group.memory(address.checked_sub(lowest)?.checked_add(group.start())?, len)
    })?;
    Some(ExplicitModuleSectionInfo {
        base_svma: tables.lowest,
        eh_frame_hdr_svma: Some(tables.eh_frame_hdr.0),
        eh_frame_hdr: Some(tables.eh_frame_hdr.1),
        eh_frame_svma: Some(tables.eh_frame.0),
        eh_frame: Some(tables.eh_frame.1),
        ..Default::default()
    })
}

/// Memory that an address lies in.
pub struct Memory {
    pub range: Range<u64>,
    pub writable: bool,
    /// The main thread's stack, which grows downwards by itself.
    pub main_stack: bool,
}

/// What an address lies in, if it can be read.
pub fn memory_of(wiped: &Wiped, address: u64) -> Option<Memory> {
    let mut found = None;
    wiped.modules_lock.with(|| {
        each_mapping(wiped, |mapping| {
            if mapping.range.contains(&address) && mapping.readable {
                let (range, writable) = (mapping.range.clone(), mapping.writable);
                found = Some(Memory {
                    range,
                    writable,
                    main_stack: mapping.path == b"[stack]",
                });
            }
            mapping.range.end <= address
        });
    });
    found
}

/// Path (with a NUL behind it) and inode of the file that is mapped at an address: the path's length.
pub fn file_of(wiped: &Wiped, address: u64, path: &mut [u8]) -> Option<(usize, u64)> {
    let mut found = None;
    wiped.modules_lock.with(|| {
        each_mapping(wiped, |mapping| {
            if mapping.range.contains(&address)
                && let Some(place) = path.get_mut(..mapping.path.len() + 1)
            {
                place[..mapping.path.len()].copy_from_slice(mapping.path);
                place[mapping.path.len()] = 0;
                found = Some((mapping.path.len(), mapping.inode));
            }
            mapping.range.end <= address
        });
    });
    found
}

/// Adds up what `of` says of each io_uring ring that the process has mapped, by where its queue lies.
pub fn rings(wiped: &Wiped, of: impl Fn(u64) -> u64) -> u64 {
    let mut sum = 0;
    wiped.modules_lock.with(|| {
        each_mapping(wiped, |mapping| {
            // A ring has two or three mappings, the queue at offset 0.
            if mapping.path == b"anon_inode:[io_uring]" && mapping.offset == 0 {
                sum += of(mapping.range.start);
            }
            true
        });
    });
    sum
}

/// Reads `/proc/self/maps` line by line until `more` is false. Lines longer than the buffer are cut in their path.
///
/// The caller holds `modules_lock`, which the buffer belongs to: a thread's stack may be too small for one.
fn each_mapping(wiped: &Wiped, mut more: impl FnMut(&Mapping<'_>) -> bool) {
    // SAFETY: the lock is held, and `more` does not come back here.
    let buffer = unsafe { &mut *wiped.maps.get() };
    let Ok(fd) = sys::open(c"/proc/self/maps", libc::O_RDONLY, 0) else {
        return;
    };
    let mut held = 0;
    let mut skipping = false;
    'file: loop {
        let read = sys::read(fd, &mut buffer[held..]);
        if read == 0 {
            break;
        }
        let len = held + read;
        let mut line = 0;
        while let Some(end) = buffer[line..len].iter().position(|&byte| byte == b'\n') {
            if !skipping
                && let Some(mapping) = parse(&buffer[line..line + end])
                && !more(&mapping)
            {
                break 'file;
            }
            skipping = false;
            line += end + 1;
        }
        buffer.copy_within(line..len, 0);
        held = len - line;
        if held == buffer.len() {
            if !skipping
                && let Some(mapping) = parse(&buffer[..])
                && !more(&mapping)
            {
                break;
            }
            skipping = true;
            held = 0;
        }
    }
    sys::close(fd);
}

fn parse(line: &[u8]) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut range = fields.next()?.split(|&byte| byte == b'-');
    let range = hex(range.next()?)?..hex(range.next()?)?;
    let access = fields.next()?;
    let offset = hex(fields.next()?)?;
    let _device = fields.next()?;
    let inode = fields.next()?.iter().try_fold(0u64, |number, digit| {
        Some(number.wrapping_mul(10) + u64::from((*digit as char).to_digit(10)?))
    })?;
    let path = fields.next().unwrap_or(&[]).trim_ascii_start();
    Some(Mapping {
        range,
        readable: access.first() == Some(&b'r'),
        writable: access.get(1) == Some(&b'w'),
        code: access.get(2) == Some(&b'x'),
        offset,
        inode,
        path,
    })
}

fn hex(digits: &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for &digit in digits {
        number = number << 4 | u64::from((digit as char).to_digit(16)?);
    }
    Some(number)
}
