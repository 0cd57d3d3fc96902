//! The verdict on a run: has it measured a steady state, and if not, how long it would have to be.
//!
//! # Method
//! The window is cut into [`BATCHES`] batches of (nearly) equal host writes, or into whole passes where a workload was repeated
//! often enough. Each gives one write amplification. Of the batches none, the first eighth, quarter, three eighths or half is left
//! out as a transient: whatever makes the half-width below least and leaves no **drift**, which is the change of the line fitted
//! through the rest, where it stands out of its own 95 % interval and is larger than [`DRIFT_SHARE`] of the width asked for. Of the
//! rest are
//!
//! * the **half-width**: how far the window's write amplification may lie from that of a long run, relative to it: Student's t times
//!   the standard error of the rest's batch means, widened by √((1 + ρ) / (1 − ρ)) where neighbours are correlated (ρ: lag 1, above 0),
//!   to it the distance between the mean of the rest and that of the whole window, and what write amplification would lose if the
//!   **uncollected** space became spare: the share of the invalid space that lies in reclaim units filled before the window, times
//!   (WAF − 1) / WAF, as about so much of the copies falls away with a share of the spare;
//! * the **carried-over share**: of the reclaim units collected in the second half of the window, those that had been filled
//!   before it. While it is high the drive still works off the state in which it began, whatever the line says.
//!
//! *Steady* needs [`LEAST_DRIVE_WRITES`] and [`LEAST_COLLECTIONS`] (or a drive that collects nothing after [`WITHOUT_COLLECTIONS`]
//! drive writes), a carried-over share of at most [`MOST_CARRIED_OVER`], a rest without drift, and a half-width of at most what is asked
//! for. *Drifting* has enough of the first two, and a drift however much is left out. Everything else is *too short*.
//!
//! # Source
//! Batch means: Schmeiser, Operations Research 30(3), 1982 (10 to 30 batches). Looking again at growing lengths until the interval
//! is narrow enough, with a test for the initial transient: Heidelberger and Welch, Operations Research 31(6), 1983. Leaving out what
//! makes the interval least: White, Simulation 69(6), 1997 (MSER). The carried-over share is ours. How often the verdict is wrong: docs/measured.md.
//!
//! # Not modelled
//! A change of the workload that the window has not seen. Latencies: the verdict is on write amplification.

use serde::Serialize;
use serde_json::{Value, json};

use crate::sampler::Reading;

/// Host writes in the window, in logical capacities of the drive.
pub const LEAST_DRIVE_WRITES: f64 = 1.0;
/// Reclaim units collected in the window.
pub const LEAST_COLLECTIONS: u64 = 1000;
/// A drive that has been written over so often and has collected nothing will not begin to.
const WITHOUT_COLLECTIONS: f64 = 3.0;
/// Most of the collected units in the second half of the window that may date from before it.
const MOST_CARRIED_OVER: f64 = 0.02;
/// A drift that counts, as a share of the width that is asked for.
const DRIFT_SHARE: f64 = 0.5;
/// Batches of a window, and the fewest of which anything can be said.
const BATCHES: usize = 32;
const FEWEST_BATCHES: usize = 8;
/// Eighths of the batches that may be left out.
const TRANSIENTS: [usize; 5] = [0, 1, 2, 3, 4];
/// Where half-width and drift make more than this together, a lifetime is not told.
const MOST_UNCERTAIN: f64 = 0.1;
/// Most that is recommended, as a factor.
const MOST_TIMES: f64 = 1e9;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Steady,
    Drifting,
    TooShort,
    /// The host wrote nothing in the window.
    NoWrites,
}

/// What is held against what: the drive's size and the width asked for.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    pub logical_units: u32,
    /// Half the width of the interval that counts as steady, relative to the mean.
    pub width: f64,
}

