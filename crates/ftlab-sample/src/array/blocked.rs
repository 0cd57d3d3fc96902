//! How many tasks contend for a disk that another one reads: the chapter's "what-if" analysis.
//!
//! # Model
//! Partition `i` of a dataset lies on disk `i mod D`. Each is taken with the probability of the ratio, and what is taken is handed to `T` threads in order, `T` at a
//! time. Of tasks of one such step that want the same disk, all but one are blocked. A disk serves one at a time.
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, section 1.2.2 and figure 1.4.

use ftlab_core::Stream;

/// The share of tasks that are blocked, over `steps` steps.
pub fn blocked(disks: usize, threads: usize, ratio: f64, steps: usize, seed: u64) -> f64 {
    let mut random = Stream::new(seed, "blocked");
    let mut taken = vec![false; disks];
    let (mut partition, mut blocked) = (0usize, 0usize);
    for _ in 0..steps {
        taken.fill(false);
        for _ in 0..threads {
            while random.unit() >= ratio {
                partition += 1;
            }
            blocked += usize::from(std::mem::replace(&mut taken[partition % disks], true));
            partition += 1;
        }
    }
    blocked as f64 / (steps * threads) as f64
}

#[cfg(test)]
mod tests {
    use super::blocked;

    /// All of 32 disks in turn: none waits; of 16, every second. At random: 1 - D (1 - (1 - 1/D)^32) / 32.
    #[test]
    fn bounds_of_the_analysis() {
        assert_eq!(blocked(32, 32, 1.0, 100, 1), 0.0);
        assert_eq!(blocked(16, 32, 1.0, 100, 1), 0.5);
        for disks in [16_u32, 32, 64] {
            let d = f64::from(disks);
            let wanted = 1.0 - d * (1.0 - (1.0 - 1.0 / d).powi(32)) / 32.0;
            let found = blocked(disks as usize, 32, 0.001, 2000, 1);
            assert!((found - wanted).abs() < 0.01, "{disks}: {found} for {wanted}");
        }
    }
}
