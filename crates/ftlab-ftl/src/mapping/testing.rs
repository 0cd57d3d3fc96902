//! A mapping policy by itself: accesses in, charges out as words.

use ftlab_core::PolicySpec;

use super::{Charge, MapCause, MappingPolicy, RecordView, Setup, Why, catalogue};

/// A policy over a map whose entries count their changes.
pub struct Harness {
    pub policy: Box<dyn MappingPolicy>,
    pub entries: Vec<u32>,
    /// Whether all entries are held against the record after each access.
    pub checked: bool,
    next: u32,
}

impl Harness {
    /// `spec` over `units` keys, translation pages of `unit_bytes`, a cache of `cache_bytes`.
    pub fn new(spec: &str, units: u32, unit_bytes: u32, cache_bytes: u64) -> Self {
        let mut setup = Setup {
            logical_units: units,
            values: 0,
            rows: 0,
            unit_bytes,
            cache_bytes,
            layout: None,
            checked: true,
            beside_slot: 0,
        };
        let policy = catalogue()
            .build(&PolicySpec::parse(spec).unwrap(), &mut setup)
            .unwrap();
        Harness {
            policy,
            entries: (0..units).collect(),
            checked: true,
            next: units,
        }
    }

    pub fn read(&mut self, key: u32) -> String {
        self.read_run(key, 1)
    }

    /// A host read of several keys in one request.
    pub fn read_run(&mut self, first: u32, count: u32) -> String {
        let mut charges = Vec::new();
        for key in first..first + count {
            let view = RecordView::of_map(&self.entries, first + count);
            self.policy.look_up(0, key, 1, Why::HostRead, view, &mut charges);
        }
        self.check();
        words(&charges)
    }

    pub fn write(&mut self, key: u32) -> String {
        let mut charges = Vec::new();
        let view = RecordView::of_map(&self.entries, key + 1);
        self.policy.look_up(0, key, 1, Why::HostWrite, view, &mut charges);
        self.change(key);
        let view = RecordView::of_map(&self.entries, key + 1);
        self.policy.updated(0, key, view, &mut charges);
        self.check();
        words(&charges)
    }

    pub fn moved(&mut self, keys: &[u32]) -> String {
        let mut charges = Vec::new();
        keys.iter().for_each(|&key| self.change(key));
        let view = RecordView::of_map(&self.entries, 0);
        self.policy.moved(0, keys, view, &mut charges);
        self.check();
        words(&charges)
    }

    /// Hits and look-ups.
    pub fn hits(&self) -> (u64, u64) {
        let counts = self.policy.counts();
        (counts.hits, counts.lookups)
    }

    /// A figure of the policy's report.
    pub fn figure(&self, name: &str) -> f64 {
        let report = self.policy.report();
        report
            .iter()
            .find(|(key, _)| *key == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .1
    }

    fn change(&mut self, key: u32) {
        self.entries[key as usize] = self.next;
        self.next += 1;
    }

    /// Cached entries equal the record.
    fn check(&self) {
        if !self.checked {
            return;
        }
        for (key, &entry) in self.entries.iter().enumerate() {
            if let Some((cached, _)) = self.policy.cached(0, key as u32) {
                assert_eq!(cached, entry, "key {key}");
            }
        }
    }
}

/// Charges as words: `load 3` (a miss), `evict 3` and `gc 3` (read and program), `store 3` (program alone), `probe`, `write`,
/// `drop`, `spare 9 for 8` (slots), `then`.
fn words(charges: &[Charge]) -> String {
    let mut words = Vec::new();
    let mut loaded = None;
    for charge in charges {
        let name = |cause: MapCause| match cause {
            MapCause::EvictRmw => "evict",
            MapCause::GcUpdate => "gc",
            MapCause::MissLoad => "load",
            MapCause::Policy => "own",
        };
        match *charge {
            Charge::Load {
                tvpn,
                cause: MapCause::MissLoad,
                ..
            } => words.push(format!("load {tvpn}")),
            Charge::Load { tvpn, cause, .. } => loaded = Some((tvpn, cause)),
            Charge::Store { tvpn, cause, .. } => {
                let both = loaded.take() == Some((tvpn, cause));
                words.push(format!("{} {tvpn}", if both { name(cause) } else { "store" }));
            }
            Charge::Probe { page } => words.push(format!("probe {page}")),
            Charge::Write { page } => words.push(format!("write {page}")),
            Charge::Drop { page } => words.push(format!("drop {page}")),
            Charge::ReadSpare { near, lpn } => words.push(format!("spare {} for {}", near.0, lpn.0)),
            Charge::Then => words.push("then".to_owned()),
        }
    }
    words.join(" ")
}
