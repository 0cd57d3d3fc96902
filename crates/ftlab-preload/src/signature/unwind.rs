//! Unwinding by the tables that every module carries for exceptions (.eh_frame).
//!
//! # Model
//! `framehop` evaluates the tables: stack pointer and frame pointer are followed, rules are remembered per address, so that
//! a known address costs a few loads. It allocates nothing while it unwinds, and takes no lock, unlike libunwind and the
//! unwinder of GCC, which ask the loader for its list of objects.
//! # Not modelled
//! Functions whose frame hangs on another register than rsp and rbp (rare: some that realign their stack): unwound as if they kept a frame pointer,
//! the path ends where that leads out of code.

use framehop::{FrameAddress, MustNotAllocateDuringUnwind, Unwinder as _, x86_64};
use ftlab_record::spool::Method;

use super::Walker;
use crate::modules::{ANONYMOUS, Table};
use crate::process::Wiped;

pub type Cache = x86_64::CacheX86_64<MustNotAllocateDuringUnwind>;

impl Walker {
    pub(super) fn unwind(&mut self, wiped: &Wiped, table: &mut &'static Table, ip: u64, bp: u64, sp: u64) -> Method {
        // Taken out while in use: the walker is borrowed below.
        let mut cache = self.unwinding.take().unwrap_or_else(|| Box::new(Cache::new_in()));
        let mut registers = x86_64::UnwindRegsX86_64::new(ip, sp, bp);
        let stack = self.stack.clone();
        let mut read = |at: u64| Self::word(&stack, at).ok_or(());
        let mut address = ip;
        while let Some(place) = self.place(wiped, table, address) {
            // What lies above code without tables cannot be found.
            if place.module.is_some_and(|module| module.id == ANONYMOUS) || !self.push(place) {
                break;
            }
            let Some(from) = FrameAddress::from_return_address(address) else {
                break;
            };
            let before = registers.sp();
            match table.unwinder.unwind_frame(from, &mut registers, &mut cache, &mut read) {
                // A caller's frame lies above.
                Ok(Some(next)) if registers.sp() > before => address = next,
                _ => break,
            }
        }
        self.unwinding = Some(cache);
        Method::Unwind
    }
}
