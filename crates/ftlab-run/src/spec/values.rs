//! What the values of options mean: closed sets of names, and amounts with their units.

use std::path::PathBuf;

use ftlab_core::{Error, Result, error, units};
use ftlab_ftl::TenantsBy;
use serde::{Deserialize, Serialize};

use super::option::{Kind, Shape, Valued};

/// With time or counters only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BackendKind {
    #[default]
    Timed,
    Counting,
}

/// The state of the drive before the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Precondition {
    /// [`Precondition::Theory`] where the map is in memory, [`Precondition::Fill`] where it lies in flash: scattered as theory
    /// has them, the units of one block belong to as many translation pages, all of which a collection would rewrite.
    #[default]
    Auto,
    /// The steady state that theory gives for the victim policy, or the nearest known one and aged from there.
    Theory,
    /// Every logical unit written once, in order.
    Fill,
    /// This share of the logical units, the last ones, written once and never again: static data. The workload gets the others.
    FillShare(f64),
    /// Every logical unit written once, in scattered order.
    Scatter,
    /// A fresh drive.
    None,
    /// A state saved by `save_state`.
    State(PathBuf),
}

/// How much work comes before the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Warmup {
    /// Host writes, in logical capacities: `"4x"`.
    Capacities(f64),
    /// Host writes, in bytes: `"10GiB"`.
    Bytes(u64),
    /// Share of the workload's requests: `"25%"`.
    Share(f64),
}

/// When the host sends the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Arrivals {
    /// At the time stamp, whatever the drive does.
    Open,
    /// When one of `qd` requests completes.
    Closed,
    /// As fast as the drive's own limits admit.
    Asap,
}

/// Addresses beyond the end of the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Fit {
    /// An error that names the address.
    #[default]
    Error,
    /// The units that the workload touches are renumbered without gaps.
    Compact,
    /// Modulo the drive's size.
    Wrap,
    /// The drive grows to the workload's span.
    Grow,
}

/// What a run goes on for beyond the end of its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Until {
    /// A steady write amplification.
    Steady,
}

/// What says whose a write is, for figures by tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Tenants {
    Stream,
    Volume,
    Pid,
    Label,
}

impl From<Tenants> for TenantsBy {
    fn from(tenants: Tenants) -> TenantsBy {
        match tenants {
            Tenants::Stream => TenantsBy::Stream,
            Tenants::Volume => TenantsBy::Volume,
            Tenants::Pid => TenantsBy::Pid,
            Tenants::Label => TenantsBy::Label,
        }
    }
}

/// A closed set of names: parsed with a hint at the nearest one, shown by the same table.
macro_rules! names {
    ($type:ident, $what:literal, $($name:literal => $value:ident),+ $(,)?) => {
        impl $type {
            pub const NAMES: &[&str] = &[$($name),+];

            pub fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name),+
                }
            }
        }

        impl TryFrom<String> for $type {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                match text.as_str() {
                    $($name => Ok($type::$value),)+
                    other => Err(error::unknown($what, other, Self::NAMES)),
                }
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.name().to_owned()
            }
        }

        impl Valued for $type {
            const SHAPE: Shape = Shape::words(Kind::Word, $type::NAMES);
        }
    };
}

names!(BackendKind, "backend", "timed" => Timed, "counting" => Counting);
names!(Arrivals, "arrivals", "open" => Open, "closed" => Closed, "asap" => Asap);
names!(Until, "until", "steady" => Steady);
names!(Tenants, "tenants", "stream" => Stream, "volume" => Volume, "pid" => Pid, "label" => Label);
names!(Fit, "fit", "error" => Error, "compact" => Compact, "wrap" => Wrap, "grow" => Grow);

impl TryFrom<String> for Precondition {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        match text.as_str() {
            "auto" => Ok(Precondition::Auto),
            "theory" => Ok(Precondition::Theory),
            "fill" => Ok(Precondition::Fill),
            "scatter" => Ok(Precondition::Scatter),
            "none" => Ok(Precondition::None),
            other => {
                if let Some(share) = other.strip_prefix("fill:") {
                    return share_of(share).map(Precondition::FillShare).ok_or_else(|| {
                        Error::input(format!(
                            "precondition `{other}`: expected `fill:share=S` with S above 0 and below 1"
                        ))
                    });
                }
                match other.strip_prefix("state:") {
                    Some(path) if !path.is_empty() => Ok(Precondition::State(path.into())),
                    _ => Err(error::unknown(
                        "precondition",
                        other,
                        &[
                            "auto",
                            "theory",
                            "fill",
                            "fill:share=S",
                            "scatter",
                            "none",
                            "state:PATH",
                        ],
                    )),
                }
            }
        }
    }
}

