//! What every ftlab crate shares: ids, units of configuration, geometry, the request record, the block device, events,
//! random streams.
//!
//! Nothing here reads a clock, a file or the environment.

pub mod bins;
pub mod calendar;
pub mod catalogue;
pub mod device;
pub mod error;
pub mod faults;
pub mod geometry;
pub mod histogram;
pub mod ids;
pub mod index_list;
pub mod live;
pub mod memory;
pub mod request;
pub mod rng;
pub mod student;
pub mod theory;
pub mod units;

pub use calendar::Calendar;
pub use catalogue::{Catalogue, PolicySpec};
pub use device::{BlockDevice, Breakdown, Completion, DeviceGeometry, Part, Status};
pub use error::{Error, Result};
pub use geometry::{Geometry, Layout, ReclaimKind};
pub use histogram::Histogram;
pub use ids::{LaneId, Lpn, RuId, Slot};
pub use index_list::IndexList;
pub use live::{LiveDrive, PowerLoss};
pub use request::{Batch, IoContext, IoRequest, OpKind, Source, flags};
pub use rng::Stream;