/// A verdict with what it rests on; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub word: Word,
    pub why: String,
    pub drive_writes: f64,
    pub collections: u64,
    /// How far write amplification may lie from that of a long run, relative to it; `None` with too few batches.
    pub half_width: Option<f64>,
    /// Change over the part of the window that is not left out, relative to the mean; 0 unless it stands out of its interval.
    pub drift: Option<f64>,
    /// Part of the window that is left out as a transient.
    pub transient: Option<f64>,
    pub carried_over: Option<f64>,
    /// Share of the invalid space that lies in reclaim units filled before the window.
    pub uncollected: f64,
    pub batches: usize,
    /// About how many times as much would have to be written; `None` if steady, or nobody knows.
    pub times: Option<u64>,
    width: f64,
    waf: Option<f64>,
}

impl Verdict {
    /// The verdict on a window by its `readings` (cumulative, the first is its beginning); `passes` are those taken at ends of
    /// passes, beginning included; `uncollected` is the share of the invalid space in units filled before it.
    pub fn of(readings: &[Reading], passes: &[Reading], uncollected: f64, measure: &Measure) -> Self {
        let last = readings.last().copied().unwrap_or_default();
        let drive_writes = last.host_writes as f64 / f64::from(measure.logical_units.max(1));
        let mut verdict = Verdict {
            word: Word::TooShort,
            why: String::new(),
            drive_writes,
            collections: last.collections,
            half_width: None,
            drift: None,
            transient: None,
            carried_over: carried_over(readings),
            uncollected,
            batches: 0,
            times: None,
            width: measure.width,
            waf: (last.host_writes > 0).then(|| last.all_programmed() as f64 / last.host_writes as f64),
        };
        if last.host_writes == 0 {
            verdict.word = Word::NoWrites;
            verdict.why = "the host wrote nothing".to_owned();
            return verdict;
        }
        let points = if passes.len() > FEWEST_BATCHES {
            passes
        } else {
            readings
        };
        let batches = batches(points);
        verdict.batches = batches.len();
        let mut rest = (batches.len() >= FEWEST_BATCHES).then(|| Rest::of(&batches, measure.width * DRIFT_SHARE));
        if let Some(rest) = &mut rest {
            rest.half_width += verdict.by_uncollected();
            verdict.half_width = Some(rest.half_width);
            verdict.drift = Some(rest.drift);
            verdict.transient = Some(rest.transient);
        }
        verdict.judge(rest);
        verdict
    }

    /// Settles word, reason and factor from the figures.
    fn judge(&mut self, rest: Option<Rest>) {
        let mut times = 1.0f64;
        let mut reasons = Vec::new();
        if self.drive_writes < LEAST_DRIVE_WRITES {
            reasons.push(format!("only {} drive writes", digits(self.drive_writes)));
            times = times.max(LEAST_DRIVE_WRITES / self.drive_writes);
        }
        let idle = self.collections == 0 && self.drive_writes >= WITHOUT_COLLECTIONS;
        if self.collections < LEAST_COLLECTIONS && !idle {
            reasons.push(format!("only {} reclaim units collected", self.collections));
            times = times.max(match self.collections {
                0 => WITHOUT_COLLECTIONS / self.drive_writes,
                some => LEAST_COLLECTIONS as f64 / some as f64,
            });
        }
        let enough = reasons.is_empty();
        let carried = self.carried_over.unwrap_or(0.0);
        if carried > MOST_CARRIED_OVER {
            reasons.push(format!(
                "{} of the recently collected units had been filled before the measurement",
                percent(carried)
            ));
            times = times.max(2.0);
        }
        let drifts = rest.as_ref().is_some_and(|rest| enough && rest.drift != 0.0);
        match rest {
            None => reasons.push(format!("only {} points in time to compare", self.batches)),
            Some(rest) if drifts => {
                let way = if rest.drift > 0.0 { "rises" } else { "falls" };
                reasons.insert(
                    0,
                    format!("WAF still {way}, by {} in the second half", percent(rest.drift.abs())),
                );
                times = times.max(rest.drift.abs() / self.width);
            }
            Some(rest) if rest.half_width > self.width => {
                reasons.push(match self.is_mostly_uncollected() {
                    true => format!(
                        "{} of the invalid space lies in reclaim units filled before the measurement and not collected since",
                        percent(self.uncollected)
                    ),
                    false => format!("WAF is known to ±{} only", percent(rest.half_width)),
                });
                // What chance has left shrinks with the root of the length, what the transient adds with the length.
                let chance = (rest.by_chance / self.width).powi(2);
                times = times.max(chance.max(rest.half_width / self.width));
            }
            Some(_) => {}
        }
        self.why = reasons.join(", ");
        self.word = match (reasons.is_empty(), drifts) {
            (true, _) => Word::Steady,
            (_, true) => Word::Drifting,
            _ => Word::TooShort,
        };
        if self.word != Word::Steady {
            self.times = Some(times.clamp(2.0, MOST_TIMES).ceil() as u64);
        }
    }

