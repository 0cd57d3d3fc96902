//! Small drives for the tests of this crate.

use ftlab_core::geometry::PlaneOrder;
use ftlab_core::{Geometry, IoContext, Layout, Lpn, OpKind, PolicySpec, ReclaimKind};
use ftlab_ftl::{BufferConfig, FtlConfig, GcConfig, HostRequest, PoolScope, Survivors};

/// One lane of `blocks` blocks of `pages` pages of one unit: the drive of the closed forms.
pub fn one_lane(blocks: u32, pages: u32) -> Layout {
    layout(1, 1, blocks, pages, 1, ReclaimKind::Block)
}

pub fn layout(channels: u32, planes: u32, blocks: u32, pages: u32, units: u32, reclaim: ReclaimKind) -> Layout {
    let geometry = Geometry {
        channels,
        ways: 1,
        dies: 1,
        planes,
        blocks,
        pages,
        page_bytes: 4096 * units,
        unit_bytes: 4096,
        oob_bytes: 64,
    };
    Layout::new(geometry, reclaim, PlaneOrder::parse("CWDP").unwrap()).unwrap()
}

pub fn config(layout: &Layout, spare_factor: f64) -> FtlConfig {
    FtlConfig {
        logical_units: (f64::from(layout.slots()) * (1.0 - spare_factor)) as u32,
        mapping: PolicySpec::named("page"),
        placement: PolicySpec::named("none"),
        victim: PolicySpec::named("greedy"),
        wear: PolicySpec::named("none"),
        allocation: PolicySpec::named("round_robin"),
        dedup: PolicySpec::named("none"),
        replication: PolicySpec::named("none"),
        gc: GcConfig {
            pool: PoolScope::Lane,
            hard: 1,
            soft: 1,
            preemptible: false,
            step_units: 8,
            background: false,
            idle_ns: 0,
            survivors: Survivors::Shared,
        },
        buffer: BufferConfig {
            policy: PolicySpec::named("none"),
            capacity_units: 0,
            power_loss_protected: false,
        },
        erase_limit: None,
        map_cache_bytes: 0,
        share_loads: true,
        checkpoint_units: 0,
        seed: 1,
        verify: false,
    }
}

/// A write of one whole unit, of host stream 0 to 3.
pub fn write(lpn: u32, stream: u16) -> HostRequest<'static> {
    const fn of(stream: u16) -> IoContext<'static> {
        IoContext {
            stream,
            ..IoContext::NONE
        }
    }
    static OF_STREAM: [IoContext<'static>; 4] = [of(0), of(1), of(2), of(3)];
    HostRequest {
        context: &OF_STREAM[usize::from(stream)],
        ..HostRequest::whole(OpKind::Write, Lpn(lpn), 1)
    }
}
