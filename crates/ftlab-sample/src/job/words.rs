//! How often each word comes in a text, partition by partition.
//!
//! # Model
//! What is told of a word is one line of memory: its first sixteen letters (letters are never 0, so that these tell most words apart), how often it came in the partition under way and in
//! all, and the sum of the squares of the former. A square grows by `2 n + 1` as `n` does by one, so that no partition needs an end. Words of a block wait until all of them are
//! known, and the memory of each is read before the first is counted: a core then waits for many of them at once. Longer words go the way of all keys.
//!
//! Sums are whole numbers, so that they are the same in whichever order partitions come: threads share tables as they like.
//!
//! # Cost
//! 93 to 109 bytes a word and table, and its letters; of each disk as many tables as threads that count, 8 at most.

use crate::block::ROWS;
use crate::doubled::Doubled;
use crate::keys::{Keys, Slots, hash, mix};
use crate::record::LETTERS;
use crate::totals::Sums;

/// Letters that are told apart without a look at the word's own bytes.
const SHORT: usize = 16;
/// Bytes that are looked at together, one bit of a mask for each.
const AT_ONCE: usize = 64;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;
/// Multiplied with it, the lowest bits of eight bytes stand side by side in the highest byte.
const GATHER: u64 = 0x0102_0408_1020_4080;

/// Of a word by its length: which bits of sixteen bytes are its own.
static OWN: [[u64; 2]; SHORT + 1] = {
    let mut masks = [[0; 2]; SHORT + 1];
    let mut length = 1;
    while length <= SHORT {
        masks[length] = masks[length - 1];
        masks[length][(length - 1) / 8] |= 0xff << (8 * ((length - 1) % 8));
        length += 1;
    }
    masks
};

type Short = [u64; 2];

#[inline]
fn hash_of(word: Short) -> u64 {
    mix(word[0] ^ mix(word[1]))
}

/// The counts of a word.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Count {
    word: Short,
    squares: u128,
    sum: u64,
    seen: u64,
    /// In the partition of this number.
    now: u64,
    partition: u64,
}

impl Count {
    /// Once more, without a branch that nobody could foretell.
    #[inline]
    fn add(&mut self, partition: u64) {
        let before = if self.partition == partition { self.now } else { 0 };
        self.squares += u128::from(2 * before + 1);
        self.sum += 1;
        self.seen += u64::from(before == 0);
        self.now = before + 1;
        self.partition = partition;
    }

    fn sums(&self) -> Sums {
        Sums {
            t: doubled(self.sum.into()),
            tt: doubled(self.squares),
            ..Sums::default()
        }
    }
}

fn doubled(whole: u128) -> Doubled {
    let high = whole as f64;
    let low = whole.wrapping_sub(high as u128) as i128 as f64;
    Doubled { high, low }
}

/// A table of words, on which one thread at a time works.
#[derive(Default)]
pub(super) struct Words {
    slots: Slots,
    counts: Vec<Count>,
    /// Of `counts`, as they are written in answers, one behind the other; and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
    longer: Keys,
    longer_counts: Vec<Count>,
    /// The number of the one under way, from 1 on.
    partition: u64,
}

/// Room that a thread uses again.
pub(super) struct Room {
    lower: Vec<u8>,
    waiting: [(Short, u64); ROWS],
    key: Vec<u8>,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            lower: Vec::new(),
            waiting: [([0; 2], 0); ROWS],
            key: Vec::new(),
        }
    }
}

