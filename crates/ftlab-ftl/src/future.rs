//! The future, for oracles: when each version of each unit will die.
//!
//! A first pass of the workload over a drive whose placement is a [`Recorder`] finds what is placed and what dies, in
//! order: each write patches the death of the version before it, and a trim ends a version as well. With it a second pass
//! knows at each placement when that version will be superseded or trimmed. Both passes must place the same units in the same
//! order; the times of deaths are ticks.
//!
//! # Cost
//! 8 bytes a logical unit and 8 bytes a version, of which the last so many lie in memory and the others in a [`Spool`].

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use ftlab_core::Lpn;

use crate::Now;
use crate::frontier::Frontier;
use crate::placement::{Event, HostWrite, PlacementPolicy};

/// Outlives the workload.
const NEVER: u64 = u64::MAX;
/// An LPN that holds nothing.
const NOTHING: u64 = u64::MAX;
const ENTRY_BYTES: usize = size_of::<u64>();
/// Entries that are read from a spool at once.
const CHUNK: usize = 1 << 16;

/// Where deaths lie that have no room in memory.
pub trait Spool: Send {
    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    fn read_at(&mut self, bytes: &mut [u8], at: u64) -> io::Result<()>;
}

/// Makes a spool when it is needed.
pub type MakeSpool = Box<dyn FnOnce() -> io::Result<Box<dyn Spool>> + Send>;

/// The tick at which each version dies. The first versions, one for each logical unit, are what the drive holds before the
/// first write; the others are numbered as they are placed.
struct Deaths {
    /// Version of the first entry of `recent`.
    base: u64,
    recent: Vec<u64>,
    /// Entries that may lie in memory.
    most: usize,
    spool: Option<Box<dyn Spool>>,
    make: Option<MakeSpool>,
}

impl Deaths {
    /// One more version, that never dies as far as is known. Its number.
    fn push(&mut self) -> io::Result<u64> {
        if self.recent.len() >= self.most {
            self.spill()?;
        }
        self.recent.push(NEVER);
        Ok(self.base + self.recent.len() as u64 - 1)
    }

    /// The older half of what lies in memory goes into the spool.
    fn spill(&mut self) -> io::Result<()> {
        if let Some(make) = self.make.take() {
            self.spool = Some(make()?);
        }
        let Some(spool) = &mut self.spool else { return Ok(()) };
        let older = self.recent.len().div_ceil(2);
        for chunk in self.recent[..older].chunks(CHUNK) {
            let bytes: Vec<u8> = chunk.iter().flat_map(|death| death.to_le_bytes()).collect();
            spool.write_at(&bytes, self.base * ENTRY_BYTES as u64)?;
            self.base += chunk.len() as u64;
        }
        self.recent.drain(..older);
        Ok(())
    }

    fn set(&mut self, version: u64, tick: u64) -> io::Result<()> {
        match (version.checked_sub(self.base), &mut self.spool) {
            (Some(at), _) => self.recent[at as usize] = tick,
            (None, Some(spool)) => spool.write_at(&tick.to_le_bytes(), version * ENTRY_BYTES as u64)?,
            (None, None) => unreachable!("version {version} lies before {} without a spool", self.base),
        }
        Ok(())
    }

    /// Deaths of the versions from `first` on, as many as can be had at once; none after the last.
    fn chunk(&mut self, first: u64, into: &mut Vec<u64>) -> io::Result<()> {
        into.clear();
        match (first.checked_sub(self.base), &mut self.spool) {
            (Some(at), _) => {
                let rest = self.recent.get(at as usize..).unwrap_or_default();
                into.extend_from_slice(&rest[..rest.len().min(CHUNK)]);
            }
            (None, Some(spool)) => {
                let entries = (self.base - first).min(CHUNK as u64) as usize;
                let mut bytes = vec![0; entries * ENTRY_BYTES];
                spool.read_at(&mut bytes, first * ENTRY_BYTES as u64)?;
                let deaths = bytes.as_chunks::<ENTRY_BYTES>().0.iter();
                into.extend(deaths.map(|death| u64::from_le_bytes(*death)));
            }
            (None, None) => unreachable!("version {first} lies before {} without a spool", self.base),
        }
        Ok(())
    }
}

