//! Requests at given times on a memory, and when each is done.

#![allow(dead_code, reason = "each test program uses a part")]

use ftlab_nvm::Memory;
use ftlab_nvm::address::Place;
use ftlab_nvm::feed::{OpenLoop, Step};
use ftlab_nvm::system::System;

/// A memory with round times: t_rcd 100, t_cl = t_cwl 20, t_rp 10, t_rtp 5, t_ccd 4, t_wr 300, t_burst 4 ns; four banks of four-line rows.
pub const ROUND: &str = r#"
title = "round"
source = "tests"
[geometry]
channels = 1
ranks = 1
banks = 4
row = "256B"
line = "64B"
capacity = "64KiB"
interleave = "row"
[timing]
t_rcd = "100ns"
t_cl = "20ns"
t_cwl = "20ns"
t_rp = "10ns"
t_rtp = "5ns"
t_ccd = "4ns"
t_wr = "300ns"
t_burst = "4ns"
[write]
cost = "line"
buffer = 0
[controller]
scheduler = "hits_first"
queue = 32
"#;

pub fn memory(set: &[&str]) -> Memory {
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Memory::parse(ROUND, "round", &set).unwrap()
}

/// A request in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub at: u64,
    pub write: bool,
    pub bank: u32,
    pub row: u32,
    pub column: u32,
}

pub fn read(at: u64, bank: u32, row: u32, column: u32) -> Ask {
    Ask {
        at,
        write: false,
        bank,
        row,
        column,
    }
}

pub fn write(at: u64, bank: u32, row: u32, column: u32) -> Ask {
    Ask {
        write: true,
        ..read(at, bank, row, column)
    }
}

/// When each request is done, in nanoseconds, and the system afterwards.
pub fn serve(memory: &Memory, asks: &[Ask]) -> (Vec<u64>, System) {
    let step = |ask: &Ask| Step {
        address: memory.map.address(Place {
            channel: 0,
            bank: ask.bank,
            row: ask.row,
            column: ask.column,
        }),
        write: ask.write,
        time: ask.at * 1000,
    };
    let steps: Vec<Step> = asks.iter().map(step).collect();
    let mut feed = OpenLoop::new(Box::new(steps.into_iter()));
    let mut system = System::new(memory);
    let mut times = vec![u64::MAX; asks.len()];
    let mut each = |done: &ftlab_nvm::channel::Done| {
        let time = &mut times[done.tag as usize];
        assert_eq!(*time, u64::MAX, "request {} completes twice", done.tag);
        assert_eq!(done.at % 1000, 0);
        *time = done.at / 1000;
    };
    system.run(memory, &mut feed, &mut each, &mut || Ok(())).unwrap();
    assert!(
        times.iter().all(|&time| time != u64::MAX),
        "a request never completes: {times:?}"
    );
    (times, system)
}

pub fn times(memory: &Memory, asks: &[Ask]) -> Vec<u64> {
    serve(memory, asks).0
}
