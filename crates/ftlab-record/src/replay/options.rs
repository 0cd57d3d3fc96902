//! How a recording becomes requests to a device: `page_cache=off,memory=1GiB,extents=real`.

use ftlab_core::{Error, Result, error, units};

/// Choices of a replay. The defaults are those of a Linux kernel on a machine with 8 GiB of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the kernel's page cache stands between program and device; without it every write goes down at once.
    pub page_cache: bool,
    /// Bytes of memory that may hold pages of files.
    pub memory: u64,
    /// Age at which a file's dirty pages are written back, ns (`vm.dirty_expire_centisecs`).
    pub dirty_expire_ns: u64,
    /// Time between two looks for expired pages, ns (`vm.dirty_writeback_centisecs`).
    pub wakeup_ns: u64,
    /// Dirty data above which pages are written back in the background (`vm.dirty_background_ratio`).
    pub background: Amount,
    /// Dirty data above which a writer has to wait for pages being written (`vm.dirty_ratio`).
    pub limit: Amount,
    /// Bytes per second at which the background writes; it decides only how often the limit is met.
    pub bandwidth: u64,
    /// Largest request in bytes, a whole number of pages (`max_sectors_kb`).
    pub max_request: u64,
    /// Where on the device the files lie.
    pub extents: Placement,
    /// Bytes of the device; none: as large as the files need.
    pub device: Option<u64>,
    /// Whether each `fsync` also writes a block of a journal.
    pub journal: bool,
    /// What requests are labelled by.
    pub labels: Labels,
    /// What process a request is said to come from.
    pub pids: Pids,
    /// How many frames of a path of calls, the innermost, make a program context; none: all of them.
    pub frames: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            page_cache: true,
            memory: 8 << 30,
            dirty_expire_ns: 30_000_000_000,
            wakeup_ns: 5_000_000_000,
            background: Amount::Share(100_000),
            limit: Amount::Share(200_000),
            bandwidth: 1_000_000_000,
            max_request: 512 << 10,
            extents: Placement::Simulated,
            device: None,
            journal: false,
            labels: Labels::Kind,
            pids: Pids::Process,
            frames: None,
        }
    }
}

/// What the labels of requests say of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// The ending, or the name without numbers.
    Kind,
    /// What files of the name are for, where that is known; else the kind.
    Role,
}

/// What process a request is said to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pids {
    /// That which wrote.
    Process,
    /// That which the recorded command started itself and of which the one that wrote descends: a build, and not its compilers.
    Job,
}

/// Bytes, or millionths of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Share(u32),
    Bytes(u64),
}

impl Amount {
    fn parse(key: &str, text: &str) -> Result<Self> {
        if let Some(percent) = text.strip_suffix('%') {
            let share: Option<f64> = percent.trim().parse().ok();
            return share
                .filter(|share| (0.0..=100.0).contains(share))
                .map(|share| Amount::Share((share * 10_000.0) as u32))
                .ok_or_else(|| Error::input(format!("{key}={text}: expected 0% to 100%, or bytes such as 64MiB")));
        }
        Ok(Amount::Bytes(units::bytes(text)?))
    }

    fn show(self) -> String {
        match self {
            Amount::Share(share) => format!("{}%", f64::from(share) / 10_000.0),
            Amount::Bytes(bytes) => plain(bytes),
        }
    }

    /// In bytes, with so much memory.
    pub fn of(self, memory: u64) -> u64 {
        match self {
            Amount::Share(share) => (u128::from(memory) * u128::from(share) / 1_000_000) as u64,
            Amount::Bytes(bytes) => bytes,
        }
    }
}

/// Where on the device the files lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where a simulated allocator puts them.
    Simulated,
    /// Where they lay when the recording ended, as far as they still existed; the others as simulated.
    Real,
}

const KEYS: [&str; 14] = [
    "page_cache",
    "memory",
    "dirty_expire",
    "wakeup",
    "background",
    "limit",
    "bandwidth",
    "max_request",
    "extents",
    "device",
    "journal",
    "labels",
    "pids",
    "frames",
];

