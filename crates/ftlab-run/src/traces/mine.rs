//! Mining: pages that are read soon after others, as a set of correlations for a drive to use.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ftlab_core::{Error, Result, units};
use ftlab_mine::{CMiner, Clustered, Coverage, Cut, Items, Mined, Parts, Projection, Reads, Threshold};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::requests::{Layout, PERIOD, Reading, RequestsSpec, Watched};
use crate::{Observer, Progress, spec};

/// Layout of the answer; changes with the meaning of a key.
const SCHEMA: &str = "ftlab.mining/1";

/// What is mined, how, and where the set goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MineSpec {
    pub from: RequestsSpec,
    #[serde(default = "defaults::miners")]
    pub miners: Vec<Miner>,
    /// What an access is: every page of a read, or its first one.
    #[serde(default)]
    pub items: Items,
    /// Bytes of a page: the mapping unit of the drive that is to use the set.
    #[serde(default = "defaults::unit")]
    pub unit: String,
    /// Accesses in a window or segment.
    #[serde(default = "defaults::window")]
    pub window: u32,
    /// Clustered: pages in a region.
    #[serde(default)]
    pub region: Region,
    /// Clustered: what is cut into windows.
    #[serde(default)]
    pub cut: Cut,
    /// Clustered: share of all pairs of accesses at which enough pairs of regions are chosen.
    #[serde(default = "defaults::mass")]
    pub mass: f64,
    /// Clustered: most pairs of regions.
    #[serde(default = "defaults::region_pairs")]
    pub region_pairs: u32,
    /// C-Miner: most accesses from one page of a sequence to the next.
    #[serde(default = "defaults::gap")]
    pub gap: u32,
    /// C-Miner: most pages in a sequence.
    #[serde(default = "defaults::length")]
    pub length: u32,
    /// C-Miner: whether projected databases are places or copies.
    #[serde(default)]
    pub projection: Projection,
    /// Share of the windows that must contain a pair.
    #[serde(default = "defaults::support")]
    pub support: f64,
    /// Windows that must contain it whatever the share.
    #[serde(default = "defaults::least")]
    pub least: u32,
    /// Share of the windows with the first page that must contain the pair.
    #[serde(default)]
    pub confidence: f64,
    /// Most pairs in a set.
    #[serde(default = "defaults::most")]
    pub most: u32,
    /// Cut the requests into so many parts, mine each and test it on the next; `None`: mine all and test on the same.
    #[serde(default)]
    pub parts: Option<u64>,
    /// Mine only this part, counted from 1.
    #[serde(default)]
    pub part: Option<u64>,
    /// What the set calls its source; `None`: the names of the files, or of the generator.
    #[serde(default)]
    pub source: Option<String>,
    /// Where the set is written.
    #[serde(default)]
    pub output: Option<PathBuf>,
    /// Replace a file that exists.
    #[serde(default)]
    pub force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::enum_variant_names, reason = "C-Miner is called that")]
pub enum Miner {
    Clustered,
    CMiner,
    /// The clustered one with a single region, which counts every pair: what clusters are compared with.
    Exhaustive,
}

/// Pages in a region; `None`, written `all`: one region holds all pages, which is mining without clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Region(pub Option<u32>);

impl TryFrom<Value> for Region {
    type Error = String;

    fn try_from(value: Value) -> std::result::Result<Self, String> {
        let pages = value.as_u64().and_then(|pages| u32::try_from(pages).ok());
        match (&value, pages) {
            (_, Some(pages)) => Ok(Region(Some(pages))),
            (Value::String(word), _) if word == "all" => Ok(Region(None)),
            _ => Err(format!(
                "region {value}: expected a number of pages, or all, as in 10000"
            )),
        }
    }
}

impl From<Region> for Value {
    fn from(region: Region) -> Value {
        region.0.map_or("all".into(), Value::from)
    }
}

impl Default for Region {
    fn default() -> Self {
        Region(Clustered::default().region)
    }
}

mod defaults {
    use super::{CMiner, Clustered, Miner, Threshold};

