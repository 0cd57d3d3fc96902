//! The passive drive: it reads no clock, owns no thread, prints nothing.

pub mod clocked;
pub mod config;
pub mod device;
mod due;
pub mod faulty;
pub mod front;
pub mod instrumented;
mod new_file;
pub mod power;
pub mod schedule;
pub mod state;
pub mod tiles;
pub mod timed;
pub mod timeline;
pub mod untimed;