/// The share of `share=0.9`.
fn share_of(text: &str) -> Option<f64> {
    let share = text.strip_prefix("share=")?.parse().ok()?;
    (share > 0.0 && share < 1.0).then_some(share)
}

impl Precondition {
    /// Of a drive's logical units those that the workload may use, which are the first ones.
    pub fn left_to_workload(&self, logical_units: u32) -> u32 {
        match self {
            Precondition::FillShare(share) => {
                let filled = (share * f64::from(logical_units)).round() as u32;
                // Something is left to any workload.
                logical_units - filled.min(logical_units - 1)
            }
            _ => logical_units,
        }
    }
}

impl From<Precondition> for String {
    fn from(value: Precondition) -> String {
        match value {
            Precondition::Auto => "auto".to_owned(),
            Precondition::Theory => "theory".to_owned(),
            Precondition::Fill => "fill".to_owned(),
            Precondition::FillShare(share) => format!("fill:share={share}"),
            Precondition::Scatter => "scatter".to_owned(),
            Precondition::None => "none".to_owned(),
            Precondition::State(path) => format!("state:{}", path.display()),
        }
    }
}

impl Valued for Precondition {
    const SHAPE: Shape = Shape::words(Kind::Text, &["auto", "theory", "fill", "scatter", "none"]);
}

impl Warmup {
    /// A warm-up of more is a slip of the pen, and would have no end: an SLC block endures some 100,000 erases.
    pub const MOST_CAPACITIES: f64 = 1e6;
}

impl TryFrom<String> for Warmup {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        let expected = || {
            Error::input(format!(
                "warmup `{text}`: expected drive capacities (\"4x\"), a size (\"10GiB\") or a share of the requests below all of them (\"25%\")"
            ))
        };
        let number = |body: &str| body.trim().parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
        let trimmed = text.trim();
        let too_much = || {
            Error::input(format!(
                "warmup `{text}`: expected at most {:.0}x: no flash endures more",
                Warmup::MOST_CAPACITIES
            ))
        };
        if let Some(body) = trimmed.strip_suffix('x') {
            let capacities = number(body).ok_or_else(expected)?;
            return match capacities <= Warmup::MOST_CAPACITIES {
                true => Ok(Warmup::Capacities(capacities)),
                false => Err(too_much()),
            };
        }
        if let Some(body) = trimmed.strip_suffix('%') {
            let percent = number(body).filter(|p| *p < 100.0);
            return percent.map(|p| Warmup::Share(p / 100.0)).ok_or_else(expected);
        }
        units::bytes(trimmed).map(Warmup::Bytes).map_err(|_| expected())
    }
}

impl From<Warmup> for String {
    fn from(value: Warmup) -> String {
        match value {
            Warmup::Capacities(x) => format!("{x}x"),
            Warmup::Bytes(n) => format!("{n}B"),
            Warmup::Share(share) => format!("{}%", share * 100.0),
        }
    }
}

impl Valued for Warmup {
    const SHAPE: Shape = Shape::of(Kind::Text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_fill_lies_between_nothing_and_everything() {
        let state = Precondition::try_from("fill:share=0.9".to_owned()).unwrap();
        assert_eq!(String::from(state.clone()), "fill:share=0.9");
        assert_eq!((state.left_to_workload(1000), state.left_to_workload(1)), (100, 1));
        assert_eq!(Precondition::Fill.left_to_workload(1000), 1000);
        for text in [
            "fill:",
            "fill:share=0",
            "fill:share=1",
            "fill:share=nan",
            "fill:share=x",
            "fill:0.9",
        ] {
            let sentence = Precondition::try_from(text.to_owned()).unwrap_err().to_string();
            assert!(
                sentence.ends_with("expected `fill:share=S` with S above 0 and below 1"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn warmup_has_three_units() {
        for (text, value) in [
            ("4x", Warmup::Capacities(4.0)),
            ("10GiB", Warmup::Bytes(10 << 30)),
            ("25%", Warmup::Share(0.25)),
        ] {
            assert_eq!(Warmup::try_from(text.to_owned()).unwrap(), value);
        }
        for text in ["4", "x", "-1x", "100%", "ten", "nanx", "1e6.5x", "1000001x", "1e30x"] {
            assert!(Warmup::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
