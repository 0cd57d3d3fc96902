//! How to read a trace: what detection and the format's defaults leave open.

use std::path::PathBuf;

use ftlab_core::{Error, Result, error};

use crate::settings::{Setting, Settings};

/// Options of [`open`](crate::open) and [`scan`](crate::scan); the default reads any known format by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Forces the format of this name instead of detecting it (`--as`).
    pub as_format: Option<String>,
    /// What the content leaves open; `None` is guessed by the format.
    pub settings: Settings,
    /// What becomes of several devices in one trace.
    pub volumes: Volumes,
    /// Bytes of the units in which a scan records what was touched: the drive's mapping unit.
    pub unit_bytes: u32,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            as_format: None,
            settings: Settings::default(),
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
    codes: Option<String>,
    address_unit: Option<String>,
    size_unit: Option<String>,
    columns: Option<String>,
    event: Option<String>,
    op: Option<String>,
    replay: Option<String>,
    order: Option<String>,
    volumes: Option<String>,
}

impl Sidecar {
    fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        for setting in Setting::ALL {
            let text = match setting {
                Setting::TimeUnit => &self.time_unit,
                Setting::Codes => &self.codes,
                Setting::AddressUnit => &self.address_unit,
                Setting::SizeUnit => &self.size_unit,
                Setting::Columns => &self.columns,
                Setting::Event => &self.event,
                Setting::Op => &self.op,
                Setting::Replay => &self.replay,
                Setting::Order => &self.order,
            };
            if let Some(text) = text {
                settings.set(setting, text)?;
            }
        }
        Ok(settings)
    }
}

impl ReadOptions {
    /// These options, completed by the sidecar of the first of `paths` that has one, and the sidecar's name. What the
    /// options say already stays.
    pub fn with_sidecar(&self, paths: &[PathBuf]) -> Result<(Self, Option<String>)> {
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
            let message = error::in_words(e.message());
            if message.starts_with("unknown field") {
                return Error::input(format!("{name}, line {line}: {message}"));
            }
            let settings = Setting::ALL.map(Setting::name).join("`, `");
            Error::input(format!(
                "{name}, line {line}: {message}: expected `as`, `volumes`, `{settings}`"
            ))
        })?;
        let in_sidecar = |e: Error| Error::input(format!("{name}: {e}"));
        options.settings = options.settings.or(&said.settings().map_err(in_sidecar)?);
        options.as_format = options.as_format.or(said.as_format);
        if let (Volumes::SideBySide, Some(volumes)) = (&options.volumes, said.volumes) {
            options.volumes = Volumes::parse(&volumes).map_err(in_sidecar)?;
        }
        Ok((options, Some(name)))
    }
}

/// What becomes of a trace with several devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Volumes {
    /// One address range after the other, in the order in which the volumes first appear.
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
    }
}
