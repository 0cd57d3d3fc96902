//! Policies drawn from a catalogue, with options around their defaults: whoever is added to a catalogue is drawn.

use ftlab_core::{Catalogue, PolicySpec, Stream};
use serde_json::Value;

/// Draws policies of one role.
pub struct Drawer<'a, T: ?Sized + 'static, S: 'static> {
    pub catalogue: Catalogue<T, S>,
    /// Specs worth trying beside the catalogue's names: options that nobody finds by chance.
    pub also: &'a [&'a str],
    /// A setup of the kind that the drives of tests have, to see whether options are accepted.
    pub setup: fn() -> S,
}

impl<T: ?Sized, S> Drawer<'_, T, S> {
    /// Turns of a round.
    pub fn turns(&self) -> u64 {
        (self.catalogue.names().len() + self.also.len()) as u64
    }

    /// The spec whose turn it is: each round of turns goes through all of them once, in an order of its own for every role and
    /// round, so that members of different roles meet. Every second one of the catalogue's names has options of its own.
    pub fn draw(&self, turn: u64, random: &mut Stream) -> PolicySpec {
        let names = self.catalogue.names();
        let all = self.turns();
        let mut order: Vec<u64> = (0..all).collect();
        let mut shuffle = Stream::new(turn / all, self.catalogue.role());
        for last in (1..all).rev() {
            order.swap(last as usize, shuffle.below(last + 1) as usize);
        }
        let at = order[(turn % all) as usize] as usize;
        let Some(&name) = names.get(at) else {
            return PolicySpec::parse(self.also[at - names.len()]).expect("a spec of the test's own");
        };
        let plain = PolicySpec::named(name);
        if random.below(2) == 0 {
            return plain;
        }
        let drawn = self.with_options(name, random);
        if self.accepts(&drawn) { drawn } else { plain }
    }

    fn accepts(&self, spec: &PolicySpec) -> bool {
        self.catalogue.build(spec, &mut (self.setup)()).is_ok()
    }

    /// One or two options of `name` at other values than their defaults, each tried by itself.
    fn with_options(&self, name: &str, random: &mut Stream) -> PolicySpec {
        let mut spec = PolicySpec::named(name);
        let member = self.catalogue.members().iter().find(|member| member.name == name);
        let Some(Value::Object(defaults)) = member.map(|member| &member.defaults) else {
            return spec;
        };
        // An ideal member has units that no drive has, nor the backends that watch one.
        let keys: Vec<&String> = defaults.keys().filter(|key| *key != "ideal").collect();
        for _ in 0..keys.len().min(1 + random.below(3) as usize) {
            let key = keys[random.below(keys.len() as u64) as usize];
            let Some(value) = self.another(name, key, &defaults[key], random) else {
                continue;
            };
            let before = spec.clone();
            spec.params.insert(key.clone(), value);
            if !self.accepts(&spec) {
                spec = before;
            }
        }
        spec
    }

    /// Another value for an option whose default is `value`.
    fn another(&self, name: &str, key: &str, value: &Value, random: &mut Stream) -> Option<Value> {
        let mut pick = |of: usize| random.below(of as u64) as usize;
        match value {
            Value::Bool(flag) => Some(Value::Bool(!flag)),
            Value::Number(number) => match number.as_u64() {
                Some(whole) => Some(Value::from([0, 1, 2, 3, 7, whole / 2, whole + 1, 2 * whole][pick(8)])),
                None => number
                    .as_f64()
                    .map(|share| Value::from([0.1, 0.5, 0.9, share / 2.0, (share + 1.0) / 2.0, 2.0 * share][pick(6)])),
            },
            Value::String(_) => {
                let words = self.words(name, key);
                (!words.is_empty()).then(|| Value::String(words[pick(words.len())].clone()))
            }
            _ => None,
        }
    }

    /// The words that an option may be: a refusal of another one names them.
    fn words(&self, name: &str, key: &str) -> Vec<String> {
        let mut spec = PolicySpec::named(name);
        spec.params
            .insert(key.to_owned(), Value::String("no such word".to_owned()));
        let Err(refusal) = self.catalogue.build(&spec, &mut (self.setup)()) else {
            return Vec::new();
        };
        let text = refusal.to_string();
        let expected = text.rsplit_once("expected ").map_or("", |(_, expected)| expected);
        let words = expected.split(", ").flat_map(|part| part.split(" or "));
        let words = words.map(|word| word.trim_matches('`').to_owned());
        words
            .filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_ftl::victim;

    #[test]
    fn every_member_is_drawn_and_so_are_its_options() {
        let drawer = Drawer {
            catalogue: victim::catalogue(),
            also: &["cost_benefit:formula=cat"],
            setup: || victim::Setup {
                random: Stream::new(1, "victim"),
            },
        };
        let mut random = Stream::new(1, "draw");
        let drawn: Vec<PolicySpec> = (0..700).map(|turn| drawer.draw(turn, &mut random)).collect();
        for name in drawer.catalogue.names() {
            assert!(
                drawn.iter().any(|spec| spec.name == name && spec.params.is_empty()),
                "{name}"
            );
        }
        let options = |name: &str, key: &str| {
            let of = drawn.iter().filter(|spec| spec.name == name);
            let mut values: Vec<String> = of
                .filter_map(|spec| spec.params.get(key))
                .map(Value::to_string)
                .collect();
            values.sort();
            values.dedup();
            values
        };
        assert_eq!(
            options("cost_benefit", "formula"),
            ["\"cat\"", "\"kawaguchi\"", "\"lfs\"", "\"sqrt_age\""]
        );
        assert!(options("d_choices", "d").len() > 2, "{:?}", options("d_choices", "d"));
        assert!(!options("windowed_greedy", "window").is_empty());
    }
}
