//! What of the Java virtual machine's tool interface is used: a few entries of its tables of functions.
//!
//! # Source
//! JVM Tool Interface 1.2 and JNI 1.6: places of functions in their tables (jvmti.h counts them from 1).

use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;

type Table = *const *const c_void;
/// An interface of the machine: a pointer to a pointer to its table.
pub type Interface = *mut Table;

/// A method, by a pointer that stays the same while its class is loaded.
pub type MethodId = usize;

const GET_ENV: usize = 6;
const DEALLOCATE: usize = 46;
const GET_CLASS_SIGNATURE: usize = 47;
const GET_METHOD_NAME: usize = 63;
const GET_METHOD_DECLARING_CLASS: usize = 64;
const GET_STACK_TRACE: usize = 103;
const DELETE_LOCAL_REF: usize = 23;
const JVMTI_1_2: i32 = 0x3001_0200;
const JNI_1_6: i32 = 0x0001_0006;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    pub method: MethodId,
    /// Index of the bytecode; −1 in native methods.
    pub location: i64,
}

/// # Safety
/// `interface` is one of the machine's, whose table has a function at `place`.
unsafe fn function(interface: Interface, place: usize) -> *const c_void {
    // SAFETY: the caller's promise.
    unsafe { *(*interface).add(place) }
}

/// The machine's environment of a version; null if it has none for this thread.
///
/// # Safety
/// `machine` is from [`machine`].
unsafe fn environment(machine: Interface, version: i32) -> Interface {
    let mut environment: Interface = null_mut();
    // SAFETY: GetEnv has this form.
    unsafe {
        let get: extern "C" fn(Interface, *mut Interface, i32) -> i32 =
            core::mem::transmute(function(machine, GET_ENV));
        if get(machine, &raw mut environment, version) != 0 {
            environment = null_mut();
        }
    }
    environment
}

/// The machine of this process; null if there is none.
///
/// # Safety
/// `created` is JNI_GetCreatedJavaVMs.
pub unsafe fn machine(created: *mut c_void) -> Interface {
    let mut machine: Interface = null_mut();
    let mut count = 0;
    // SAFETY: the function has this form, and writes one machine at most.
    let error = unsafe {
        let created: extern "C" fn(*mut Interface, i32, *mut i32) -> i32 = core::mem::transmute(created);
        created(&raw mut machine, 1, &raw mut count)
    };
    if error == 0 && count > 0 { machine } else { null_mut() }
}

/// The tool environment, once per agent.
///
/// # Safety
/// As `environment`.
pub unsafe fn tools(machine: Interface) -> Interface {
    // SAFETY: the caller's promise.
    unsafe { environment(machine, JVMTI_1_2) }
}

/// The stack of this thread, innermost first; `None` if it is not one of the machine's.
///
/// # Safety
/// `tools` is from [`tools`]; the thread is in a native method, not inside the machine.
pub unsafe fn stack(tools: Interface, frames: &mut [Frame]) -> Option<usize> {
    let mut count = 0;
    // SAFETY: GetStackTrace has this form; a null thread is the current one.
    let error = unsafe {
        let get: extern "C" fn(Interface, *mut c_void, i32, i32, *mut Frame, *mut i32) -> i32 =
            core::mem::transmute(function(tools, GET_STACK_TRACE));
        get(
            tools,
            null_mut(),
            0,
            frames.len() as i32,
            frames.as_mut_ptr(),
            &raw mut count,
        )
    };
    (error == 0 && count > 0).then_some(count as usize)
}

/// Calls `work` with the class (in the form `Lpackage/Class;`) and name of a method.
///
/// # Safety
/// As `stack`; `machine` is from [`machine`].
pub unsafe fn with_names<T>(
    machine: Interface,
    tools: Interface,
    method: MethodId,
    work: impl FnOnce(&[u8], &[u8]) -> T,
) -> Option<T> {
    type GetClass = extern "C" fn(Interface, MethodId, *mut *mut c_void) -> i32;
    type GetSignature = extern "C" fn(Interface, *mut c_void, *mut *mut c_char, *mut *mut c_char) -> i32;
    type GetName = extern "C" fn(Interface, MethodId, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char) -> i32;
    // SAFETY: the functions have these forms; what they give is given back, and used before.
    unsafe {
        let get_class: GetClass = core::mem::transmute(function(tools, GET_METHOD_DECLARING_CLASS));
        let get_signature: GetSignature = core::mem::transmute(function(tools, GET_CLASS_SIGNATURE));
        let get_name: GetName = core::mem::transmute(function(tools, GET_METHOD_NAME));
        let (mut class, mut signature, mut name) = (null_mut(), null_mut(), null_mut());
        if get_class(tools, method, &raw mut class) != 0 {
            return None;
        }
        let named = get_signature(tools, class, &raw mut signature, null_mut()) == 0
            && get_name(tools, method, &raw mut name, null_mut(), null_mut()) == 0;
        let result = named.then(|| work(CStr::from_ptr(signature).to_bytes(), CStr::from_ptr(name).to_bytes()));
        let deallocate: extern "C" fn(Interface, *mut c_char) -> i32 =
            core::mem::transmute(function(tools, DEALLOCATE));
        for memory in [signature, name] {
            if !memory.is_null() {
                deallocate(tools, memory);
            }
        }
        let calls = environment(machine, JNI_1_6);
        if !calls.is_null() {
            let delete: extern "C" fn(Interface, *mut c_void) = core::mem::transmute(function(calls, DELETE_LOCAL_REF));
            delete(calls, class);
        }
        result
    }
}