    pub fn miners() -> Vec<Miner> {
        vec![Miner::Clustered]
    }
    pub fn unit() -> String {
        "4KiB".to_owned()
    }
    pub fn window() -> u32 {
        Clustered::default().window
    }
    pub fn mass() -> f64 {
        Clustered::default().mass
    }
    pub fn region_pairs() -> u32 {
        Clustered::default().region_pairs
    }
    pub fn gap() -> u32 {
        CMiner::default().gap
    }
    pub fn length() -> u32 {
        CMiner::default().length
    }
    pub fn support() -> f64 {
        Threshold::default().support
    }
    pub fn least() -> u32 {
        Threshold::default().least
    }
    pub fn most() -> u32 {
        Threshold::default().most
    }
}

impl MineSpec {
    /// Reads a spec from JSON and checks it.
    pub fn parse(json: &str) -> Result<Self> {
        let mut spec: MineSpec = spec::from_json("mining", json)?;
        spec.from = spec.from.checked()?;
        spec.unit_bytes()?;
        if spec.miners.is_empty() {
            return Err(Error::input(
                "no miner: expected clustered, cminer, exhaustive or several",
            ));
        }
        match (spec.parts, spec.part) {
            (Some(parts), _) if parts < 2 => {
                return Err(Error::input(format!(
                    "parts {parts}: expected at least 2, to mine one and test on the next"
                )));
            }
            (Some(parts), Some(part)) if part == 0 || part >= parts => {
                return Err(Error::input(format!(
                    "part {part}: expected 1 to {}, as part {parts} has no next one to test on",
                    parts - 1
                )));
            }
            (None, Some(part)) => {
                return Err(Error::input(format!(
                    "part {part}: expected parts as well, to say of how many"
                )));
            }
            _ => {}
        }
        if let (Some(_), Some(stream)) = (spec.parts, spec.from.stream()) {
            return Err(Error::input(format!(
                "{}: mining a part and testing on the next takes two readings, which a stream does not allow: expected a file",
                stream.display()
            )));
        }
        if spec.output.is_some() && (spec.miners.len() > 1 || (spec.parts.is_some() && spec.part.is_none())) {
            return Err(Error::input(
                "output: one set is written: expected one miner, and where there are parts, one part",
            ));
        }
        Ok(spec)
    }

    fn unit_bytes(&self) -> Result<u32> {
        let bytes = units::bytes(&self.unit).map_err(|e| Error::input(format!("unit: {e}")))?;
        match u32::try_from(bytes)
            .ok()
            .filter(|bytes| bytes.is_power_of_two() && (512..=16 << 20).contains(bytes))
        {
            Some(bytes) => Ok(bytes),
            None => Err(Error::input(format!(
                "unit {}: expected a power of two from 512 B to 16 MiB",
                self.unit
            ))),
        }
    }

    fn threshold(&self) -> Threshold {
        Threshold {
            support: self.support,
            least: self.least,
            confidence: self.confidence,
            most: self.most,
        }
    }

