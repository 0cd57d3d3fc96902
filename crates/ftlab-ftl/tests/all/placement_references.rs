//! Host-side placement against naive references: each policy's page written down once more, with lists that are searched from end to
//! end, on requests of many sizes and trims.

use std::collections::BTreeMap;

use ftlab_core::{Lpn, PolicySpec, Stream};
use ftlab_ftl::placement::{self, Event, HostWrite, PlacementPolicy};
use ftlab_ftl::{Frontier, Now, Survivors, WriteContext};

const UNITS: u32 = 4000;

/// What a policy is told of.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// A request of `stream` for the units `first..end`.
    Write {
        stream: u16,
        first: u32,
        end: u32,
    },
    Trim(u32),
}

/// Requests of seven streams: each rewrites a region of its own, some of them from end to end, and one of them only once.
fn requests(seed: u64) -> Vec<Told> {
    let mut random = Stream::new(seed, "references");
    let spans = [10u32, 40, 160, 640, 1500, 1600];
    let mut next = [0u32; 6];
    let mut told = vec![Told::Write {
        stream: 7,
        first: 3950,
        end: 4000,
    }];
    for _ in 0..20_000 {
        let at = random.below(6) as usize;
        let base: u32 = spans[..at].iter().sum();
        let length = (1 + random.below(8) as u32).min(spans[at]);
        let first = if at.is_multiple_of(2) {
            // From end to end.
            let first = next[at] % (spans[at] - length + 1);
            next[at] = first + length;
            first
        } else {
            random.below(u64::from(spans[at] - length + 1)) as u32
        };
        if random.below(25) == 0 {
            told.push(Told::Trim(base + first));
        } else {
            // A few writes have no stream.
            let stream = if random.below(50) == 0 { 0 } else { at as u16 + 1 };
            told.push(Told::Write {
                stream,
                first: base + first,
                end: base + first + length,
            });
        }
    }
    told
}

fn built(spec: &str) -> Box<dyn PlacementPolicy> {
    let mut setup = placement::Setup {
        logical_units: UNITS,
        unit_bytes: 4096,
        units_per_ru: 64,
        rus: 80,
        lanes: 1,
        survivors: Survivors::Shared,
        seed: 1,
    };
    let spec = PolicySpec::parse(spec).unwrap();
    placement::catalogue().build(&spec, &mut setup).unwrap()
}

/// A reference: told of each request before its units, then asked about each unit.
trait Reference {
    /// The request begins with its first unit, written at `tick`.
    fn begins(&mut self, first: u32, end: u32, tick: u64);
    fn places(&mut self, lpn: u32, stream: u16, tick: u64) -> Frontier;
    fn trims(&mut self, _lpn: u32, _tick: u64) {}
}

/// Every answer of `spec` is the reference's; half-way it goes on from what it has saved. Returns the answers.
fn same(spec: &str, reference: &mut dyn Reference, seed: u64) -> Vec<Frontier> {
    let mut policy = built(spec);
    let (mut tick, mut answers) = (0, Vec::new());
    for (number, told) in requests(seed).into_iter().enumerate() {
        if number == 10_000 {
            let saved = policy.save();
            policy = built(spec);
            policy.load(&saved).unwrap();
        }
        match told {
            Told::Write { stream, first, end } => {
                for lpn in first..end {
                    tick += 1;
                    if lpn == first {
                        reference.begins(first, end, tick);
                    }
                    let mut context = WriteContext::default();
                    (context.stream, context.request_first) = (stream, Lpn(first));
                    context.request_units = end - first;
                    let frontier = policy.host(&HostWrite {
                        lpn: Lpn(lpn),
                        context: &context,
                        since: None,
                        dies: None,
                        now: Now { tick, time_ns: 0 },
                    });
                    let expected = reference.places(lpn, stream, tick);
                    assert_eq!(frontier, expected, "{spec}, request {number}: {told:?}, unit {lpn}");
                    answers.push(frontier);
                }
            }
            Told::Trim(lpn) => {
                reference.trims(lpn, tick);
                policy.on(Event::Trimmed(Lpn(lpn)), Now { tick, time_ns: 0 });
            }
        }
    }
    answers
}

fn used(answers: &[Frontier]) -> usize {
    answers.iter().collect::<std::collections::BTreeSet<_>>().len()
}

/// All that vStream is told, kept for good.
struct VStream {
    streams: usize,
    remap: u64,
    is_log: bool,
    /// Of each unit that is alive: who wrote it, and when.
    alive: BTreeMap<u32, (u16, u64)>,
    ages_at_death: BTreeMap<u16, Vec<u64>>,
    opened: Vec<u16>,
    mapped: BTreeMap<u16, Frontier>,
    remapped_at: u64,
}

