//! A set of offsets in a group: 256 bits.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys([u64; 4]);

impl Keys {
    pub const NONE: Keys = Keys([0; 4]);

    /// `first..=last`.
    #[inline]
    pub fn range(first: u8, last: u8) -> Self {
        let mut keys = Keys::NONE;
        let (low, high) = (usize::from(first) / 64, usize::from(last) / 64);
        keys.0[low..=high].fill(!0);
        keys.0[low] &= !0 << (first % 64);
        keys.0[high] &= !0 >> (63 - last % 64);
        keys
    }

    /// Every `stride`-th of `first..=last`.
    pub fn stepped(first: u8, last: u8, stride: u8) -> Self {
        if stride == 1 {
            return Keys::range(first, last);
        }
        let mut keys = Keys::NONE;
        (first..=last)
            .step_by(usize::from(stride))
            .for_each(|offset| keys.add(offset));
        keys
    }

    #[inline]
    pub fn add(&mut self, offset: u8) {
        self.0[usize::from(offset) / 64] |= 1 << (offset % 64);
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    #[inline]
    pub fn without(&self, other: &Keys) -> Keys {
        Keys(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    #[inline]
    pub fn with(&self, other: &Keys) -> Keys {
        Keys(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    #[inline]
    pub fn meets(&self, other: &Keys) -> bool {
        (0..4).any(|word| self.0[word] & other.0[word] != 0)
    }

    /// The least and the greatest offset.
    #[inline]
    pub fn ends(&self) -> Option<(u8, u8)> {
        let first = (0..4).find(|&word| self.0[word] != 0)?;
        let last = (0..4).rfind(|&word| self.0[word] != 0)?;
        let first = first as u32 * 64 + self.0[first].trailing_zeros();
        let last = last as u32 * 64 + 63 - self.0[last].leading_zeros();
        Some((first as u8, last as u8))
    }

    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        self.0.iter().enumerate().flat_map(|(word, &bits)| {
            std::iter::successors((bits != 0).then_some(bits), |bits| {
                let rest = bits & (bits - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |bits| (word as u32 * 64 + bits.trailing_zeros()) as u8)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_list_of_offsets() {
        for (first, last) in [
            (0, 255),
            (0, 0),
            (255, 255),
            (3, 63),
            (63, 64),
            (64, 127),
            (60, 200),
            (192, 255),
        ] {
            for stride in [1u8, 2, 3, 64, 255] {
                let expected: Vec<u8> = (first..=last).step_by(usize::from(stride)).collect();
                let keys = Keys::stepped(first, last, stride);
                assert_eq!(keys.iter().collect::<Vec<u8>>(), expected);
                assert_eq!(keys.len() as usize, expected.len());
                assert_eq!(keys.ends(), Some((first, *expected.last().unwrap())));
            }
        }
        let (odd, low) = (Keys::stepped(1, 255, 2), Keys::range(0, 9));
        assert_eq!(low.without(&odd).iter().collect::<Vec<u8>>(), [0, 2, 4, 6, 8]);
        assert_eq!(low.with(&odd).len(), 128 + 5);
        assert!(low.meets(&odd) && !low.without(&odd).meets(&odd));
        assert_eq!(Keys::NONE.ends(), None);
    }
}
