//! Call paths of a traced thread, unwound from outside.
//!
//! # Model
//! The modules are those of `/proc/<pid>/maps`, their unwind tables read from the files; the stack is copied, 64 KiB of it
//! at most. Frames and signatures are those of the library's method `unwind`: the C library is left out at the inner end.
//! # Not modelled
//! Code without a file ends a path. Files replaced since they were mapped.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder as _, x86_64};
use rustc_hash::FxHashMap;

use super::Tid;
use ftlab_record::elf::{self, Headers, UnwindTables};
use ftlab_record::spool::{MOST_FRAMES, signature};

const STACK: usize = 64 << 10;

/// Module id and offset, innermost first; empty: not known.
#[derive(Default)]
pub struct Path {
    pub frames: Vec<(u64, u64)>,
    /// It ends in code that lies in no file.
    pub compiled: bool,
}

impl Path {
    pub fn signature(&self) -> u64 {
        signature(&self.frames)
    }
}

/// Files with code, by device and inode as the maps name them.
#[derive(Default)]
pub struct Binaries {
    known: FxHashMap<Vec<u8>, Option<Arc<Binary>>>,
    build_ids: FxHashMap<u64, Vec<u8>>,
    cache: x86_64::CacheX86_64,
}

struct Binary {
    id: u64,
    lowest: u64,
    eh_frame_hdr: (Range<u64>, Arc<[u8]>),
    eh_frame: (Range<u64>, Arc<[u8]>),
}

pub struct Module {
    pub range: Range<u64>,
    pub path: Vec<u8>,
    id: u64,
    runtime: bool,
}

/// What is known of a process's memory.
pub struct Stack {
    pid: Tid,
    /// Stretches of code: start, end, place in `modules`.
    code: Vec<(u64, u64, usize)>,
    modules: Vec<Module>,
    /// All stretches that can be read, for stacks.
    readable: Vec<Range<u64>>,
    unwinder: x86_64::UnwinderX86_64<Arc<[u8]>>,
}

impl Binaries {
    pub fn build_id(&self, id: u64) -> &[u8] {
        self.build_ids.get(&id).map_or(&[], Vec::as_slice)
    }

    fn of(&mut self, pid: Tid, key: &[u8], path: &[u8]) -> Option<Arc<Binary>> {
        if let Some(known) = self.known.get(key) {
            return known.clone();
        }
        let inside = path.strip_prefix(b"/").unwrap_or(path);
        let file = std::path::PathBuf::from(format!("/proc/{pid}/root")).join(std::ffi::OsStr::from_bytes(inside));
        let read = std::fs::read(file)
            .ok()
            .and_then(|bytes| self.read(&bytes))
            .map(Arc::new);
        self.known.insert(key.to_vec(), read.clone());
        read
    }

    fn read(&mut self, bytes: &[u8]) -> Option<Binary> {
        let headers = Headers::parse(bytes)?;
        let notes = headers.segments(elf::NOTE).filter_map(|segment| {
            let start = usize::try_from(segment.offset).ok()?;
            bytes.get(start..start.checked_add(usize::try_from(segment.file_len).ok()?)?)
        });
        let build_id = notes.filter_map(elf::build_id).next();
        let id = headers.id(build_id);
        self.build_ids
            .entry(id)
            .or_insert_with(|| build_id.unwrap_or(&[]).to_vec());
        let memory = |address: u64, len: u64| {
            let segment = headers
                .segments(elf::LOAD)
                .find(|segment| segment.address <= address && address - segment.address < segment.file_len)?;
            let inside = address - segment.address;
            let start = usize::try_from(segment.offset.checked_add(inside)?).ok()?;
            let len = usize::try_from(len.min(segment.file_len - inside)).ok()?;
            bytes.get(start..start.checked_add(len)?)
        };
        let tables = UnwindTables::find(&headers, memory);
        let empty = || (0..0, Arc::from(&[][..]));
        let keep = |(range, bytes): (Range<u64>, &[u8])| (range, Arc::from(bytes));
        Some(Binary {
            id,
            lowest: headers.lowest()?,
            eh_frame_hdr: tables
                .as_ref()
                .map_or_else(empty, |tables| keep(tables.eh_frame_hdr.clone())),
            eh_frame: tables.map_or_else(empty, |tables| keep(tables.eh_frame)),
        })
    }
}