impl VStream {
    fn lifetime(&self, stream: u16, tick: u64) -> Option<f64> {
        if let Some(ages) = self.ages_at_death.get(&stream) {
            let (first, later) = ages.split_at(ages.len().min(8));
            let mean = first.iter().sum::<u64>() as f64 / first.len() as f64;
            return Some(later.iter().fold(mean, |mean, &age| 0.875 * mean + 0.125 * age as f64));
        }
        let of_stream = self.alive.values().filter(|(by, _)| *by == stream);
        let ages: Vec<u64> = of_stream.map(|(_, written)| tick - written).collect();
        let mean = ages.iter().sum::<u64>() as f64 / ages.len() as f64;
        (!ages.is_empty() && mean > 0.0).then_some(mean)
    }

    fn remaps(&mut self, tick: u64) {
        self.remapped_at = tick;
        let scaled = |lifetime: f64| if self.is_log { (1.0 + lifetime).log2() } else { lifetime };
        let of = |&stream: &u16| Some((scaled(self.lifetime(stream, tick)?), stream));
        let mut known: Vec<(f64, u16)> = self.opened.iter().filter_map(of).collect();
        known.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let k = self.streams;
        if known.len() <= k {
            self.mapped = (1..)
                .zip(&known)
                .map(|(number, &(_, stream))| (stream, number))
                .collect();
            return;
        }
        let mut centres: Vec<f64> = (0..k).map(|i| known[known.len() * (2 * i + 1) / (2 * k)].0).collect();
        let nearest = |centres: &[f64], value: f64| {
            let distance = |at: &usize| (centres[*at] - value).abs();
            (0..k).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap()
        };
        for _ in 0..100 {
            let before = centres.clone();
            for (at, centre) in centres.iter_mut().enumerate() {
                let members = known
                    .iter()
                    .map(|(value, _)| *value)
                    .filter(|&value| nearest(&before, value) == at);
                let members: Vec<f64> = members.collect();
                if !members.is_empty() {
                    *centre = members.iter().sum::<f64>() / members.len() as f64;
                }
            }
            if centres == before {
                break;
            }
        }
        let places = known
            .iter()
            .map(|&(value, stream)| (stream, nearest(&centres, value) as Frontier + 1));
        self.mapped = places.collect();
    }
}

impl Reference for VStream {
    fn begins(&mut self, _first: u32, _end: u32, _tick: u64) {}

    fn places(&mut self, lpn: u32, stream: u16, tick: u64) -> Frontier {
        self.trims(lpn, tick);
        if stream > 0 {
            self.alive.insert(lpn, (stream, tick));
            if !self.opened.contains(&stream) {
                self.opened.push(stream);
            }
        }
        if tick - self.remapped_at >= self.remap {
            self.remaps(tick);
        }
        self.mapped.get(&stream).copied().unwrap_or(0)
    }

    fn trims(&mut self, lpn: u32, tick: u64) {
        if let Some((stream, written)) = self.alive.remove(&lpn) {
            self.ages_at_death.entry(stream).or_default().push(tick - written);
        }
    }
}

#[test]
fn vstream_maps_as_its_page_says() {
    for (streams, distance, remap) in [
        (2, "linear", 500),
        (3, "log", 3000),
        (4, "log", 777),
        (8, "linear", 5000),
    ] {
        let mut reference = VStream {
            streams,
            remap,
            is_log: distance == "log",
            alive: BTreeMap::new(),
            ages_at_death: BTreeMap::new(),
            opened: Vec::new(),
            mapped: BTreeMap::new(),
            remapped_at: 0,
        };
        let spec = format!("vstream:streams={streams},distance={distance},remap={remap},sample=1");
        let answers = same(&spec, &mut reference, streams as u64);
        // Six virtual streams use all of the device's, or one each, and the default one before the first remapping; the seventh has
        // written its data by then.
        assert_eq!(used(&answers), streams.min(6) + 1, "{spec}");
    }
}

/// The greatest power of `base` that is no more than `count`, below `streams`.
fn level(count: u64, base: f64, streams: u16) -> Frontier {
    let power = (0..streams)
        .rev()
        .find(|&power| base.powi(i32::from(power)) <= count as f64);
    power.unwrap_or(0)
}

