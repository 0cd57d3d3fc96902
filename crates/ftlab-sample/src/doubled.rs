//! Numbers of twice 64 bits, for sums of which little is left once they are subtracted.
//!
//! # Model
//! A number is the sum of two of 64 bits, the second at most half a unit in the last place of the first: about 32 decimal digits. What a sum or a product of two numbers of 64 bits
//! leaves over is itself such a number, and is kept. Multiplications of halves find it, as a fused one is slow on machines without it: both give the same bits.
//!
//! # Not modelled
//! Products below 1e-290 in size, or with a factor above 1e300, have 16 digits only, as what they leave over is no number of 64 bits.
//!
//! # Cost
//! Some 10 operations a sum, some 25 a product.
//!
//! # Source
//! Dekker, A floating-point technique for extending the available precision, Numerische Mathematik 18 (1971); Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Doubled {
    pub high: f64,
    pub low: f64,
}

impl Doubled {
    /// Of two numbers, nothing rounded.
    #[inline]
    pub fn product(a: f64, b: f64) -> Doubled {
        let high = a * b;
        let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
        let low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
        Doubled {
            high,
            low: if low.is_finite() { low } else { 0.0 },
        }
    }

    /// Rounded to 64 bits.
    #[inline]
    pub fn value(self) -> f64 {
        self.high + self.low
    }

    /// None of a negative one, as a square cannot be but for rounding.
    pub fn at_least_zero(self) -> Doubled {
        if self.high < 0.0 { Doubled::default() } else { self }
    }
}

impl From<f64> for Doubled {
    #[inline]
    fn from(high: f64) -> Doubled {
        Doubled { high, low: 0.0 }
    }
}

impl Add for Doubled {
    type Output = Doubled;

    #[inline]
    fn add(self, other: Doubled) -> Doubled {
        let (high, left) = sum(self.high, other.high);
        let (low, rest) = sum(self.low, other.low);
        let (high, left) = ordered_sum(high, left + low);
        let (high, low) = ordered_sum(high, left + rest);
        Doubled { high, low }
    }
}

impl AddAssign for Doubled {
    #[inline]
    fn add_assign(&mut self, other: Doubled) {
        *self = *self + other;
    }
}

impl Sub for Doubled {
    type Output = Doubled;

    #[inline]
    fn sub(self, other: Doubled) -> Doubled {
        self + Doubled {
            high: -other.high,
            low: -other.low,
        }
    }
}

impl Mul for Doubled {
    type Output = Doubled;

    #[inline]
    fn mul(self, other: Doubled) -> Doubled {
        let product = Doubled::product(self.high, other.high);
        let left = product.low + (self.high * other.low + self.low * other.high);
        let (high, low) = ordered_sum(product.high, left);
        Doubled { high, low }
    }
}

impl Mul<Doubled> for f64 {
    type Output = Doubled;

    #[inline]
    fn mul(self, other: Doubled) -> Doubled {
        Doubled::from(self) * other
    }
}

impl Div<f64> for Doubled {
    type Output = Doubled;

    #[inline]
    fn div(self, by: f64) -> Doubled {
        let first = self.high / by;
        let left = self - Doubled::product(first, by);
        let (high, low) = ordered_sum(first, left.value() / by);
        Doubled { high, low }
    }
}

/// The rounded sum of two numbers, and what it leaves over.
#[inline]
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

/// As `sum`, where `a` is not the smaller one in size.
#[inline]
fn ordered_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// Two numbers of 26 bits, of which products are not rounded.
#[inline]
fn halves(a: f64) -> (f64, f64) {
    const SPLIT: f64 = 134_217_729.0;
    let scaled = SPLIT * a;
    let high = scaled - (scaled - a);
    (high, a - high)
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;

    use super::*;

    /// A number of whole ones, to 106 bits.
    fn whole(number: Doubled) -> i128 {
        number.high as i128 + number.low as i128
    }

    fn of(number: i128) -> Doubled {
        let high = number as f64;
        Doubled {
            high,
            low: (number - high as i128) as f64,
        }
    }

    #[test]
    fn sums_and_products_of_whole_numbers_are_those_of_128_bits() {
        let mut random = Stream::new(7, "doubled");
        let mut number = |bits: u32| {
            let size = (random.below(1 << 32) as i128) << 32 | random.below(1 << 32) as i128;
            let size = size >> (64 - bits);
            if random.below(2) == 0 { size } else { -size }
        };
        let mut all = (Doubled::default(), 0i128);
        for _ in 0..20_000 {
            let (a, b) = (number(53), number(50));
            let product = Doubled::product(a as f64, b as f64);
            assert_eq!(whole(product), a * b, "{a} {b}");
            assert_eq!(product.low, (a as f64).mul_add(b as f64, -product.high), "{a} {b}");
            // Small terms beside large ones, and nothing left of these at the end.
            let small = number(30);
            all.0 = all.0 + of(a << 40) + of(small) - of(a << 40);
            all.1 += small;
            assert_eq!(whole(all.0), all.1);
            assert_eq!(whole(of(a << 45) + of(b << 3)), (a << 45) + (b << 3));
            let (c, d) = (number(64), number(38));
            assert_eq!(whole(of(c) * of(d)), c * d, "{c} {d}");
            assert_eq!(whole(d as f64 * of(c)), c * d, "{c} {d}");
            if d != 0 {
                assert_eq!(whole(of(c * d) / d as f64), c, "{c} {d}");
            }
        }
    }

    #[test]
    fn a_quotient_has_thirty_digits() {
        let third = Doubled::from(1.0) / 3.0;
        let left = (3.0 * third - Doubled::from(1.0)).value();
        assert!(left.abs() < 1e-30, "{left:e}");
        assert!(third.low != 0.0);
    }

    #[test]
    fn what_is_too_large_to_be_halved_is_still_a_product() {
        let product = Doubled::product(1e300, 2.0);
        assert_eq!((product.high, product.low), (2e300, 0.0));
        let product = Doubled::product(1e302, 2.0);
        assert_eq!((product.high, product.low), (2e302, 0.0));
        assert_eq!(Doubled::product(1e-300, 1e-300), Doubled::default());
    }

    /// 2^100 + 2^46 and 2^-20 - 2^100.
    #[test]
    fn nothing_of_a_sum_is_lost_where_the_large_parts_cancel() {
        let (large, middle, small) = (2f64.powi(100), 2f64.powi(46), 2f64.powi(-20));
        let sum = Doubled {
            high: large,
            low: middle,
        } + Doubled {
            high: -large,
            low: small,
        };
        assert_eq!((sum.high, sum.low), (middle, small));
    }
}
