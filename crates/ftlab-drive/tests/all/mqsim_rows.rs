//! MQSim's validation matrix (its version 7ec40e3): 8 channels × 4 chips, SLC, 333 MT/s, PCIe 4 GB/s, no GC.
//!
//! Unloaded rows to the nanosecond; rows at depth within 5 % under `lockstep`, which runs a channel as MQSim does, and no
//! slower than 1 % above under `out_of_order`, which overlaps better.

use crate::support::*;
use ftlab_core::{BlockDevice, Completion, OpKind, Stream};
use ftlab_drive::config::HostLink;
use ftlab_drive::device::Device;

/// One die and plane per chip, or two of each.
const A: [u32; 4] = [8, 4, 1, 1];
const B: [u32; 4] = [8, 4, 2, 2];

#[derive(Clone, Copy)]
enum Addresses {
    Random,
    Sequential,
}

struct Row {
    hierarchy: [u32; 4],
    page_bytes: u32,
    op: OpKind,
    request_bytes: u32,
    depth: usize,
    addresses: Addresses,
    requests: u64,
}

/// Mean latency (µs) of a closed loop.
fn mean_us(row: &Row, policy: &str, link: &HostLink) -> f64 {
    // MQSim has 512 blocks of 256 pages per plane; the trivial FTL never erases, so writes get more blocks.
    let blocks = if row.op == OpKind::Write { 2048 } else { 512 };
    let layout = layout(row.hierarchy, blocks, 256, row.page_bytes);
    let timing = mqsim_timing();
    let front = Trivial::new(timed(&layout, &timing, policy), &layout);
    let count = row.request_bytes / 4096;
    let places = front.logical_units() / u64::from(count);
    let mut device = Device::new(front, link);
    let mut draw = Stream::new(798, "mqsim");
    let (mut submitted, mut done, mut sum) = (0u64, 0u64, 0u64);
    let mut now = 0;
    let mut completions: Vec<Completion> = Vec::new();
    let mut submit = |device: &mut Device<Trivial>, now: u64| {
        let place = match row.addresses {
            Addresses::Random => draw.below(places),
            Addresses::Sequential => submitted % places,
        };
        device.submit(submitted, &units(row.op, place * u64::from(count), count), now);
        submitted += 1;
    };
    for _ in 0..row.depth {
        submit(&mut device, 0);
    }
    while done < row.requests {
        now = device.next_wakeup().expect("requests are outstanding").max(now);
        device.advance(now, &mut completions);
        for completion in completions.drain(..) {
            let latency = completion.done_ns - completion.submitted_ns;
            assert_eq!(completion.parts.total_ns(), latency, "the parts sum to the latency");
            sum += latency;
            done += 1;
            submit(&mut device, completion.done_ns);
        }
    }
    sum as f64 / done as f64 / 1000.0
}

fn row(hierarchy: [u32; 4], page_kib: u32, op: OpKind, request_kib: u32, depth: usize) -> Row {
    Row {
        hierarchy,
        page_bytes: page_kib * 1024,
        op,
        request_bytes: request_kib * 1024,
        depth,
        addresses: Addresses::Random,
        requests: if depth == 1 { 1000 } else { 40_000 },
    }
}

#[test]
fn unloaded_requests_agree_to_the_nanosecond() {
    use OpKind::{Read, Write};
    for hierarchy in [A, B] {
        for (page_kib, op, request_kib, want) in [
            (16, Read, 4, 63.906),
            (4, Read, 4, 63.906),
            (16, Read, 16, 104.514),
            (4, Read, 16, 67.650),
            (4, Write, 4, 513.965),
            (16, Write, 16, 554.573),
            (4, Write, 16, 517.709),
        ] {
            let row = row(hierarchy, page_kib, op, request_kib, 1);
            for policy in ["fcfs", "read_first", "out_of_order", "lockstep"] {
                let mean = mean_us(&row, policy, &mqsim_link());
                assert!(
                    (mean - want).abs() < 5e-4,
                    "{op:?} {request_kib} KiB, {page_kib} KiB pages, {policy}: {mean} instead of {want}"
                );
            }
        }
    }
}

#[test]
fn depth_agrees_in_lockstep_and_is_no_worse_by_default() {
    use OpKind::{Read, Write};
    let rows = [
        (row(A, 16, Read, 4, 8), 74.69),
        (row(A, 4, Read, 4, 8), 74.76),
        (row(A, 16, Read, 4, 32), 130.54),
        (row(B, 16, Read, 4, 32), 130.42),
        (row(A, 4, Read, 4, 32), 130.49),
        (row(B, 4, Read, 4, 32), 130.35),
        (row(A, 16, Read, 16, 32), 305.29),
        (row(B, 16, Read, 16, 32), 304.81),
        (row(A, 4, Read, 16, 32), 422.56),
        (row(B, 4, Read, 16, 32), 420.65),
        (row(A, 16, Read, 4, 256), 823.94),
        (row(B, 16, Read, 4, 256), 817.52),
        (row(A, 4, Read, 4, 256), 822.74),
        (row(B, 4, Read, 4, 256), 816.84),
        (row(A, 16, Read, 16, 256), 2022.9),
        (row(B, 16, Read, 16, 256), 2013.9),
        (row(A, 4, Read, 16, 256), 3212.6),
        (row(B, 4, Read, 16, 256), 3158.8),
        (sequential(A, 16), 493.79),
        (sequential(B, 16), 493.79),
        (sequential(A, 4), 795.61),
        (sequential(B, 4), 597.02),
        (row(A, 16, Write, 4, 32), 866.8),
        (row(A, 4, Write, 4, 32), 866.5),
        (row(A, 16, Write, 4, 256), 4362.8),
        (row(A, 4, Write, 4, 256), 4354.8),
        (row([1, 1, 1, 1], 4, Read, 4, 8), 500.75),
        (row([1, 4, 1, 1], 4, Read, 4, 64), 1609.7),
    ];
    let mut failures = Vec::new();
    for (row, want) in &rows {
        let lockstep = mean_us(row, "lockstep", &mqsim_link());
        let default = mean_us(row, "out_of_order", &mqsim_link());
        let line = format!(
            "{:?} {:?} {} KiB, {} KiB pages, depth {}: MQSim {want}, lockstep {lockstep:.2} ({:+.2} %), default {default:.2} ({:+.2} %)",
            row.hierarchy,
            row.op,
            row.request_bytes / 1024,
            row.page_bytes / 1024,
            row.depth,
            (lockstep / want - 1.0) * 100.0,
            (default / want - 1.0) * 100.0,
        );
        println!("{line}");
        if (lockstep / want - 1.0).abs() > 0.05 || default > want * 1.01 {
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn sequential(hierarchy: [u32; 4], page_kib: u32) -> Row {
    Row {
        addresses: Addresses::Sequential,
        requests: 5000,
        ..row(hierarchy, page_kib, OpKind::Read, 128, 8)
    }
}