impl Words {
    /// Counts the words of a partition.
    pub(super) fn count(&mut self, text: &[u8], room: &mut Room) {
        self.partition += 1;
        // Sixteen bytes can be read at each word's start.
        room.lower.clear();
        room.lower.resize(text.len().next_multiple_of(AT_ONCE) + SHORT, 0);
        let Room { lower, waiting, key } = room;
        let mut start = 0;
        let mut count = 0;
        let mut word = |lower: &[u8], end: usize| {
            let length = end - start;
            if length > SHORT {
                self.add_longer(&lower[start..end], key);
            } else if length > 0 {
                let sixteen = lower[start..].first_chunk().map_or([0; SHORT], |sixteen| *sixteen);
                let (own, both) = (OWN[length], u128::from_le_bytes(sixteen));
                let word = [both as u64 & own[0], (both >> 64) as u64 & own[1]];
                waiting[count % ROWS] = (word, hash_of(word));
                count += 1;
                if count == ROWS {
                    self.add_all(&waiting[..]);
                    count = 0;
                }
            }
            start = end + 1;
        };
        let mut at = 0;
        let mut pieces = text.chunks_exact(AT_ONCE);
        for from in &mut pieces {
            let mut between = lower_case(from, &mut lower[at..at + AT_ONCE]);
            while between != 0 {
                word(lower, at + between.trailing_zeros() as usize);
                between &= between - 1;
            }
            at += AT_ONCE;
        }
        // What is left of the last is followed by zeros, which are no letters.
        for (to, &byte) in lower[at..].iter_mut().zip(pieces.remainder()) {
            *to = LETTERS[usize::from(byte)];
        }
        for end in at..=text.len() {
            if lower[end] == 0 {
                word(lower, end);
            }
        }
        self.add_all(&waiting[..count]);
    }

    fn add_all(&mut self, waiting: &[(Short, u64)]) {
        let mut read = 0;
        let mut numbers = [0; ROWS];
        for (number, &(_, hash)) in numbers.iter_mut().zip(waiting) {
            *number = self.slots.likely(hash);
        }
        for &number in &numbers[..waiting.len()] {
            read ^= self.counts.get(number).map_or(0, |count| count.sum);
        }
        std::hint::black_box(read);
        for &(word, hash) in waiting {
            let number = match self.slots.place(hash, |number| self.counts[number].word == word) {
                Ok(number) => number,
                Err(at) => self.enter(word, at),
            };
            self.counts[number].add(self.partition);
        }
    }

    #[cold]
    fn enter(&mut self, word: Short, at: usize) -> usize {
        let number = self.counts.len();
        self.counts.push(Count {
            word,
            ..Count::default()
        });
        let letters = word.map(u64::to_le_bytes);
        let letters = letters.as_flattened();
        let length = letters.iter().position(|&byte| byte == 0).unwrap_or(SHORT);
        write_text(&mut self.keys, &letters[..length]);
        self.ends.push(self.keys.len());
        self.slots.enter(at, number, |number| hash_of(self.counts[number].word));
        number
    }

    fn add_longer(&mut self, word: &[u8], key: &mut Vec<u8>) {
        key.clear();
        write_text(key, word);
        let (number, is_new) = self.longer.number(key, hash(key));
        if is_new {
            self.longer_counts.push(Count::default());
        }
        self.longer_counts[number].add(self.partition);
    }

    /// All words as they are written in answers: partitions seen, and sums.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&[u8], u64, Sums)> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let short = starts.zip(&self.ends).map(|(start, &end)| &self.keys[start..end]);
        let longer = (0..self.longer.len()).map(|number| self.longer.key(number));
        let counted = short.zip(&self.counts).chain(longer.zip(&self.longer_counts));
        counted.map(|(key, count)| (key, count.seen, count.sums()))
    }

    /// Of a word as it is written in answers.
    pub(super) fn sums(&self, key: &[u8]) -> Option<Sums> {
        let text = key.get(KIND..)?;
        if text.len() > SHORT {
            return self.longer.find(key).map(|number| self.longer_counts[number].sums());
        }
        let mut letters = [0; SHORT];
        letters[..text.len()].copy_from_slice(text);
        let both = u128::from_le_bytes(letters);
        let word = [both as u64, (both >> 64) as u64];
        let found = self
            .slots
            .place(hash_of(word), |number| self.counts[number].word == word);
        found.ok().map(|number| self.counts[number].sums())
    }
}

