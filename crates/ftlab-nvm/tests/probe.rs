//! The micro-benchmark on memories whose functions are known, with noise, and where there is nothing to find.

use ftlab_core::Stream;
use ftlab_nvm::Memory;
use ftlab_nvm::probe::simulated::Simulated;
use ftlab_nvm::probe::{Pairs, find};

fn memory(set: &[&str]) -> Memory {
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Memory::load("archsampler", &set).unwrap()
}

/// Of one span: each follows from the others.
fn same_space(one: &[u64], other: &[u64]) -> bool {
    let rank = |masks: &[u64]| {
        let mut rows: Vec<u64> = Vec::new();
        for &mask in masks {
            let mut rest = mask;
            for &row in &rows {
                rest = rest.min(rest ^ row);
            }
            if rest > 0 {
                rows.push(rest);
            }
        }
        rows.len()
    };
    let both: Vec<u64> = one.iter().chain(other).copied().collect();
    rank(one) == one.len() && rank(other) == other.len() && one.len() == other.len() && rank(&both) == one.len()
}

#[test]
fn functions_and_rows_of_simulated_memories_are_found() {
    let xor = "geometry.bank_functions=[\"0x22000\", \"0x44000\", \"0x88000\"]";
    let cases: [(&[&str], u64); 5] = [
        (&[], 8192),
        // Few rows, so that many pairs of one bank lie in one row.
        (&["geometry.banks=8", "geometry.capacity=512KiB"], 8192),
        (&["geometry.banks=8", "geometry.row=2KiB"], 2048),
        (&["geometry.banks=16", "geometry.interleave=line"], 8192),
        (&["geometry.banks=8", xor], 8192),
    ];
    for (set, row) in cases {
        let memory = memory(set);
        let found = find(&mut Simulated::new(memory.clone()), 1).unwrap();
        assert!(
            same_space(&found.functions, &memory.map.functions),
            "{set:?}: {:x?}",
            found.functions
        );
        assert_eq!(64u64 << found.column_bits, row, "{set:?}");
        assert_eq!(found.right, found.tried);
    }
}

/// Times with something added: a share of noise, and sometimes much.
struct Noisy {
    inner: Simulated,
    random: Stream,
    share: f64,
}

impl Pairs for Noisy {
    fn bits(&self) -> u64 {
        self.inner.bits()
    }
    fn random(&mut self, random: &mut Stream) -> u64 {
        self.inner.random(random)
    }
    fn has(&self, address: u64) -> bool {
        self.inner.has(address)
    }
    fn time(&mut self, one: u64, other: u64) -> f64 {
        let outlier = if self.random.below(500) == 0 { 3.0 } else { 1.0 };
        self.inner.time(one, other) * outlier * (1.0 + self.share * self.random.unit())
    }
}

#[test]
fn noise_is_borne_and_too_much_of_it_is_said() {
    let noisy = |share| Noisy {
        inner: Simulated::new(memory(&[])),
        random: Stream::new(3, "noise"),
        share,
    };
    let found = find(&mut noisy(0.3), 1).unwrap();
    assert!(same_space(&found.functions, &memory(&[]).map.functions));
    let said = find(&mut noisy(20.0), 1).unwrap_err();
    assert!(said.contains("do not fall into two groups"), "{said}");
}

/// Where every pair takes as long, as behind a cache, there is nothing to find.
#[test]
fn nothing_is_found_where_nothing_differs() {
    let flat = memory(&["timing.t_rcd=0ns"]);
    let said = find(&mut Simulated::new(flat), 1).unwrap_err();
    assert!(said.contains("do not fall into two groups"), "{said}");
}
