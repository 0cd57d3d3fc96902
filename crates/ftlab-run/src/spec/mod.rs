//! What the user asked for. Options are declared here and nowhere else, with their defaults; names and units are checked on the
//! way in.

mod asked;
pub(crate) mod option;
mod serve;
mod trace;
mod values;

use std::path::PathBuf;

use ftlab_core::error::read_value;
use ftlab_core::faults::Faults;
use ftlab_core::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::watch::BreakAt;
use option::{ALONE, GRIDS, Home, Kind, MAPS, Needs, Opt, Verb, opt, options};

pub use asked::asked;
pub use serve::ServeSpec;
pub use trace::TraceSpec;
pub use values::{Arrivals, BackendKind, Fit, Precondition, Tenants, Until, Warmup};

options! {
    /// One run.
    pub struct RunSpec {
        pub drive: DriveSpec,
        pub workload: WorkloadSpec,
    }
    options {
        /// `timed` (dies, channels, latencies) or `counting` (writes and wear only, faster).
        backend: BackendKind = BackendKind::Timed, opt("NAME");

        /// The drive before the warm-up: `theory`, `fill`, `fill:share=S`, `scatter`, `none`, `state:PATH`, or `auto`: `theory`, but
        /// `fill` where the map is in flash.
        ///
        /// `theory` is the steady state of the victim policy by theory. A policy that theory does not know starts from that of `greedy` and is
        /// aged by two drive writes, which count as wear: to compare wear, use `fill` and `--warmup`. `fill` is one sequential write of
        /// everything, `fill:share=0.9` one of the last nine tenths, which the workload never touches, `scatter` one in
        /// scattered order, `none` a fresh drive, `state:PATH` what `save_state` has saved. Where runs are compared and `auto`
        /// would give both `theory` and `fill`, all get `fill`.
        precondition: Precondition = Precondition::Auto, opt("HOW").of(MAPS);

        /// Work before the measurement: `4x` capacities of host writes, `10GiB`, or `25%` of the requests.
        warmup: Option<Warmup> = None, opt("AMOUNT").of(MAPS).left_out("none");

        /// When the host sends the next request: `open` (by time stamps), `closed` (when one of `qd` completes) or `asap`.
        arrivals: Option<Arrivals> = None,
            opt("HOW").left_out("a trace: open; a generator: what it says").needs(Needs::Time);

        /// Outstanding requests (queue depth); makes arrivals `closed`.
        qd: Option<u32> = None,
            opt("N").range(1, 1 << 20).needs(Needs::Time);

        /// Divide the time stamps by this factor; open arrivals.
        speedup: f64 = 1.0, opt("F").above(0.0).needs(Needs::Stamps);

        /// Seed of every random stream.
        seed: u64 = 1, opt("S").of(MAPS);

        /// Addresses beyond the drive: `error`, `compact`, `wrap` or `grow`.
        ///
        /// `error` names the address; `compact` renumbers the units that the workload touches without gaps; `wrap` takes addresses
        /// modulo the drive's size (a request over the end goes on at 0); `grow` makes the drive as large as the workload reaches.
        fit: Fit = Fit::Error, opt("HOW").of(MAPS).needs(Needs::Addresses);

        /// Continue after the workload's end until WAF is `steady`: a trace is repeated, a generator continued.
        ///
        /// The run ends when its verdict is *steady*, or after 100 drive writes. The verdict is taken at the end of the workload, and from
        /// then on whenever the host has written a quarter more (of a trace: at ends of passes).
        until: Option<Until> = None, opt("steady");

        /// Largest half-width of WAF's 95 % interval in a steady run, as a share of WAF.
        steady_width: f64 = 0.02, opt("W").above(0.0);

        /// Run the trace this many times, one pass after the other.
        ///
        /// Time continues: the next pass begins after the trace's mean gap between requests. Filters restart with each pass.
        repeat_trace: u64 = 1, opt("N").range(1, 1_000_000_000).needs(Needs::Trace);

        /// Transform the requests first, by filters in order: `lru:share=0.05`.
        filters: Vec<String> = Vec::new(), opt("NAME:KEY=...").flag("--filter").of(MAPS).listed("filters");

        /// Check every read against what was written.
        verify: bool = false, opt("");

        /// Keep a row per request, as the table `requests`.
        requests: bool = false, opt("").needs(Needs::Time);

        /// Keep the writes and lifetimes of each stream of the placement, as the tables `streams`, `stream_lifetimes`,
        /// `stream_contexts` and `stream_collections`.
        streams: bool = false, opt("");

        /// Keep the state of each reclaim unit over time, as the tables `film_frames`, `film` and `film_frontiers`, which the report plays.
        ///
        /// At most 241 frames, each of at most 1,024 tiles: where there are more reclaim units, neighbours share a tile.
        film: bool = false, opt("").of(ALONE);

        /// Report the write amplification of each tenant: by `stream`, `volume`, `pid` or `label` of the writes.
        ///
        /// A unit belongs to the tenant that wrote it last; its survivors are charged to that tenant, whichever tenant caused the
        /// collection. Data from preconditioning, and data shared by deduplication, belongs to no tenant.
        tenants: Option<Tenants> = None, opt("WHO");

        /// Stop when this becomes true: `waf>3`.
        ///
        /// `NAME>NUMBER` or `NAME<NUMBER` with one of `waf`, `free`, `erases`, `retired`, `host_writes`, `read_us`, `write_us`.
        break_at: Option<String> = None, opt("CONDITION").flag("--break");

        /// Cut the power after this many completed requests; the drive recovers and continues (needs `ftl.checkpoint`).
        power_cuts: Vec<u64> = Vec::new(), opt("N").flag("--power-cut").range(1, u64::MAX);

        /// Fault to inject: requests that fail (`eio@lba=0-63`), wait (`stall=50ms@p=0.001`) or are answered falsely (`drop-flush`).
        ///
        /// Kinds: `eio`, `enospc`, `stall=TIME`, `drop-flush`, `torn-write`, `readonly`, `die-fails`. Conditions behind `@`, all of which must hold:
        /// `op=read|write|trim|flush`, `lba=A-B` or `lba=A` (sectors), `p=SHARE`, `after=N`, `count=N`, `t=TIME` (simulated), `wear=SHARE`, `die=N` (of `die-fails`,
        /// which takes `t`, `wear` and `after` beside it).
        faults: Vec<String> = Vec::new(), opt("FAULT").flag("--fault").needs(Needs::Time);

        /// Write a timeline of dies and channels into this file, for Perfetto.
        trace_events: Option<PathBuf> = None, opt("FILE").of(ALONE).needs(Needs::Time);

        /// Largest number of events in that timeline.
        trace_events_limit: u64 = 1_000_000, opt("N").range(1, u64::MAX).of(ALONE).left_out("1e6").needs(Needs::Timeline);

        /// Save the drive's state at the end.
        save_state: Option<PathBuf> = None, opt("FILE").of(ALONE).in_folder("state");

        /// Which repetition this is (0, 1, ...): it shifts the seed. Set by comparisons.
        repeat: u32 = 0, opt("I").of(&[]);
    }
}

