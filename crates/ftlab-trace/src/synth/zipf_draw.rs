//! Exact draws from a Zipf distribution, quickly for any number of items.
//!
//! Rank r (from 1) has a probability proportional to r^−θ. The first ranks have entries of their own in an alias table
//! (Walker 1977, in Vose's form); the others are gathered into ranges each a thirty-second longer than it begins, whose
//! sums come from the Euler–Maclaurin formula. Within a range a rank is drawn evenly and kept with probability
//! (r / first)^−θ: at least 0.97 for θ = 1, so a bound decides nearly always and no power is computed.

use ftlab_core::Stream;

/// Ranks with entries of their own; the table then fits the second-level cache.
const HEAD: u64 = 1 << 14;

/// A Zipf distribution over ranks `0..n`, rank 0 being the likeliest.
pub struct ZipfDraw {
    theta: f64,
    head: u64,
    alias: Vec<Entry>,
    ranges: Vec<Range>,
}

struct Entry {
    /// Draws below it mean this entry, others the alias.
    keep_below: u64,
    alias: u32,
}

/// Ranks `first..first + count` (from 1).
struct Range {
    first: u64,
    count: u64,
    /// Probability of the range's last rank relative to its first.
    least: f64,
}

impl ZipfDraw {
    /// `n` is at least 1, `theta` not negative.
    pub fn new(n: u64, theta: f64) -> Self {
        let head = n.min(HEAD);
        let mut weights: Vec<f64> = (1..=head).map(|rank| libm::pow(rank as f64, -theta)).collect();
        let mut ranges = Vec::new();
        let mut first = head + 1;
        while first <= n {
            let count = (first / 32).min(n - first + 1);
            let last = first + count - 1;
            weights.push(sum(first as f64, last as f64, theta));
            ranges.push(Range {
                first,
                count,
                least: libm::pow(last as f64 / first as f64, -theta),
            });
            first += count;
        }
        ZipfDraw {
            theta,
            head,
            alias: alias_table(&weights),
            ranges,
        }
    }

    #[inline]
    pub fn draw(&self, random: &mut Stream) -> u64 {
        // The high part of the product chooses the entry, the low part is a fraction independent of it.
        let product = u128::from(random.next_u64()) * self.alias.len() as u128;
        let mut index = (product >> 64) as usize;
        let entry = &self.alias[index];
        if product as u64 >= entry.keep_below {
            index = entry.alias as usize;
        }
        if (index as u64) < self.head {
            return index as u64;
        }
        self.draw_within(&self.ranges[index - self.head as usize], random)
    }

    #[inline]
    fn draw_within(&self, range: &Range, random: &mut Stream) -> u64 {
        loop {
            let rank = range.first + random.below(range.count);
            let chance = random.unit();
            if chance < range.least || chance < libm::pow(rank as f64 / range.first as f64, -self.theta) {
                return rank - 1;
            }
        }
    }
}

/// Sum of r^−θ for r from a to b, a beyond the head: the first two corrections leave an error below 1e−20 of the sum.
fn sum(a: f64, b: f64, theta: f64) -> f64 {
    let f = |x: f64| libm::pow(x, -theta);
    let logarithm = libm::log(b / a);
    let integral = if (1.0 - theta).abs() * logarithm < 1e-12 {
        libm::pow(a, 1.0 - theta) * logarithm
    } else {
        libm::pow(a, 1.0 - theta) * libm::expm1((1.0 - theta) * logarithm) / (1.0 - theta)
    };
    let slope = |x: f64| -theta * f(x) / x;
    let third = |x: f64| -theta * (theta + 1.0) * (theta + 2.0) * f(x) / (x * x * x);
    integral + (f(a) + f(b)) / 2.0 + (slope(b) - slope(a)) / 12.0 - (third(b) - third(a)) / 720.0
}

fn alias_table(weights: &[f64]) -> Vec<Entry> {
    let n = weights.len();
    let mean = weights.iter().sum::<f64>() / n as f64;
    let mut scaled: Vec<f64> = weights.iter().map(|w| w / mean).collect();
    let mut table: Vec<Entry> = (0..n)
        .map(|i| Entry {
            keep_below: u64::MAX,
            alias: i as u32,
        })
        .collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| scaled[i] < 1.0);
    while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
        small.pop();
        table[poor] = Entry {
            keep_below: (scaled[poor] * 2f64.powi(64)) as u64,
            alias: rich as u32,
        };
        scaled[rich] -= 1.0 - scaled[poor];
        if scaled[rich] < 1.0 {
            large.pop();
            small.push(rich);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares draws with exact cumulative probabilities at some ranks, at five standard deviations.
    fn check(n: u64, theta: f64, draws: u32) {
        let zipf = ZipfDraw::new(n, theta);
        let mut random = Stream::new(11, "zipf");
        let ranks: Vec<u64> = (0..draws).map(|_| zipf.draw(&mut random)).collect();
        assert!(ranks.iter().all(|&r| r < n));
        let total: f64 = (1..=n).map(|r| (r as f64).powf(-theta)).sum();
        for upto in [1, 2, 10, 100, n / 100, n / 10, n / 3, n / 2, n * 9 / 10]
            .into_iter()
            .filter(|u| (1..n).contains(u))
        {
            let p = (1..=upto).map(|r| (r as f64).powf(-theta)).sum::<f64>() / total;
            let seen = ranks.iter().filter(|&&r| r < upto).count() as f64 / f64::from(draws);
            let sigma = (p * (1.0 - p) / f64::from(draws)).sqrt();
            assert!(
                (seen - p).abs() < 5.0 * sigma + 1e-12,
                "n {n} theta {theta} up to {upto}: {seen} for {p}"
            );
        }
    }

    #[test]
    fn draws_follow_the_distribution_in_the_head_and_beyond() {
        for theta in [0.0, 0.5, 0.99, 1.0, 1.5] {
            for n in [1, 7, 1000, HEAD, HEAD + 1, 1_000_000] {
                check(n, theta, 200_000);
            }
        }
    }

    #[test]
    fn within_a_range_low_ranks_are_preferred_as_much_as_they_should_be() {
        let zipf = ZipfDraw::new(1_000_000, 1.5);
        let range = zipf.ranges.last().unwrap();
        let mut random = Stream::new(5, "zipf");
        let draws = 400_000;
        let sum: u64 = (0..draws)
            .map(|_| zipf.draw_within(range, &mut random) + 1 - range.first)
            .sum();
        let weight = |i: u64| ((range.first + i) as f64).powf(-1.5);
        let total: f64 = (0..range.count).map(weight).sum();
        let mean = (0..range.count).map(|i| weight(i) * i as f64).sum::<f64>() / total;
        // An even draw would be 0.4 % of the range higher; five standard deviations of the mean are 0.23 %.
        let deviation = (sum as f64 / draws as f64 - mean) / range.count as f64;
        assert!(deviation.abs() < 0.0023, "{deviation}");
    }

    #[test]
    fn sums_agree_with_adding_up() {
        for theta in [0.0, 0.7, 1.0, 2.0] {
            let added: f64 = (20_000..=20_600).map(|r| f64::from(r).powf(-theta)).sum();
            let formula = sum(20_000.0, 20_600.0, theta);
            assert!((formula / added - 1.0).abs() < 1e-12, "{theta}: {formula} {added}");
        }
    }
}
