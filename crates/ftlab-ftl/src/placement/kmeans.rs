//! k-means in one dimension, on values that are sorted once.

/// A value and how much it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weighted {
    pub value: f64,
    pub weight: f64,
}

/// Centres of `k` clusters of `values`, ascending (Lloyd 1982): they begin at the quantiles 1/2k, 3/2k, … and move to the means
/// of what is nearest to them until nothing changes, at most `rounds` times. A cluster that loses its last value keeps its
/// centre. No centres for no values.
pub(super) fn centres(values: &mut [Weighted], k: usize, rounds: usize) -> Vec<f64> {
    values.sort_by(|a, b| a.value.total_cmp(&b.value));
    let total: f64 = values.iter().map(|v| v.weight).sum();
    if values.is_empty() || k == 0 || total <= 0.0 {
        return Vec::new();
    }
    let mut centres = quantiles(values, k, total);
    for _ in 0..rounds {
        let before = centres.clone();
        let mut first = 0;
        for (i, centre) in centres.iter_mut().enumerate() {
            let end = match before.get(i + 1) {
                Some(next) => {
                    let border = (before[i] + next) / 2.0;
                    first + values[first..].partition_point(|v| v.value <= border)
                }
                None => values.len(),
            };
            let members = &values[first..end];
            let weight: f64 = members.iter().map(|v| v.weight).sum();
            if weight > 0.0 {
                *centre = members.iter().map(|v| v.value * v.weight).sum::<f64>() / weight;
            }
            first = end;
        }
        if centres == before {
            break;
        }
    }
    centres
}

/// At most `rounds` of Lloyd's rounds on `values` from `centres` on, in one pass each. Centres stay ascending; one that no value is
/// nearest to stays where it is.
pub(super) fn improve(values: &[f64], centres: &mut [f64], rounds: usize) {
    let mut sums = vec![(0.0, 0.0); centres.len()];
    for _ in 0..rounds {
        sums.fill((0.0, 0.0));
        for &value in values {
            let (sum, count) = &mut sums[nearest(centres, value)];
            (*sum, *count) = (*sum + value, *count + 1.0);
        }
        let mut changed = false;
        for (centre, &(sum, count)) in centres.iter_mut().zip(&sums) {
            if count > 0.0 && *centre != sum / count {
                *centre = sum / count;
                changed = true;
            }
        }
        if !changed {
            return;
        }
    }
}

/// The quantiles 1/2k, 3/2k, … of `values`, ascending: where centres begin. None for no values.
pub(super) fn evenly(values: &[f64], k: usize) -> Vec<f64> {
    let mut weighted: Vec<Weighted> = values.iter().map(|&value| Weighted { value, weight: 1.0 }).collect();
    centres(&mut weighted, k, 0)
}

fn quantiles(values: &[Weighted], k: usize, total: f64) -> Vec<f64> {
    let mut centres = Vec::with_capacity(k);
    let (mut at, mut below) = (0, 0.0);
    for i in 0..k {
        let wanted = total * (2 * i + 1) as f64 / (2 * k) as f64;
        while at + 1 < values.len() && below + values[at].weight <= wanted {
            below += values[at].weight;
            at += 1;
        }
        centres.push(values[at].value);
    }
    centres
}

/// The number of the centre nearest to `value`; of two as near the lower one. `centres` ascend and are not empty.
pub(super) fn nearest(centres: &[f64], value: f64) -> usize {
    let above = centres.partition_point(|&centre| centre < value);
    match above {
        0 => 0,
        _ if above == centres.len() => above - 1,
        _ if centres[above] - value < value - centres[above - 1] => above,
        _ => above - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    fn plain(values: &[f64]) -> Vec<Weighted> {
        values.iter().map(|&value| Weighted { value, weight: 1.0 }).collect()
    }

    #[test]
    fn three_heaps_are_found() {
        let mut values = plain(&[1.0, 2.0, 3.0, 100.0, 101.0, 102.0, 900.0, 1000.0, 1100.0]);
        assert_eq!(centres(&mut values, 3, 50), [2.0, 101.0, 1000.0]);
    }

    #[test]
    fn weights_pull_a_centre() {
        let mut values = vec![
            Weighted {
                value: 0.0,
                weight: 3.0,
            },
            Weighted {
                value: 4.0,
                weight: 1.0,
            },
        ];
        assert_eq!(centres(&mut values, 1, 50), [1.0]);
    }

    #[test]
    fn fewer_values_than_clusters_and_none_at_all() {
        assert_eq!(centres(&mut plain(&[5.0]), 3, 50), [5.0; 3]);
        assert!(centres(&mut [], 3, 50).is_empty());
    }

    #[test]
    fn rounds_from_given_centres_end_where_rounds_from_quantiles_do() {
        let values = [1.0, 2.0, 3.0, 100.0, 101.0, 102.0, 900.0, 1000.0, 1100.0];
        let mut centres = evenly(&values, 3);
        assert_eq!(centres, [2.0, 101.0, 1000.0]);
        centres = vec![0.0, 50.0, 500.0];
        improve(&values, &mut centres, 1);
        assert_eq!(centres, [2.0, 101.0, 1000.0]);
        let mut far = vec![101.0, 5000.0, 6000.0];
        improve(&values, &mut far, 3);
        assert_eq!(
            far,
            [values.iter().sum::<f64>() / 9.0, 5000.0, 6000.0],
            "a centre without values stays"
        );
    }

    #[test]
    fn nearest_agrees_with_a_search_of_all_and_centres_are_means_of_what_is_nearest() {
        let mut draw = Stream::new(1, "kmeans");
        for _ in 0..200 {
            let count = 1 + draw.below(60) as usize;
            let mut values: Vec<Weighted> = (0..count)
                .map(|_| Weighted {
                    value: draw.below(50) as f64,
                    weight: 1.0 + draw.below(3) as f64,
                })
                .collect();
            let k = 1 + draw.below(6) as usize;
            let found = centres(&mut values, k, 1000);
            assert!(found.is_sorted());
            let of = |v: &Weighted| nearest(&found, v.value);
            for value in &values {
                let distance = (found[of(value)] - value.value).abs();
                let least = found.iter().map(|c| (c - value.value).abs()).fold(f64::MAX, f64::min);
                assert_eq!(distance, least);
            }
            for (i, &centre) in found.iter().enumerate() {
                // Equal centres share what is nearest: only the first of them has it.
                let members: Vec<&Weighted> = values.iter().filter(|v| of(v) == i).collect();
                let weight: f64 = members.iter().map(|v| v.weight).sum();
                if weight > 0.0 && found.iter().filter(|&&c| c == centre).count() == 1 {
                    let mean = members.iter().map(|v| v.value * v.weight).sum::<f64>() / weight;
                    assert!((mean - centre).abs() < 1e-9, "{values:?} {found:?}");
                }
            }
        }
    }
}