options! {
    /// The drive: a preset or a drive file, and what is changed in it.
    pub struct DriveSpec {
        /// The preset's name, or where `toml` came from (for messages).
        pub name: String,
        /// Text of the drive file; `None`: the preset called `name`.
        pub toml: Option<String>,
    }
    options {
        /// Change the drive: `ftl.victim=greedy`.
        set: Vec<String> = Vec::new(), opt("KEY=VALUE").of(DRIVES).home(Home::Drive).kind(Kind::Change);
    }
}

options! {
    /// How the runs of a comparison are made.
    pub struct GridSpec {}
    options {
        /// Runs of each point, each with its own seed.
        repeat: u32 = 1, opt("N").of(GRIDS).home(Home::Grid).range(1, 1_000_000);

        /// Largest number of concurrent runs.
        threads: Option<u32> = None,
            opt("N").of(MANY).home(Home::Grid).range(1, 1024).left_out("as many as there are cores");
    }
}

/// All that take a drive.
const DRIVES: &[Verb] = &[
    Verb::Run,
    Verb::Compare,
    Verb::Sweep,
    Verb::Mrc,
    Verb::Theory,
    Verb::Serve,
];
/// All that make many runs.
const MANY: &[Verb] = &[Verb::Compare, Verb::Sweep, Verb::Reproduce];

