//! First in, first out. A unit survives a pass with probability `p = exp(−(1 − p)/ρ)`; at a share `a` of the way through
//! the queue a reclaim unit holds a binomial number of valid units with mean `b · exp(−a (1 − p)/ρ)`.

/// α / (α + W0(−α e^−α)) with α = 1/ρ.
pub fn waf(rho: f64) -> f64 {
    1.0 / (1.0 - survival(rho))
}

/// Integrating the binomial over the queue: `m_j = P(X < j) / (c j)` with X ~ Binomial(b, p) and `c = (1 − p)/ρ`.
pub fn distribution(rho: f64, b: u32) -> Vec<f64> {
    let p = survival(rho);
    let c = (1.0 - p) / rho;
    let pmf = binomial(b, p);
    let mut shares = vec![0.0; b as usize + 1];
    let mut below = 0.0;
    for j in 1..=b as usize {
        below += pmf[j - 1];
        shares[j] = below.min(1.0) / (c * j as f64);
    }
    shares[0] = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    shares
}

/// Share of its units that a reclaim unit still holds valid at `age` (0: just closed, 1: next victim) in FIFO order.
///
/// The number of valid units is binomial around it.
pub fn fifo_survival(rho: f64, age: f64) -> f64 {
    let p = survival(rho);
    (-age * (1.0 - p) / rho).exp()
}

fn survival(rho: f64) -> f64 {
    let alpha = 1.0 / rho;
    -lambert_w0(-alpha * (-alpha).exp()) / alpha
}

/// The principal branch of Lambert's W: the solution w >= −1 of `w e^w = x`, for x >= −1/e.
pub fn lambert_w0(x: f64) -> f64 {
    // Series around the branch point, else around zero or the logarithm, then Halley's steps.
    let root = (2.0 * (1.0 + std::f64::consts::E * x)).max(0.0).sqrt();
    let mut w = if x < -0.2 {
        -1.0 + root - root * root / 3.0 + 11.0 / 72.0 * root * root * root
    } else if x < 2.0 {
        x.ln_1p() * (1.0 - x.ln_1p() / (2.0 + x.ln_1p()))
    } else {
        x.ln() - x.ln().ln()
    };
    for _ in 0..20 {
        let e = w.exp();
        let f = w * e - x;
        let slope = e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0);
        if slope == 0.0 || !slope.is_finite() {
            break;
        }
        let step = f / slope;
        w -= step;
        if step.abs() <= 1e-16 * w.abs() {
            break;
        }
    }
    w.max(-1.0)
}

/// Probabilities of 0 to `n` successes, by recurrence away from the mode; what is below 1e-18 of it stays zero.
fn binomial(n: u32, p: f64) -> Vec<f64> {
    let mut pmf = vec![0.0; n as usize + 1];
    let mode = (((f64::from(n) + 1.0) * p) as u32).min(n);
    let odds = p / (1.0 - p);
    pmf[mode as usize] = 1.0;
    let mut sum = 1.0;
    let mut value = 1.0;
    for j in mode + 1..=n {
        value *= f64::from(n - j + 1) / f64::from(j) * odds;
        if value < 1e-18 {
            break;
        }
        pmf[j as usize] = value;
        sum += value;
    }
    value = 1.0;
    for j in (0..mode).rev() {
        value *= f64::from(j + 1) / f64::from(n - j) / odds;
        if value < 1e-18 {
            break;
        }
        pmf[j as usize] = value;
        sum += value;
    }
    pmf.iter_mut().for_each(|value| *value /= sum);
    pmf
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambert_w_inverts() {
        for w in [-0.999_999, -0.99, -0.9, -0.5, -0.1, 0.0, 0.1, 1.0, 3.0, 10.0] {
            let x = w * f64::exp(w);
            assert!((lambert_w0(x) - w).abs() < 1e-7, "{w}: {}", lambert_w0(x));
        }
    }

    #[test]
    fn the_oldest_unit_is_as_valid_as_the_victims() {
        for rho in [0.5, 0.8, 0.93] {
            assert_eq!(fifo_survival(rho, 0.0), 1.0);
            assert!((fifo_survival(rho, 1.0) - (1.0 - 1.0 / waf(rho))).abs() < 1e-9);
        }
    }
}
