//! Which of several models of a trace are kept: those whose workloads are most like the trace.
//!
//! Two things are not told by the trace alone. How often an object must be referenced for its references to be planned
//! together (the others are placed one by one): hot pages need it, files written and read in long overlapping runs are spoilt
//! by it. And how much room clusters of pages have between them, that is, whether what reaches beyond a cluster meets fresh
//! pages or another cluster. So each of [`LEAST`] with each of [`ROOM`] is tried: its workload is generated, inspected as the
//! trace was, and compared; the best are compared again with other seeds.
//! # Cost
//! Each try generates and inspects an episode, cut down to [`MOST`] requests.

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
    let mut tried = Vec::with_capacity(LEAST.len() * ROOM.len());
    for least in LEAST {
        let made = make(least);
        for room in ROOM {
            let model = Model { room, ..made.clone() };
            let found = agreement(original, &model, 1, go_on)?;
            tried.push((distance(&found) + too_large(&model), found, model));
        }
    }
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (far, _, model) in tried.iter_mut().take(FINAL) {
        for seed in 2..=SEEDS {
            *far += distance(&agreement(original, model, seed, go_on)?) + too_large(model);
        }
        *far /= SEEDS as f64;
    }
    // What was looked at once only stays behind.
    tried[..FINAL].sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(tried)
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
