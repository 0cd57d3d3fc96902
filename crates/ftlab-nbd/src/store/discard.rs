//! Data that nobody will look at: every read gives zeros.

use std::io;

use super::{Refusal, Store};

pub struct Discard;

impl Store for Discard {
    fn read(&mut self, _: u64, into: &mut [u8]) -> io::Result<()> {
        into.fill(0);
        Ok(())
    }

    fn keeps_data(&self) -> bool {
        false
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), Refusal> {
        Ok(())
    }

    fn clear(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn extent(&mut self, _: u64, end: u64) -> io::Result<(bool, u64)> {
        Ok((true, end))
    }
}
