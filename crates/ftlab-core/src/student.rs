//! Quantiles of Student's t distribution.
//!
//! # Model
//! The distribution function by the continued fraction of the incomplete beta function, inverted by bisection.
//!
//! # Source
//! Abramowitz and Stegun, 26.5.8 and 26.7.1.

/// The `p` quantile with `df` degrees of freedom, for 0.5 <= p < 1 and df > 0.
pub fn quantile(df: f64, p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while cumulative(high, df) < p {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if cumulative(middle, df) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// P(T <= t) for t >= 0.
fn cumulative(t: f64, df: f64) -> f64 {
    1.0 - 0.5 * incomplete_beta(df / (df + t * t), 0.5 * df, 0.5)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front =
        libm::exp(libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log(1.0 - x));
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

/// Its continued fraction, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let safe = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / safe(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..500 {
        let m = f64::from(m);
        for step in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / safe(1.0 + step * d);
            c = safe(1.0 + step / c);
            h *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_of_the_table() {
        for (df, p, t) in [
            (1.0, 0.975, 12.7062),
            (2.0, 0.975, 4.30265),
            (5.0, 0.975, 2.57058),
            (30.0, 0.975, 2.04227),
            (120.0, 0.975, 1.97993),
            (4.0, 0.95, 2.13185),
            (1e7, 0.975, 1.95996),
        ] {
            assert!((quantile(df, p) - t).abs() < 6e-5 * t, "{df}: {}", quantile(df, p));
        }
    }
}
