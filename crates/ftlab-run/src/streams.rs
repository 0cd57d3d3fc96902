//! What a placement policy puts where, and what becomes of it: a watcher around it, which asks for nothing and changes nothing.
//!
//! Counted are units that the host writes, by the frontier that the policy gives them (a stream); how long each version lives until
//! it is overwritten or trimmed, in units that the host writes after it, the overwriting one included, by the stream that it was
//! placed on, wherever collection has moved it since; the program contexts that write into each stream; and how much of a reclaim unit is valid when it is
//! collected, by the frontier that filled it, the drive's own for survivors included.
//!
//! *Not modelled*: with a write buffer, units that die in it never reach a stream. What preconditioning has placed is not known, and
//! neither counted when it dies. What lives at the end is told as a number, its lifetimes are not over.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ftlab_core::{Histogram, LaneId, Layout, Lpn, Result};
use ftlab_ftl::placement::{self, Setup};
use ftlab_ftl::placement::{Asks, Event, Filler, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::units::Closed;
use ftlab_ftl::victim::VictimPolicy;
use ftlab_ftl::{Frontier, FtlConfig, Now, Overrides};

use crate::table::{Column, Table};

/// Steps of the valid share of collected reclaim units: 5 %.
const STEPS: u32 = 20;

/// Where a version of a unit was placed, and when.
#[derive(Clone, Copy)]
struct Placed {
    stream: Frontier,
    tick: u64,
}

const NOWHERE: Placed = Placed {
    stream: Frontier::MAX,
    tick: 0,
};

#[derive(Default)]
struct OfStream {
    written: u64,
    lifetimes: Histogram,
    contexts: BTreeMap<u64, u64>,
}

/// What has been seen since it was last forgotten.
#[derive(Default)]
struct Seen {
    placed: Vec<Placed>,
    streams: Vec<OfStream>,
    /// By frontier: collected reclaim units by the step of their valid share.
    collected: BTreeMap<Frontier, [u64; STEPS as usize + 1]>,
}

impl Seen {
    fn dies(&mut self, lpn: Lpn, tick: u64) {
        let placed = std::mem::replace(&mut self.placed[lpn.at()], NOWHERE);
        if let Some(stream) = self.streams.get_mut(placed.stream as usize) {
            stream.lifetimes.record(tick - placed.tick);
        }
    }
}

/// What is seen of a run's placement; the run has it, and its policy.
#[derive(Clone, Default)]
pub(crate) struct Streams(Arc<Mutex<Seen>>);

impl Streams {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the watcher around the placement policy of a drive.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn watch(&self, given: &mut Overrides, config: &FtlConfig, layout: &Layout) -> Result<()> {
        let inner = match given.placement.take() {
            Some(inner) => inner,
            None => placement::catalogue().build(&config.placement, &mut Setup::of(config, layout))?,
        };
        let mut seen = self.seen();
        seen.placed = vec![NOWHERE; config.logical_units as usize];
        seen.streams
            .resize_with(inner.host_frontiers() as usize, OfStream::default);
        given.placement = Some(Box::new(Watched {
            inner,
            units_per_ru: layout.slots_per_ru,
            streams: self.clone(),
        }));
        Ok(())
    }

    /// Counts begin anew; what was placed before is still known.
    pub fn reset(&self) {
        let mut seen = self.seen();
        seen.collected.clear();
        seen.streams.fill_with(OfStream::default);
    }

    /// The tables `streams`, `stream_lifetimes`, `stream_contexts` and `stream_collections`.
    pub fn tables(&self) -> Vec<Table> {
        let seen = self.seen();
        let mut alive = vec![0; seen.streams.len()];
        for placed in &seen.placed {
            if let Some(count) = alive.get_mut(placed.stream as usize) {
                *count += 1;
            }
        }
        let numbered = || seen.streams.iter().enumerate().map(|(number, of)| (number as u64, of));
        let streams = Table::new("streams")
            .with("stream", Column::U64(numbered().map(|(number, _)| number).collect()))
            .with("written", Column::U64(numbered().map(|(_, of)| of.written).collect()))
            .with(
                "died",
                Column::U64(numbered().map(|(_, of)| of.lifetimes.count()).collect()),
            )
            .with("alive", Column::U64(alive));
        let lifetimes = numbered().flat_map(|(number, of)| {
            let buckets = of.lifetimes.buckets().into_iter();
            buckets.map(move |(upper, count)| [number, upper, count])
        });
        let contexts = numbered().flat_map(|(number, of)| {
            let by_context = of.contexts.iter();
            by_context.map(move |(&context, &count)| [number, context, count])
        });
        let collected = seen.collected.iter().flat_map(|(&frontier, steps)| {
            let told = steps.iter().enumerate().filter(|&(_, &count)| count > 0);
            told.map(move |(step, &count)| [u64::from(frontier), step as u64 * u64::from(100 / STEPS), count])
        });
        vec![
            streams,
            table("stream_lifetimes", ["stream", "upper_units", "count"], lifetimes),
            table("stream_contexts", ["stream", "pc", "written"], contexts),
            table("stream_collections", ["frontier", "valid_percent", "count"], collected),
        ]
    }
}

fn table<const N: usize>(name: &str, columns: [&str; N], rows: impl Iterator<Item = [u64; N]>) -> Table {
    let mut values: [Vec<u64>; N] = std::array::from_fn(|_| Vec::new());
    for row in rows {
        values
            .iter_mut()
            .zip(row)
            .for_each(|(column, value)| column.push(value));
    }
    let named = columns.into_iter().zip(values);
    named.fold(Table::new(name), |table, (column, values)| {
        table.with(column, Column::U64(values))
    })
}

struct Watched {
    inner: Box<dyn PlacementPolicy>,
    units_per_ru: u32,
    streams: Streams,
}

impl PlacementPolicy for Watched {
    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let stream = self.inner.host(write);
        let mut seen = self.streams.seen();
        seen.dies(write.lpn, write.now.tick);
        seen.placed[write.lpn.at()] = Placed {
            stream,
            tick: write.now.tick,
        };
        let of = &mut seen.streams[stream as usize];
        of.written += 1;
        *of.contexts.entry(write.context.pc).or_default() += 1;
        stream
    }

    fn on(&mut self, event: Event, now: Now) {
        match event {
            Event::Trimmed(lpn) => self.streams.seen().dies(lpn, now.tick),
            Event::Collecting { frontier, valid, .. } => {
                let step = (u64::from(valid) * u64::from(STEPS) / u64::from(self.units_per_ru)) as usize;
                let mut seen = self.streams.seen();
                seen.collected.entry(frontier).or_insert([0; STEPS as usize + 1])[step] += 1;
            }
            Event::Erased { .. } | Event::Placed { .. } | Event::Gone(_) => {}
        }
        self.inner.on(event, now);
    }

    /// It must be asked, though it decides what `none` does.
    fn is_none(&self) -> bool {
        false
    }

    fn report(&self) -> Vec<(&'static str, f64)> {
        self.inner.report()
    }

    fn host_frontiers(&self) -> Frontier {
        self.inner.host_frontiers()
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        self.inner.own_survivor_frontiers()
    }

    fn survivor_frontiers(&self) -> Frontier {
        self.inner.survivor_frontiers()
    }

    fn sees_survivors(&self) -> bool {
        self.inner.sees_survivors()
    }

    fn filled_by(&self, frontier: Frontier) -> Filler {
        self.inner.filled_by(frontier)
    }

    fn leaves_survivors(&self) -> bool {
        self.inner.leaves_survivors()
    }

    fn open_at_once(&self) -> Frontier {
        self.inner.open_at_once()
    }

    fn keeps_survivors_apart(&self) -> bool {
        self.inner.keeps_survivors_apart()
    }

    fn uncharged_units(&self) -> u32 {
        self.inner.uncharged_units()
    }

    fn lanes(&self, frontier: Frontier, layout: &Layout) -> Option<Vec<LaneId>> {
        self.inner.lanes(frontier, layout)
    }

    fn asks(&self) -> Asks {
        self.inner.asks()
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        self.inner.survivor(survivor)
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        self.inner.victim()
    }

    fn looks(&mut self, closed: &Closed<'_>, now: Now) {
        self.inner.looks(closed, now);
    }

    fn forget(&mut self) {
        self.inner.forget();
    }

    fn save(&self) -> Vec<u8> {
        self.inner.save()
    }

    fn load(&mut self, saved: &[u8]) -> std::result::Result<(), String> {
        self.inner.load(saved)
    }

    fn map_entry_bytes(&self) -> u32 {
        self.inner.map_entry_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }
}
