//! Checked runs notice a write buffer that loses, mixes up or keeps units: what a unit holds goes with it through the buffer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ftlab_core::{Lpn, OpKind, PolicySpec, Stream};
use ftlab_ftl::{Counting, Ftl, HostRequest, Overrides, Ticket, buffer};
use ftlab_testkit::case::{Wish, most_units};
use ftlab_testkit::driving::Drives;
use ftlab_testkit::members::BrokenBuffer;
use ftlab_testkit::members::broken_buffer::Fault;
use ftlab_testkit::operation::Mix;
use ftlab_testkit::{Bench, Case, Late};

/// The buffer of the case, with a fault.
fn broken(case: &Case, fault: Fault) -> Overrides {
    let mut setup = buffer::Setup {
        capacity_units: case.config.buffer.capacity_units,
    };
    let inner = buffer::catalogue()
        .build(&case.config.buffer.policy, &mut setup)
        .unwrap();
    Overrides {
        buffer: Some(Box::new(BrokenBuffer::new(inner, fault))),
        ..Overrides::default()
    }
}

fn buffered(policy: &str) -> Case {
    let mut case = Case::plain(40, 8, 1);
    case.config.buffer.policy = PolicySpec::parse(policy).unwrap();
    case.config.buffer.capacity_units = 12;
    case.config.logical_units = most_units(&case.layout, &case.config) / 2;
    case
}

/// What `--verify` says of random writes, reads and trims; nobody else looks.
fn checked_run(policy: &str, fault: Fault) -> Result<(), String> {
    let case = buffered(policy);
    let mut ftl: Ftl<Counting> = case.build(broken(&case, fault)).unwrap();
    let mut random = Stream::new(1, "buffers");
    let run = AssertUnwindSafe(|| {
        for _ in 0..2000 {
            let op = [OpKind::Write, OpKind::Read, OpKind::Read, OpKind::Trim][random.below(4) as usize];
            let first = Lpn(random.below(60) as u32);
            ftl.admit(&HostRequest::whole(op, first, 1), Ticket::NONE);
        }
    });
    catch_unwind(run).map_err(|fault| fault.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn a_checked_run_notices_what_a_buffer_does_wrong() {
    let noticed = |policy: &str, fault: Fault, place: &str| {
        let said = checked_run(policy, fault).expect_err("a fault that nobody notices");
        assert!(
            said.contains("reads version") && said.contains(place),
            "{policy} {fault:?}: {said}"
        );
    };
    for policy in ["write_back", "write_back:order=lpn", "lru", "write_through"] {
        assert_eq!(checked_run(policy, Fault::Nothing), Ok(()), "{policy}");
        noticed(policy, Fault::MixesUp, "in the write buffer");
    }
    for policy in ["write_back", "write_back:order=lpn", "lru"] {
        noticed(policy, Fault::LeavesAsAnother, " at Slot(");
        noticed(policy, Fault::Loses, "the last written is");
    }
    for policy in ["write_through", "lru"] {
        noticed(policy, Fault::Keeps, "in the write buffer");
    }
}

/// A unit that is gone without a trace is not read as if it had never been written.
#[test]
fn a_lost_first_write_is_noticed() {
    let case = buffered("write_back");
    let mut ftl: Ftl<Counting> = case.build(broken(&case, Fault::Loses)).unwrap();
    let mut admit = |op, lpn| {
        ftl.admit(&HostRequest::whole(op, Lpn(lpn), 1), Ticket::NONE);
    };
    (0..60).for_each(|lpn| admit(OpKind::Write, lpn));
    let read = AssertUnwindSafe(|| (0..60).for_each(|lpn| admit(OpKind::Read, lpn)));
    let fault = catch_unwind(read).expect_err("every fifth unit has been lost");
    let said = fault.downcast_ref::<String>().unwrap();
    assert!(said.contains("reads version 0 where nothing is mapped"), "{said}");
}

/// The buffers that hold something, in turns.
fn adapt(case: &mut Case) {
    let policies = ["write_back", "lru", "write_through", "write_back:order=lpn"];
    case.config.buffer.policy = PolicySpec::parse(policies[case.config.seed as usize % 4]).unwrap();
    case.config.buffer.capacity_units = case.config.buffer.capacity_units.max(6);
}

fn steps() -> Wish {
    Wish::stepped(0)
}

#[test]
fn the_conformance_suite_accepts_a_buffer_without_a_fault() {
    let cuts = Wish {
        recovers: true,
        ..steps()
    };
    for wish in [steps(), cuts] {
        Drives::new(0..30, wish, 400).run::<Late>(adapt, |case| broken(case, Fault::Nothing), |_| {});
    }
}

#[test]
fn the_conformance_suite_notices_every_fault() {
    for fault in [Fault::Loses, Fault::MixesUp, Fault::LeavesAsAnother, Fault::Keeps] {
        let goes_unnoticed = |&number: &u64| {
            let mut case = Case::draw(number, steps());
            adapt(&mut case);
            let mut random = Stream::new(number, "operations");
            let mix = Mix::draw(case.config.logical_units, false, &mut random);
            let run = AssertUnwindSafe(|| {
                let mut bench = Bench::<Late>::new(&case, broken(&case, fault));
                (0..400).for_each(|_| bench.apply(&mix.next(&mut random)));
            });
            catch_unwind(run).is_ok()
        };
        // Two of the four buffers cannot make some of these faults, so half of the drives may not notice anything.
        let unnoticed = (200..260).filter(goes_unnoticed).count();
        assert!(unnoticed < 42, "{fault:?} goes unnoticed on {unnoticed} of 60 drives");
    }
}
