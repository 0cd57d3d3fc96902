//! d choices at finite `b`. With `m_j` the share of units with `j` valid, `T_j = Σ_(k≥j) m_k` and λ as for greedy:
//! `j · m_j · λ = 1 − (T_(j+1) + m_j)^d`, solved downwards from `j = b`; λ is what makes the mean `ρ · b`.

/// Above this many units per reclaim unit the large-`b` limit takes over.
const EXACT: u32 = 2048;

pub fn waf(rho: f64, b: u32, d: u32) -> f64 {
    1.0 / (rho * lambda(rho, b, d))
}

pub fn distribution(rho: f64, b: u32, d: u32) -> Vec<f64> {
    if d == 1 {
        return random(rho, b);
    }
    if b > EXACT {
        return spread(rho, b, d);
    }
    let lambda = exact_lambda(rho, b, d);
    let mut shares = vec![0.0; b as usize + 1];
    descend(lambda, b, d, |j, share| shares[j as usize] = share);
    shares[0] = (1.0 - shares.iter().sum::<f64>()).max(0.0);
    shares
}

/// One choice: the balance is linear, `m_j = R_j / (1 + j λ)` with `R_j` the share of units with at most `j` valid.
fn random(rho: f64, b: u32) -> Vec<f64> {
    let lambda = (1.0 - rho) / rho;
    let mut shares = vec![0.0; b as usize + 1];
    let mut at_most = 1.0;
    for j in (1..=b).rev() {
        let share = at_most / (1.0 + f64::from(j) * lambda);
        shares[j as usize] = share;
        at_most -= share;
    }
    shares[0] = at_most;
    shares
}

fn lambda(rho: f64, b: u32, d: u32) -> f64 {
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
    let (mut above, mut tail_above) = (0.0f64, 0.0f64);
    for j in (1..=b).rev() {
        let rate = f64::from(j) * lambda;
        // rate · (t − above) = 1 − t^d. The difference of the sides is convex and rises with t; it is not negative at
        // the first guess, so Newton's steps come down to the root from there.
        let mut t = (above + (1.0 - tail_above) / rate).min(1.0);
        for _ in 0..60 {
            let tail = t.powi(power - 1);
            let f = rate * (t - above) - 1.0 + tail * t;
            let step = f / (rate + f64::from(d) * tail);
            t -= step;
            if step.abs() <= 1e-14 {
                break;
            }
        }
        let t = t.clamp(above, 1.0);
        level(j, t - above);
        (above, tail_above) = (t, t.powi(power));
    }
}

/// The shares for large `b`, extrapolated as the write amplification is: the tail at a relative fill is linear in `1/b`.
fn spread(rho: f64, b: u32, d: u32) -> Vec<f64> {
    let (half, full) = (Tail::of(rho, EXACT / 2, d), Tail::of(rho, EXACT, d));
    let weight = f64::from(EXACT) / f64::from(b);
    let at_least = |x: f64| ((2.0 - weight) * full.at(x) - (1.0 - weight) * half.at(x)).clamp(0.0, 1.0);
    let mut shares = vec![0.0; b as usize + 1];
    let mut above = 0.0;
    let mut mean = 0.0;
    for j in (1..=b).rev() {
        let here = at_least((f64::from(j) - 0.5) / f64::from(b));
        let share = (here - above).max(0.0);
        shares[j as usize] = share;
        mean += f64::from(j) * share;
        above += share;
    }
    shares[0] = (1.0 - above).max(0.0);
    // The mean is right to about one part in `EXACT`: move that much between the full and the nearly full.
    let error = rho * f64::from(b) - mean;
    let levels = (b / 64).max(1) as usize;
    let (next, top) = shares[b as usize + 1 - 2 * levels..].split_at_mut(levels);
    let mass = |band: &[f64]| band.iter().sum::<f64>();
    let center = |band: &[f64]| band.iter().enumerate().map(|(i, s)| i as f64 * s).sum::<f64>() / mass(band);
    let moved = error / (levels as f64 + center(top) - center(next));
    let (up, down) = (1.0 + moved / mass(top), 1.0 - moved / mass(next));
    if up > 0.0 && down > 0.0 {
        top.iter_mut().for_each(|s| *s *= up);
        next.iter_mut().for_each(|s| *s *= down);
    }
    shares
}

/// Share of the reclaim units that have at least so many valid, for a size that is solved exactly.
struct Tail(Vec<f64>);

impl Tail {
    fn of(rho: f64, b: u32, d: u32) -> Tail {
        let mut tail = distribution(rho, b, d);
        tail.push(0.0);
        for j in (0..=b as usize).rev() {
            tail[j] += tail[j + 1];
        }
        Tail(tail)
    }

    /// At a relative fill `x`: linear between the boundaries (j − 1/2) of the levels.
    fn at(&self, x: f64) -> f64 {
        let levels = self.0.len() - 2;
        let place = (x * levels as f64 + 0.5).clamp(0.0, levels as f64 + 1.0);
        let index = (place as usize).min(levels);
        self.0[index] + (self.0[index + 1] - self.0[index]) * (place - index as f64)
    }
}
