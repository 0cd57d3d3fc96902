//! Options, each declared once.
//!
//! From a declaration in [`options!`] come the field of a spec with its default and its checks, the command line's parser with
//! help and completion, the keyword arguments of Python's functions, and docs/options.md. The first paragraph of its comment is
//! the help; what follows is for the page only.

use std::path::PathBuf;

use ftlab_core::{Error, Result, error};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who takes options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Run,
    Compare,
    Sweep,
    Mrc,
    Reproduce,
    Theory,
    Serve,
    /// Jobs on requests without a drive: inspect, convert, generate, fit, mine, tables.
    Requests,
}

/// One run, and what is written for that one.
pub const ALONE: &[Verb] = &[Verb::Run];
/// Several runs side by side.
pub const GRIDS: &[Verb] = &[Verb::Compare, Verb::Sweep];
/// Every run.
pub const RUNS: &[Verb] = &[Verb::Run, Verb::Compare, Verb::Sweep];
/// Every run, and what looks its map up as a run does.
pub const MAPS: &[Verb] = &[Verb::Run, Verb::Compare, Verb::Sweep, Verb::Mrc];
/// All that read traces.
pub const READERS: &[Verb] = &[Verb::Run, Verb::Compare, Verb::Sweep, Verb::Mrc, Verb::Requests];
pub const REQUESTS: &[Verb] = &[Verb::Requests];
/// The live drive.
pub const SERVE: &[Verb] = &[Verb::Serve];

/// The part of a spec that holds an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    /// The grid of a comparison, for all runs at once.
    Grid,
    Drive,
    Spec,
    Trace,
}

/// What its values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Switch,
    Count,
    Number,
    Text,
    /// One of `words`.
    Word,
    Path,
    /// `key=value` of a drive file.
    Change,
}

/// Bounds of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    Whole { least: u64, most: u64 },
    Above(f64),
}

/// What an option has no effect without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// The timed backend.
    Time,
    /// Requests that come by their time stamps.
    Stamps,
    /// A timeline that is written.
    Timeline,
    /// A trace, not a generator.
    Trace,
    /// Addresses that the drive may not have: those of a trace, or of what filters give.
    Addresses,
    /// A generator, not a trace.
    Generator,
    /// A generator, or filters, which may draw as well.
    Draws,
}

/// A declared option.
#[derive(Clone, Debug, Serialize)]
pub struct Opt {
    /// Its key in specs and grid files, and as a keyword argument.
    pub name: &'static str,
    /// Its name on the command line.
    pub flag: String,
    pub verbs: &'static [Verb],
    pub home: Home,
    pub kind: Kind,
    /// Whether it may be given more than once.
    pub many: bool,
    /// Values worth proposing; all there are of a [`Kind::Word`].
    pub words: &'static [&'static str],
    /// The list whose names are its values, as [`list`](crate::list) knows it.
    pub listed: Option<&'static str>,
    pub metavar: &'static str,
    pub default: Value,
    /// What holds where nothing is given, in words.
    pub left_out: String,
    /// What a value must be, in words.
    pub expected: String,
    /// On the command line a switch: the file has this name in the folder of the run.
    pub in_folder: Option<&'static str>,
    pub help: String,
    /// The rest of what is said, for the page.
    pub more: String,
    #[serde(skip)]
    range: Option<Range>,
    #[serde(skip)]
    pub needs: Needs,
}

/// An option whose value is called `metavar` in help; taken by every run unless `of` says otherwise.
pub fn opt(metavar: &'static str) -> Opt {
    Opt {
        name: "",
        flag: String::new(),
        verbs: RUNS,
        home: Home::Spec,
        kind: Kind::Text,
        many: false,
        words: &[],
        listed: None,
        metavar,
        default: Value::Null,
        left_out: String::new(),
        expected: String::new(),
        in_folder: None,
        help: String::new(),
        more: String::new(),
        range: None,
        needs: Needs::Nothing,
    }
}

impl Opt {
    pub fn flag(mut self, flag: &str) -> Self {
        flag.clone_into(&mut self.flag);
        self
    }

    pub fn of(mut self, verbs: &'static [Verb]) -> Self {
        self.verbs = verbs;
        self
    }

    pub fn home(mut self, home: Home) -> Self {
        self.home = home;
        self
    }

    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    pub fn words(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }

    pub fn listed(mut self, list: &'static str) -> Self {
        self.listed = Some(list);
        self
    }

    pub fn left_out(mut self, says: &str) -> Self {
        says.clone_into(&mut self.left_out);
        self
    }