/// For each request that touched a chunk the tick of its first unit.
struct Sfr {
    chunk: u32,
    decay: u64,
    base: f64,
    streams: u16,
    counts: BTreeMap<u32, (u64, u64)>,
    end: u32,
    is_sequential: bool,
    last: Frontier,
}

impl Reference for Sfr {
    fn begins(&mut self, first: u32, end: u32, tick: u64) {
        self.is_sequential = first == self.end && first > 0;
        self.end = end;
        let touched: std::collections::BTreeSet<u32> = (first..end).map(|lpn| lpn / self.chunk).collect();
        for chunk in touched {
            let (count, last) = self.counts.get(&chunk).copied().unwrap_or((0, 0));
            let halved = (0..(tick - last) / self.decay).fold(count, |count, _| count / 2);
            self.counts.insert(chunk, (halved + 1, tick));
        }
    }

    fn places(&mut self, lpn: u32, _stream: u16, _tick: u64) -> Frontier {
        if !self.is_sequential {
            self.last = level(self.counts[&(lpn / self.chunk)].0, self.base, self.streams);
        }
        self.last
    }
}

#[test]
fn automatic_streams_by_frequency_are_those_of_their_page() {
    for (streams, chunk_kib, decay_mib, base) in [(8, 64, 1, 2.0), (4, 512, 16, 2.0), (6, 4, 4, 2.5)] {
        let mut reference = Sfr {
            chunk: chunk_kib / 4,
            decay: decay_mib * 256,
            base,
            streams,
            counts: BTreeMap::new(),
            end: 0,
            is_sequential: false,
            last: 0,
        };
        let spec =
            format!("autostream_sfr:streams={streams},chunk_kib={chunk_kib},decay_mib={decay_mib},log_base={base}");
        let answers = same(&spec, &mut reference, u64::from(streams));
        assert!(used(&answers) > 3, "{spec}");
    }
}

/// Chunks in the order of their touches, the last at the end; all queues are one list that is searched.
struct MultiQueue {
    chunk: u32,
    base: f64,
    streams: u16,
    now: u64,
    lifetime: u64,
    hottest: Option<u32>,
    most: u64,
    /// Chunk, count, queue, tick of the last touch, tick at which it expires.
    order: Vec<(u32, u64, Frontier, u64, u64)>,
}

impl Reference for MultiQueue {
    fn begins(&mut self, first: u32, end: u32, _tick: u64) {
        let touched: std::collections::BTreeSet<u32> = (first..end).map(|lpn| lpn / self.chunk).collect();
        for chunk in touched {
            self.now += 1;
            let known = self.order.iter().position(|known| known.0 == chunk);
            let (_, before, _, last, _) = known.map_or((chunk, 0, 0, 0, 0), |at| self.order.remove(at));
            let count = before + 1;
            if count > self.most {
                (self.hottest, self.most, self.lifetime) = (Some(chunk), count, self.now - last);
            }
            let queue = level(count, self.base, self.streams);
            self.order
                .push((chunk, count, queue, self.now, self.now + self.lifetime));
            for queue in 0..self.streams {
                self.demotes(queue);
            }
        }
    }

    fn places(&mut self, lpn: u32, _stream: u16, _tick: u64) -> Frontier {
        let known = self.order.iter().find(|known| known.0 == lpn / self.chunk);
        known.unwrap().2
    }
}

impl MultiQueue {
    fn demotes(&mut self, queue: Frontier) {
        let Some(at) = self.order.iter().position(|known| known.2 == queue) else {
            return;
        };
        if self.order[at].4 >= self.now {
            return;
        }
        let (chunk, count, _, last, _) = self.order.remove(at);
        if self.hottest == Some(chunk)
            && let Some(next) = self.order.iter().find(|known| known.2 == queue)
        {
            (self.hottest, self.most) = (Some(next.0), next.1);
        }
        let below = queue.saturating_sub(1);
        self.order.push((chunk, count, below, last, self.now + self.lifetime));
    }
}

#[test]
fn automatic_streams_by_queues_are_those_of_their_page() {
    for (streams, chunk_kib, base) in [(8, 64, 2.0), (4, 512, 2.0), (6, 16, 2.5)] {
        let mut reference = MultiQueue {
            chunk: chunk_kib / 4,
            base,
            streams,
            now: 0,
            lifetime: 0,
            hottest: None,
            most: 0,
            order: Vec::new(),
        };
        let spec = format!("autostream_mq:streams={streams},chunk_kib={chunk_kib},log_base={base}");
        let answers = same(&spec, &mut reference, u64::from(streams));
        assert!(used(&answers) > 3, "{spec}");
    }
}
