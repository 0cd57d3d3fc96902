//! A learned segment: a line through the places of some LPNs of a group.

/// The slope of a segment as a half-precision float, sign bit first; the last bit of its fraction is the segment's kind.
///
/// Nine bits of fraction are left, so that a slope is exact to one part in 1024: enough for 1/n with any n up to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slope(u16);

/// Binary digits behind the point of [`Slope::scaled`]: those of the least half-precision number.
const POINT: u32 = 24;

impl Slope {
    pub const FLAT: Slope = Slope(0);

    /// The nearest slope; none if it is too steep for half precision.
    pub fn nearest(slope: f64) -> Option<Slope> {
        let bits = slope.to_bits();
        let sign = (bits >> 63) as u16;
        // Rounds the fraction to nine bits; a carry goes into the exponent.
        let rounded = (bits & !(1 << 63)) + (1 << 42);
        let exponent = (rounded >> 52) as i32 - 1023 + 15;
        let fraction = (rounded >> 43 & 0x1FF) as u16;
        match exponent {
            31.. => None,
            1.. => Some(Slope(sign << 15 | (exponent as u16) << 10 | fraction << 1)),
            // Over 256 offsets that is no slope at all.
            _ => Some(Slope::FLAT),
        }
    }

    /// The slope in units of 2⁻²⁴: whole numbers, so that predictions are the same everywhere.
    #[inline]
    fn scaled(self) -> i64 {
        let exponent = u32::from(self.0 >> 10 & 0x1F);
        if exponent == 0 {
            return 0;
        }
        let size = i64::from(self.0 & 0x3FE | 0x400) << (exponent - 1);
        if self.0 >> 15 == 1 { -size } else { size }
    }

    /// How far the line has risen at `offset`, rounded.
    #[inline]
    pub fn rise(self, offset: u8) -> i64 {
        (self.scaled() * i64::from(offset) + (1 << (POINT - 1))) >> POINT
    }

    /// The distance of the LPNs of an accurate segment: what the slope is one part of, rounded; 1 for steep and flat lines.
    pub fn stride(self) -> u8 {
        match self.scaled().abs() {
            0 => 1,
            size => (((1i64 << POINT) + size / 2) / size).clamp(1, 255) as u8,
        }
    }

    pub fn is_approximate(self) -> bool {
        self.0 & 1 == 1
    }

    pub fn marked(self, approximate: bool) -> Slope {
        Slope(self.0 & !1 | u16::from(approximate))
    }
}

/// The list number of segments that have none.
pub const ACCURATE: u16 = u16::MAX;

/// Bytes of a segment: first offset 1, length 1, slope 2, intercept 4.
pub const BYTES: u32 = 8;

/// A segment, and where it stands among the levels of its group. 12 bytes of the simulator's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub first: u8,
    pub last: u8,
    pub slope: Slope,
    /// Where the line is at offset 0 of the group; it may lie before place 0 and wraps around.
    pub intercept: u32,
    pub level: u16,
    /// Number of the list of LPNs in the conflict buffer.
    pub list: u16,
}

impl Segment {
    #[inline]
    pub fn predict(&self, offset: u8) -> u32 {
        self.intercept.wrapping_add(self.slope.rise(offset) as u32)
    }

    #[inline]
    pub fn spans(&self, offset: u8) -> bool {
        self.first <= offset && offset <= self.last
    }

    /// Whether it says that its LPNs are not mapped.
    pub fn maps_nothing(&self) -> bool {
        self.slope == Slope::FLAT && self.intercept == u32::MAX
    }

    /// Whether it maps an offset that it spans, by its stride (accurate segments).
    #[inline]
    pub fn strides_over(&self, offset: u8) -> bool {
        (offset - self.first).is_multiple_of(self.slope.stride())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_of_whole_strides_predict_exactly_over_a_group() {
        for stride in 1..=255u8 {
            for sign in [1.0, -1.0] {
                let slope = Slope::nearest(sign / f64::from(stride)).unwrap();
                assert_eq!(slope.stride(), stride);
                for step in 0..=255 / stride {
                    assert_eq!(slope.rise(step * stride), sign as i64 * i64::from(step), "{stride}");
                }
            }
        }
    }

    #[test]
    fn slopes_are_rounded_to_ten_digits() {
        assert_eq!(Slope::nearest(1.0), Some(Slope(0x3C00)));
        assert_eq!(Slope::nearest(-2.0), Some(Slope(0xC000)));
        // 1023.0 has ten binary digits; 1025.0 has eleven and becomes 1026 (a tie, away from zero).
        assert_eq!(Slope::nearest(1023.0).unwrap().rise(1), 1023);
        assert_eq!(Slope::nearest(1025.0).unwrap().rise(1), 1026);
        assert_eq!(Slope::nearest(65_472.0).unwrap().rise(1), 65_472);
        assert_eq!(Slope::nearest(65_536.0), None);
        assert_eq!(Slope::nearest(0.0).unwrap().rise(255), 0);
        assert!(Slope::FLAT.marked(true).is_approximate() && !Slope::FLAT.is_approximate());
    }
}
