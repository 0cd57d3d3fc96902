//! Words of a partition, each with how often it comes.
//!
//! # Model
//! Words come again and again within a partition, so they are counted in a table that stays in a core's own cache, and only then does each word go to the totals, once.
//! A word of at most eight bytes is a number of 64 bits (letters are never 0), which tells it apart by itself.

use crate::keys::{eight, hash, is_same, mix};
use crate::record::LETTERS;

const FEWEST: usize = 4096;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

struct Word {
    /// Its first eight bytes, or all and zeros.
    first: u64,
    start: usize,
    length: usize,
    count: u32,
}

#[derive(Default)]
pub(super) struct Tally {
    lower: Vec<u8>,
    /// Numbers of words, from 1 on; 0 of none.
    slots: Vec<u32>,
    words: Vec<Word>,
}

impl Tally {
    /// Counts the words of `text`, whatever stood here before.
    pub(super) fn count(&mut self, text: &[u8]) {
        self.lower.clear();
        self.lower.extend(text.iter().map(|&byte| LETTERS[usize::from(byte)]));
        // Each word is followed by a zero, and eight bytes can be read at its start.
        self.lower.extend([0; 9]);
        self.words.clear();
        if self.slots.is_empty() {
            self.slots.resize(FEWEST, 0);
        }
        self.slots.fill(0);
        let mut at = 0;
        while at < text.len() {
            let bytes = eight(&self.lower, at);
            let zeros = bytes.wrapping_sub(ONES) & !bytes & HIGHS;
            let length = match zeros {
                0 => {
                    let rest = &self.lower[at + 8..];
                    8 + memchr::memchr(0, rest).unwrap_or(rest.len())
                }
                zeros => zeros.trailing_zeros() as usize / 8,
            };
            if length > 0 {
                let first = if length < 8 {
                    bytes & !(u64::MAX << (8 * length))
                } else {
                    bytes
                };
                self.add(first, at, length);
            }
            at += length + 1;
        }
    }

    #[inline]
    fn add(&mut self, first: u64, start: usize, length: usize) {
        let word = &self.lower[start..start + length];
        let hash = if length <= 8 { mix(first) } else { hash(word) };
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let number = self.slots[at] as usize;
            if number == 0 {
                break;
            }
            let known = &mut self.words[number - 1];
            if known.first == first
                && known.length == length
                && (length <= 8 || is_same(&self.lower[known.start..known.start + length], word))
            {
                known.count += 1;
                return;
            }
            at = (at + 1) & mask;
        }
        self.words.push(Word {
            first,
            start,
            length,
            count: 1,
        });
        self.slots[at] = self.words.len() as u32;
        if 2 * self.words.len() > self.slots.len() {
            self.widen();
        }
    }

    fn widen(&mut self) {
        let wider = 2 * self.slots.len();
        self.slots.clear();
        self.slots.resize(wider, 0);
        for (number, word) in self.words.iter().enumerate() {
            let hash = match word.length {
                ..=8 => mix(word.first),
                length => hash(&self.lower[word.start..word.start + length]),
            };
            let mut at = hash as usize & (wider - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (wider - 1);
            }
            self.slots[at] = number as u32 + 1;
        }
    }

    /// Each word in the order in which it came first, and how often it came.
    pub(super) fn words(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let words = self.words.iter();
        words.map(|word| (&self.lower[word.start..word.start + word.length], word.count))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::Explode;

    /// Words of 1 to 20 letters, in capitals here and there, between one to three separators: as taken apart line by line.
    #[test]
    fn words_of_a_text_are_those_of_its_lines() {
        let mut random = ftlab_core::Stream::new(5, "words");
        let mut text = Vec::new();
        for _ in 0..60_000 {
            let most = 1 + random.below(20);
            let length = 1 + random.below(most) as usize;
            let letters = [&b"ab"[..], b"Abc", b"\xc3\xa4z09"][random.below(3) as usize];
            text.extend((0..length).map(|_| letters[random.below(letters.len() as u64) as usize]));
            text.extend((0..=random.below(3)).map(|_| b" ,\n\r\0"[random.below(5) as usize]));
        }
        let mut tally = Tally::default();
        for text in [&text[..], &text[..1000], b"", b"end"] {
            let mut naive: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
            for line in text.split(|&byte| byte == b'\n') {
                let mut lower = Vec::new();
                let counted = Explode::Words.pieces(line, &mut lower, |word| {
                    *naive.entry(word.to_vec()).or_default() += 1;
                    Ok(())
                });
                counted.unwrap();
            }
            tally.count(text);
            let counted: Vec<_> = tally.words().map(|(word, count)| (word.to_vec(), count)).collect();
            assert_eq!(counted.len(), naive.len());
            assert_eq!(counted.into_iter().collect::<BTreeMap<_, _>>(), naive);
        }
    }
}
