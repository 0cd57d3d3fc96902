//! Catalogues: a family of policies, each one file and one line.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{self, Error, Result};

/// A policy as a drive file names it: `"d_choices"`, `"d_choices:d=5"` or `{ policy = "d_choices", d = 5 }`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicySpec {
    pub name: String,
    pub params: Map<String, Value>,
}

impl PolicySpec {
    /// A policy with all parameters at their defaults.
    pub fn named(name: &str) -> Self {
        PolicySpec {
            name: name.to_owned(),
            params: Map::new(),
        }
    }

    /// Parses the one-line form `name:key=value,key=value`; a value is a number, `true`/`false`, or a word.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut spec = PolicySpec::named(name.trim());
        for pair in rest.split(',').filter(|p| !p.trim().is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .filter(|(key, _)| !key.trim().is_empty())
                .ok_or_else(|| Error::input(format!("`{pair}` in `{text}`: expected key=value")))?;
            let value = written(value.trim());
            if spec.params.insert(key.trim().to_owned(), value).is_some() {
                return Err(Error::input(format!("`{text}`: `{}` is given twice", key.trim())));
            }
        }
        Ok(spec)
    }

    /// From a parsed configuration value: a string in the one-line form, or a table with the key `policy`.
    pub fn from_value(value: &Value) -> Result<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Object(table) => {
                let mut params = table.clone();
                match params.remove("policy") {
                    Some(Value::String(name)) => Ok(PolicySpec { name, params }),
                    _ => Err(Error::input("a policy table needs the key `policy` with a name")),
                }
            }
            other => Err(Error::input(format!(
                "`{other}` is not a policy: expected a name or a table with `policy`"
            ))),
        }
    }

    /// The one-line form, which [`PolicySpec::parse`] reads back.
    pub fn show(&self) -> String {
        if self.params.is_empty() {
            return self.name.clone();
        }
        let pairs: Vec<String> = self
            .params
            .iter()
            .map(|(k, v)| format!("{k}={}", v.to_string().trim_matches('"')))
            .collect();
        format!("{}:{}", self.name, pairs.join(","))
    }
}

/// A value as it is written in the one-line form; `1e6` is a whole number.
fn written(text: &str) -> Value {
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    match value.as_f64() {
        Some(number) if text.contains(['e', 'E']) && number.fract() == 0.0 && number.abs() < 9e15 => {
            Value::from(number as i64)
        }
        _ => value,
    }
}

/// Makes a member from its parameters.
type Build<T, S> = Box<dyn Fn(&Map<String, Value>, &mut S) -> Result<Box<T>> + Send + Sync>;

/// One member of a family: its name, its documentation and how to make it.
pub struct Member<T: ?Sized, S> {
    pub name: &'static str,
    /// The member's source text; its `//!` head is its documentation page.
    pub source: &'static str,
    /// Defaults of the parameters as JSON.
    pub defaults: Value,
    build: Build<T, S>,
}

/// The head (`//!` lines) of a source text, as Markdown: the documentation page of whatever the file holds.
pub fn documentation(source: &str) -> String {
    let head = source.lines().map_while(|line| line.strip_prefix("//!"));
    head.map(|line| line.strip_prefix(' ').unwrap_or("").to_owned() + "\n")
        .collect()
}

/// The first line of [`documentation`].
pub fn summary(source: &str) -> String {
    documentation(source).lines().next().unwrap_or("").to_owned()
}

impl<T: ?Sized, S> Member<T, S> {
    pub fn documentation(&self) -> String {
        documentation(self.source)
    }

    pub fn summary(&self) -> String {
        summary(self.source)
    }
}

/// A family of policies `T`, made from parameters and a setup `S` (geometry, random stream).
pub struct Catalogue<T: ?Sized, S> {
    role: &'static str,
    members: Vec<Member<T, S>>,
}

impl<T: ?Sized + 'static, S: 'static> Catalogue<T, S> {
    pub fn new(role: &'static str) -> Self {
        Catalogue {
            role,
            members: Vec::new(),
        }
    }

    /// Adds a member; [`member!`](crate::member) writes this call from the module's name.
    pub fn with<P>(mut self, name: &'static str, new: fn(P, &mut S) -> Result<Box<T>>, source: &'static str) -> Self
    where
        P: DeserializeOwned + serde::Serialize + Default + 'static,
    {
        let role = self.role;
        let build = move |params: &Map<String, Value>, setup: &mut S| {
            let parsed: P = serde_path_to_error::deserialize(Value::Object(params.clone()))
                .map_err(|e| refused(role, name, e.path(), e.inner()))?;
            new(parsed, setup)
        };
        let defaults = serde_json::to_value(P::default()).unwrap_or(Value::Null);
        self.members.push(Member {
            name,
            source,
            defaults,
            build: Box::new(build),
        });
        self
    }

    /// Makes the named member, or says which names exist.
    pub fn build(&self, spec: &PolicySpec, setup: &mut S) -> Result<Box<T>> {
        let member = self.members.iter().find(|m| m.name == spec.name);
        let member =
            member.ok_or_else(|| error::unknown(&format!("{} policy", self.role), &spec.name, &self.names()))?;
        (member.build)(&spec.params, setup)
    }

    pub fn role(&self) -> &'static str {
        self.role
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.members.iter().map(|m| m.name).collect()
    }

    pub fn members(&self) -> &[Member<T, S>] {
        &self.members
    }
}

/// Apart from what is compiled for each member's parameters.
fn refused(role: &str, name: &str, path: &serde_path_to_error::Path, said: &serde_json::Error) -> Error {
    let words = error::in_words(&said.to_string());
    // A key that is unknown is in the words already.
    let key = match path.to_string() {
        key if key == "." || words.starts_with("unknown field") => String::new(),
        key if words.starts_with("expected ") => format!(" {key}:"),
        key => format!(" {key} ="),
    };
    Error::input(format!("{role} policy `{name}`:{key} {words}"))
}

/// `member!(catalogue, greedy)`: adds the module `greedy` (file `greedy.rs`, constructor `greedy::new`) under its own name.
#[macro_export]
macro_rules! member {
    ($catalogue:expr, $($module:ident),+ $(,)?) => {
        $catalogue$(.with(stringify!($module), $module::new, include_str!(concat!(stringify!($module), ".rs"))))+
    };
}

/// Parameters of a policy that has none; unknown keys are refused.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_spellings_of_a_policy_mean_the_same() {
        let line = PolicySpec::parse("d_choices:d=5,replace=true").unwrap();
        let table =
            PolicySpec::from_value(&serde_json::json!({"policy": "d_choices", "d": 5, "replace": true})).unwrap();
        assert_eq!(line, table);
        assert_eq!(PolicySpec::parse(&line.show()).unwrap(), line);
        assert_eq!(PolicySpec::parse("d_choices:d=5e0,replace=true").unwrap(), line);
        assert_eq!(
            PolicySpec::parse("p:x=1e-3").unwrap().params["x"],
            serde_json::json!(0.001)
        );
        assert_eq!(PolicySpec::parse("greedy").unwrap(), PolicySpec::named("greedy"));
    }

    #[test]
    fn a_malformed_policy_says_what_was_expected() {
        assert!(
            PolicySpec::parse("d_choices:5")
                .unwrap_err()
                .to_string()
                .contains("key=value")
        );
        assert!(PolicySpec::from_value(&serde_json::json!(3)).is_err());
        assert_eq!(
            PolicySpec::parse("d_choices:d=5,d=6").unwrap_err().to_string(),
            "`d_choices:d=5,d=6`: `d` is given twice"
        );
    }
}
