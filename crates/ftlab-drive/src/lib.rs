//! The passive drive: it reads no clock, owns no thread, prints nothing.

pub mod config;
