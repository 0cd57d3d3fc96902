//! Deduplication out of line: units are stored as they come, and merged in idle moments, when they have been read and hashed.

use std::collections::VecDeque;

use ftlab_core::Lpn;
use ftlab_ftl::Now;
use ftlab_ftl::dedup::{Decision, DedupPolicy, DedupWrite, Event, Idle, IdleWork, Work};
use ftlab_ftl::indirection::Of;
use rustc_hash::FxHashMap;

#[derive(Default)]
pub struct OutOfLine {
    asked: u64,
    contents: FxHashMap<Of, u64>,
    /// Of the contents that have been examined.
    places: FxHashMap<u64, Of>,
    waiting: VecDeque<Lpn>,
    examined: Option<Lpn>,
    merges: u64,
}

impl DedupPolicy for OutOfLine {
    fn report(&self) -> Vec<(&'static str, f64)> {
        vec![("merges", self.merges as f64)]
    }

    fn write(&mut self, write: &DedupWrite<'_>, _: &mut Vec<Work>) -> Decision {
        self.asked = write.content;
        Decision::Store
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Stored { lpn, of } => {
                self.contents.insert(of, self.asked);
                self.waiting.push_back(lpn);
            }
            Event::Became { lpn, vpn } => {
                if let Some(content) = self.contents.remove(&Of::Lpn(lpn)) {
                    self.contents.insert(Of::Vpn(vpn), content);
                    if self.places.get(&content) == Some(&Of::Lpn(lpn)) {
                        self.places.insert(content, Of::Vpn(vpn));
                    }
                }
            }
            Event::Gone(of) => {
                if let Some(content) = self.contents.remove(&of)
                    && self.places.get(&content) == Some(&of)
                {
                    self.places.remove(&content);
                }
            }
            Event::ChunkStored { .. } | Event::ChunkGone(_) => {}
        }
    }

    fn idle_ns(&self) -> Option<u64> {
        Some(70_000)
    }

    fn idle_units(&self) -> Option<u64> {
        Some(9)
    }

    fn when_idle(&mut self, _: &Idle<'_>, works: &mut Vec<Work>) -> Option<IdleWork> {
        if let Some(lpn) = self.examined.take()
            && let Some(&content) = self.contents.get(&Of::Lpn(lpn))
        {
            let first = *self.places.entry(content).or_insert(Of::Lpn(lpn));
            if first != Of::Lpn(lpn) {
                self.merges += 1;
                return Some(IdleWork::Merge { lpn, into: first });
            }
        }
        let lpn = self.waiting.pop_front()?;
        self.examined = Some(lpn);
        works.push(Work::new(0, 20_000));
        Some(IdleWork::Examine { lpn })
    }

    fn forget(&mut self) {
        self.contents.clear();
        self.places.clear();
        self.waiting.clear();
        self.examined = None;
    }
}
