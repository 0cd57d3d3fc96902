//! What a power cut would bring back: older data of units that the drive has not made durable.
//!
//! # Model
//! Before a unit is overwritten or trimmed, what it held is kept with the version that the device gives it. It is let go when a newer
//! version has become durable: by a flush that was submitted after that was acknowledged, by FUA, or at once on a drive that
//! keeps what it acknowledged. After a power cut the device says which version of each unit it has found, and that data comes back.
//! No two changes of a unit are under way at once (the engine sees to it), so that each version belongs to one change.
//!
//! # Cost
//! A mapping unit of memory for each change that is not durable.

use rustc_hash::FxHashMap;

/// What a unit held before it was changed.
struct Before {
    version: u32,
    /// `None`: zeros.
    data: Option<Box<[u8]>>,
    /// Number of the acknowledgement of what replaced it; `None`: under way.
    replaced_by: Option<u64>,
}

pub struct PowerLog {
    unit_bytes: u64,
    units: FxHashMap<u64, Vec<Before>>,
    bytes: u64,
    acknowledged: u64,
}

impl PowerLog {
    pub fn new(unit_bytes: u32) -> Self {
        PowerLog {
            unit_bytes: u64::from(unit_bytes),
            units: FxHashMap::default(),
            bytes: 0,
            acknowledged: 0,
        }
    }

    pub fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    /// Bytes of data that are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Acknowledgements so far: a flush covers those before it.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// `unit` is about to change; it held `data` as `version`.
    pub fn changing(&mut self, unit: u64, version: u32, data: Option<Box<[u8]>>) {
        self.bytes += data.as_ref().map_or(0, |data| data.len() as u64);
        self.units.entry(unit).or_default().push(Before {
            version,
            data,
            replaced_by: None,
        });
    }

    /// The change of `units` is acknowledged, and durable if the drive says so.
    pub fn changed(&mut self, units: std::ops::Range<u64>, durable: bool) {
        self.acknowledged += 1;
        for unit in units {
            if durable {
                self.forget(unit);
            } else if let Some(last) = self.units.get_mut(&unit).and_then(|all| all.last_mut()) {
                last.replaced_by = Some(self.acknowledged);
            }
        }
    }

    /// The change of `unit` that is under way has come to nothing if the device still has the version before it: what it held.
    pub fn undo(&mut self, unit: u64, version: u32) -> Option<Option<Box<[u8]>>> {
        let all = self.units.get_mut(&unit)?;
        let before = all.pop_if(|before| before.version == version && before.replaced_by.is_none())?;
        if all.is_empty() {
            self.units.remove(&unit);
        }
        self.bytes -= before.data.as_ref().map_or(0, |data| data.len() as u64);
        Some(before.data)
    }

    /// A flush that was submitted after so many acknowledgements is done.
    pub fn flushed(&mut self, acknowledged: u64) {
        let bytes = &mut self.bytes;
        self.units.retain(|_, all| {
            let covered = |before: &Before| before.replaced_by.is_some_and(|number| number <= acknowledged);
            let durable = all.iter().rposition(covered).map_or(0, |last| last + 1);
            for before in all.drain(..durable) {
                *bytes -= before.data.map_or(0, |data| data.len() as u64);
            }
            !all.is_empty()
        });
    }

    /// Power has failed: for each unit that may have changed, the data it holds again, if `version` of it is an older one. In order
    /// of units.
    pub fn fail(&mut self, version: impl Fn(u64) -> u32) -> Vec<(u64, Option<Box<[u8]>>)> {
        self.bytes = 0;
        let mut all: Vec<_> = std::mem::take(&mut self.units).into_iter().collect();
        all.sort_unstable_by_key(|(unit, _)| *unit);
        let back = all.into_iter().filter_map(|(unit, versions)| {
            let found = version(unit);
            let older = versions.into_iter().rfind(|before| before.version == found)?;
            Some((unit, older.data))
        });
        back.collect()
    }

    fn forget(&mut self, unit: u64) {
        for before in self.units.remove(&unit).into_iter().flatten() {
            self.bytes -= before.data.map_or(0, |data| data.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(byte: u8) -> Option<Box<[u8]>> {
        Some(vec![byte; 4].into())
    }

    /// Unit 3 holds 1, then 2, then 3; a flush between 2 and 3 makes 2 durable. The device finds version 12 (data 2), which
    /// comes back; what it held before is no longer kept.
    #[test]
    fn the_version_that_the_device_finds_comes_back() {
        let mut log = PowerLog::new(4);
        log.changing(3, 11, data(1));
        log.changed(3..4, false);
        let flush = log.acknowledged();
        log.changing(3, 12, data(2));
        log.changed(3..4, false);
        assert_eq!(log.bytes(), 8);
        log.flushed(flush);
        assert_eq!(log.bytes(), 4);
        assert_eq!(log.fail(|_| 12), [(3, data(2))]);
        assert_eq!((log.bytes(), log.fail(|_| 12).len()), (0, 0));
    }

    #[test]
    fn a_flush_covers_only_what_was_acknowledged_before_it() {
        let mut log = PowerLog::new(4);
        log.changing(0, 0, None);
        let flush = log.acknowledged();
        log.changed(0..1, false);
        log.flushed(flush);
        assert_eq!(log.fail(|_| 0), [(0, None)]);
    }

    #[test]
    fn a_newest_version_stays_and_durable_ones_are_forgotten() {
        let mut log = PowerLog::new(4);
        log.changing(0, 5, data(1));
        log.changed(0..1, true);
        log.changing(1, 6, data(1));
        log.changed(1..2, false);
        assert_eq!(log.fail(|unit| 7 + unit as u32), []);
        log.changing(2, 8, data(4));
        assert_eq!(log.undo(2, 9), None);
        assert_eq!(log.undo(2, 8), Some(data(4)));
        assert_eq!((log.bytes(), log.undo(2, 8)), (0, None));
    }
}
