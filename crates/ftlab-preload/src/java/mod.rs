//! Program contexts of writes made through the Java virtual machine: from the Java stack.
//!
//! # Model
//! When a call comes from one of the runtime's own native libraries for files (libjava, libnio), the thread is in a native
//! method, and the machine is asked for its stack through its tool interface (JVMTI). The library becomes an agent of the machine by
//! itself, at the first such call: an agent named on the command line or by `JAVA_TOOL_OPTIONS` would make the machine print that. A frame is a method and a bytecode index; the method is named by a hash of its class and name, so signatures are the same in every run.
//! Numbers that the machine counts up while it makes classes (lambdas, proxies, accessors) are left out of the names.
//! Native methods have index 0. All other calls get signatures from the native stack.
//! # Not modelled
//! Calls from other native libraries of a Java program (a database through JNI): their native stack is taken. Calls from within the machine.
//! Two methods of one class with one name and different parameters are the same. The machine may allocate memory while it answers.
//! # Source
//! PCStream (Kim et al.) computes the signature in the machine's write methods.

mod jvmti;

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use ftlab_record::spool::{MOST_FRAMES, Method, signature};

use self::jvmti::{Frame, Interface};
use crate::signature::{CallSite, is_new};
use crate::thread::Recording;

static MACHINE: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());
static TOOLS: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());
/// Whether the machine was looked for.
static LOOKED: AtomicBool = AtomicBool::new(false);

/// The tool interface of this process's machine; null if there is none.
fn tools() -> Interface {
    let tools = TOOLS.load(Ordering::Acquire);
    if !tools.is_null() || LOOKED.swap(true, Ordering::AcqRel) {
        return tools.cast();
    }
    // The launcher loads the machine for all to see; a program that hides it gets native signatures.
    // SAFETY: a name with its NUL.
    let created = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"JNI_GetCreatedJavaVMs".as_ptr()) };
    if created.is_null() {
        return null_mut();
    }
    // SAFETY: the function has this form; the machine runs, as one of its native methods is calling.
    unsafe {
        let machine = jvmti::machine(created);
        if !machine.is_null() {
            MACHINE.store(machine.cast(), Ordering::Release);
            TOOLS.store(jvmti::tools(machine).cast(), Ordering::Release);
        }
    }
    TOOLS.load(Ordering::Acquire).cast()
}

/// Signature of the Java stack, if the call was made through the machine; its frames are written when it is new.
pub fn context(recording: &mut Recording<'_>, at: &CallSite) -> Option<u64> {
    if !recording.calls_from_java(at.ip) {
        return None;
    }
    // SAFETY: the thread's own error number, which the machine may change.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let tools = tools();
    let signature = if tools.is_null() {
        None
    } else {
        java_stack(recording, tools)
    };
    // SAFETY: as above.
    unsafe { *errno = before };
    signature
}

#[inline(never)] // Its frames take two kilobytes of stack, which other calls need not have.
fn java_stack(recording: &mut Recording<'_>, tools: Interface) -> Option<u64> {
    let machine: Interface = MACHINE.load(Ordering::Acquire).cast();
    let mut stack = [Frame { method: 0, location: 0 }; MOST_FRAMES];
    // SAFETY: called from a native method, see `calls_from_java`.
    let len = unsafe { jvmti::stack(tools, &mut stack) }?;
    let mut frames = [(0, 0); MOST_FRAMES];
    let stack = stack.get(..len)?;
    for (place, frame) in frames.iter_mut().zip(stack) {
        *place = (symbol(machine, tools, frame.method)?, frame.location.max(0) as u64);
    }
    let frames = frames.get(..len)?;
    let signature = signature(frames);
    if is_new(recording.wiped, signature) {
        let wiped = recording.wiped;
        let (writer, space) = recording.writer()?;
        for (&(id, _), frame) in frames.iter().zip(stack) {
            if is_new(wiped, id) {
                // SAFETY: as above.
                unsafe {
                    jvmti::with_names(machine, tools, frame.method, |class, method| {
                        let mut name = Name::new();
                        name.of(class, method);
                        writer.symbol(space, id, name.text())
                    })
                };
            }
        }
        writer.context(space, Method::Java, signature, frames)?;
    }
    Some(signature)
}

const KNOWN: usize = 1 << 13;
/// Methods and the ids of their symbols: machine's id, ours (0: not there yet).
static METHODS: [(AtomicU64, AtomicU64); KNOWN] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; KNOWN];

/// Id of a method's symbol.
fn symbol(machine: Interface, tools: Interface, method: usize) -> Option<u64> {
    let method_word = method as u64;
    let home = ftlab_record::spool::mix(method_word) as usize;
    let mut free = None;
    for step in 0..16 {
        let place = METHODS.get(home.wrapping_add(step) % KNOWN)?;
        match place.0.load(Ordering::Acquire) {
            0 => {
                free = Some(place);
                break;
            }
            known if known == method_word => match place.1.load(Ordering::Acquire) {
                0 => break,
                symbol => return Some(symbol),
            },
            _ => {}
        }
    }
    // SAFETY: as in `java_stack`.
    let id = unsafe {
        jvmti::with_names(machine, tools, method, |class, method| {
            let mut name = Name::new();
            name.of(class, method);
            xxhash_rust::xxh3::xxh3_64(name.text()).max(2)
        })
    }?;
    if let Some(place) = free
        && place
            .0
            .compare_exchange(0, method_word, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    {
        place.1.store(id, Ordering::Release);
    }
    Some(id)
}

/// A method's name that is the same in every run.
struct Name {
    bytes: [u8; 512],
    len: usize,
}

impl Name {
    fn new() -> Self {
        Self {
            bytes: [0; 512],
            len: 0,
        }
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    fn push(&mut self, text: &[u8]) {
        for (place, &byte) in self.bytes.iter_mut().skip(self.len).zip(text) {
            *place = byte;
            self.len += 1;
        }
    }

    /// `Lpackage/Class;` and `method` become `package.Class.method`.
    fn of(&mut self, class: &[u8], method: &[u8]) {
        let class = class.strip_prefix(b"L").unwrap_or(class);
        let class = class.strip_suffix(b";").unwrap_or(class);
        let start = self.len;
        self.push(stable(class));
        for byte in self
            .bytes
            .iter_mut()
            .take(self.len)
            .skip(start)
            .filter(|byte| **byte == b'/')
        {
            *byte = b'.';
        }
        self.push(b".");
        self.push(method);
    }
}

/// The part of a class's name that does not depend on when the machine made it.
fn stable(class: &[u8]) -> &[u8] {
    // Hidden classes end with their address, lambdas with a number before that.
    for mark in [&b"$$Lambda"[..], b".0x", b"+0x", b"/0x"] {
        if let Some(at) = class.windows(mark.len()).position(|part| part == mark) {
            let end = if mark.starts_with(b"$") { at + mark.len() } else { at };
            return class.get(..end).unwrap_or(class);
        }
    }
    let counted = [&b"Accessor"[..], b"$Proxy"];
    let digits = class.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let base = class.get(..class.len() - digits).unwrap_or(class);
    if counted.iter().any(|end| base.ends_with(end)) {
        base
    } else {
        class
    }
}
