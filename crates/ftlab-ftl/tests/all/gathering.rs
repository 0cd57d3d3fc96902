//! What is left of packs is gathered by collection: a drive of chunks needs little more room than its live chunks take.

use std::cell::Cell;

use ftlab_core::{IoContext, Lpn, OpKind, Stream};
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Admitted, Counting, Ftl, HostRequest, Overrides, Ticket};
use ftlab_testkit::case::Wish;
use ftlab_testkit::driving::until;
use ftlab_testkit::members::{ChunkDedup, MappingCache};
use ftlab_testkit::operation::Mix;
use ftlab_testkit::shrink::run_or_shrink;
use ftlab_testkit::{Bench, Case, Double, Instant, Late, Operation};

fn chunks(_: &Case) -> Overrides {
    Overrides {
        roles: Some(Roles::given(Some(Box::new(ChunkDedup::default())), None)),
        ..Overrides::default()
    }
}

/// The quarters of each unit: one that all have, and three of its own, of which each write changes one.
struct Contents {
    units: Vec<[u64; 4]>,
    next: u64,
}

impl Contents {
    fn new(units: u32) -> Self {
        let own = |unit: u64| [1, 3 * unit + 2, 3 * unit + 3, 3 * unit + 4];
        Contents {
            units: (0..u64::from(units)).map(own).collect(),
            next: 3 * u64::from(units) + 5,
        }
    }

    fn change(&mut self, lpn: u32, quarter: u64) {
        self.units[lpn as usize][quarter as usize] = self.next;
        self.next += 1;
    }

    fn write(&self, ftl: &mut Ftl<Counting>, lpn: u32) -> Admitted {
        let context = IoContext {
            contents: &self.units[lpn as usize],
            content_bytes: 128,
            ..IoContext::NONE
        };
        let request = HostRequest {
            context: &context,
            ..HostRequest::whole(OpKind::Write, Lpn(lpn), 1)
        };
        ftl.admit(&request, Ticket::NONE)
    }
}

/// The chunks of a pack come from several units and die one by one, so that half of what packs hold is dead: 2100 live chunks would
/// keep 1100 slots, and up to 2100 where each write programs its pack. This drive has 944 to fill.
#[test]
fn a_drive_of_chunks_needs_no_slot_for_each_of_them() {
    for protected in [true, false] {
        let mut case = Case::plain(64, 16, 1);
        case.config.logical_units = 700;
        case.config.buffer.power_loss_protected = protected;
        let mut ftl = case.build(chunks(&case)).unwrap();
        let mut contents = Contents::new(700);
        let mut random = Stream::new(1, "chunks");
        let mut gathered = 0;
        for number in 0..12_000 {
            let lpn = match number {
                0..700 => number,
                _ => random.below(700) as u32,
            };
            if number >= 700 {
                contents.change(lpn, 1 + random.below(3));
            }
            let admitted = contents.write(&mut ftl, lpn);
            assert_eq!(admitted, Admitted::Done, "protected {protected}: after {number} writes");
            if number % 500 == 0 {
                ftl.check().unwrap();
                gathered += ftl.indirection().gathered().count();
            }
        }
        for lpn in (0..700).map(Lpn) {
            ftl.admit(&HostRequest::whole(OpKind::Read, lpn, 1), Ticket::NONE);
        }
        assert!(gathered > 2000, "{gathered} values gathered");
    }
}

fn steps() -> Wish {
    Wish::stepped(4)
}

fn cuts(protected: bool) -> Wish {
    steps().cut(Some(protected))
}

/// The conformance suite with ten times as many contents, so that packs die chunk by chunk, until more than `least` values were seen
/// in gatherings.
fn drive<B: Double>(first: u64, wish: Wish, share: f64, least: usize, make: impl Fn(&Case) -> Overrides) {
    let seen = Cell::new(0);
    for number in until(first, 40, || seen.get() > least) {
        let mut case = Case::draw(number, wish);
        case.config.logical_units = ((f64::from(case.config.logical_units) * share) as u32).max(8);
        case.make_room(&make);
        let mut random = Stream::new(number, "operations");
        let mix = Mix::draw(case.config.logical_units, wish.recovers, &mut random);
        let mut operations: Vec<Operation> = (0..800).map(|_| mix.next(&mut random)).collect();
        for operation in &mut operations {
            if let Operation::Write { content, .. } = operation {
                *content = random.below(120) as u8;
            }
        }
        run_or_shrink(&format!("case {number}: {}", case.show()), operations, |operations| {
            let mut bench = Bench::<B>::new(&case, make(&case));
            for operation in operations {
                bench.apply(operation);
                seen.set(seen.get() + bench.ftl.indirection().gathered().count());
            }
            bench.check();
        });
    }
    assert!(seen.get() > least, "{} values gathered", seen.get());
}

#[test]
fn gathered_chunks_hold_what_was_written() {
    drive::<Counting>(0, steps(), 0.5, 300, chunks);
    drive::<Instant>(100, steps(), 0.5, 300, chunks);
    drive::<Late>(200, steps(), 0.5, 300, chunks);
}

#[test]
fn gathered_chunks_survive_power_cuts() {
    drive::<Counting>(300, cuts(false), 0.25, 20, chunks);
    drive::<Late>(440, cuts(false), 0.25, 20, chunks);
    drive::<Late>(500, cuts(true), 0.5, 20, chunks);
}

/// Entries of gathered values are told to a mapping policy that keeps their tables in flash.
#[test]
fn gathered_chunks_are_told_to_a_map_in_flash() {
    let make = |case: &Case| {
        let mut cache = MappingCache::new(case.config.logical_units, case.layout.geometry.unit_bytes, 20);
        let roles = Roles::given(Some(Box::new(ChunkDedup::default())), None);
        cache.behind = [roles.most_values(&case.layout), roles.most_rows(&case.config)];
        Overrides {
            mapping: Some(Box::new(cache)),
            roles: Some(roles),
            ..Overrides::default()
        }
    };
    drive::<Counting>(600, steps(), 0.5, 20, make);
    drive::<Late>(700, steps(), 0.75, 20, make);
    drive::<Late>(800, cuts(false), 0.25, 20, make);
}
