//! How to read a trace: what detection and the format's defaults leave open.

use std::path::PathBuf;

use ftlab_core::{Error, Result, error};

/// Options of [`open`](crate::open) and [`scan`](crate::scan); the default reads any known format by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Forces the format of this name instead of detecting it (`--as`).
    pub as_format: Option<String>,
    /// Unit of the time column, where the format leaves it open; `None` means the format's own default.
    pub time_unit: Option<TimeUnit>,
    /// What becomes of several devices in one trace.
    pub volumes: Volumes,
    /// Bytes of the units in which a scan records what was touched: the drive's mapping unit.
    pub unit_bytes: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            as_format: None,
            time_unit: None,
            volumes: Volumes::SideBySide,
            unit_bytes: 4096,
        }
    }
}

/// What a sidecar file `NAME.ftlab.toml` beside a trace may say: it settles what the content leaves open.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    /// Name of the format.
    #[serde(rename = "as")]
    as_format: Option<String>,
    time_unit: Option<String>,
    volumes: Option<String>,
}

impl ReadOptions {
    /// These options, completed by the sidecar of the first of `paths` that has one, and the sidecar's name. What the
    /// options say already stays.
    pub(crate) fn with_sidecar(&self, paths: &[PathBuf]) -> Result<(Self, Option<String>)> {
        let mut options = self.clone();
        let beside = paths.iter().map(|path| {
            let mut name = path.clone().into_os_string();
            name.push(".ftlab.toml");
            PathBuf::from(name)
        });
        let Some(sidecar) = beside.into_iter().find(|path| path.is_file()) else {
            return Ok((options, None));
        };
        let name = sidecar.display().to_string();
        let text = std::fs::read_to_string(&sidecar).map_err(|e| Error::io(&sidecar, &e))?;
        let said: Sidecar = toml::from_str(&text).map_err(|e| {
            let line = e
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(0, |t| t.matches('\n').count())
                + 1;
            let message = e.message().replace('\n', " ");
            Error::input(format!(
                "{name}, line {line}: {message}: expected `as`, `time_unit`, `volumes`"
            ))
        })?;
        let in_sidecar = |e: Error| Error::input(format!("{name}: {e}"));
        options.as_format = options.as_format.or(said.as_format);
        if let (None, Some(unit)) = (options.time_unit, said.time_unit) {
            options.time_unit = Some(TimeUnit::parse(&unit).map_err(in_sidecar)?);
        }
        if let (Volumes::SideBySide, Some(volumes)) = (&options.volumes, said.volumes) {
            options.volumes = Volumes::parse(&volumes).map_err(in_sidecar)?;
        }
        Ok((options, Some(name)))
    }
}

/// What becomes of a trace with several devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Volumes {
    /// One address range after the other, in ascending order of the volumes' names (numbers as numbers).
    #[default]
    SideBySide,
    /// All in one address range, as if they were one device.
    Merge,
    /// Only the volume of this name (as the report lists it); all other requests are left out.
    Only(String),
}

impl Volumes {
    /// Parses `side_by_side`, `merge` or `only:NAME`.
    pub fn parse(text: &str) -> Result<Self> {
        match text.trim() {
            "side_by_side" => Ok(Volumes::SideBySide),
            "merge" => Ok(Volumes::Merge),
            other => match other.strip_prefix("only:") {
                Some(name) if !name.is_empty() => Ok(Volumes::Only(name.to_owned())),
                _ => Err(error::unknown(
                    "handling of volumes",
                    other,
                    &["side_by_side", "merge", "only:NAME"],
                )),
            },
        }
    }
}

/// Unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    Picoseconds,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    /// Parses `ps`, `ns`, `us`, `ms` or `s`.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text.trim() {
            "ps" => TimeUnit::Picoseconds,
            "ns" => TimeUnit::Nanoseconds,
            "us" | "µs" => TimeUnit::Microseconds,
            "ms" => TimeUnit::Milliseconds,
            "s" => TimeUnit::Seconds,
            other => {
                return Err(Error::input(format!(
                    "time unit `{other}`: expected ps, ns, us, ms or s"
                )));
            }
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            TimeUnit::Picoseconds => "ps",
            TimeUnit::Nanoseconds => "ns",
            TimeUnit::Microseconds => "us",
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Seconds => "s",
        }
    }

    /// The unit as a power of ten of a nanosecond: 9 for seconds, −3 for picoseconds.
    pub(crate) fn exponent(self) -> i32 {
        match self {
            TimeUnit::Picoseconds => -3,
            TimeUnit::Nanoseconds => 0,
            TimeUnit::Microseconds => 3,
            TimeUnit::Milliseconds => 6,
            TimeUnit::Seconds => 9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_or_refused_with_the_known_words() {
        assert_eq!(Volumes::parse("only:prxy.0").unwrap(), Volumes::Only("prxy.0".into()));
        assert!(
            Volumes::parse("marge")
                .unwrap_err()
                .to_string()
                .contains("did you mean `merge`")
        );
        assert_eq!(TimeUnit::parse("us").unwrap(), TimeUnit::Microseconds);
        assert!(
            TimeUnit::parse("hours")
                .unwrap_err()
                .to_string()
                .contains("expected ps")
        );
    }
}