impl Options {
    /// Parses `key=value` pairs between commas; what is not named keeps its default.
    pub fn parse(text: &str) -> Result<Self> {
        let mut options = Options::default();
        let mut seen: Vec<&str> = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                let known = KEYS.join(", ");
                return Err(Error::input(format!(
                    "replay `{pair}`: expected key=value with one of {known}"
                )));
            };
            let key = key.trim();
            if seen.contains(&key) {
                return Err(Error::input(format!("replay {key}: given twice")));
            }
            seen.push(key);
            options.set(key, value.trim())?;
        }
        let (background, limit) = (options.background.of(options.memory), options.limit.of(options.memory));
        if background > limit {
            return Err(Error::input(format!(
                "replay: background={} is more than limit={}: expected at most as much",
                options.background.show(),
                options.limit.show()
            )));
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "page_cache" => self.page_cache = switch(key, value)?,
            "memory" => self.memory = at_least(key, value, units::bytes(value)?, 1 << 20, "1MiB")?,
            "dirty_expire" => self.dirty_expire_ns = units::nanoseconds(value)?,
            "wakeup" => self.wakeup_ns = at_least(key, value, units::nanoseconds(value)?, 1_000_000, "1ms")?,
            "background" => self.background = Amount::parse(key, value)?,
            "limit" => self.limit = Amount::parse(key, value)?,
            "bandwidth" => self.bandwidth = at_least(key, value, units::bytes_per_second(value)?, 1 << 20, "1MiB/s")?,
            "max_request" => {
                let bytes = at_least(key, value, units::bytes(value)?, 4096, "4KiB")?;
                self.max_request = bytes.min(1 << 30) / 4096 * 4096;
            }
            "extents" => {
                self.extents = match value {
                    "simulated" => Placement::Simulated,
                    "real" => Placement::Real,
                    _ => return Err(error::unknown("placement of extents", value, &["simulated", "real"])),
                }
            }
            "device" => self.device = Some(at_least(key, value, units::bytes(value)?, 1 << 20, "1MiB")?),
            "journal" => self.journal = switch(key, value)?,
            "labels" => {
                self.labels = match value {
                    "kind" => Labels::Kind,
                    "role" => Labels::Role,
                    _ => return Err(error::unknown("labels of a replay", value, &["kind", "role"])),
                }
            }
            "pids" => {
                self.pids = match value {
                    "process" => Pids::Process,
                    "job" => Pids::Job,
                    _ => return Err(error::unknown("pids of a replay", value, &["process", "job"])),
                }
            }
            "frames" => {
                let count = value.parse().ok().filter(|&count| count > 0);
                let wrong = || {
                    Error::input(format!(
                        "frames={value}: expected a whole number from 1 to {}",
                        u32::MAX
                    ))
                };
                self.frames = Some(count.ok_or_else(wrong)?);
            }
            _ => return Err(error::unknown("option of a replay", key, &KEYS)),
        }
        Ok(())
    }

    /// Every option, as [`Options::parse`] reads it; a device without a size, the usual labels, pids and frames are left out.
    pub fn show(&self) -> String {
        let pairs = self.pairs().into_iter().filter(|(_, value)| !value.is_empty());
        pairs
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(",")
    }

    fn pairs(&self) -> [(&'static str, String); 14] {
        let on = |on| if on { "on" } else { "off" }.to_owned();
        let extents = match self.extents {
            Placement::Simulated => "simulated",
            Placement::Real => "real",
        };
        let values = [
            on(self.page_cache),
            plain(self.memory),
            time(self.dirty_expire_ns),
            time(self.wakeup_ns),
            self.background.show(),
            self.limit.show(),
            rate(self.bandwidth),
            plain(self.max_request),
            extents.to_owned(),
            self.device.map_or(String::new(), plain),
            on(self.journal),
            match self.labels {
                Labels::Kind => String::new(),
                Labels::Role => "role".to_owned(),
            },
            match self.pids {
                Pids::Process => String::new(),
                Pids::Job => "job".to_owned(),
            },
            self.frames.map_or(String::new(), |count| count.to_string()),
        ];
        let mut values = values.into_iter();
        KEYS.map(|key| (key, values.next().unwrap_or_default()))
    }
}

fn switch(key: &str, value: &str) -> Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Error::input(format!("{key}={value}: expected on or off"))),
    }
}

fn at_least(key: &str, text: &str, value: u64, least: u64, shown: &str) -> Result<u64> {
    match value >= least {
        true => Ok(value),
        false => Err(Error::input(format!("{key}={text}: expected at least {shown}"))),
    }
}

/// Bytes so that they can be read back exactly.
fn plain(bytes: u64) -> String {
    let shown = units::show_bytes(bytes).replace(' ', "");
    if units::bytes(&shown) == Ok(bytes) {
        shown
    } else {
        format!("{bytes}B")
    }
}

fn time(ns: u64) -> String {
    match ns {
        ns if ns % 1_000_000_000 == 0 => format!("{}s", ns / 1_000_000_000),
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns => format!("{ns}ns"),
    }
}

fn rate(bytes: u64) -> String {
    match bytes {
        bytes if bytes % 1_000_000 == 0 => format!("{}MB/s", bytes / 1_000_000),
        bytes => format!("{bytes}B/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_back_as_text() {
        let text = "page_cache=off,memory=1GiB,dirty_expire=2s,background=5%,limit=64MiB,extents=real,device=3GiB,journal=on,labels=role,pids=job,frames=5";
        let options = Options::parse(text).unwrap();
        assert!(!options.page_cache && options.journal);
        assert_eq!((options.memory, options.dirty_expire_ns), (1 << 30, 2_000_000_000));
        assert_eq!(options.background.of(1000), 50);
        assert_eq!((options.extents, options.device), (Placement::Real, Some(3 << 30)));
        assert_eq!((options.labels, options.pids), (Labels::Role, Pids::Job));
        assert_eq!(options.frames, Some(5));
        assert_eq!(Options::parse(&options.show()).unwrap(), options);
        let usual = Options::default();
        assert_eq!(Options::parse(&usual.show()).unwrap(), usual);
        assert_eq!(
            usual.show(),
            "page_cache=on,memory=8GiB,dirty_expire=30s,wakeup=5s,background=10%,limit=20%,bandwidth=1000MB/s,\
             max_request=512KiB,extents=simulated,journal=off"
        );
        assert_eq!(Options::parse("").unwrap(), Options::default());
    }

    #[test]
    fn a_wrong_option_says_what_was_expected() {
        for (text, words) in [
            ("cache=off", "unknown option of a replay `cache`"),
            ("page_cache=no", "expected on or off"),
            ("memory", "expected key=value"),
            ("memory=4KiB", "at least 1MiB"),
            ("background=101%", "0% to 100%"),
            ("background=30%", "more than limit=20%"),
            ("extents=reel", "did you mean `real`"),
            ("labels=rule", "did you mean `role`"),
            ("pids=jobs", "did you mean `job`"),
            ("labels=role, labels=kind", "replay labels: given twice"),
            ("wakeup=0s", "at least 1ms"),
            ("frames=0", "expected a whole number from 1"),
            ("frames=all", "expected a whole number from 1"),
        ] {
            let error = Options::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
