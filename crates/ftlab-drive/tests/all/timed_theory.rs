//! The timed backend against closed forms: queueing, bandwidth ceilings, a timeline that adds up.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::support::*;
use ftlab_core::{BlockDevice, Completion, OpKind, Stream};
use ftlab_drive::device::Device;
use ftlab_drive::timeline::Timeline;
use ftlab_flash::Timing;

/// Poisson reads on one die are an M/D/1 queue: mean wait ρ·S / 2(1 − ρ) (Pollaczek and Khinchine, constant service).
///
/// With 400,000 reads at ρ = 0.5 the standard error of the mean wait is about 0.5 %; the seed is fixed.
#[test]
fn one_die_under_poisson_reads_is_an_m_d_1_queue() {
    let layout = layout([1, 1, 1, 1], 64, 256, 4096);
    let front = Trivial::new(timed(&layout, &mqsim_timing(), "out_of_order"), &layout);
    let mut device = Device::new(front, &no_link());
    let service = 290.0 + 50_000.0 + 12_288.0;
    let rho = 0.5;
    let requests = 400_000;
    let mut draw = Stream::new(5, "arrivals");
    let mut completions: Vec<Completion> = Vec::new();
    let (mut arrival, mut wait, mut done) = (0.0f64, 0u64, 0u64);
    let mut add = |completions: &mut Vec<Completion>| {
        for c in completions.drain(..) {
            wait += c.parts.queue_ns;
            done += 1;
            assert_eq!(c.parts.total_ns(), c.done_ns - c.submitted_ns);
        }
    };
    for tag in 0..requests {
        arrival += -(1.0 - draw.unit()).ln() * service / rho;
        let now = arrival.round() as u64;
        device.submit(tag, &units(OpKind::Read, draw.below(64 * 256), 1), now);
        device.advance(now, &mut completions);
        add(&mut completions);
    }
    while let Some(next) = device.next_wakeup() {
        device.advance(next, &mut completions);
        add(&mut completions);
    }
    assert_eq!(done, requests);
    let mean = wait as f64 / done as f64;
    let theory = rho * service / (2.0 * (1.0 - rho));
    assert!(
        (mean / theory - 1.0).abs() < 0.02,
        "mean wait {mean:.0} ns, theory {theory:.0} ns"
    );
}

/// Requests per second of a closed loop on a drive of one channel.
fn rate(ways: u32, op: OpKind, timing: &Timing, depth: u64) -> f64 {
    let layout = layout([1, ways, 1, 1], 256, 256, 4096);
    let front = Trivial::new(timed(&layout, timing, "out_of_order"), &layout);
    let pages = front.logical_units();
    let mut device = Device::new(front, &no_link());
    let mut completions: Vec<Completion> = Vec::new();
    let (mut submitted, mut done, mut last) = (0u64, 0u64, 0);
    while submitted < depth {
        device.submit(submitted, &units(op, submitted, 1), 0);
        submitted += 1;
    }
    while done < 20_000 {
        let now = device.next_wakeup().unwrap();
        device.advance(now, &mut completions);
        for c in completions.drain(..) {
            done += 1;
            last = c.done_ns;
            device.submit(submitted, &units(op, submitted % pages, 1), last);
            submitted += 1;
        }
    }
    done as f64 * 1e9 / last as f64
}

#[test]
fn bandwidth_reaches_its_ceilings() {
    let slow_cells = mqsim_timing();
    // Bound by the cells of four dies, the channel a third busy.
    let reads = rate(4, OpKind::Read, &slow_cells, 64);
    let writes = rate(4, OpKind::Write, &slow_cells, 64);
    assert!(
        (writes / (4e9 / (361.0 + 12_288.0 + 500_000.0)) - 1.0).abs() < 0.01,
        "{writes}"
    );
    // Reads: the channel could carry 1/12.578 µs, the dies 4/62.578 µs; random waiting for the channel costs some.
    assert!(
        reads < 4e9 / 62_578.0 * 1.001 && reads > 4e9 / 62_578.0 * 0.95,
        "{reads}"
    );
    // Sixteen dies are more than the channel can carry: it is never idle.
    let bound = rate(16, OpKind::Read, &slow_cells, 256);
    assert!((bound / (1e9 / (290.0 + 12_288.0)) - 1.0).abs() < 0.005, "{bound}");
    let fast_cells = Timing {
        program_ns: vec![10_000],
        ..slow_cells
    };
    let bound = rate(16, OpKind::Write, &fast_cells, 256);
    assert!((bound / (1e9 / (361.0 + 12_288.0)) - 1.0).abs() < 0.005, "{bound}");
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_timeline_is_json_with_a_slice_for_every_transfer_and_hold_up_to_its_limit() {
    let layout = layout([1, 2, 1, 1], 4, 8, 4096);
    // Two transfers and a hold of the read, a command and a hold of each erase.
    for (limit, kept, left_out) in [(100, 7, 0), (4, 4, 3)] {
        let mut t = timed(&layout, &mqsim_timing(), "out_of_order");
        let text = Shared::default();
        let timeline = Timeline::to(Box::new(text.clone()), Path::new("timeline"), &layout.geometry, limit);
        t.observe(Some(Box::new(timeline))).unwrap();
        ftlab_ftl::Backend::issue(&mut t, read(page(&layout, 0, 0, 0), 4096), &[]);
        ftlab_ftl::Backend::issue(&mut t, erase(page(&layout, 1, 0, 0)), &[]);
        ftlab_ftl::Backend::issue(&mut t, erase(page(&layout, 0, 1, 0)), &[]);
        t.pop(3_000_000);
        notices(&mut t);
        t.observe(None).unwrap();
        let bytes = text.0.lock().unwrap().clone();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(json["otherData"]["slices_left_out"], left_out);
        let slices: Vec<_> = json["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|e| e["ph"] == "X")
            .collect();
        assert_eq!(slices.len(), kept);
        // The read's command comes first: 0.290 µs on channel 0.
        assert_eq!(slices[0]["name"], "read_command");
        assert_eq!(
            (slices[0]["pid"].as_u64(), slices[0]["dur"].as_f64()),
            (Some(1), Some(0.29))
        );
    }
}
