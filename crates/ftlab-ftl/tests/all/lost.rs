//! Dies that fail: lost is what lay there, and it stays lost until it is written or trimmed.

use std::collections::BTreeSet;

use ftlab_core::{Layout, Lpn, PolicySpec, Slot, Stream};
use ftlab_ftl::record::Target;
use ftlab_ftl::roles::Roles;
use ftlab_ftl::{Counting, Overrides};
use ftlab_testkit::case::Wish;
use ftlab_testkit::members::TwoCopies;
use ftlab_testkit::operation::{Mix, Operation};
use ftlab_testkit::{Bench, Case, Double, Late};

fn die_of(layout: &Layout, slot: Slot) -> u32 {
    layout.die_of_plane(layout.address(layout.page_of(slot)).plane)
}

fn lost<B: Double>(bench: &Bench<B>, units: u32) -> BTreeSet<u32> {
    (0..units).filter(|&lpn| bench.ftl.is_lost(Lpn(lpn))).collect()
}

/// Units that an operation changes whole, and those that it changes in part.
fn changed(operation: &Operation) -> (std::ops::Range<u32>, BTreeSet<u32>) {
    match *operation {
        // A write of a part reads the rest; here nobody refuses that.
        Operation::Write { first, units, .. } => (first..first + units, BTreeSet::new()),
        Operation::Trim {
            first,
            units,
            head,
            tail,
        } => {
            let edges = [(head, first), (tail, first + units - 1)];
            let parts = edges.into_iter().filter_map(|(cut, lpn)| cut.then_some(lpn));
            (first..first + units, parts.collect())
        }
        _ => (0..0, BTreeSet::new()),
    }
}

/// Returns how many units were lost, all in all.
fn keep_account<B: Double>(number: u64, wish: Wish) -> usize {
    let mut case = Case::draw(number, wish);
    if !["none", "write_back"].contains(&case.config.buffer.policy.name.as_str()) {
        // What a cache holds of lost units is lost when it leaves.
        return 0;
    }
    case.config.verify = true;
    let units = case.config.logical_units;
    let mut random = Stream::new(number, "operations");
    let mix = Mix::draw(units, false, &mut random);
    let mut bench = Bench::<B>::new(&case, Overrides::default());
    let mut expected = BTreeSet::new();
    let mut all = 0;
    for step in 0..600 {
        if step == 250 || step == 400 {
            let die = random.below(u64::from(case.layout.geometry.total_dies())) as u32;
            let open: BTreeSet<u32> = bench.ftl.open_units().map(|(ru, _)| ru.0).collect();
            let count = bench.ftl.fail_die(die);
            let now = lost(&bench, units);
            assert_eq!(count, now.len() as u64, "case {number}");
            for &lpn in now.difference(&expected) {
                if let Some(slot) = bench.ftl.slot_of(lpn) {
                    assert_eq!(die_of(&case.layout, slot), die, "case {number}: {lpn} lay elsewhere");
                }
            }
            for lpn in (0..units).filter(|lpn| !now.contains(lpn)) {
                let slot = bench.ftl.slot_of(lpn).filter(|&slot| die_of(&case.layout, slot) == die);
                let is_open = slot.is_none_or(|slot| open.contains(&case.layout.ru_of(slot).0));
                assert!(is_open || bench.ftl.is_dirty(Lpn(lpn)), "case {number}: {lpn} survived");
            }
            assert!(expected.is_subset(&now), "case {number}: what was lost has come back");
            (expected, all) = (now, all + count as usize);
        }
        let operation = mix.next(&mut random);
        bench.apply(&operation);
        let (whole, parts) = changed(&operation);
        expected.retain(|lpn| !whole.contains(lpn) || parts.contains(lpn));
        let now = lost(&bench, units);
        // A trim of a part may or may not be one of the unit.
        expected.retain(|lpn| !parts.contains(lpn) || now.contains(lpn));
        if wish.replicates {
            // A further copy of a late write comes from the controller, which still has the data.
            expected.retain(|lpn| now.contains(lpn));
        }
        assert_eq!(now, expected, "case {number}, step {step}: {operation:?}");
    }
    bench.check();
    all
}

#[test]
fn what_is_lost_stays_lost_until_it_is_written() {
    let plain = (0..150).map(|number| keep_account::<Counting>(number, Wish::default()));
    let stepped = (150..300).map(|number| keep_account::<Late>(number, Wish::stepped(0)));
    // An eviction of copies that drops the last good one is drawn rarely.
    let copied = (300..1000).map(|number| {
        let wish = Wish {
            replicates: true,
            ..Wish::default()
        };
        keep_account::<Late>(number, wish)
    });
    for all in [plain.sum::<usize>(), stepped.sum(), copied.sum()] {
        assert!(all > 500, "{all} units were lost");
    }
}

