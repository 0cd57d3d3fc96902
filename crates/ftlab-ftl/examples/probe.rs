use ftlab_core::geometry::PlaneOrder;
use ftlab_core::*;
use ftlab_ftl::*;
fn main() {
    let blocks: u32 = std::env::args().nth(1).map_or(65536, |a| a.parse().unwrap());
    let geometry = Geometry {
        channels: 1,
        ways: 1,
        dies: 1,
        planes: 1,
        blocks,
        pages: 256,
        page_bytes: 4096,
        unit_bytes: 4096,
        oob_bytes: 64,
    };
    let layout = Layout::new(geometry, ReclaimKind::Block, PlaneOrder::parse("CWDP").unwrap()).unwrap();
    let named = PolicySpec::named;
    let config = FtlConfig {
        logical_units: (f64::from(layout.slots()) * 0.9) as u32,
        mapping: named("page"),
        placement: named("none"),
        victim: named("greedy"),
        wear: named("dynamic"),
        allocation: named("round_robin"),
        dedup: named("none"),
        replication: named("none"),
        gc: GcConfig {
            pool: PoolScope::Lane,
            hard: 1,
            soft: 1,
            preemptible: false,
            step_units: 8,
            background: false,
            idle_ns: 0,
            separate_frontier: true,
            internal_streams: false,
        },
        buffer: BufferConfig {
            policy: named("none"),
            capacity_units: 0,
            power_loss_protected: false,
        },
        erase_limit: None,
        checkpoint_units: 0,
        seed: 1,
        verify: false,
    };
    let units = u64::from(config.logical_units);
    let t = std::time::Instant::now();
    let mut ftl = Ftl::new(layout, config).unwrap();
    println!("new {:?}", t.elapsed());
    let t = std::time::Instant::now();
    ftl.precondition_theory();
    println!("theory {:?}", t.elapsed());
    let mut random = Stream::new(7, "workload");
    let t = std::time::Instant::now();
    let n = 2 * units;
    let mut ring = [0u32; 4096];
    let mut done = 0;
    while done < n {
        for r in &mut ring {
            *r = random.below(units) as u32;
        }
        for i in 0..4096 {
            if i + 16 < 4096 {
                ftl.prefetch_map(ring[i + 16]);
            }
            if i + 8 < 4096 {
                ftl.prefetch_old(ring[i + 8]);
            }
            ftl.admit(
                &HostRequest {
                    op: OpKind::Write,
                    first: Lpn(ring[i]),
                    units: 1,
                    head_skip: 0,
                    tail_skip: 0,
                    fua: false,
                    stream: 0,
                    pc: 0,
                    content: &[],
                },
                Ticket::NONE,
            );
        }
        done += 4096;
    }
    let s = t.elapsed().as_secs_f64();
    println!("{:.2} M/s waf {:.3}", done as f64 / s / 1e6, ftl.counts.waf().unwrap());
}
