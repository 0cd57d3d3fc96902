//! A number as text in JSON: JSON's own are read to within a last bit.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let text = String::deserialize(from)?;
    text.parse()
        .map_err(|_| D::Error::custom(format!("{text}, expected a number")))
}
