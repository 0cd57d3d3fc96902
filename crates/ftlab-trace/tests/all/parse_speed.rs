//! The measurement of `make bench` runs over every format and generator.

#[path = "../../examples/parse_speed.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod example;

#[test]
fn every_case_is_measured() {
    example::measure_all(100_000, None).unwrap();
}