/// Every option, by where it belongs.
pub fn every_option() -> Vec<Opt> {
    let mut all = GridSpec::options();
    all.extend(DriveSpec::options());
    all.extend(RunSpec::options());
    all.extend(crate::traces::RequestsSpec::options());
    all.extend(TraceSpec::options());
    all.extend(ServeSpec::options());
    all.retain(|option| !option.verbs.is_empty());
    all
}

/// What is run on the drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadSpec {
    Trace(TraceSpec),
    Generator(GeneratorSpec),
}

/// A generator: `KIND[:key=value,...]` or the text of a generator file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorSpec {
    pub spec: String,
}

impl RunSpec {
    /// The seed of this repetition: repetitions of one seed never share a stream with another seed's.
    pub fn run_seed(&self) -> u64 {
        self.seed.wrapping_add(u64::from(self.repeat) << 32)
    }

    /// What no option says of itself: values that exclude each other, and texts with a grammar of their own.
    pub(crate) fn checked(self) -> Result<Self> {
        if self.qd.is_some() && matches!(self.arrivals, Some(Arrivals::Open | Arrivals::Asap)) {
            return Err(Error::input("qd belongs to closed arrivals, not to `open` or `asap`"));
        }
        if self.until.is_some() && self.repeat_trace > 1 {
            return Err(Error::input(
                "until repeats the trace as often as it takes: leave out repeat_trace",
            ));
        }
        if let WorkloadSpec::Trace(trace) = &self.workload {
            trace.checked()?;
        }
        ftlab_trace::filters::check(&self.filters)?;
        self.break_at.as_deref().map(BreakAt::parse).transpose()?;
        self.own_faults()?;
        Ok(self)
    }

    pub(crate) fn own_faults(&self) -> Result<Faults> {
        Faults::new(self.run_seed(), &self.faults)?.without_operator()
    }
}

/// Reads a spec from JSON.
pub fn parse_spec(json: &str) -> Result<RunSpec> {
    from_json::<RunSpec>("run spec", json)?.checked()
}

/// Reads any spec from JSON, unchecked. What is wrong with its keys is said without a position: the user never saw this text.
pub(crate) fn from_json<T: DeserializeOwned>(what: &str, json: &str) -> Result<T> {
    let value: Value = serde_json::from_str(json).map_err(|e| Error::input(misread(what, json, &e)))?;
    read_value(value)
}

