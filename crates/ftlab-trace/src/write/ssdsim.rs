//! Writes SSDSim ASCII, five columns; they are described with the [reader](crate::formats::ssdsim).
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `time_unit` | `ps`, `ns`, `us`, `ms` or `s`, whole numbers; SSDSim itself takes ns | `ns` |

use ftlab_core::Result;

use super::mqsim::five_columns;
use super::times::{Times, time_unit};
use super::{Form, Holds, Keys};
use crate::settings::TimeUnit;

pub const ENDINGS: &[&str] = &["ssdsim", "ascii"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    five_columns(Times::new(time_unit(keys, TimeUnit::Nanoseconds)?, false))
}