/// The first pass.
struct Recording {
    deaths: Deaths,
    /// The living version of each LPN, or [`NOTHING`].
    living: Vec<u64>,
    /// The spool refuses.
    fault: Option<io::Error>,
}

impl Recording {
    /// A version of `lpn` is placed: the one before it dies.
    fn placed(&mut self, lpn: Lpn, tick: u64) -> io::Result<()> {
        self.dies(lpn, tick)?;
        self.living[lpn.at()] = self.deaths.push()?;
        Ok(())
    }

    /// The version of `lpn` that lives dies.
    fn dies(&mut self, lpn: Lpn, tick: u64) -> io::Result<()> {
        match std::mem::replace(&mut self.living[lpn.at()], NOTHING) {
            NOTHING => Ok(()),
            version => self.deaths.set(version, tick),
        }
    }
}

/// Deaths in the order in which versions are placed.
#[derive(Default)]
pub struct Future {
    deaths: Option<Deaths>,
    /// The version that is placed next, the deaths from a version before it on, and where in them it lies.
    next: u64,
    ahead: Vec<u64>,
    at: usize,
    /// When the present version of each LPN dies.
    present: Vec<u64>,
    fault: Option<io::Error>,
}

impl Future {
    fn new(mut deaths: Deaths, logical_units: usize) -> io::Result<Self> {
        let (mut present, mut chunk) = (Vec::with_capacity(logical_units), Vec::new());
        while present.len() < logical_units {
            deaths.chunk(present.len() as u64, &mut chunk)?;
            present.extend_from_slice(&chunk[..chunk.len().min(logical_units - present.len())]);
        }
        Ok(Future {
            deaths: Some(deaths),
            next: logical_units as u64,
            present,
            ..Future::default()
        })
    }

    /// The next version, one of `lpn`, is being placed; when it will die.
    pub(crate) fn place(&mut self, lpn: Lpn) -> Option<u64> {
        let deaths = self.deaths.as_mut()?;
        if self.at == self.ahead.len() {
            if let Err(fault) = deaths.chunk(self.next, &mut self.ahead) {
                self.fault.get_or_insert(fault);
            }
            self.at = 0;
        }
        self.present[lpn.at()] = self.ahead.get(self.at).copied().unwrap_or(NEVER);
        self.at = (self.at + 1).min(self.ahead.len());
        self.next += 1;
        self.of(lpn)
    }

    /// When the present version of `lpn` will die.
    pub(crate) fn of(&self, lpn: Lpn) -> Option<u64> {
        self.present.get(lpn.at()).copied().filter(|&tick| tick != NEVER)
    }

    /// Why the future could not be read to its end.
    pub(crate) fn fault(&self) -> Option<&io::Error> {
        self.fault.as_ref()
    }
}

/// A placement that puts everything at one frontier and writes down what is placed and what dies.
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
}

/// Where a [`Recorder`] leaves what it has seen.
pub struct Recorded(Arc<Mutex<Recording>>);

impl Recorder {
    /// Keeps everything in memory.
    pub fn new(logical_units: u32) -> (Self, Recorded) {
        Self::with(logical_units, usize::MAX, None)
    }

    /// Keeps at most `most` deaths in memory, and the others in a spool.
    pub fn spooled(logical_units: u32, most: usize, make: MakeSpool) -> (Self, Recorded) {
        Self::with(logical_units, most.max(1), Some(make))
    }

    fn with(logical_units: u32, most: usize, make: Option<MakeSpool>) -> (Self, Recorded) {
        let recording = Recording {
            deaths: Deaths {
                base: 0,
                recent: vec![NEVER; logical_units as usize],
                most,
                spool: None,
                make,
            },
            living: (0..u64::from(logical_units)).collect(),
            fault: None,
        };
        let recording = Arc::new(Mutex::new(recording));
        let recorder = Recorder {
            recording: recording.clone(),
        };
        (recorder, Recorded(recording))
    }

    fn write(&self, change: impl FnOnce(&mut Recording) -> io::Result<()>) {
        let mut recording = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        if recording.fault.is_none() {
            recording.fault = change(&mut recording).err();
        }
    }
}