/// A version that was lost comes back lost after a power cut, and newer ones are not.
#[test]
fn power_cuts_bring_nothing_lost_back() {
    let (mut lost_again, mut elsewhere, mut cuts) = (0, 0, 0);
    for number in 0..150 {
        let mut case = Case::draw(number, Wish::default().cut(Some(false)));
        (case.config.dedup, case.config.replication) = (PolicySpec::named("none"), PolicySpec::named("none"));
        if case.config.buffer.policy.name != "none" {
            continue;
        }
        case.config.verify = true;
        let units = case.config.logical_units;
        let mut random = Stream::new(number, "operations");
        let mix = Mix::draw(units, true, &mut random);
        let mut bench = Bench::<Late>::new(&case, Overrides::default());
        (0..250).for_each(|_| bench.apply(&mix.next(&mut random)));
        bench
            .ftl
            .fail_die(random.below(u64::from(case.layout.geometry.total_dies())) as u32);
        let mut before: Vec<(u32, bool)> = (0..units)
            .map(|lpn| (bench.ftl.stamp(Lpn(lpn)), bench.ftl.is_lost(Lpn(lpn))))
            .collect();
        for _ in 0..250 {
            let operation = mix.next(&mut random);
            bench.apply(&operation);
            let cut = operation == Operation::PowerCut;
            cuts += u32::from(cut);
            for (lpn, (stamp, was_lost)) in (0..).zip(&mut before) {
                let (now, is_lost) = (bench.ftl.stamp(Lpn(lpn)), bench.ftl.is_lost(Lpn(lpn)));
                if now == *stamp {
                    // The place that a collection copied it from may still hold the same version, on a good die or on the failed one,
                    // and a power cut brings it back if the copy was under way.
                    assert!(cut || is_lost == *was_lost, "case {number}: {lpn}");
                    lost_again += u32::from(cut && is_lost && *was_lost);
                    elsewhere += u32::from(cut && *was_lost != is_lost);
                    *was_lost = is_lost;
                } else if now > *stamp && *stamp > 0 {
                    assert!(!is_lost, "case {number}: {lpn} was written after the failure");
                }
            }
        }
    }
    assert!(
        cuts > 50 && lost_again > 20 * elsewhere.max(5),
        "{cuts} cuts: {lost_again} units lost behind them, {elsewhere} found elsewhere"
    );
}

/// Copies that a failure has left are there after a power cut as well: of a value whose newest place is lost another one counts.
#[test]
fn a_power_cut_keeps_what_copies_have_saved() {
    let (mut saved, mut lost_units) = (0, 0);
    for number in 2000..2200 {
        let mut case = Case::draw(number, Wish::default().cut(Some(false)));
        (case.config.dedup, case.config.replication) = (PolicySpec::named("none"), PolicySpec::named("none"));
        if case.config.buffer.policy.name != "none" {
            continue;
        }
        case.config.verify = true;
        case.config.logical_units = (case.config.logical_units / (2 * case.layout.units_per_page)).max(4);
        let units = case.config.logical_units;
        let mut random = Stream::new(number, "operations");
        let mix = Mix::draw(units, false, &mut random);
        let two_copies = |case: &Case| {
            let policy = TwoCopies::new(case.config.logical_units, number.is_multiple_of(2));
            Overrides {
                roles: Some(Roles::given(None, Some(Box::new(policy)))),
                ..Overrides::default()
            }
        };
        case.make_room(two_copies);
        let mut bench = Bench::<Late>::new(&case, two_copies(&case));
        (0..300).for_each(|_| bench.apply(&mix.next(&mut random)));
        [Operation::Flush, Operation::Settle]
            .iter()
            .for_each(|operation| bench.apply(operation));
        let die = random.below(u64::from(case.layout.geometry.total_dies())) as u32;
        bench.ftl.fail_die(die);
        bench.apply(&Operation::Settle);
        let lost_before = lost(&bench, units);
        let had_one_there = |lpn: &u32| match bench.ftl.record.entry(Lpn(*lpn)).target() {
            Target::Vpn(vpn) => {
                let mut copies = bench.ftl.indirection().copies_of(vpn);
                copies.any(|slot| die_of(&case.layout, slot) == die)
            }
            _ => false,
        };
        saved += (0..units)
            .filter(|lpn| !lost_before.contains(lpn) && had_one_there(lpn))
            .count();
        lost_units += lost_before.len();
        bench.apply(&Operation::PowerCut);
        let newly: Vec<u32> = lost(&bench, units).difference(&lost_before).copied().collect();
        assert!(
            newly.is_empty(),
            "case {number}: {newly:?} were readable before the cut"
        );
        bench.check();
    }
    assert!(
        saved > 100 && lost_units > 100,
        "{saved} saved by copies, {lost_units} lost"
    );
}
