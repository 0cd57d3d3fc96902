//! The memory that streams are said to need is that of the reclaim units that a run has open for them at most.

use ftlab_core::{Layout, PolicySpec, ReclaimKind, Stream};
use ftlab_ftl::{Counting, Ftl, PoolScope, StreamBuffers, StreamMemory, Survivors, Ticket};

use crate::common::{config, layout, write};

const PAGE_BYTES: u64 = 8192;
const BLOCK: ReclaimKind = ReclaimKind::Block;
const SUPERBLOCK: ReclaimKind = ReclaimKind::Superblock { dies: 2 };

/// Four dies of a plane each, with pages of two units: four lanes of blocks, or two of superblocks.
fn dies(reclaim: ReclaimKind) -> Layout {
    layout(4, 1, 48, 8, 2, reclaim)
}

fn drive(layout: &Layout, placement: &str, survivors: Survivors, pool: PoolScope) -> Ftl<Counting> {
    let mut config = config(layout, 0.5);
    config.placement = PolicySpec::parse(placement).unwrap();
    config.gc.survivors = survivors;
    config.gc.pool = pool;
    config.gc.hard = ftlab_ftl::least_reserve(&config, layout).unwrap();
    config.gc.soft = config.gc.hard;
    Ftl::new(layout.clone(), config).unwrap()
}

/// The most reclaim units that a run of random writes in four streams has open at once: of a host frontier, of all of them, of a
/// frontier of survivors, and of all of those. It goes on for two drive writes after it has seen as many as are `told`.
fn most_open(ftl: &mut Ftl<Counting>, host: u32, told: [u64; 4]) -> [u64; 4] {
    let (mut random, units) = (Stream::new(7, "streams"), ftl.config.logical_units);
    let (mut most, mut end) = ([0; 4], 60 * units);
    for step in 0..60 * units {
        if step == end {
            break;
        }
        let lpn = if step < units {
            step
        } else {
            random.below(u64::from(units)) as u32
        };
        ftl.admit(&write(lpn, random.below(4) as u16), Ticket::NONE);
        let mut of = [0_u64; 32];
        for (ru, _) in ftl.open_units() {
            of[usize::from(ftl.units.rus[ru.at()].frontier)] += 1;
        }
        let (host, survivors) = of.split_at(host as usize);
        let open = [host, survivors].map(|of| [of.iter().copied().max().unwrap_or(0), of.iter().sum()]);
        most = std::array::from_fn(|at| open.as_flattened()[at].max(most[at]));
        if most == told {
            end = end.min(step + 2 * units);
        }
    }
    ftl.check().unwrap();
    most
}

fn buffers(streams: u32, of_stream: u64, open_units: u64, planes: u64) -> StreamBuffers {
    StreamBuffers {
        streams,
        open_units,
        stream_bytes: of_stream * planes * PAGE_BYTES,
        bytes: open_units * planes * PAGE_BYTES,
    }
}

/// Streams, reclaim units that one of them may have open, and all of them: of the host, and of survivors alone.
type Told = [(u32, u64, u64); 2];

fn check(placement: &str, survivors: Survivors, pool: PoolScope, reclaim: ReclaimKind, told: Told) {
    let layout = dies(reclaim);
    let mut ftl = drive(&layout, placement, survivors, pool);
    let planes = u64::from(layout.width);
    let [protected, plain] = told.map(|(streams, one, all)| buffers(streams, one, all, planes));
    let case = format!("{placement} {survivors:?} {pool:?} {reclaim:?}");
    assert_eq!(ftl.stream_memory(), StreamMemory { protected, plain }, "{case}");
    let told = [told[0].1, told[0].2, told[1].1, told[1].2];
    assert_eq!(most_open(&mut ftl, protected.streams, told), told, "{case}");
}

#[test]
fn streams_and_internal_streams_have_a_unit_open_on_each_lane() {
    for pool in [PoolScope::Lane, PoolScope::Die, PoolScope::Drive] {
        for (reclaim, lanes) in [(BLOCK, 4), (SUPERBLOCK, 2)] {
            let shared = (1, lanes, lanes);
            let four = (4, lanes, 4 * lanes);
            let none = (0, 0, 0);
            let check = |placement, survivors, told| check(placement, survivors, pool, reclaim, told);
            check("none", Survivors::Shared, [shared, shared]);
            check("none", Survivors::Stream, [shared, none]);
            check("manual:streams=3", Survivors::Shared, [four, shared]);
            check("manual:streams=3", Survivors::Stream, [four, none]);
            check("manual:streams=3", Survivors::Internal, [four, four]);
        }
    }
}

/// Two handles in each of two groups, which have half the lanes; where survivors go is the policy's alone.
#[test]
fn handles_have_a_unit_open_on_each_lane_of_their_group() {
    for (reclaim, lanes) in [(BLOCK, 2), (SUPERBLOCK, 1)] {
        for survivors in Survivors::ALL {
            let check = |placement, told| check(placement, survivors, PoolScope::Drive, reclaim, told);
            let four = (4, lanes, 4 * lanes);
            check("fdp:groups=2,handles=2", [four, (2, lanes, 2 * lanes)]);
            check("fdp:groups=2,handles=2,isolation=persistently", [four, four]);
        }
    }
}

/// What is said of a policy on the four dies.
fn declared(placement: &str) -> Told {
    let memory = drive(&dies(BLOCK), placement, Survivors::Internal, PoolScope::Lane).stream_memory();
    [memory.protected, memory.plain].map(|of| (of.streams, of.stream_bytes / PAGE_BYTES, of.open_units))
}

/// The drive's frontiers of survivors are never used by a policy that has its own, or that puts survivors beside the host's writes.
#[test]
fn a_policy_that_places_survivors_has_no_streams_of_the_drive() {
    let check = |placement, told| check(placement, Survivors::Internal, PoolScope::Lane, BLOCK, told);
    check("sepbit", [(2, 4, 8), (4, 4, 16)]);
    check("multi_hash", [(2, 4, 8), (0, 0, 0)]);
    // Its survivors' frontier is the first, before those of its clusters.
    assert_eq!(declared("warcip:clusters=3"), [(3, 4, 12), (1, 4, 4)]);
    assert_eq!(declared("midas:groups=3"), [(2, 4, 8), (2, 4, 8)]);
    assert_eq!(declared("midas:groups=3,hot=false"), [(1, 4, 4), (2, 4, 8)]);
}

#[test]
fn streams_that_are_closed_for_others_hold_nothing() {
    check(
        "manual:streams=3,open=2",
        Survivors::Internal,
        PoolScope::Lane,
        BLOCK,
        [(4, 4, 8), (4, 4, 16)],
    );
}
