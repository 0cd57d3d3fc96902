//! The naive reference: what each LPN holds, and what it may hold after a power cut.

use std::collections::VecDeque;

/// What the host has done to one LPN since the last state that a power cut cannot undo, oldest first. The first entry is
/// that state. 0 stands for "never written or trimmed".
#[derive(Clone, Debug, Default)]
struct History {
    /// (stamp, number of the request that did it).
    states: VecDeque<(u32, u64)>,
    /// Requests among them that only a flush makes durable although they are not trims: the journal says what they did.
    lazy: Vec<u64>,
}

/// A map from LPN to stamp, with the past that has not become durable yet.
#[derive(Clone, Debug)]
pub struct Reference {
    lpns: Vec<History>,
}

impl Reference {
    pub fn new(logical_units: u32) -> Self {
        let blank = History {
            states: VecDeque::from([(0, 0)]),
            lazy: Vec::new(),
        };
        Reference {
            lpns: vec![blank; logical_units as usize],
        }
    }

    pub fn len(&self) -> u32 {
        self.lpns.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.lpns.is_empty()
    }

    /// Request number `request` has written `stamp` (0: trimmed) to `lpn`.
    pub fn changed(&mut self, lpn: u32, stamp: u32, request: u64) {
        self.lpns[lpn as usize].states.push_back((stamp, request));
    }

    /// Request number `request` has changed `lpn` in a way that waits for the next flush to become durable.
    pub fn lazy(&mut self, lpn: u32, request: u64) {
        self.lpns[lpn as usize].lazy.push(request);
    }

    /// What a read must return.
    pub fn latest(&self, lpn: u32) -> u32 {
        self.lpns[lpn as usize].states.back().expect("never empty").0
    }

    /// Request `request` has become durable on `lpn`: nothing older may come back.
    pub fn durable(&mut self, lpn: u32, request: u64) {
        let states = &mut self.lpns[lpn as usize].states;
        let Some(last) = states.iter().rposition(|&(_, number)| number == request) else {
            return;
        };
        states.drain(..last);
    }

    /// Flush number `request` has completed: what was acknowledged before it is durable. Without a volatile buffer writes
    /// are acknowledged one by one when they are durable, and only trims and what
    /// is lazy are left for it.
    pub fn flushed(&mut self, request: u64, trims_only: bool) {
        for history in &mut self.lpns {
            let by_flush = |stamp: u32, number: u64| stamp == 0 || history.lazy.contains(&number);
            let covered = |&(stamp, number): &(u32, u64)| number <= request && (!trims_only || by_flush(stamp, number));
            if let Some(last) = history.states.iter().rposition(covered) {
                history.states.drain(..last);
            }
        }
    }

    /// Whether a power cut may leave `stamp` behind.
    pub fn allows(&self, lpn: u32, stamp: u32) -> bool {
        self.lpns[lpn as usize].states.iter().any(|&(state, _)| state == stamp)
    }

    pub fn show(&self, lpn: u32) -> String {
        format!("{:?}", self.lpns[lpn as usize].states)
    }

    /// Power is back and `lpn` holds `stamp`, for good.
    pub fn settle(&mut self, lpn: u32, stamp: u32) {
        self.lpns[lpn as usize] = History {
            states: VecDeque::from([(stamp, 0)]),
            lazy: Vec::new(),
        };
    }
}
