//! Which of several models of a trace are kept: those whose workloads are most like the trace.
//!
//! Two things are not told by the trace alone. How often an object must be referenced for its references to be planned
//! together (the others are placed one by one): hot pages need it, files written and read in long overlapping runs are spoilt
//! by it. And how much room clusters of pages have between them, that is, whether what reaches beyond a cluster meets fresh
//! pages or another cluster. So each of [`LEAST`] with each of [`ROOM`] is tried: its workload is generated, inspected as the
//! trace was, and compared; the best are compared again with other seeds.
//! # Cost
//! Each try generates and inspects an episode, cut down to [`MOST`] requests; as many at a time as there are cores.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use ftlab_core::{Batch, Error, Result, Source};

use super::deviation::{Deviation, deviations, distance};
use super::{Model, PAGE};
use crate::inspect::{InspectOptions, Inspection, inspect};
use crate::synth;

/// References from which on an object's are planned together.
const LEAST: [u64; 6] = [1, 3, 5, 9, 33, 1 << 40];
/// Requests generated for a comparison at most; a longer episode is made smaller with its objects.
const MOST: u64 = 1 << 20;
/// Pages per page touched over which the clusters are spread, where the span has as many.
const ROOM: [f64; 2] = [1.0, 3.0];
/// Models that are looked at twice, and the seeds by which.
const FINAL: usize = 4;
const SEEDS: u64 = 3;
/// Bytes of a model file at most where one of the models is as small.
const FILE: usize = 100_000;

/// The models of `make(least)`, with some room, each with how far its workload lies from `original`, of the nearest on average over
/// the seeds; the nearest first, and the first of equals.
pub(super) fn choose(
    original: &Inspection,
    make: impl Fn(u64) -> Model,
    go_on: &mut (dyn FnMut() -> bool + Send),
) -> Result<Vec<(f64, Vec<Deviation>, Model)>> {
    let mut models = Vec::with_capacity(LEAST.len() * ROOM.len());
    for least in LEAST {
        let made = make(least);
        models.extend(ROOM.map(|room| Model { room, ..made.clone() }));
    }
    let at_first = side_by_side(&models, go_on, |model, go_on| agreement(original, model, 1, go_on))?;
    let far = |found: &[Deviation], model: &Model| distance(found) + too_large(model);
    let tried = at_first.into_iter().zip(models);
    let mut tried: Vec<_> = tried
        .map(|(found, model)| (far(&found, &model), found, model))
        .collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let again: Vec<(&Model, u64)> = tried[..FINAL]
        .iter()
        .flat_map(|(_, _, model)| (2..=SEEDS).map(move |seed| (model, seed)))
        .collect();
    let again = side_by_side(&again, go_on, |&(model, seed), go_on| {
        Ok(far(&agreement(original, model, seed, go_on)?, model))
    })?;
    for ((sum, _, _), more) in tried.iter_mut().zip(again.chunks(SEEDS as usize - 1)) {
        *sum = more.iter().fold(*sum, |sum, far| sum + far) / SEEDS as f64;
    }
    // What was looked at once only stays behind.
    tried[..FINAL].sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(tried)
}

type GoOn<'a> = &'a mut (dyn FnMut() -> bool + Send);

/// What `of` finds of each, in their order, as many at a time as there are cores. Whoever is not asking at the moment goes on unless
/// somebody was told to stop; so does everybody after an error.
fn side_by_side<T: Sync, R: Send + Sync>(
    all: &[T],
    go_on: GoOn<'_>,
    of: impl Fn(&T, GoOn<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, stop, go_on) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(go_on));
    let found: Vec<OnceLock<Result<R>>> = all.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        let mut may_go_on = || {
            if let Ok(mut go_on) = go_on.try_lock()
                && !go_on()
            {
                stop.store(true, Ordering::Relaxed);
            }
            !stop.load(Ordering::Relaxed)
        };
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(one), Some(place)) = (all.get(at), found.get(at)) else {
                return;
            };
            let result = of(one, &mut may_go_on);
            if result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let _ = place.set(result);
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (1..cores.min(all.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    // A cause comes before what it stopped.
    let results: Vec<Result<R>> = found.into_iter().filter_map(OnceLock::into_inner).collect();
    if let Some(Err(error)) = results
        .iter()
        .find(|result| matches!(result, Err(error) if !matches!(error, Error::Interrupted)))
    {
        return Err(error.clone());
    }
    results.into_iter().collect()
}

fn too_large(model: &Model) -> f64 {
    if model.to_toml().len() > FILE { 1e6 } else { 0.0 }
}

/// How far what the model generates lies from the trace, by the figures of both.
pub(super) fn agreement(
    original: &Inspection,
    model: &Model,
    seed: u64,
    go_on: &mut (dyn FnMut() -> bool + Send),
) -> Result<Vec<Deviation>> {
    let text = model.to_toml();
    let footprint = (MOST as f64 / model.requests as f64).min(1.0);
    let spec = format!("footprint = {footprint:?}\n{text}");
    // Room for what lies behind the last page.
    let workload = synth::parse(&spec, model.span + 256 * PAGE, PAGE as u32, seed)?;
    let mut workload = Interruptible { workload, go_on };
    let made = inspect(&mut workload, InspectOptions::default())?;
    let mut found = deviations(original, &made);
    // A smaller workload has fewer pages on purpose.
    found.retain(|figure| footprint == 1.0 || figure.figure != "pages");
    Ok(found)
}

/// A workload that ends with [`Error::Interrupted`] when nobody wants more of it.
struct Interruptible<'a, S> {
    workload: S,
    go_on: &'a mut (dyn FnMut() -> bool + Send),
}

impl<S: Source> Source for Interruptible<'_, S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        match (self.go_on)() {
            true => self.workload.next_batch(batch),
            false => Err(Error::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_in_order_until_something_fails_or_somebody_stops() {
        let all: Vec<u64> = (0..50).collect();
        let found = side_by_side(&all, &mut || true, |one, _| Ok(2 * one)).unwrap();
        assert_eq!(found, (0..50).map(|one| 2 * one).collect::<Vec<_>>());

        let refuse = |one: &u64, go_on: GoOn<'_>| match one {
            17 => Err(Error::input("of 17")),
            _ if go_on() => Ok(()),
            _ => Err(Error::Interrupted),
        };
        let error = side_by_side(&all, &mut || true, refuse).unwrap_err();
        assert_eq!(error.to_string(), "of 17");

        let mut asked = 0;
        let mut twenty_times = || {
            asked += 1;
            asked <= 20
        };
        let one_more = |_: &u64, go_on: GoOn<'_>| if go_on() { Ok(()) } else { Err(Error::Interrupted) };
        let many = vec![0; 10_000];
        let error = side_by_side(&many, &mut twenty_times, one_more).unwrap_err();
        assert!(matches!(error, Error::Interrupted), "{error}");
        let none = side_by_side(&[0_u64; 0], &mut || true, one_more).unwrap();
        assert!(none.is_empty());
    }
}