    pub fn is_steady(&self) -> bool {
        self.word == Word::Steady
    }

    /// How much write amplification might lose if the uncollected space became spare, relative to it.
    fn by_uncollected(&self) -> f64 {
        self.waf
            .map_or(0.0, |waf| self.uncollected * (1.0 - 1.0 / waf).max(0.0))
    }

    /// Most of what is uncertain is whether collection will ever get hold of what was there before; a longer run does not tell.
    fn is_mostly_uncollected(&self) -> bool {
        self.half_width
            .is_some_and(|half_width| 2.0 * self.by_uncollected() > half_width.max(self.width))
    }

    /// Why a lifetime drawn from this write amplification would mislead.
    pub fn misleads(&self) -> Option<String> {
        let uncertain = match (self.half_width, self.drift) {
            _ if self.is_steady() => return None,
            (Some(half_width), Some(drift)) => half_width + drift.abs(),
            _ => f64::INFINITY,
        };
        let enough = self.drive_writes >= LEAST_DRIVE_WRITES && self.collections >= LEAST_COLLECTIONS;
        (!enough || uncertain > MOST_UNCERTAIN).then(|| self.why.clone())
    }

    /// The verdict for people; `longer` is how a longer run is asked for, given how many times as long.
    fn sentence(&self, longer: &Longer) -> String {
        let half_width = percent(self.half_width.unwrap_or(f64::NAN));
        let Some(times) = self.times else {
            return match self.word {
                Word::NoWrites => "NO VERDICT: the host wrote nothing, so there is no write amplification".to_owned(),
                _ => format!(
                    "STEADY: WAF is known to ±{half_width}, from {} drive writes",
                    digits(self.drive_writes)
                ),
            };
        };
        let how = match longer {
            Longer::Passes(passes) => format!("`--repeat-trace {}` or `--until steady`", passes.saturating_mul(times)),
            Longer::Generator => "a larger `requests` or `bytes`, or `--until steady`".to_owned(),
            Longer::Pipe => "a longer trace".to_owned(),
            Longer::Live => "serve for longer".to_owned(),
        };
        let about = match self.is_mostly_uncollected() && self.word != Word::Drifting {
            true => "precondition only what the workload touches (`--precondition fill:share=S`), or take a drive of its size".to_owned(),
            false => format!("write about {times} times as much ({how})"),
        };
        match self.word {
            Word::Drifting => format!(
                "DRIFTING: {}; {about}, or begin to measure later (`--warmup`)",
                self.why
            ),
            _ if self.misleads().is_some() => {
                format!("TOO SHORT: {}: WAF and lifetime say nothing yet; {about}", self.why)
            }
            _ => format!("TOO SHORT: {}; for ±{} {about}", self.why, percent(self.width)),
        }
    }

    /// The `verdict` block of the summary.
    pub fn to_json(&self, longer: &Longer) -> Value {
        json!({
            "word": self.word,
            "sentence": self.sentence(longer),
            "why": self.why,
            "drive_writes": self.drive_writes,
            "collections": self.collections,
            "waf_half_width": self.half_width.zip(self.waf).map(|(half, waf)| half * waf),
            "half_width": self.half_width,
            "drift": self.drift,
            "transient": self.transient,
            "carried_over": self.carried_over,
            "uncollected": self.uncollected,
            "batches": self.batches,
            "asked_width": self.width,
            "times_as_long": self.times,
        })
    }
}

