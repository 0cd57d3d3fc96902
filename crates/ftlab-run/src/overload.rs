//! Whether an open-loop host asked for more than the drive gives.
//!
//! # Model
//! The drive is *behind* while at least [`BEHIND`] requests are under way: more than any drive works on, so the rest waits. A
//! request that completes at `t` after a latency `l`, in a time of being behind that began at `t0`, arrived at `t − l`: the drive has
//! done in `t − t0` what the host asked for in `t − l − t0`. Where `l` is longest, the ratio of the two is how much slower
//! the host would have to be. Requests complete nearly in the order of arrival then, as all of them wait in the same queues.
//!
//! # Not modelled
//! What a host would do in place of waiting. Times of being behind that are shorter than [`LEAST_NS`] are not told.

use serde_json::{Value, json};

/// Requests under way from which on the drive is behind.
const BEHIND: usize = 1024;
/// Least time behind that is worth a sentence.
const LEAST_NS: u64 = 100_000_000;
/// A host is told to be a little slower than what would just do.
const MARGIN: f64 = 0.95;

/// The longest wait so far, and when its time of being behind began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overload {
    since_ns: u64,
    worst: Option<Worst>,
}

#[derive(Clone, Copy, Debug)]
struct Worst {
    latency_ns: u64,
    after_ns: u64,
}

impl Overload {
    /// A request has completed, and so many are left under way.
    #[inline(always)]
    pub fn completed(&mut self, arrived_ns: u64, done_ns: u64, under_way: usize) {
        if under_way < BEHIND {
            self.since_ns = done_ns;
        } else {
            self.behind(done_ns - arrived_ns, done_ns);
        }
    }

    #[cold]
    fn behind(&mut self, latency_ns: u64, done_ns: u64) {
        if self.worst.is_none_or(|worst| latency_ns > worst.latency_ns) {
            let after_ns = done_ns - self.since_ns;
            self.worst = Some(Worst { latency_ns, after_ns });
        }
    }

    /// The `overload` block of the summary of a run at `speedup`; `None` if the drive kept up.
    pub fn to_json(self, speedup: f64) -> Option<Value> {
        let worst = self.worst.filter(|worst| worst.latency_ns >= LEAST_NS)?;
        let kept = worst.after_ns.saturating_sub(worst.latency_ns) as f64 / worst.after_ns.max(1) as f64;
        let slower = (kept > 0.01).then(|| two_digits(kept * speedup * MARGIN));
        let advice = match &slower {
            Some(slower) => format!("`--speedup {slower}` would keep up"),
            None => "they came nearly all at once, so no `--speedup` helps; `--qd` takes them one after the other"
                .to_owned(),
        };
        let slower: Option<f64> = slower.and_then(|text| text.parse().ok());
        let seconds = worst.latency_ns as f64 / 1e9;
        Some(json!({
            "behind_ns": worst.latency_ns,
            "speedup": slower,
            "sentence": format!("THE DRIVE FELL BEHIND: requests waited up to {seconds:.2} s for those before them; {advice}"),
        }))
    }
}

/// A number above 0 rounded down to two digits, without zeros at its end.
fn two_digits(value: f64) -> String {
    let places = (1 - value.log10().floor() as i32).max(0);
    let step = 10f64.powi(1 - value.log10().floor() as i32);
    let text = format!("{:.*}", places as usize, (value * step).floor() / step);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drive that completes a request each 2 ms, a host that sends one each 1 ms: after 10 s the request completes that
    /// arrived after 5 s, so half the speed keeps up; 5 % less is 0.475, and two digits of it are 0.47.
    #[test]
    fn half_as_fast_keeps_up_with_twice_as_much() {
        let mut overload = Overload::default();
        for i in 1..=5000u64 {
            overload.completed(i * 1_000_000, i * 2_000_000, (i as usize) + BEHIND);
        }
        let told = overload.to_json(1.0).unwrap();
        assert_eq!(told["behind_ns"], 5_000_000_000u64);
        assert_eq!(told["speedup"], 0.47);
        let sentence = told["sentence"].as_str().unwrap();
        assert!(
            sentence.ends_with("waited up to 5.00 s for those before them; `--speedup 0.47` would keep up"),
            "{sentence}"
        );
        assert_eq!(overload.to_json(10.0).unwrap()["speedup"], 4.7);
    }

    #[test]
    fn a_burst_is_called_one_and_a_full_queue_is_none() {
        let mut overload = Overload::default();
        overload.completed(0, 90_000_000, BEHIND);
        assert!(overload.to_json(1.0).is_none());
        overload.completed(0, 2_000_000_000, BEHIND - 1);
        assert!(overload.to_json(1.0).is_none());
        let mut burst = Overload::default();
        burst.completed(0, 2_000_000_000, BEHIND);
        let told = burst.to_json(1.0).unwrap();
        assert!(
            told["speedup"].is_null() && told["sentence"].as_str().unwrap().contains("all at once"),
            "{told}"
        );
    }
}