    fn mine(
        &self,
        miner: Miner,
        reads: &Reads,
        source: &str,
        going: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<Mined> {
        match miner {
            Miner::Clustered | Miner::Exhaustive => {
                let region = self.region.0.filter(|_| miner == Miner::Clustered);
                let (window, cut, threshold) = (self.window, self.cut, self.threshold());
                let (mass, region_pairs) = (self.mass, self.region_pairs);
                Clustered {
                    region,
                    window,
                    cut,
                    threshold,
                    mass,
                    region_pairs,
                }
                .mine(reads, source, going)
            }
            Miner::CMiner => {
                let (window, gap, length, threshold) = (self.window, self.gap, self.length, self.threshold());
                CMiner {
                    window,
                    gap,
                    length,
                    projection: self.projection,
                    threshold,
                }
                .mine(reads, source, going)
            }
        }
    }

    /// Everything but what is mined and where the set goes.
    fn settings(&self) -> Value {
        let mut all = json!(self);
        if let Some(all) = all.as_object_mut() {
            for key in ["from", "miners", "parts", "part", "source", "output", "force"] {
                all.shift_remove(key);
            }
        }
        all
    }
}

/// Mines the reads of `spec.from`, tests what was found, writes the set where one is asked for.
///
/// The answer: `workload`, `filters` and `trace` as in an inspection; `settings`; `results`, one for each miner and part, with
/// the figures of the miner, of the set and of its `coverage` of the reads it was `tested` on; `useful`, one for each part
/// where there are several miners; `output`; `perf`.
pub fn mine(spec: &MineSpec, observer: &mut (dyn Observer + Send)) -> Result<Value> {
    let started = Instant::now();
    if let Some(output) = spec.output.as_ref().filter(|output| !spec.force && output.exists()) {
        return Err(Error::input(format!(
            "{} exists: expected a new name, or --force",
            output.display()
        )));
    }
    let unit = spec.unit_bytes()?;
    let watch = Watch {
        observer: Mutex::new(observer),
        started,
    };
    let total = match spec.parts {
        Some(_) => Some(ftlab_mine::count(Watched::new(
            spec.from.open(Layout::SideBySide)?,
            "count",
            &mut &watch,
        ))?),
        None => None,
    };
    let requests = spec.from.open(Layout::SideBySide)?;
    let reading = requests.reading.clone();
    let mut through = &watch;
    let mut source = Parts::new(Watched::new(requests, "read", &mut through));
    let name = spec.source.clone().unwrap_or_else(|| source_name(&reading));

    let mut results: Vec<Value> = Vec::new();
    let mut useful: Vec<Value> = Vec::new();
    let mut mining_s: Vec<f64> = Vec::new();
    let mut next: Option<Reads> = None;
    for lesson in lessons(spec, total) {
        let reads = match next.take() {
            Some(reads) => reads,
            None => source.record(lesson.learn.clone(), unit, spec.items)?,
        };
        if let Some(test) = &lesson.test {
            next = Some(source.record(test.clone(), unit, spec.items)?);
        }
        let tested_on = next.as_ref().unwrap_or(&reads);
        let source_name = lesson.name(&name, spec.parts);
        let mut sets = Vec::new();
        let mut known: Vec<u64> = Vec::new();
        for &miner in &spec.miners {
            let begun = Instant::now();
            let mut last = begun;
            let mined = spec.mine(miner, &reads, &source_name, &mut |share| {
                watch.going(&mut last, share, &reads)
            })?;
            mining_s.push(begun.elapsed().as_secs_f64());
            let (coverage, seen) = Coverage::of(&mined.set, tested_on);
            let mut result =
                json!({ "miner": miner, "part": lesson.part, "mined": lesson.learn_of(), "tested": lesson.test });
            if let (Some(result), Value::Object(mut report)) = (result.as_object_mut(), json!(mined.report)) {
                result.append(&mut report);
            }
            result["groups"] = mined.set.groups().len().into();
            result["set_bytes"] = mined.set.bytes().into();
            result["coverage"] = json!(coverage);
            results.push(result);
            known.push(coverage.seen);
            sets.push((mined.set, seen));
        }
        if sets.len() > 1 {
            useful.push(json!({ "part": lesson.part, "pairs": ftlab_mine::useful(&sets), "known": known }));
        }
        if let (Some(output), Some((set, _))) = (&spec.output, sets.first()) {
            save(set, output)?;
        }
    }
    if spec.parts.is_some() && spec.part.is_none() {
        // The trace's end, so that its report is complete.
        source.record(total.unwrap_or(0)..u64::MAX, unit, spec.items)?;
    }
    let mut perf = super::perf(started.elapsed().as_secs_f64(), source.inner().requests());
    perf["mining_s"] = json!(mining_s);
    Ok(json!({
        "schema": SCHEMA,
        "workload": reading.describe(),
        "filters": reading.filters(),
        "trace": reading.report(),
        "settings": spec.settings(),
        "parts": spec.parts,
        "requests": total,
        "results": results,
        "useful": useful,
        "output": spec.output,
        "perf": perf,
    }))
}

/// Requests that are mined, and those on which the result is tested.
struct Lesson {
    part: Option<u64>,
    learn: Range<u64>,
    test: Option<Range<u64>>,
}

impl Lesson {
    fn learn_of(&self) -> Option<&Range<u64>> {
        self.part.map(|_| &self.learn)
    }

