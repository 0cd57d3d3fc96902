//! How a live drive is asked for.

use std::path::PathBuf;

use ftlab_core::faults::Faults;
use ftlab_core::{Error, Result, units};

use super::option::{SERVE, opt, options};
use super::{DriveSpec, Precondition, from_json};

/// Exports and images end at whole pages of memory.
const PAGE: u64 = 4096;

options! {
    /// A drive that clients use over NBD.
    pub struct ServeSpec {
        pub drive: DriveSpec,
    }
    options {
        /// Where to listen: `nbd+unix:///PATH`, or `nbd://HOST:PORT` (port 0: any that is free).
        ///
        /// Whoever can reach the place can read and write the drive: there is no authentication.
        listen: Vec<String> = Vec::new(), opt("URI").of(SERVE).left_out("nbd+unix:./ftlab.sock");

        /// Size of the drive for its clients; the drive gets as many blocks as that takes.
        size: Option<String> = None, opt("SIZE").of(SERVE).left_out("the drive's own");

        /// Export a range of the drive under a name: `db=16GiB`; ranges lie one after the other.
        ///
        /// Requests of the n-th export have volume n, by which placement policies can tell them.
        export: Vec<String> = Vec::new(), opt("NAME=SIZE").of(SERVE).left_out("one without a name");

        /// What becomes of data: `memory` (sparse, gone at the end) or `discard` (reads give zeros).
        data: String = "memory".to_owned(), opt("WHERE").of(SERVE).words(&["memory", "discard"]);

        /// Keep data in this file, at logical offsets; made if it is missing.
        ///
        /// A write is in the page cache when it is acknowledged, so it survives any end of the server, and so does the map, in
        /// FILE.state and FILE.journal. Without these the map is made from the data.
        image: Option<PathBuf> = None, opt("FILE").of(SERVE);

        /// Flush and FUA also synchronise the image, so that it survives the power loss of the machine.
        durable: bool = false, opt("").of(SERVE);

        /// Most memory for data; beyond it writes get ENOSPC. With `ftl.checkpoint` up to 256 MiB more hold what a power cut would bring back.
        memory_limit: Option<String> = None, opt("SIZE").of(SERVE).left_out("half of the machine's");

        /// `real` (answers come when the drive would give them), `none` (at once), or a factor: 10 is ten times as fast.
        pace: String = "real".to_owned(), opt("HOW").of(SERVE).words(&["real", "none"]);

        /// Fault to inject: requests that fail (`eio@lba=0-63`), wait (`stall=50ms@p=0.001`) or are answered falsely (`drop-flush`).
        ///
        /// Kinds: `eio`, `enospc`, `stall=TIME`, `stuck`, `drop-flush`, `torn-write`, `readonly`, `die-fails`. Conditions behind `@`, all of which
        /// must hold: `op=read|write|trim|flush`, `lba=A-B` or `lba=A` (sectors), `p=SHARE`, `after=N`, `count=N`, `t=TIME`, `wear=SHARE`, `die=N` (of `die-fails`,
        /// which takes `t`, `wear` and `after` beside it).
        faults: Vec<String> = Vec::new(), opt("FAULT").flag("--fault").of(SERVE);

        /// Empty folder in which each export appears as a file, by FUSE: `disk`, or the export's name.
        ///
        /// Nearer to the drive than NBD for programs and for file systems on a loop device. Only the user who serves, and root, can use them.
        fuse: Option<PathBuf> = None, opt("DIR").of(SERVE);

        /// Socket for `ftlab ctl`: figures, faults and power cuts while it runs.
        control: Option<PathBuf> = None, opt("SOCKET").of(SERVE);

        /// Most connections at once.
        connections: u32 = 128, opt("N").of(SERVE).range(1, 4096);

        /// Keep a row per request of the drive, as the table `requests`, and all that entered it with their arrivals, as the
        /// table `arrivals`, which `ftlab run` takes.
        record: bool = false, opt("").of(SERVE);

        /// The drive at the start, as for `run`; `none` is a fresh one.
        precondition: Precondition = Precondition::None, opt("HOW").of(SERVE);

        /// Seed of every random stream.
        seed: u64 = 1, opt("S").of(SERVE);
    }
}

impl ServeSpec {
    /// Reads a spec from JSON and checks it.
    pub fn parse(json: &str) -> Result<Self> {
        from_json::<ServeSpec>("serve", json)?.checked()
    }

