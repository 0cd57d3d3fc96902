//! Memory for what streams have not programmed yet: a page on each plane over which one of their open reclaim units lies.
//!
//! What the host's streams hold is lost with the power unless capacitors keep it. Frontiers that only collection fills hold copies
//! whose originals lie in flash, so that any memory will do.

use ftlab_core::Layout;
use serde::Serialize;

use crate::backend::Backend;
use crate::ftl::Ftl;
use crate::placement::{self, Filler};

/// What the streams of one kind hold at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamBuffers {
    pub streams: u32,
    /// Reclaim units that all of them may have open at once.
    pub open_units: u64,
    /// Of the stream that may have the most open.
    pub stream_bytes: u64,
    pub bytes: u64,
}

/// Memory that the streams of a drive need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamMemory {
    /// Frontiers of host writes, whether survivors join them or not.
    pub protected: StreamBuffers,
    /// Frontiers of survivors alone: the placement policy's own, and the drive's if the policy leaves any survivors to it.
    pub plain: StreamBuffers,
}

impl<B: Backend> Ftl<B> {
    /// What the streams need that the policies declare, used or not.
    pub fn stream_memory(&self) -> StreamMemory {
        let policy = self.placement.as_ref();
        let drive = match policy.leaves_survivors() {
            true => self.frontiers.survivors_of_drive(),
            false => 0,
        };
        let of_policy = |filler: Filler| {
            let frontiers = (0..self.placing.frontiers).filter(move |&frontier| policy.filled_by(frontier) == filler);
            let most = frontiers.clone().map(|f| placement::lanes_of(policy, f, &self.layout));
            buffers(
                &self.layout,
                frontiers.clone().count() as u32,
                most.max().unwrap_or(0),
                placement::most_open_of(policy, frontiers, &self.layout),
            )
        };
        let own = of_policy(Filler::Survivors);
        let lanes = u64::from(self.layout.lanes);
        let left = buffers(
            &self.layout,
            u32::from(drive),
            if drive > 0 { lanes } else { 0 },
            u64::from(drive) * lanes,
        );
        StreamMemory {
            protected: of_policy(Filler::Host),
            plain: StreamBuffers {
                streams: own.streams + left.streams,
                open_units: own.open_units + left.open_units,
                stream_bytes: own.stream_bytes.max(left.stream_bytes),
                bytes: own.bytes + left.bytes,
            },
        }
    }
}

/// Of `streams` that have `most` reclaim units open, if it is the one that has most, and `all` together.
fn buffers(layout: &Layout, streams: u32, most: u64, all: u64) -> StreamBuffers {
    let of_unit = u64::from(layout.width) * u64::from(layout.geometry.page_bytes);
    StreamBuffers {
        streams,
        open_units: all,
        stream_bytes: most * of_unit,
        bytes: all * of_unit,
    }
}
