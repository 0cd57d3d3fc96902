//! Weighted values as text, and the bins in which large numbers are counted.
//!
//! A distribution is written as `value*weight` separated by blanks, `1*20 2*5 1024*0.5`; a weight of 1 may be left out.
//! Numbers that can be large (gaps, lengths) are counted in bins: 0 to 7 have bins of their own, and every octave above has
//! four of equal width. A bin is named by its lower edge, and a number stands for the bin that it falls in.

use ftlab_core::{Error, Result};

/// Values with weights above 0, in ascending order of the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights<T>(pub Vec<(T, f64)>);

impl<T> Default for Weights<T> {
    fn default() -> Self {
        Weights(Vec::new())
    }
}

/// A value that has a text.
pub trait Word: Sized + Ord + Copy {
    fn write(&self) -> String;
    /// `None`: not such a value.
    fn read(text: &str) -> Option<Self>;
    /// What a value looks like, for errors.
    const EXAMPLE: &'static str;
}

impl Word for u64 {
    fn write(&self) -> String {
        self.to_string()
    }
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    const EXAMPLE: &'static str = "12*3";
}

impl<T: Word> Weights<T> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn total(&self) -> f64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    /// Adds to the weight of `value`.
    pub fn add(&mut self, value: T, weight: f64) {
        match self.0.binary_search_by(|(v, _)| v.cmp(&value)) {
            Ok(at) => self.0[at].1 += weight,
            Err(at) => self.0.insert(at, (value, weight)),
        }
    }

    /// Values with their counts, in any order; each value once.
    pub fn counted(counts: impl IntoIterator<Item = (T, u64)>) -> Self {
        let mut all: Vec<(T, f64)> = counts.into_iter().map(|(value, count)| (value, count as f64)).collect();
        all.sort_unstable_by_key(|(value, _)| *value);
        Weights(all)
    }

    pub fn write(&self) -> String {
        let words: Vec<String> = self
            .0
            .iter()
            .map(|(value, weight)| match *weight == 1.0 {
                true => value.write(),
                false => format!("{}*{}", value.write(), short(*weight)),
            })
            .collect();
        words.join(" ")
    }

    /// `place` names the key, for errors.
    pub fn read(place: &str, text: &str) -> Result<Self> {
        let mut weights = Weights::default();
        for word in text.split_whitespace() {
            let (value, weight) = word.split_once('*').unwrap_or((word, "1"));
            let weight: Option<f64> = weight.parse().ok().filter(|w| *w > 0.0 && *w <= 1e15);
            match (T::read(value), weight) {
                (Some(value), Some(weight)) => weights.add(value, weight),
                _ => {
                    return Err(Error::input(format!(
                        "{place}: `{word}`: expected values with weights above 0 such as `{}`",
                        T::EXAMPLE
                    )));
                }
            }
        }
        Ok(weights)
    }
}

/// A weight with at most six digits, whole where it is whole.
fn short(weight: f64) -> String {
    if weight.fract() == 0.0 {
        return format!("{weight}");
    }
    let text = format!("{weight:.6}");
    text.trim_end_matches('0').to_owned()
}

/// The lower edge of the bin in which `value` falls.
#[inline]
pub fn bin(value: u64) -> u64 {
    if value < 8 {
        return value;
    }
    let shift = 61 - value.leading_zeros();
    (value >> shift) << shift
}

/// How many numbers the bin with this lower edge holds.
#[inline]
pub fn width(edge: u64) -> u64 {
    if edge < 8 { 1 } else { 1 << (61 - edge.leading_zeros()) }
}

/// The mean of the numbers in the bin with this lower edge.
pub fn middle(edge: u64) -> f64 {
    edge as f64 + (width(edge) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_no_gaps_and_quarter_octaves() {
        // 8 is 1000 in binary: three leading digits stay, so the bins from 8 on are 8-9, 10-11, 12-13, 14-15, 16-19, ...
        for (value, edge) in [
            (0, 0),
            (7, 7),
            (8, 8),
            (9, 8),
            (15, 14),
            (16, 16),
            (19, 16),
            (20, 20),
            (1000, 896),
        ] {
            assert_eq!(bin(value), edge, "{value}");
        }
        let mut edge = 0;
        while edge < 1 << 20 {
            assert_eq!(bin(edge), edge);
            assert_eq!(bin(edge + width(edge) - 1), edge);
            edge += width(edge);
        }
        assert_eq!(bin(u64::MAX), 7 << 61);
    }

    #[test]
    fn distributions_are_written_as_they_are_read() {
        let text = "0*3 5 1024*0.25";
        let weights = Weights::<u64>::read("here", text).unwrap();
        assert_eq!(weights.0, [(0, 3.0), (5, 1.0), (1024, 0.25)]);
        assert_eq!(weights.write(), text);
        for bad in ["x*1", "3*-1", "3*0", "3*inf", "3*nan", "3**"] {
            let error = Weights::<u64>::read("class 2, next_rr", bad).unwrap_err().to_string();
            assert!(error.starts_with("class 2, next_rr: `"), "{error}");
        }
    }
}
