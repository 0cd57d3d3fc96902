//! Whole-unit deduplication with an unlimited table; every fourth content bypasses it.

use ftlab_ftl::dedup::{Decision, DedupPolicy, DedupWrite};
use rustc_hash::FxHashMap;

#[derive(Default)]
pub struct UnitDedup {
    stored: FxHashMap<u64, u32>,
    contents: FxHashMap<u32, u64>,
}

impl DedupPolicy for UnitDedup {
    fn write(&mut self, write: &DedupWrite) -> Decision {
        match self.stored.get(&write.content) {
            _ if write.content % 4 == 3 => Decision::Bypass,
            Some(&vpn) => Decision::Existing(vpn),
            None => Decision::New,
        }
    }

    fn stored(&mut self, content: u64, vpn: u32) {
        let before = self.contents.insert(vpn, content);
        assert!(before.is_none(), "VPN {vpn} is in use and is given to another content");
        self.stored.insert(content, vpn);
    }

    fn forget(&mut self) {
        self.stored.clear();
        self.contents.clear();
    }

    fn dead(&mut self, vpn: u32) {
        if let Some(content) = self.contents.remove(&vpn) {
            self.stored.remove(&content);
        }
    }
}
