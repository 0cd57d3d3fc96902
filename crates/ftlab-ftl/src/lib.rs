//! The flash translation layer: the record, the mechanism, and a folder per policy role.

pub mod backend;
pub mod config;

pub use backend::{Backend, Cause, Class, Counting, FlashOp, FlashOpKind, Load, Need, OpId, Ticket};
pub use config::{BufferConfig, FtlConfig, GcConfig, PoolScope};