impl Recorded {
    /// The future as a run from the beginning will meet it.
    ///
    /// # Errors
    /// The spool could not be written or read.
    pub fn into_future(self) -> io::Result<Future> {
        let mut recording = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fault) = recording.fault.take() {
            return Err(fault);
        }
        let nothing = Deaths {
            base: 0,
            recent: Vec::new(),
            most: 0,
            spool: None,
            make: None,
        };
        let deaths = std::mem::replace(&mut recording.deaths, nothing);
        let logical_units = std::mem::take(&mut recording.living).len();
        Future::new(deaths, logical_units)
    }
}

impl PlacementPolicy for Recorder {
    fn host_frontiers(&self) -> Frontier {
        1
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        self.write(|recording| recording.placed(write.lpn, write.now.tick));
        0
    }

    fn on(&mut self, event: Event, now: Now) {
        if let Event::Trimmed(lpn) = event {
            self.write(|recording| recording.dies(lpn, now.tick));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::WriteContext;

    /// A spool in memory, and one that is full after some bytes.
    struct Bytes(Vec<u8>, usize);

    impl Spool for Bytes {
        fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
            let end = at as usize + bytes.len();
            if end > self.1 {
                return Err(io::Error::other("full"));
            }
            self.0.resize(self.0.len().max(end), 0);
            self.0[at as usize..end].copy_from_slice(bytes);
            Ok(())
        }

        fn read_at(&mut self, bytes: &mut [u8], at: u64) -> io::Result<()> {
            bytes.copy_from_slice(&self.0[at as usize..at as usize + bytes.len()]);
            Ok(())
        }
    }

    /// LPN, and whether it is written (else trimmed), one a tick from tick 1 on.
    fn recorded(units: u32, changes: &[(u32, bool)], most: usize, room: usize) -> io::Result<Future> {
        let (mut recorder, recorded) = Recorder::spooled(
            units,
            most,
            Box::new(move || Ok(Box::new(Bytes(Vec::new(), room)) as Box<dyn Spool>)),
        );
        for (tick, &(lpn, written)) in (1..).zip(changes) {
            let now = Now { tick, ..Now::default() };
            let lpn = Lpn(lpn);
            if written {
                let context = &WriteContext::default();
                recorder.host(&HostWrite {
                    lpn,
                    context,
                    since: None,
                    dies: None,
                    now,
                });
            } else {
                recorder.on(Event::Trimmed(lpn), now);
            }
        }
        recorded.into_future()
    }

    /// Unit 0 is written at 1, 3 and 6 and trimmed at 4 and 5; unit 1 at 2; unit 2 is not written, but trimmed at 7.
    const CHANGES: [(u32, bool); 7] = [
        (0, true),
        (1, true),
        (0, true),
        (0, false),
        (0, false),
        (0, true),
        (2, false),
    ];

    #[test]
    fn deaths_come_by_overwrite_and_by_trim() {
        let mut future = recorded(4, &CHANGES, usize::MAX, 0).unwrap();
        // What was there before the first write dies with it.
        assert_eq!(
            [0, 1, 2, 3].map(|lpn| future.of(Lpn(lpn))),
            [Some(1), Some(2), Some(7), None]
        );
        assert_eq!([0, 1, 0].map(|lpn| future.place(Lpn(lpn))), [Some(3), None, Some(4)]);
        assert_eq!(future.of(Lpn(0)), Some(4));
        assert_eq!(
            [0, 1].map(|lpn| future.place(Lpn(lpn))),
            [None, None],
            "the last, and one too many"
        );
    }

    /// Whatever lies in memory, from one entry to all.
    #[test]
    fn what_is_spooled_is_the_same_future() {
        let changes: Vec<(u32, bool)> = (0u32..300).map(|i| (i * i % 17, i % 7 != 3)).collect();
        let told = |most: usize| {
            let mut future = recorded(20, &changes, most, usize::MAX).unwrap();
            let placed: Vec<Option<u64>> = changes
                .iter()
                .filter(|change| change.1)
                .map(|&(lpn, _)| future.place(Lpn(lpn)))
                .collect();
            placed
        };
        let expected = told(usize::MAX);
        assert!(expected.iter().flatten().count() > 100);
        for most in [1, 2, 3, 20, 21, 100] {
            assert_eq!(told(most), expected, "{most} in memory");
        }
    }

    #[test]
    fn a_spool_that_is_full_is_told() {
        let refused = recorded(20, &[(1, true); 40], 4, 100).err().unwrap();
        assert_eq!(refused.to_string(), "full");
    }
}
