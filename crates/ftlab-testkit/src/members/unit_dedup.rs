//! Whole-unit deduplication with an unlimited table; every fourth content is stored without being remembered. Hashing takes time
//! on two engines.

use ftlab_core::Lpn;
use ftlab_ftl::Now;
use ftlab_ftl::dedup::{Decision, DedupPolicy, DedupWrite, Event, Work};
use ftlab_ftl::indirection::{Of, Vpn};
use rustc_hash::FxHashMap;

#[derive(Default)]
pub struct UnitDedup {
    stored: FxHashMap<u64, Of>,
    contents: FxHashMap<Of, u64>,
    asked: u64,
}

impl UnitDedup {
    fn of(kind: u64, number: u64) -> Of {
        match kind {
            0 => Of::Lpn(Lpn(number as u32)),
            _ => Of::Vpn(Vpn(number as u32)),
        }
    }

    fn knows(&mut self, content: u64, of: Of) {
        self.stored.insert(content, of);
        let before = self.contents.insert(of, content);
        assert!(before.is_none(), "{of:?} is in use and holds another content");
    }

    fn forgets(&mut self, of: Of) -> Option<u64> {
        let content = self.contents.remove(&of)?;
        // A rewrite of the same content may have been told of before.
        if self.stored.get(&content) == Some(&of) {
            self.stored.remove(&content);
        }
        Some(content)
    }
}

impl DedupPolicy for UnitDedup {
    fn write(&mut self, write: &DedupWrite<'_>, works: &mut Vec<Work>) -> Decision {
        self.asked = write.content;
        works.push(Work::new((write.content % 2) as u16, 12_000));
        match self.stored.get(&write.content) {
            Some(&of) if write.content % 4 != 3 => Decision::Share(of),
            _ => Decision::Store,
        }
    }

    fn on(&mut self, event: Event, _: Now) {
        match event {
            Event::Stored { of, .. } if self.asked % 4 != 3 => self.knows(self.asked, of),
            Event::Became { lpn, vpn } => {
                if let Some(content) = self.forgets(Of::Lpn(lpn)) {
                    self.knows(content, Of::Vpn(vpn));
                }
            }
            Event::Gone(of) => {
                self.forgets(of);
            }
            _ => {}
        }
    }

    fn forget(&mut self) {
        self.stored.clear();
        self.contents.clear();
    }

    fn save(&self) -> Vec<u8> {
        let mut known: Vec<[u64; 3]> = self
            .contents
            .iter()
            .map(|(&of, &content)| match of {
                Of::Lpn(lpn) => [content, 0, u64::from(lpn.0)],
                Of::Vpn(vpn) => [content, 1, u64::from(vpn.0)],
            })
            .collect();
        // What a content is found by comes last.
        known.sort_unstable_by_key(|&[content, kind, number]| {
            let of = Self::of(kind, number);
            (self.stored.get(&content) == Some(&of), content, kind, number)
        });
        known.into_iter().flatten().flat_map(u64::to_le_bytes).collect()
    }

    fn load(&mut self, saved: &[u8]) -> Result<(), String> {
        for entry in saved.chunks(24) {
            let number = |at: usize| {
                let bytes = entry.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
                bytes.map(u64::from_le_bytes).ok_or("an entry that is cut off")
            };
            self.knows(number(0)?, Self::of(number(1)?, number(2)?));
        }
        Ok(())
    }
}