/// How a longer run of a workload is asked for.
pub enum Longer {
    /// A trace, of which so many passes were made.
    Passes(u64),
    Generator,
    /// A trace that can be read once only.
    Pipe,
    /// Clients of a live drive.
    Live,
}

/// Of the units collected in the second half of the window (by host writes), the share that was filled before it.
fn carried_over(readings: &[Reading]) -> Option<f64> {
    let last = readings.last()?;
    let middle = readings
        .iter()
        .find(|reading| 2 * reading.host_writes >= last.host_writes)?;
    let collected = last.collections - middle.collections;
    (collected > 0).then(|| (last.old_victims - middle.old_victims) as f64 / collected as f64)
}

/// Host writes and programs of [`BATCHES`] batches at most, cut where a reading lies nearest behind an equal share.
fn batches(points: &[Reading]) -> Vec<(f64, f64)> {
    let Some((first, last)) = points.first().zip(points.last()) else {
        return Vec::new();
    };
    let all = last.host_writes - first.host_writes;
    let count = BATCHES.min(points.len() - 1) as u64;
    let (mut made, mut before) = (Vec::new(), *first);
    for point in &points[1..] {
        let due = first.host_writes + all * (made.len() as u64 + 1) / count.max(1);
        if point.host_writes >= due && point.host_writes > before.host_writes {
            let programmed = point.all_programmed() - before.all_programmed();
            made.push(((point.host_writes - before.host_writes) as f64, programmed as f64));
            before = *point;
        }
    }
    made
}

/// What batch means say once the transient is left out.
struct Rest {
    half_width: f64,
    /// The part of it that is chance.
    by_chance: f64,
    drift: f64,
    transient: f64,
}

impl Rest {
    fn of(batches: &[(f64, f64)], least_drift: f64) -> Self {
        let whole = mean(batches);
        let mut best: Option<Rest> = None;
        for eighths in TRANSIENTS {
            let left = &batches[batches.len() * eighths / 8..];
            let line = Line::through(left);
            let drifts = line.drift.abs() > line.drift_interval.max(least_drift);
            let rest = Rest {
                half_width: line.half_width + (whole / line.mean - 1.0).abs(),
                by_chance: line.half_width,
                drift: if drifts { line.drift } else { 0.0 },
                transient: 1.0 - left.len() as f64 / batches.len() as f64,
            };
            // What drifts is better than nothing only; of what drifts the shortest rest is nearest to the end.
            let better = |than: &Rest| match (drifts, than.drift != 0.0) {
                (false, false) => rest.half_width < than.half_width,
                (drifts, _) => !drifts || than.drift != 0.0,
            };
            if best.as_ref().is_none_or(better) {
                best = Some(rest);
            }
        }
        best.unwrap_or_else(|| unreachable!("something is always left"))
    }
}

/// Write amplification over batches of host writes and programs.
fn mean(batches: &[(f64, f64)]) -> f64 {
    let (writes, programs) = batches
        .iter()
        .fold((0.0, 0.0), |(w, p), batch| (w + batch.0, p + batch.1));
    programs / writes
}

/// The mean of batches, its interval, and the line through them; all but the mean relative to it.
struct Line {
    mean: f64,
    half_width: f64,
    drift: f64,
    drift_interval: f64,
}