    fn name(&self, source: &str, parts: Option<u64>) -> String {
        match (self.part, parts) {
            (Some(part), Some(parts)) => {
                format!(
                    "{source}, part {part} of {parts} (requests {} to {})",
                    self.learn.start, self.learn.end
                )
            }
            _ => source.to_owned(),
        }
    }
}

fn lessons(spec: &MineSpec, total: Option<u64>) -> Vec<Lesson> {
    let (Some(parts), Some(total)) = (spec.parts, total) else {
        return vec![Lesson {
            part: None,
            learn: 0..u64::MAX,
            test: None,
        }];
    };
    let wanted = spec.part.map_or(1..parts, |part| part..part + 1);
    let of = |part| ftlab_mine::part(total, parts, part);
    wanted
        .map(|part| Lesson {
            part: Some(part),
            learn: of(part - 1),
            test: Some(of(part)),
        })
        .collect()
}

/// Writes beside the name and renames, so that nothing half-written appears under it.
fn save(set: &ftlab_mine::CorrelationSet, output: &Path) -> Result<()> {
    let mut unfinished = output.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let written = set
        .save(&unfinished)
        .map_err(|error| match error {
            Error::Io(sentence) => Error::Io(sentence.replacen(".unfinished:", ":", 1)),
            other => other,
        })
        .and_then(|()| std::fs::rename(&unfinished, output).map_err(|cause| Error::unwritable(output, &cause)));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// What a set calls its source: names of files without their folders, or the generator.
fn source_name(reading: &Reading) -> String {
    let described = reading.describe();
    let name = |path: &Value| {
        let path = Path::new(path.as_str().unwrap_or_default());
        path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        )
    };
    match described["files"].as_array() {
        Some(files) => files.iter().map(name).collect::<Vec<_>>().join(", "),
        None => described["kind"].as_str().unwrap_or("generator").to_owned(),
    }
}

/// An observer that reading and mining share, in turn.
struct Watch<'a> {
    observer: Mutex<&'a mut (dyn Observer + Send)>,
    started: Instant,
}

impl Watch<'_> {
    /// Tells the share of the mining that is done, at most every now and then.
    fn going(&self, last: &mut Instant, share: f64, reads: &Reads) -> Result<()> {
        if last.elapsed() < PERIOD {
            return Ok(());
        }
        *last = Instant::now();
        let all = reads.requests();
        let progress = Progress {
            phase: "mine".to_owned(),
            done_requests: (share * all as f64) as u64,
            total_requests: Some(all),
            waf: f64::NAN,
            wall_s: self.started.elapsed().as_secs_f64(),
            ..Progress::default()
        };
        let mut observer = self;
        match observer.progress(&progress) {
            true => Ok(()),
            false => Err(Error::Interrupted),
        }
    }
}