    pub fn range(mut self, least: u64, most: u64) -> Self {
        self.range = Some(Range::Whole { least, most });
        self
    }

    pub fn above(mut self, bound: f64) -> Self {
        self.range = Some(Range::Above(bound));
        self
    }

    pub fn needs(mut self, needs: Needs) -> Self {
        self.needs = needs;
        self
    }

    pub fn in_folder(mut self, file: &'static str) -> Self {
        self.in_folder = Some(file);
        self
    }

    /// Completes a declaration by its name, its comment, and what its type says.
    pub fn declared<T: Valued>(self, name: &'static str, comment: &str, default: &T) -> Self {
        self.shaped(
            name,
            comment,
            serde_json::to_value(default).unwrap_or_default(),
            &T::SHAPE,
        )
    }

    /// Apart from what is compiled for each type.
    fn shaped(mut self, name: &'static str, comment: &str, default: Value, shape: &Shape) -> Self {
        self.name = name;
        if self.flag.is_empty() {
            self.flag = format!("--{}", name.replace('_', "-"));
        }
        if self.kind == Kind::Text {
            self.kind = shape.kind;
        }
        if self.words.is_empty() {
            self.words = shape.words;
        }
        self.many = shape.many;
        self.range = self.range.or(shape.range);
        self.default = default;
        if self.left_out.is_empty() {
            self.left_out = match &self.default {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.as_f64().unwrap_or_default().to_string(),
                _ => String::new(),
            };
        }
        self.expected = self.expectation();
        let lines: Vec<&str> = comment.lines().map(str::trim).collect();
        let mut paragraphs = lines.split(|line| line.is_empty()).map(|part| part.join(" "));
        self.help = paragraphs.next().unwrap_or_default();
        let more: Vec<String> = paragraphs.filter(|part| !part.is_empty()).collect();
        self.more = more.join("\n\n");
        self
    }

    fn expectation(&self) -> String {
        match (self.kind, self.range) {
            (Kind::Switch, _) => "true or false".to_owned(),
            (Kind::Count, Some(Range::Whole { least, most: u64::MAX })) => {
                format!("a whole number of at least {least}, below 2^64")
            }
            (Kind::Count, Some(Range::Whole { least, most })) => format!("a whole number from {least} to {most}"),
            (Kind::Count, _) => "a whole number".to_owned(),
            (Kind::Number, Some(Range::Above(bound))) => format!("a number above {bound}"),
            (Kind::Number, _) => "a number".to_owned(),
            (Kind::Word, _) => format!("one of {}", self.words.join(", ")),
            (Kind::Text, _) => "a text".to_owned(),
            (Kind::Path, _) => "the name of a file".to_owned(),
            (Kind::Change, _) => "key=value".to_owned(),
        }
    }

    /// The value of this option, or its default. Of one that may be given more than once a single value will do.
    pub fn read<T: Valued>(&self, given: Option<Value>, default: T) -> Result<T> {
        match self.checked(given)? {
            Some(value) => serde_json::from_value(value).map_err(|e| Error::input(e.to_string())),
            None => Ok(default),
        }
    }

    /// The value that is given, in the form that the option has.
    fn checked(&self, given: Option<Value>) -> Result<Option<Value>> {
        let value = match given {
            None | Some(Value::Null) => return Ok(None),
            Some(value) if self.many && !value.is_array() => Value::Array(vec![value]),
            Some(value) => value,
        };
        match &value {
            Value::Array(values) if self.many => values.iter().try_for_each(|value| self.check(value))?,
            value => self.check(value)?,
        }
        Ok(Some(value))
    }

    /// Refuses a value of the wrong kind or out of range. Whether a text is one of its words is left to the type.
    pub fn check(&self, value: &Value) -> Result<()> {
        let fits = match (self.kind, self.range) {
            (Kind::Switch, _) => value.is_boolean(),
            (Kind::Count, Some(Range::Whole { least, most })) => {
                value.as_u64().is_some_and(|n| (least..=most).contains(&n))
            }
            (Kind::Count, _) => value.is_u64(),
            (Kind::Number, Some(Range::Above(bound))) => value.as_f64().is_some_and(|x| x > bound),
            (Kind::Number, _) => value.is_number(),
            (Kind::Text | Kind::Path, _) => value.as_str().is_some_and(|text| !text.trim().is_empty()),
            (Kind::Word | Kind::Change, _) => value.is_string(),
        };
        if fits {
            return Ok(());
        }
        // Of a text that reads as a number: it is the quotes that are wrong.
        let is_quoted = |text: &str| match self.kind {
            Kind::Count => text.parse::<i128>().is_ok(),
            Kind::Number => text.parse::<f64>().is_ok_and(f64::is_finite),
            _ => false,
        };
        let shown = match value {
            Value::String(text) if is_quoted(text) => format!("\"{text}\" (a text)"),
            Value::String(text) if text.trim().is_empty() => format!("`{text}`"),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Err(Error::input(format!(
            "{} {shown}: expected {}",
            self.name, self.expected
        )))
    }
}

/// A type that an option can have.
pub trait Valued: Serialize + DeserializeOwned {
    const SHAPE: Shape;
}

/// What a type says about the options that have it.
pub struct Shape {
    pub kind: Kind,
    pub many: bool,
    pub words: &'static [&'static str],
    pub range: Option<Range>,
}

