//! The bounded scan of the stack.
//!
//! # Model
//! From the call upwards every word of the stack that points into code counts as a return address, until there are five. Those of the C
//! library are passed over before the first other one, those of this library always: earlier records leave some on the stack.
//! # Not modelled
//! Whether a word is a return address at all: pointers to functions and remains of earlier calls count too, as in the source.
//! # Source
//! PCStream (Kim et al.): five candidates. The bound of 512 words is ours; the source names none.

use ftlab_record::spool::Method;

use super::Walker;
use crate::modules::{ANONYMOUS, Module, Table};
use crate::process::Wiped;

const CANDIDATES: usize = 5;
const WORDS: u64 = 512;

impl Walker {
    pub(super) fn scan(&mut self, wiped: &Wiped, table: &mut &'static Table, ip: u64, sp: u64) -> Method {
        if let Some(place) = self.place(wiped, table, ip) {
            self.consider(place);
        }
        for word in 0..WORDS {
            if self.len >= CANDIDATES {
                break;
            }
            let Some(address) = Self::word(&self.stack, sp + 8 * word) else {
                break;
            };
            // Not `place`: most words are not code, and looking for new modules at each would be slow.
            if let Some(module) = table.find(address)
                && module.id != ANONYMOUS
            {
                self.consider(super::Place {
                    address,
                    module: Some(module),
                });
            }
        }
        Method::Scan
    }

    fn consider(&mut self, place: super::Place) {
        let passed_over = |module: &Module| module.own || module.runtime && self.len == 0;
        if !place.module.is_some_and(passed_over) {
            self.push(place);
        }
    }
}