impl Stack {
    pub fn new(pid: Tid) -> Self {
        Self {
            pid,
            code: Vec::new(),
            modules: Vec::new(),
            readable: Vec::new(),
            unwinder: x86_64::UnwinderX86_64::new(),
        }
    }

    pub fn module(&self, id: u64) -> Option<&Module> {
        self.modules.iter().find(|module| module.id == id)
    }

    /// The path that led to the call a thread has stopped in.
    pub fn walk(&mut self, binaries: &mut Binaries, tid: Tid, registers: &libc::user_regs_struct) -> Path {
        let known = |stack: &Self| stack.find(registers.rip).is_some() && stack.stack_end(registers.rsp).is_some();
        if !known(self) {
            self.look(binaries);
        }
        let mut frames = self.unwind(binaries, tid, registers);
        if frames
            .last()
            .is_some_and(|&(address, module)| module.is_none() && self.is_new(address))
        {
            // The path ends in code that was loaded since.
            self.look(binaries);
            frames = self.unwind(binaries, tid, registers);
        }
        let in_runtime = |module: &Option<usize>| module.and_then(|at| self.modules.get(at)).is_some_and(|m| m.runtime);
        let inner = frames.iter().take_while(|(_, module)| in_runtime(module)).count();
        // A path of nothing but the C library is kept, without the call itself.
        let inner = if inner == frames.len() { 1.min(inner) } else { inner };
        let ends_nowhere = |&(address, module): &(u64, Option<usize>)| module.is_none() && self.is_mapped(address);
        let compiled = frames.last().is_some_and(ends_nowhere);
        let frames = frames.into_iter().skip(inner).take(MOST_FRAMES);
        let frame = |(address, module): (u64, Option<usize>)| {
            let module = self.modules.get(module?)?;
            Some((module.id, address - module.range.start))
        };
        Path {
            frames: frames.map_while(frame).collect(),
            compiled,
        }
    }

    /// Addresses of the path, innermost first, and where in `modules` each belongs; the last may belong nowhere.
    fn unwind(
        &self,
        binaries: &mut Binaries,
        tid: Tid,
        registers: &libc::user_regs_struct,
    ) -> Vec<(u64, Option<usize>)> {
        let start = registers.rsp;
        let end = self.stack_end(start).unwrap_or(start);
        let mut copy = vec![0; (end - start).min(STACK as u64) as usize];
        let len = read_memory(tid, start, &mut copy);
        let mut read = |at: u64| {
            let from = usize::try_from(at.checked_sub(start).ok_or(())?).map_err(|_| ())?;
            let bytes = copy
                .get(from..from.checked_add(8).ok_or(())?)
                .filter(|_| from + 8 <= len)
                .ok_or(())?;
            bytes.try_into().map(u64::from_le_bytes).map_err(|_| ())
        };
        let mut unwound = x86_64::UnwindRegsX86_64::new(registers.rip, start, registers.rbp);
        let mut from = FrameAddress::from_instruction_pointer(registers.rip);
        let mut frames = vec![(registers.rip, self.find(registers.rip))];
        // A few more than are kept: those of the C library at the inner end are left out later.
        while frames.len() < MOST_FRAMES + 8 && frames.last().is_some_and(|(_, module)| module.is_some()) {
            let before = unwound.sp();
            match self
                .unwinder
                .unwind_frame(from, &mut unwound, &mut binaries.cache, &mut read)
            {
                Ok(Some(next)) if unwound.sp() > before => {
                    let Some(address) = FrameAddress::from_return_address(next) else {
                        break;
                    };
                    frames.push((next, self.find(next)));
                    from = address;
                }
                _ => break,
            }
        }
        frames
    }

    fn find(&self, address: u64) -> Option<usize> {
        let behind = self.code.partition_point(|&(start, _, _)| start <= address);
        let &(_, end, module) = self.code.get(behind.checked_sub(1)?)?;
        (address < end).then_some(module)
    }

    fn stack_end(&self, sp: u64) -> Option<u64> {
        self.readable
            .iter()
            .find(|range| range.contains(&sp))
            .map(|range| range.end)
    }

    fn is_mapped(&self, address: u64) -> bool {
        self.readable.iter().any(|range| range.contains(&address))
    }