/// What is wrong with a text that is no JSON. Python writes bytes of names that are not UTF-8 as halves of surrogate pairs.
fn misread(what: &str, json: &str, error: &serde_json::Error) -> String {
    let before = json
        .get(..error.column())
        .filter(|_| error.to_string().contains("surrogate"));
    match before.and_then(|before| before.rsplit('"').next()) {
        Some(text) => format!("`{}…`: expected UTF-8", text.split("\\ud").next().unwrap_or_default()),
        None => format!("{what}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"{"drive": {"name": "tiny"}, "workload": {"generator": {"spec": "uniform"}}}"#;

    fn with(extra: &str) -> String {
        MINIMAL.replacen('{', &format!("{{{extra}, "), 1)
    }

    fn refusal(extra: &str) -> String {
        parse_spec(&with(extra)).unwrap_err().to_string()
    }

    #[test]
    fn what_is_left_out_gets_its_default() {
        let spec = parse_spec(MINIMAL).unwrap();
        assert_eq!(spec.backend, BackendKind::Timed);
        assert_eq!(spec.precondition, Precondition::Auto);
        assert_eq!((spec.speedup, spec.seed, spec.fit), (1.0, 1, Fit::Error));
    }

    #[test]
    fn what_is_not_utf_8_is_shown_up_to_there() {
        let refused = parse_spec(r#"{"drive": {"name": "tiny\udcff.toml"}}"#)
            .unwrap_err()
            .to_string();
        assert_eq!(refused, "`tiny…`: expected UTF-8");
    }

    #[test]
    fn a_spec_survives_its_own_json() {
        let extra = r#""warmup": "2.5x", "precondition": "state:a/b", "arrivals": "closed", "qd": 32, "fit": "wrap""#;
        let spec = parse_spec(&with(extra)).unwrap();
        assert_eq!(spec.warmup, Some(Warmup::Capacities(2.5)));
        let again = serde_json::to_string(&spec).unwrap();
        assert_eq!(parse_spec(&again).unwrap(), spec);
    }

    /// What parsers, signatures and pages are made of is what a spec has: no key without a declaration, no declaration without
    /// a key, and every default as declared.
    #[test]
    fn a_spec_is_its_options() {
        let spec = serde_json::to_value(parse_spec(MINIMAL).unwrap()).unwrap();
        let declared = RunSpec::options();
        let keys = spec.as_object().unwrap().keys().map(String::as_str);
        let mut keys: Vec<&str> = keys.filter(|key| !["drive", "workload"].contains(key)).collect();
        let mut names: Vec<&str> = declared.iter().map(|option| option.name).collect();
        keys.sort_unstable();
        names.sort_unstable();
        assert_eq!(keys, names);
        for option in &declared {
            assert_eq!(spec[option.name], option.default, "{}", option.name);
        }
    }

    #[test]
    fn a_declaration_is_complete_and_no_name_stands_twice() {
        let all = every_option();
        for option in &all {
            let name = option.name;
            assert!(
                option.help.ends_with('.') && !option.help.contains("  "),
                "{name}: {}",
                option.help
            );
            assert!(option.metavar.is_empty() == (option.kind == Kind::Switch), "{name}");
            assert!(option.flag.starts_with("--"), "{name}");
            let alike = |other: &&Opt| {
                let of_both = other.verbs.iter().any(|verb| option.verbs.contains(verb));
                of_both && (other.name == name || other.flag == option.flag)
            };
            assert_eq!(all.iter().filter(alike).count(), 1, "{name}");
        }
    }

    #[test]
    fn a_value_out_of_range_is_refused_by_name() {
        for (extra, words) in [
            (r#""qd": -1"#, "qd -1: expected a whole number from 1 to 1048576"),
            (r#""qd": 1.5"#, "qd 1.5: expected a whole number"),
            (
                r#""seed": -1"#,
                "seed -1: expected a whole number of at least 0, below 2^64",
            ),
            (r#""seed": 18446744073709551616"#, "below 2^64"),
            (r#""speedup": "nan""#, "speedup nan: expected a number above 0"),
            (
                r#""power_cuts": [5, 0]"#,
                "power_cuts 0: expected a whole number of at least 1",
            ),
            (r#""verify": 1"#, "verify 1: expected true or false"),
            (r#""warmup": 4"#, "warmup 4: expected a text"),
            (r#""break_at": "waf>nan""#, "break `waf>nan`: expected"),
        ] {
            let error = refusal(extra);
            assert!(error.contains(words), "{error}");
        }
        let drive = MINIMAL.replace(r#""tiny""#, r#""tiny", "set": [3]"#);
        assert_eq!(parse_spec(&drive).unwrap_err().to_string(), "set 3: expected key=value");
    }

    #[test]
    fn misspelt_and_unknown_words_are_refused_by_name() {
        assert!(refusal(r#""backend": "count""#).contains("unknown backend `count`"));
        assert!(refusal(r#""fit": "compat""#).contains("did you mean `compact`?"));
        assert!(refusal(r#""warm": "4x""#).contains("unknown field `warm`"));
        assert!(refusal(r#""precondition": "state:""#).contains("state:PATH"));
        assert!(refusal(r#""speedup": 0"#).contains("above 0"));
        assert!(refusal(r#""qd": 8, "arrivals": "open""#).contains("closed"));
        assert!(refusal(r#""filters": ["haed:requests=1"]"#).contains("did you mean `head`?"));
    }
}