impl Line {
    fn through(batches: &[(f64, f64)]) -> Self {
        let n = batches.len() as f64;
        let mean = mean(batches);
        let each = batches.iter().map(|batch| batch.0).sum::<f64>() / n;
        // Deviations as those of a ratio of sums.
        let deviations: Vec<f64> = batches.iter().map(|(w, p)| (p - mean * w) / each).collect();
        let error = |deviations: &[f64], free: f64| {
            let squares: f64 = deviations.iter().map(|d| d * d).sum();
            let lagged: f64 = deviations.windows(2).map(|pair| pair[0] * pair[1]).sum();
            let rho = if squares > 0.0 {
                (lagged / squares).clamp(0.0, 0.9)
            } else {
                0.0
            };
            (squares / free * (1.0 + rho) / (1.0 - rho)).sqrt()
        };
        let places: Vec<f64> = (0..batches.len()).map(|i| i as f64 - (n - 1.0) / 2.0).collect();
        let spread: f64 = places.iter().map(|x| x * x).sum();
        let slope = places.iter().zip(&deviations).map(|(x, d)| x * d).sum::<f64>() / spread;
        let offset = deviations.iter().sum::<f64>() / n;
        let residuals: Vec<f64> = places
            .iter()
            .zip(&deviations)
            .map(|(x, d)| d - offset - slope * x)
            .collect();
        Line {
            mean,
            half_width: student(n - 1.0) * error(&deviations, n - 1.0) / n.sqrt() / mean,
            drift: slope * n / mean,
            drift_interval: student(n - 2.0) * error(&residuals, n - 2.0) / spread.sqrt() * n / mean,
        }
    }
}

/// The 97.5 % point of Student's t: Cornish and Fisher's expansion, exact to 0.3 % from five degrees of freedom on.
fn student(free: f64) -> f64 {
    let z: f64 = 1.959_963_985;
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * free.powi(3));
    z + (z3 + z) / (4.0 * free) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * free * free) + third
}

fn percent(share: f64) -> String {
    format!("{} %", digits(100.0 * share))
}

