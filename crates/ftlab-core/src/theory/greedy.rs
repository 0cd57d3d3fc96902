//! Greedy at finite `b`. Victims have `k` or `k − 1` valid units, the latter with probability `q`; with λ host writes per
//! logical unit between two collections times the number of reclaim units, the balance of every level above is
//! `j · m_j · λ = 1`, of level `k` it is `k · m_k · λ = q`, and below there is nothing.

pub fn waf(rho: f64, b: u32) -> f64 {
    let state = State::solve(rho, b);
    f64::from(b) / state.freed
}

pub fn distribution(rho: f64, b: u32) -> Vec<f64> {
    let State { k, q, freed } = State::solve(rho, b);
    // 1 / λ
    let scale = rho * f64::from(b) / freed;
    let mut shares = vec![0.0; b as usize + 1];
    for j in k + 1..=b {
        shares[j as usize] = scale / f64::from(j);
    }
    if k > 0 {
        shares[k as usize] = q * scale / f64::from(k);
    } else {
        shares[0] = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    }
    shares
}

struct State {
    /// Valid units of the fuller kind of victim.
    k: u32,
    /// Probability of the other kind, with one less.
    q: f64,
    /// Units freed by one collection: b − k + q.
    freed: f64,
}

impl State {
    /// Solves `q/k + H_b − H_k = (b − k + q) / (ρ b)` for `k` and `q` in [0, 1).
    fn solve(rho: f64, b: u32) -> State {
        let capacity = rho * f64::from(b);
        let h_b = harmonic(b);
        // Without the terms in q: below ρ·b it rises with k, and its sign changes at the solution.
        let excess = |k: u32| f64::from(b - k) / capacity - (h_b - harmonic(k));
        let (mut low, mut high) = (0, capacity.floor() as u32);
        if excess(0) >= 0.0 {
            return State {
                k: 0,
                q: 0.0,
                freed: f64::from(b),
            };
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if excess(middle) < 0.0 {
                low = middle
            } else {
                high = middle
            }
        }
        let k = high;
        let q = (excess(k) / (1.0 / f64::from(k) - 1.0 / capacity)).clamp(0.0, 1.0);
        State {
            k,
            q,
            freed: f64::from(b - k) + q,
        }
    }
}

/// H_n to the last digits of a double: summed up to 64, by Euler and Maclaurin above.
fn harmonic(n: u32) -> f64 {
    if n <= 64 {
        return (1..=n).map(|i| 1.0 / f64::from(i)).sum();
    }
    const EULER: f64 = 0.577_215_664_901_532_9;
    let x = f64::from(n);
    let x2 = x * x;
    x.ln() + EULER + 0.5 / x - 1.0 / (12.0 * x2) + 1.0 / (120.0 * x2 * x2) - 1.0 / (252.0 * x2 * x2 * x2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmonic_numbers_join_without_a_step() {
        let summed: f64 = (1..=65).map(|i| 1.0 / f64::from(i)).sum();
        assert!((harmonic(65) - summed).abs() < 1e-14);
        assert!((harmonic(64) + 1.0 / 65.0 - harmonic(65)).abs() < 1e-14);
    }

    #[test]
    fn a_mostly_empty_drive_collects_empty_units() {
        // b = 4, ρ = 0.4: H_4 = 25/12 < 1/ρ = 2.5, so a unit without valid data is always at hand.
        assert_eq!(waf(0.4, 4), 1.0);
        let shares = distribution(0.4, 4);
        assert!((shares[0] - (1.0 - 0.4 * 25.0 / 12.0)).abs() < 1e-12);
    }
}