impl Shape {
    pub const fn of(kind: Kind) -> Self {
        Shape {
            kind,
            many: false,
            words: &[],
            range: None,
        }
    }

    pub const fn whole(most: u64) -> Self {
        Shape {
            range: Some(Range::Whole { least: 0, most }),
            ..Shape::of(Kind::Count)
        }
    }

    pub const fn words(kind: Kind, words: &'static [&'static str]) -> Self {
        Shape {
            words,
            ..Shape::of(kind)
        }
    }
}

impl Valued for bool {
    const SHAPE: Shape = Shape::of(Kind::Switch);
}

impl Valued for u32 {
    const SHAPE: Shape = Shape::whole(u32::MAX as u64);
}

impl Valued for u64 {
    const SHAPE: Shape = Shape::whole(u64::MAX);
}

impl Valued for f64 {
    const SHAPE: Shape = Shape::of(Kind::Number);
}

impl Valued for String {
    const SHAPE: Shape = Shape::of(Kind::Text);
}

impl Valued for PathBuf {
    const SHAPE: Shape = Shape::of(Kind::Path);
}

impl<T: Valued> Valued for Option<T> {
    const SHAPE: Shape = T::SHAPE;
}

impl<T: Valued> Valued for Vec<T> {
    const SHAPE: Shape = Shape { many: true, ..T::SHAPE };
}

/// Takes a field that is no option out of the keys of a spec.
pub fn field<T: DeserializeOwned>(given: &mut Map<String, Value>, name: &str) -> Result<T> {
    let value = given.remove(name);
    let missing = value.is_none();
    serde_json::from_value(value.unwrap_or_default()).map_err(|e| match missing {
        true => Error::input(format!("missing field `{name}`")),
        false => Error::input(error::of_value(name, &e.to_string())),
    })
}

/// Refuses the keys of a spec that nobody took.
pub fn nothing_left(given: &Map<String, Value>, known: &[&str]) -> Result<()> {
    match given.keys().next() {
        Some(key) => Err(error::unknown("field", key, known)),
        None => Ok(()),
    }
}

/// A spec: fields as they are, and options as `name: Type = default, opt("METAVAR")...;` with their help as comment.
macro_rules! options {
    (
        $(#[$meta:meta])*
        pub struct $Spec:ident {
            $($(#[$about:meta])* pub $field:ident: $Field:ty,)*
        }
        options {
            $($(#[doc = $comment:literal])+ $name:ident: $Type:ty = $default:expr, $opt:expr;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "serde_json::Map<String, serde_json::Value>")]
        pub struct $Spec {
            $($(#[$about])* pub $field: $Field,)*
            $($(#[doc = $comment])+ pub $name: $Type,)+
        }

        impl $Spec {
            /// The options, in the order in which help has them.
            pub fn options() -> Vec<$crate::spec::option::Opt> {
                vec![$({
                    let default: $Type = $default;
                    $opt.declared(stringify!($name), concat!($($comment, "\n"),+), &default)
                }),+]
            }
        }

        impl TryFrom<serde_json::Map<String, serde_json::Value>> for $Spec {
            type Error = ftlab_core::Error;

            fn try_from(mut given: serde_json::Map<String, serde_json::Value>) -> ftlab_core::Result<Self> {
                let spec = $Spec {
                    $($field: $crate::spec::option::field(&mut given, stringify!($field))?,)*
                    $($name: {
                        let default: $Type = $default;
                        let option = $opt.declared(stringify!($name), concat!($($comment, "\n"),+), &default);
                        option.read(given.remove(stringify!($name)), default)?
                    },)+
                };
                $crate::spec::option::nothing_left(&given, &[$(stringify!($field),)* $(stringify!($name)),+])?;
                Ok(spec)
            }
        }
    };
}

pub(crate) use options;