    /// What no option says of itself. Addresses and the pace are the server's words, which refuses what they cannot be.
    pub(crate) fn checked(self) -> Result<Self> {
        self.own_faults()?;
        self.size_bytes()?;
        self.export_sizes()?;
        self.memory_limit_bytes()?;
        if !["memory", "discard"].contains(&self.data.as_str()) {
            return Err(Error::input(format!(
                "data `{}`: expected memory or discard",
                self.data
            )));
        }
        if self.image.is_some() && self.data != "memory" {
            return Err(Error::input(
                "data: with an image, data lies in the image: leave it out",
            ));
        }
        if self.memory_limit.is_some() && (self.image.is_some() || self.data == "discard") {
            return Err(Error::input(
                "memory_limit: no effect here: the data does not lie in memory",
            ));
        }
        if self.durable && self.image.is_none() {
            return Err(Error::input("durable: nothing in memory survives; it needs an image"));
        }
        if matches!(self.precondition, Precondition::FillShare(_)) {
            return Err(Error::input(
                "precondition: a share of static data lies beside a workload, and clients have the whole drive; expected fill",
            ));
        }
        Ok(self)
    }

    pub fn own_faults(&self) -> Result<Faults> {
        Faults::new(self.seed, &self.faults)
    }

    pub(crate) fn size_bytes(&self) -> Result<Option<u64>> {
        self.size.as_deref().map(|text| size("size", text)).transpose()
    }

    fn export_sizes(&self) -> Result<Vec<(String, u64)>> {
        let mut all: Vec<(String, u64)> = Vec::new();
        for text in &self.export {
            let Some((name, bytes)) = text.rsplit_once('=') else {
                return Err(Error::input(format!("export `{text}`: expected NAME=SIZE")));
            };
            if name.len() > 4096 || all.iter().any(|(known, _)| known == name) {
                return Err(Error::input(format!("export `{text}`: the name is taken or too long")));
            }
            if name.contains(char::is_control) {
                return Err(Error::input(format!(
                    "export {text:?}: expected a name without control characters"
                )));
            }
            all.push((name.to_owned(), size("export", bytes)?));
        }
        Ok(all)
    }

    /// Half of the machine's memory unless something else is asked for.
    pub fn memory_limit_bytes(&self) -> Result<u64> {
        match &self.memory_limit {
            Some(text) => units::bytes(text).map_err(|e| Error::input(format!("memory_limit: {e}"))),
            None => {
                let facts = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
                let line = facts.lines().find_map(|line| line.strip_prefix("MemTotal:"));
                let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
                Ok(kib.map_or(4 << 30, |kib| kib * 512))
            }
        }
    }

    /// Name, first byte and bytes of each export of a drive of so many bytes.
    pub fn exports(&self, capacity: u64) -> Result<Vec<(String, u64, u64)>> {
        let sizes = self.export_sizes()?;
        let whole = self.size_bytes()?.unwrap_or(capacity / PAGE * PAGE);
        if sizes.is_empty() {
            return Ok(vec![(String::new(), 0, whole)]);
        }
        let mut offset = 0u64;
        let mut all = Vec::new();
        for (name, size) in sizes {
            all.push((name, offset, size));
            offset = offset.saturating_add(size);
        }
        if offset > whole {
            return Err(Error::input(format!(
                "export: {} in all, expected at most the drive's {}",
                units::show_bytes(offset),
                units::show_bytes(whole)
            )));
        }
        Ok(all)
    }
}

fn size(what: &str, text: &str) -> Result<u64> {
    let bytes = units::bytes(text).map_err(|e| Error::input(format!("{what}: {e}")))?;
    if bytes == 0 || !bytes.is_multiple_of(PAGE) || bytes > 1 << 50 {
        return Err(Error::input(format!(
            "{what} {text}: expected a multiple of 4 KiB, up to 1 PiB"
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(extra: &str) -> Result<ServeSpec> {
        ServeSpec::parse(&format!(r#"{{"drive": {{"name": "tiny"}}{extra}}}"#))
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_a_reason() {
        for (extra, words) in [
            (r#", "faults": ["eoi"]"#, "did you mean `eio`?"),
            (r#", "size": "1000B""#, "size 1000B: expected a multiple of 4 KiB"),
            (r#", "export": ["a"]"#, "export `a`: expected NAME=SIZE"),
            (r#", "export": ["a=1MiB", "a=1MiB"]"#, "the name is taken"),
            (r#", "data": "disk""#, "data `disk`: expected"),
            (r#", "durable": true"#, "it needs an image"),
            (r#", "image": "a", "memory_limit": "1GiB""#, "no effect here"),
            (r#", "precondition": "fill:share=0.5""#, "expected fill"),
            (r#", "qd": 3"#, "unknown field `qd`"),
        ] {
            let error = parsed(extra).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn exports_lie_one_behind_the_other() {
        let spec = parsed(r#", "export": ["a=1MiB", "b=2MiB"]"#).unwrap();
        let exports = spec.exports(4 << 20).unwrap();
        assert_eq!(exports[1], ("b".to_owned(), 1 << 20, 2 << 20));
        assert!(spec.exports(2 << 20).is_err());
        let broken = parsed(r#", "export": ["a\nb=1MiB"]"#).unwrap_err().to_string();
        assert!(broken.contains("control characters"), "{broken}");
        assert_eq!(parsed("").unwrap().exports(4 << 20).unwrap()[0].2, 4 << 20);
    }
}