    /// Whether an address lies in memory that was not there at the last look.
    fn is_new(&self, address: u64) -> bool {
        address > 4096 && !self.is_mapped(address)
    }

    /// Reads the maps anew.
    fn look(&mut self, binaries: &mut Binaries) {
        let maps = std::fs::read(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        *self = Self::new(self.pid);
        let mut last: Option<(Vec<u8>, usize, Option<Arc<Binary>>)> = None;
        for line in maps.split(|&byte| byte == b'\n') {
            let Some(mapping) = Mapping::parse(line) else { continue };
            if mapping.readable {
                self.readable.push(mapping.range.clone());
            }
            if !mapping.path.starts_with(b"/") {
                continue;
            }
            let continues = matches!(&last, Some((path, ..)) if path == mapping.path && mapping.offset != 0);
            if !continues {
                let binary = (mapping.offset == 0)
                    .then(|| binaries.of(self.pid, mapping.file, mapping.path))
                    .flatten();
                let name = mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or(&[]);
                self.modules.push(Module {
                    range: mapping.range.clone(),
                    path: mapping.path.to_vec(),
                    id: binary.as_ref().map_or(0, |binary| binary.id),
                    runtime: is_runtime(name),
                });
                last = Some((mapping.path.to_vec(), self.modules.len() - 1, binary));
            }
            if let Some((_, at, Some(_))) = &last {
                if let Some(module) = self.modules.get_mut(*at) {
                    module.range.end = mapping.range.end;
                }
                if mapping.code {
                    self.code.push((mapping.range.start, mapping.range.end, *at));
                }
            }
        }
        self.code.sort_unstable_by_key(|&(start, _, _)| start);
        for module in &self.modules {
            if let Some(binary) = binaries.known.values().flatten().find(|binary| binary.id == module.id) {
                let info = ExplicitModuleSectionInfo {
                    base_svma: binary.lowest,
                    eh_frame_hdr_svma: Some(binary.eh_frame_hdr.0.clone()),
                    eh_frame_hdr: Some(binary.eh_frame_hdr.1.clone()),
                    eh_frame_svma: Some(binary.eh_frame.0.clone()),
                    eh_frame: Some(binary.eh_frame.1.clone()),
                    ..Default::default()
                };
                let start = module.range.start;
                self.unwinder
                    .add_module(framehop::Module::new(String::new(), module.range.clone(), start, info));
            }
        }
    }
}

/// The C library and the loader, as the library's rule has it.
pub fn is_runtime(name: &[u8]) -> bool {
    ["libc.so", "libc-2", "ld-linux", "ld-2", "ld.so", "libpthread"]
        .iter()
        .any(|start| name.starts_with(start.as_bytes()))
}

struct Mapping<'a> {
    range: Range<u64>,
    readable: bool,
    code: bool,
    offset: u64,
    /// Device, inode and path.
    file: &'a [u8],
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(4, |&byte| byte == b' ');
        let mut range = fields.next()?.split(|&byte| byte == b'-');
        let range = hex(range.next()?)?..hex(range.next()?)?;
        let access = fields.next()?;
        let offset = hex(fields.next()?)?;
        let file = fields.next()?;
        let path = file
            .iter()
            .position(|&byte| byte == b'/')
            .map_or(&[][..], |at| &file[at..]);
        Some(Self {
            range,
            readable: access.first() == Some(&b'r'),
            code: access.get(2) == Some(&b'x'),
            offset,
            file,
            path,
        })
    }
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Copies memory of a thread; how much was there.
pub fn read_memory(tid: Tid, address: u64, into: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: into.len(),
    };
    // SAFETY: the kernel checks the other process's addresses, and writes into our buffer only.
    let read = unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

pub fn word(tid: Tid, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (read_memory(tid, address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
}

/// A string of a thread, without its NUL.
pub fn string(tid: Tid, address: u64, most: usize) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut at = address;
    while text.len() < most {
        // Not over the end of a page: the next one may not be there.
        let len = 4096 - (at % 4096) as usize;
        let mut piece = vec![0; len];
        let read = read_memory(tid, at, &mut piece);
        if let Some(end) = piece[..read].iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&piece[..end]);
            return Some(text);
        }
        if read < len {
            return None;
        }
        text.extend_from_slice(&piece);
        at += len as u64;
    }
    None
}