impl Observer for &Watch<'_> {
    fn progress(&mut self, progress: &Progress) -> bool {
        let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        observer.progress(progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unobserved;

    fn spec(extra: &str) -> Result<MineSpec> {
        let from =
            r#"{"workload": {"generator": {"spec": "zipf:read=0.5,size=8KiB,requests=40000"}}, "span": "64MiB"}"#;
        MineSpec::parse(&format!(r#"{{"from": {from}{extra}}}"#))
    }

    fn mined(extra: &str) -> Value {
        mine(&spec(extra).unwrap(), &mut Unobserved).unwrap()
    }

    #[test]
    fn a_mining_says_what_was_mined_and_how() {
        let answer = mined(r#", "support": 0.5"#);
        assert_eq!(
            (answer["schema"].as_str(), answer["workload"]["kind"].as_str()),
            (Some(SCHEMA), Some("zipf"))
        );
        assert_eq!(answer["settings"]["region"], 4096);
        let result = &answer["results"][0];
        // Half of the 40,000 requests are reads of two pages.
        let accesses = result["accesses"].as_u64().unwrap();
        assert!(
            (39_000..41_000).contains(&accesses) && accesses.is_multiple_of(2),
            "{accesses}"
        );
        assert_eq!(result["windows"], accesses.div_ceil(512));
        assert_eq!(result["stream_bytes"], accesses * 4);
        let peak = result["peak_bytes"].as_u64().unwrap();
        assert_eq!(result["peak_with_stream_bytes"], peak + accesses * 4);
        // The hottest pages are read in every window.
        assert!(result["pairs"].as_u64().unwrap() > 10, "{result}");
        assert!(result["coverage"]["announced"].as_u64().unwrap() > 0 && answer["useful"] == json!([]));
        assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn parts_are_mined_and_tested_on_the_next() {
        let answer = mined(r#", "support": 0.5, "parts": 4, "miners": ["clustered", "cminer"]"#);
        let results = answer["results"].as_array().unwrap();
        assert_eq!((results.len(), &answer["requests"]), (6, &json!(40_000)));
        assert_eq!(results[2]["mined"], json!({ "start": 10_000, "end": 20_000 }));
        assert_eq!(results[3]["tested"], json!({ "start": 20_000, "end": 30_000 }));
        // What one part was tested on is what the next one mines.
        assert_eq!(results[0]["coverage"]["accesses"], results[2]["accesses"]);
        assert_eq!(answer["useful"][1]["known"].as_array().unwrap().len(), 2);
        let one = mined(r#", "support": 0.5, "parts": 4, "part": 2"#);
        assert_eq!(one["results"][0], results[2]);
    }

    #[test]
    fn copied_suffixes_change_the_memory_and_nothing_else() {
        let of = |extra: &str| {
            let answer = mined(&format!(r#", "support": 0.5, "miners": ["cminer"]{extra}"#));
            (answer["results"][0].clone(), answer["settings"]["projection"].clone())
        };
        let ((mut places, pseudo), (mut copies, physical)) = (of(""), of(r#", "projection": "physical""#));
        assert_eq!((pseudo, physical), (json!("pseudo"), json!("physical")));
        let [few, many] = [&places, &copies].map(|one| one["peak_bytes"].as_u64().unwrap());
        assert!(many > 10 * few, "{many} against {few}");
        for one in [&mut places, &mut copies] {
            one["peak_bytes"] = json!(0);
            one["peak_with_stream_bytes"] = json!(0);
        }
        assert_eq!(places, copies);
    }

    #[test]
    fn a_set_is_written_once_and_read_back() {
        let folder = std::env::temp_dir().join(format!("ftlab-mine-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("zipf.set");
        let extra = format!(r#", "support": 0.5, "output": {:?}"#, file.display().to_string());
        let answer = mined(&extra);
        let set = ftlab_mine::CorrelationSet::read(&file).unwrap();
        assert_eq!(answer["results"][0]["pairs"], set.pairs().len());
        assert_eq!((set.about().source.as_str(), set.about().unit), ("zipf", 4096));
        let refused = mine(&spec(&extra).unwrap(), &mut Unobserved).unwrap_err().to_string();
        assert!(refused.contains("exists: expected a new name"), "{refused}");
        let first = std::fs::read(&file).unwrap();
        mined(&format!(r#"{extra}, "force": true"#));
        assert_eq!(std::fs::read(&file).unwrap(), first);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn specs_that_make_no_sense_are_refused() {
        for (extra, words) in [
            (r#", "parts": 1"#, "parts 1: expected at least 2"),
            (r#", "parts": 3, "part": 3"#, "part 3: expected 1 to 2"),
            (r#", "part": 3"#, "expected parts as well"),
            (r#", "miners": []"#, "no miner"),
            (r#", "unit": "3KiB""#, "unit 3KiB: expected a power of two"),
            (r#", "parts": 3, "output": "x""#, "one set is written"),
            (
                r#", "miners": ["cminer", "clustered"], "output": "x""#,
                "one set is written",
            ),
            (
                r#", "region": "some""#,
                "region \"some\": expected a number of pages, or all",
            ),
            (r#", "region": -3"#, "region -3: expected"),
            (
                r#", "projection": "paper""#,
                "projection = `paper`: expected pseudo or physical",
            ),
            (r#", "windows": 3"#, "unknown field `windows`"),
        ] {
            let error = spec(extra).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let late = mine(&spec(r#", "window": 1"#).unwrap(), &mut Unobserved)
            .unwrap_err()
            .to_string();
        assert!(late.contains("window 1: expected 2 to 65536"), "{late}");
    }

    #[test]
    fn a_watched_mining_can_be_stopped() {
        struct Stop;
        impl Observer for Stop {
            fn progress(&mut self, _: &Progress) -> bool {
                false
            }
        }
        let mut stop = Stop;
        let watch = Watch {
            observer: Mutex::new(&mut stop),
            started: Instant::now(),
        };
        let reads = Reads::new(4096, Items::Pages).unwrap();
        // Far ahead of any clock, then a period ago: however slow the machine is.
        let mut last = Instant::now() + 1000 * PERIOD;
        assert_eq!(watch.going(&mut last, 0.5, &reads), Ok(()));
        last = Instant::now();
        std::thread::sleep(PERIOD);
        assert_eq!(watch.going(&mut last, 0.5, &reads), Err(Error::Interrupted));
    }
}
