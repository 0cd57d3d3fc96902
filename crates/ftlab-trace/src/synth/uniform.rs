//! Requests spread evenly over the span.
//!
//! # Model
//! Every offset that is a multiple of `align` and leaves room for the largest size is equally likely, independently.
//! # Parameters
//! Only those of every kind.
//! # Not modelled
//! Any locality. Sizes that are not all equal overlap one another.
//! # Source
//! The workload of the analyses of greedy reclamation (Desnoyers, SYSTOR 2012; Van Houdt, SIGMETRICS 2013).

use ftlab_core::{Batch, Result, Stream};

use super::{Keys, Pattern, Space};

pub fn new(_: &mut Keys, space: Space) -> Result<Box<dyn Pattern>> {
    Ok(Box::new(Uniform { space }))
}

struct Uniform {
    space: Space,
}

impl Pattern for Uniform {
    fn place(&mut self, batch: &mut Batch, random: &mut Stream) {
        let Space { positions, align, .. } = self.space;
        batch
            .offset
            .extend((0..batch.op.len()).map(|_| random.below(positions) * align));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use ftlab_core::{Batch, Source};

    #[test]
    fn sixteen_places_are_hit_equally() {
        let mut generator = parse("uniform:requests=160000", 16 * 4096, 4096, 1).unwrap();
        let (mut bins, mut batch) = ([0u32; 16], Batch::default());
        loop {
            generator.next_batch(&mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            batch.offset.iter().for_each(|o| bins[(o / 4096) as usize] += 1);
        }
        // Chi-squared with 15 degrees of freedom exceeds 37.7 once in a thousand.
        let chi: f64 = bins.iter().map(|&b| (f64::from(b) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 37.7, "{chi} {bins:?}");
    }
}
