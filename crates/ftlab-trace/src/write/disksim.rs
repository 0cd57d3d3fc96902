//! Writes DiskSim ASCII, five columns; they are described with the [reader](crate::formats::disksim).
//!
//! Times have a decimal point and are exact to the nanosecond.
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `time_unit` | `ps`, `ns`, `us`, `ms` or `s`; DiskSim itself takes ms | `ms` |

use ftlab_core::Result;

use super::mqsim::five_columns;
use super::times::{Times, time_unit};
use super::{Form, Holds, Keys};
use crate::settings::TimeUnit;

pub const ENDINGS: &[&str] = &["disksim", "dis"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    five_columns(Times::new(time_unit(keys, TimeUnit::Milliseconds)?, true))
}
