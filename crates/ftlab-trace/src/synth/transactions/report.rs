//! What transactions took.

use serde_json::{Value, json};

/// Counts of a run of transactions; times in nanoseconds.
#[derive(Clone, Default)]
pub struct Report {
    /// Response time of every committed transaction.
    pub responses: Vec<u64>,
    /// Names of the mix's transactions, and of each: committed, sum of their response times.
    pub kinds: Vec<(&'static str, u64, u128)>,
    pub restarts: u64,
    pub lock_waits: u64,
    pub lock_wait_ns: u128,
    pub accesses: u64,
    pub hits: u64,
    /// Pages that went to the drive and came from it.
    pub reads: u64,
    pub writes: u64,
}

impl Report {
    pub fn committed(&self) -> u64 {
        self.responses.len() as u64
    }

    /// For a summary: `seconds` is what the run took; `None` where there is no time.
    pub fn to_json(&self, seconds: Option<f64>, policy: &str) -> Value {
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let committed = self.committed() as f64;
        let mut sorted = self.responses.clone();
        sorted.sort_unstable();
        let response = seconds.filter(|_| !sorted.is_empty()).map(|_| {
            let slowest = &sorted[sorted.len() - sorted.len().div_ceil(100)..];
            json!({
                "mean_ns": mean(&sorted),
                "p50_ns": sorted[(sorted.len() - 1) / 2],
                "p99_ns": sorted[(sorted.len() * 99).div_ceil(100) - 1],
                "worst_percent_mean_ns": mean(slowest),
                "max_ns": sorted[sorted.len() - 1],
            })
        });
        let kinds = self.kinds.iter().map(|&(name, count, sum)| {
            let mean_ns = seconds.and_then(|_| ratio(sum as f64, count as f64));
            json!({ "name": name, "committed": count, "mean_ns": mean_ns })
        });
        json!({
            "committed": self.committed(),
            "per_second": seconds.and_then(|seconds| ratio(committed, seconds)),
            "response": response,
            "kinds": kinds.collect::<Vec<_>>(),
            "restarts": self.restarts,
            "restarts_per_commit": ratio(self.restarts as f64, committed),
            "lock_waits": self.lock_waits,
            "lock_wait_mean_ns": seconds.and_then(|_| ratio(self.lock_wait_ns as f64, committed)),
            "pool": {
                "policy": policy,
                "accesses": self.accesses,
                "hits": self.hits,
                "hit_ratio": ratio(self.hits as f64, self.accesses as f64),
                "reads": self.reads,
                "writes": self.writes,
            },
        })
    }
}

fn mean(times: &[u64]) -> f64 {
    times.iter().map(|&ns| u128::from(ns)).sum::<u128>() as f64 / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 to 200 µs: the mean is 100.5, the 99th percentile the 198th, and the slowest hundredth 199 and 200.
    #[test]
    fn the_slowest_hundredth() {
        let report = Report {
            responses: (1..=200).rev().map(|us| us * 1000).collect(),
            ..Report::default()
        };
        let json = report.to_json(Some(2.0), "lru");
        assert_eq!(json["per_second"], 100.0);
        assert_eq!(json["response"]["mean_ns"], 100_500.0);
        assert_eq!(json["response"]["p50_ns"], 100_000);
        assert_eq!(json["response"]["p99_ns"], 198_000);
        assert_eq!(json["response"]["worst_percent_mean_ns"], 199_500.0);
        assert_eq!(json["response"]["max_ns"], 200_000);
        assert!(report.to_json(None, "lru")["response"].is_null());
    }
}
