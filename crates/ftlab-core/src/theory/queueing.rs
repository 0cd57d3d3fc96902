/// Mean time in the queue (without service) of one server with Poisson arrivals and a fixed service time: `ρ s / 2(1 − ρ)`.
///
/// `None` when the load `rate × service` reaches 1. Both in the same unit of time.
pub fn md1_mean_wait(arrivals_per_time: f64, service_time: f64) -> Option<f64> {
    let load = arrivals_per_time * service_time;
    (0.0..1.0)
        .contains(&load)
        .then(|| load * service_time / (2.0 * (1.0 - load)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_loaded_waits_half_a_service() {
        assert_eq!(md1_mean_wait(0.5, 1.0), Some(0.5));
        assert_eq!(md1_mean_wait(0.0, 1.0), Some(0.0));
        assert_eq!(md1_mean_wait(1.0, 1.0), None);
    }
}
