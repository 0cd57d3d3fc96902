//! What wear levelling is for: with data of which most is never written again, the spread of erase counts.

use crate::common::{config, one_lane, write};
use ftlab_core::{PolicySpec, Stream};
use ftlab_ftl::{Counting, Ftl, Ticket};

/// Most and fewest erases after writing 40 drive capacities to the first tenth of the units.
fn spread(wear: &str) -> (u32, u32, u64) {
    let layout = one_lane(100, 16);
    let mut config = config(&layout, 0.15);
    config.wear = PolicySpec::parse(wear).unwrap();
    let units = config.logical_units;
    let mut ftl = Ftl::new(layout, config).unwrap();
    ftl.precondition_fill();
    let mut random = Stream::new(3, "wear");
    for _ in 0..40 * units {
        ftl.admit(&write(random.below(u64::from(units / 10)) as u32, 0), Ticket::NONE);
    }
    ftl.check().unwrap();
    let erases = ftl.units.rus.iter().map(|ru| ru.erases);
    (
        erases.clone().max().unwrap(),
        erases.min().unwrap(),
        ftl.counts.wear_collections,
    )
}

/// A unit that has less than nine tenths of the mean life left, of 200 erases, gets cold data: the most worn stay within some 20 erases of
/// the mean, and those that held the cold data are worn like others from then on. Dynamic levelling leaves 1 to more than 60.
#[test]
fn cold_data_moves_to_units_with_little_life_left() {
    let (most, fewest, moves) = spread("remaining_life:limit=200,share=0.9");
    assert!(moves > 0 && most < 60 && fewest > 5, "{most} to {fewest}");
    let (_, fewest, moves) = spread("remaining_life:limit=100000");
    assert!(moves == 0 && fewest <= 1, "none is worn: {moves}");
}

#[test]
fn static_levelling_bounds_the_spread_and_the_others_leave_cold_units_alone() {
    let (most, fewest, moves) = spread("static:threshold=10,interval=8");
    assert!(moves > 0 && most - fewest <= 20, "{most} to {fewest}");
    for wear in ["none", "dynamic"] {
        let (most, fewest, moves) = spread(wear);
        assert!(moves == 0 && fewest <= 1 && most > 60, "{wear}: {most} to {fewest}");
    }
}

/// The erases since the last look are saved: the drive that goes on from a state erases and moves as the one that was not stopped.
/// One lane and a greedy choice of victims draw nothing.
#[test]
fn the_interval_of_static_levelling_goes_on_in_a_loaded_drive() {
    let drive = || {
        let layout = one_lane(100, 16);
        let mut config = config(&layout, 0.15);
        config.wear = PolicySpec::parse("static:threshold=2,interval=97").unwrap();
        Ftl::new(layout, config).unwrap()
    };
    let mut unbroken = drive();
    let units = unbroken.config.logical_units;
    unbroken.precondition_fill();
    let mut random = Stream::new(3, "wear");
    let mut step = |drives: &mut [&mut Ftl<Counting>], writes: u32| {
        for _ in 0..writes {
            let request = write(random.below(u64::from(units / 10)) as u32, 0);
            for ftl in drives.iter_mut() {
                ftl.admit(&request, Ticket::NONE);
            }
        }
    };
    step(&mut [&mut unbroken], 9 * units);
    let (mut state, mut loaded) = (Vec::new(), drive());
    unbroken.shut_down();
    unbroken.save(&mut state).unwrap();
    loaded.load(&mut state.as_slice()).unwrap();
    loaded.resume();
    step(&mut [&mut unbroken, &mut loaded], 9 * units);
    let erases = |ftl: &Ftl<Counting>| -> Vec<u32> { ftl.units.rus.iter().map(|ru| ru.erases).collect() };
    assert!(loaded.counts.wear_collections > 0);
    assert_eq!(erases(&loaded), erases(&unbroken));
}
