//! d choices at finite `b`. With `m_j` the share of units with `j` valid, `T_j = Σ_(k≥j) m_k` and λ as for greedy:
//! `j · m_j · λ = 1 − (T_(j+1) + m_j)^d`, solved downwards from `j = b`; λ is what makes the mean `ρ · b`.

/// Above this many units per reclaim unit the large-`b` limit takes over.
const EXACT: u32 = 16_384;

pub fn waf(rho: f64, b: u32, d: u32) -> f64 {
    1.0 / (rho * lambda(rho, b, d))
}

pub fn distribution(rho: f64, b: u32, d: u32) -> Vec<f64> {
    let lambda = lambda(rho, b, d);
    if b <= EXACT || d == 1 {
        let mut shares = vec![0.0; b as usize + 1];
        descend(lambda, b, d, |j, share| shares[j as usize] = share);
        shares[0] = (1.0 - shares.iter().sum::<f64>()).max(0.0);
        return shares;
    }
    spread(rho, b, d)
}

fn lambda(rho: f64, b: u32, d: u32) -> f64 {
    if d == 1 {
        return (1.0 - rho) / rho;
    }
    if b <= EXACT {
        return exact_lambda(rho, b, d);
    }
    // WAF(b) = WAF(∞) + c/b + O(1/b²); two sizes below give c and the limit.
    let (half, full) = (1.0 / exact_lambda(rho, EXACT / 2, d), 1.0 / exact_lambda(rho, EXACT, d));
    let limit = 2.0 * full - half;
    1.0 / (limit + (full - limit) * f64::from(EXACT) / f64::from(b))
}

/// Secant steps, kept inside a bracket, on the mean as a function of λ (it falls as λ grows).
fn exact_lambda(rho: f64, b: u32, d: u32) -> f64 {
    let wanted = rho * f64::from(b);
    let excess = |lambda: f64| {
        let mut mean = 0.0;
        descend(lambda, b, d, |j, share| mean += f64::from(j) * share);
        mean / wanted - 1.0
    };
    // Random victims write most and greedy ones least.
    let (mut low, mut high) = ((1.0 - rho) / rho, 1.0 / (rho * super::greedy::waf(rho, b)));
    let (mut at_low, mut at_high) = (excess(low), excess(high));
    if at_high >= 0.0 {
        return high;
    }
    let mut best = high;
    for step in 0..100 {
        // Illinois' rule with a bisection every fourth step.
        let middle = if step % 4 == 3 {
            0.5 * (low + high)
        } else {
            (low * at_high - high * at_low) / (at_high - at_low)
        };
        let at_middle = excess(middle);
        best = middle;
        if at_middle.abs() < 1e-12 || (high - low) < 1e-15 * high {
            break;
        }
        if at_middle > 0.0 {
            (low, at_low) = (middle, at_middle);
            at_high *= 0.5;
        } else {
            (high, at_high) = (middle, at_middle);
            at_low *= 0.5;
        }
    }
    best
}

/// Calls `level(j, m_j)` for `j` from `b` down to 1.
fn descend(lambda: f64, b: u32, d: u32, mut level: impl FnMut(u32, f64)) {
    let power = d as i32;
    let mut above: f64 = 0.0;
    for j in (1..=b).rev() {
        let rate = f64::from(j) * lambda;
        // rate · (t − above) = 1 − t^d: the left side rises, the right side falls; Newton from the right of the root
        // of this concave difference converges from that side.
        let mut t = (above + 1.0 / rate).min(1.0);
        for _ in 0..60 {
            let tail = t.powi(power - 1);
            let f = rate * (t - above) - 1.0 + tail * t;
            let step = f / (rate + f64::from(d) * tail);
            t -= step;
            if step.abs() <= 1e-15 {
                break;
            }
        }
        let t = t.clamp(above, 1.0);
        level(j, t - above);
        above = t;
    }
}

/// The shares for large `b`: the exact distribution of `EXACT` units stretched over `b`, its mean set right.
fn spread(rho: f64, b: u32, d: u32) -> Vec<f64> {
    let coarse = distribution(rho, EXACT, d);
    // Shares of units with at least so many valid, at the boundaries (j − 1/2) of the coarse levels.
    let mut tail = vec![0.0; EXACT as usize + 2];
    for j in (0..=EXACT as usize).rev() {
        tail[j] = tail[j + 1] + coarse[j];
    }
    let at_least = |x: f64| {
        let place = (x * f64::from(EXACT) + 0.5).clamp(0.0, f64::from(EXACT + 1));
        let index = place.floor() as usize;
        let next = tail.get(index + 1).copied().unwrap_or(0.0);
        tail[index] + (next - tail[index]) * (place - index as f64)
    };
    let mut shares = vec![0.0; b as usize + 1];
    let mut above = 0.0;
    let mut mean = 0.0;
    for j in (1..=b).rev() {
        let here = at_least((f64::from(j) - 0.5) / f64::from(b));
        shares[j as usize] = here - above;
        mean += f64::from(j) * (here - above);
        above = here;
    }
    shares[0] = 1.0 - above;
    // Stretching rounds the mean by about one part in `EXACT`: move that much between the full and the nearly full.
    let error = rho * f64::from(b) - mean;
    let levels = (b / 64).max(1) as usize;
    let top: f64 = shares[b as usize - levels + 1..].iter().sum();
    let next: f64 = shares[b as usize - 2 * levels + 1..=b as usize - levels].iter().sum();
    let moved = error / levels as f64;
    if top > 0.0 && next > 0.0 && moved.abs() < top.min(next) {
        shares[b as usize - levels + 1..]
            .iter_mut()
            .for_each(|s| *s *= 1.0 + moved / top);
        shares[b as usize - 2 * levels + 1..=b as usize - levels]
            .iter_mut()
            .for_each(|s| *s *= 1.0 - moved / next);
    }
    shares
}