/// Two digits, or all that stand before the point.
fn digits(value: f64) -> String {
    let places = (1 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 intervals of 1000 host units on a drive of 4000 units, 16 drive writes: in interval i, `waf(i)` units are programmed per
    /// unit of the host, and 40 reclaim units collected, of which `old(i)` date from before.
    fn readings(waf: impl Fn(u64) -> f64, old: impl Fn(u64) -> u64) -> Vec<Reading> {
        let mut readings = vec![Reading::default()];
        for i in 0..64 {
            let mut next = *readings.last().unwrap();
            next.host_writes += 1000;
            next.programmed[1] += (1000.0 * waf(i)) as u64;
            next.collections += 40;
            next.old_victims += old(i);
            readings.push(next);
        }
        readings
    }

    const MEASURE: Measure = Measure {
        logical_units: 4000,
        width: 0.02,
    };

    fn judged(waf: impl Fn(u64) -> f64, old: impl Fn(u64) -> u64) -> Verdict {
        Verdict::of(&readings(waf, old), &[], 0.0, &MEASURE)
    }

    fn none_old(_: u64) -> u64 {
        0
    }

    /// 2 and 2.1 by turns are two intervals of every batch: all batches are alike, nothing is uncertain.
    #[test]
    fn what_repeats_within_a_batch_is_steady() {
        let verdict = judged(|i| 2.0 + 0.1 * (i % 2) as f64, none_old);
        assert_eq!((verdict.word, verdict.batches, verdict.times), (Word::Steady, 32, None));
        assert_eq!((verdict.half_width, verdict.drift), (Some(0.0), Some(0.0)));
        assert_eq!(verdict.drive_writes, 16.0);
        assert!(verdict.misleads().is_none());
    }

    /// Batches of 2 and 4 by turns: deviations ±1 from the mean 3, ρ below 0, so the half-width is t(31) × √(32 / 31) / √32 / 3,
    /// which is 2.0395 × 0.17961 / 3 = 0.1221. That is 6.1 times what was asked for, 37.3 times as many batches.
    #[test]
    fn chance_asks_for_the_square_of_its_excess() {
        let verdict = judged(|i| if i / 2 % 2 == 0 { 2.0 } else { 4.0 }, none_old);
        assert_eq!(verdict.word, Word::TooShort);
        assert!((verdict.half_width.unwrap() - 0.1221).abs() < 2e-4, "{verdict:?}");
        assert_eq!(verdict.times, Some(38));
        assert!(verdict.misleads().is_some());
    }

    /// From 2 to 4 over the window: the second half rises from 3 to 4, by 2/7 of its mean 3.5.
    #[test]
    fn a_rise_to_the_end_is_drift() {
        let verdict = judged(|i| 2.0 + (i / 2) as f64 / 16.0, none_old);
        assert_eq!(verdict.word, Word::Drifting);
        assert!((verdict.drift.unwrap() - 2.0 / 7.0).abs() < 0.01, "{verdict:?}");
        assert!(verdict.why.starts_with("WAF still rises, by 29 %"), "{}", verdict.why);
    }

    /// Seven eighths at 2 and before them one at 2.1: the whole lies 0.625 % above the rest, which is within 2 %. With 2.4 it
    /// is 2.5 %, so the window has to be longer by the ratio.
    #[test]
    fn a_short_transient_is_left_out_and_counted() {
        let begun = |at: f64| judged(move |i| if i < 8 { at } else { 2.0 }, none_old);
        let small = begun(2.1);
        assert_eq!((small.word, small.transient), (Word::Steady, Some(0.125)));
        assert!((small.half_width.unwrap() - 0.00625).abs() < 1e-6, "{small:?}");
        let large = begun(2.4);
        assert_eq!(
            (large.word, large.transient, large.times),
            (Word::TooShort, Some(0.125), Some(2))
        );
    }

    /// At 2, half the copies would fall away with all the spare: 30 % of it uncollected are ±15 %, 3 % are ±1.5 %.
    #[test]
    fn a_flat_line_is_not_steady_while_spare_lies_where_nothing_is_collected() {
        let readings = readings(|_| 2.0, none_old);
        let verdict = Verdict::of(&readings, &[], 0.3, &MEASURE);
        assert_eq!((verdict.word, verdict.half_width), (Word::TooShort, Some(0.15)));
        let sentence = verdict.sentence(&Longer::Generator);
        assert_eq!(
            sentence,
            "TOO SHORT: 30 % of the invalid space lies in reclaim units filled before the measurement and not collected since: \
             WAF and lifetime say nothing yet; precondition only what the workload touches (`--precondition fill:share=S`), \
             or take a drive of its size"
        );
        assert!(Verdict::of(&readings, &[], 0.03, &MEASURE).is_steady());
    }

    #[test]
    fn a_flat_line_is_not_steady_while_old_units_are_collected() {
        assert_eq!(judged(|_| 2.0, |i| if i < 32 { 40 } else { 0 }).word, Word::Steady);
        let verdict = judged(|_| 2.0, |_| 4);
        assert_eq!(verdict.word, Word::TooShort);
        assert!(
            verdict.why.starts_with("10 % of the recently collected units"),
            "{}",
            verdict.why
        );
    }

    /// A run of 4 GiB on a terabyte: whatever the batches say, 250 times as much is needed for one drive write.
    #[test]
    fn a_run_that_has_not_filled_the_drive_once_says_nothing() {
        let readings: Vec<Reading> = (0..=64)
            .map(|i| Reading {
                host_writes: 1000 * i,
                programmed: [0, 2000 * i, 0, 0, 0, 0, 0],
                collections: 100 * i,
                ..Reading::default()
            })
            .collect();
        let measure = Measure {
            logical_units: 16_000_000,
            width: 0.02,
        };
        let verdict = Verdict::of(&readings, &[], 0.0, &measure);
        assert_eq!((verdict.word, verdict.times), (Word::TooShort, Some(250)));
        let sentence = verdict.sentence(&Longer::Passes(2));
        assert_eq!(
            sentence,
            "TOO SHORT: only 0.0040 drive writes: WAF and lifetime say nothing yet; \
             write about 250 times as much (`--repeat-trace 500` or `--until steady`)"
        );
        assert_eq!(verdict.misleads().as_deref(), Some("only 0.0040 drive writes"));
        assert_eq!(
            Verdict::of(&[Reading::default()], &[], 0.0, &measure).word,
            Word::NoWrites
        );
    }

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (free, t) in [(5.0, 2.571), (7.0, 2.365), (15.0, 2.131), (31.0, 2.040)] {
            assert!((student(free) / t - 1.0).abs() < 4e-3, "{free}: {}", student(free));
        }
    }
}