/// Letters and digits in lower case, and 0 in place of others; of these a bit each.
#[inline]
fn lower_case(from: &[u8], to: &mut [u8]) -> u64 {
    // Without a table, a core does some bytes at once.
    for (to, &byte) in to.iter_mut().zip(from) {
        let letter = byte | 0x20;
        let is_letter = letter.wrapping_sub(b'a') < 26;
        let is_other = byte.wrapping_sub(b'0') < 10 || byte >= 128;
        *to = if is_letter {
            letter
        } else if is_other {
            byte
        } else {
            0
        };
    }
    let mut mask = 0;
    for (at, eight) in to.as_chunks().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(*eight);
        // Exact, as no byte is 1.
        let zeros = (bytes.wrapping_sub(ONES) & !bytes & HIGHS) >> 7;
        mask |= (zeros.wrapping_mul(GATHER) >> 56) << (8 * at);
    }
    mask
}

/// Bytes in front of a text's own in the key of its group.
const KIND: usize = 5;

/// The key of a group of one text, as `Value::write_key` writes it.
fn write_text(key: &mut Vec<u8>, text: &[u8]) {
    key.extend((text.len() as u32 + 1).to_be_bytes());
    key.push(b't');
    key.extend(text);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::record::Explode;

    /// Words of each line as they are taken apart one by one: in how many texts they come, how often in all, and the squares of how often in each.
    fn naive(texts: &[&[u8]]) -> BTreeMap<Vec<u8>, (u64, f64, f64)> {
        let mut all: BTreeMap<Vec<u8>, (u64, f64, f64)> = BTreeMap::new();
        for text in texts {
            let mut own: BTreeMap<Vec<u8>, f64> = BTreeMap::new();
            for line in text.split(|&byte| byte == b'\n') {
                let counted = Explode::Words.pieces(line, &mut Vec::new(), |word| {
                    *own.entry(word.to_vec()).or_default() += 1.0;
                    Ok(())
                });
                counted.unwrap();
            }
            for (word, count) in own {
                let of = all.entry(word).or_default();
                *of = (of.0 + 1, of.1 + count, of.2 + count * count);
            }
        }
        all
    }

    fn is_as_naive(texts: &[&[u8]]) {
        let (mut words, mut room) = (Words::default(), Room::default());
        texts.iter().for_each(|text| words.count(text, &mut room));
        let of = |sums: Sums| (sums.t.value(), sums.tt.value());
        let mut found = BTreeMap::new();
        for (key, seen, sums) in words.groups() {
            assert_eq!(words.sums(key).map(of), Some(of(sums)));
            let word = key[KIND..].to_vec();
            assert_eq!(found.insert(word, (seen, of(sums).0, of(sums).1)), None);
        }
        assert_eq!(found, naive(texts));
        assert!(words.sums(b"").is_none());
    }

    /// Words of 1 to 20 letters, in capitals here and there, between one to three separators; as several partitions, some of them empty, and again.
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
        is_as_naive(&[
            &text[..300_000],
            &text[..1000],
            b"",
            b"end",
            &text[..300_000],
            b" ",
            &text,
        ]);
    }

    /// Around the sixteen letters of a line of memory and the sixty-four bytes that are looked at together, with a beginning and an end of each kind.
    #[test]
    fn words_and_texts_of_all_lengths() {
        for length in 0..200 {
            for word in [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 300] {
                let text: Vec<u8> = (0..length)
                    .map(|at| if at % (word + 1) == word { b' ' } else { b'x' })
                    .collect();
                is_as_naive(&[&text, &[&b" "[..], &text].concat(), &[&text[..], b"\n"].concat()]);
            }
        }
    }

    #[test]
    fn every_byte_is_a_letter_or_none_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for at in [0, 5, 62, 63, 64, 70] {
                let mut text = b"Qa ".repeat(24);
                text[at] = byte;
                is_as_naive(&[&text]);
            }
        }
    }

    #[test]
    fn sums_beyond_53_bits_are_halved_without_loss() {
        let whole = (1u128 << 80) + (1 << 20) + 1;
        let Doubled { high, low } = doubled(whole);
        assert_eq!((high, low), (2f64.powi(80), 1_048_577.0));
        let Doubled { high, low } = doubled((1 << 54) - 1);
        assert_eq!((high, low), (2f64.powi(54), -1.0));
    }
}
