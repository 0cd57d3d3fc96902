//! The chain of frame pointers.
//!
//! # Model
//! A function that keeps a frame pointer pushes its caller's and points rbp at it; above lies its return address. The chain
//! is followed while it ascends within the stack and the return addresses are code.
//! # Not modelled
//! A function without frame pointers is passed over if it leaves rbp alone, and ends or bends the chain if it does not.
//! # Cost
//! Two loads per frame, and a lookup of the address.

use ftlab_record::spool::Method;

use super::{CallSite, Walker};
use crate::modules::Table;
use crate::process::Wiped;

impl Walker {
    /// `trusted`: only while the modules keep frame pointers. The pointers come from a [`CallSite`].
    pub(super) fn frame_pointers(
        &mut self,
        wiped: &Wiped,
        table: &mut &'static Table,
        ip: u64,
        mut bp: u64,
        mut sp: u64,
        trusted: bool,
    ) -> Method {
        let mut address = ip;
        while let Some(place) = self.place(wiped, table, address) {
            if trusted && !place.module.is_some_and(|module| module.keeps_frame_pointers()) {
                break;
            }
            if !self.push(place) || bp < sp {
                break;
            }
            let (Some(next), Some(above)) = (Self::word(&self.stack, bp), Self::word(&self.stack, bp.wrapping_add(8)))
            else {
                break;
            };
            sp = bp + size_of::<CallSite>() as u64 - 8;
            bp = next;
            address = above;
        }
        Method::FramePointers
    }
}
