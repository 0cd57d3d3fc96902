//! Failing runs made short: operations are left out in halves, quarters, ... as long as the run still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::operation::Operation;

/// Runs `operations`; if that panics, finds a short sequence that panics too and reports it with `name`.
///
/// # Panics
/// If `run` panics.
pub fn run_or_shrink(name: &str, operations: Vec<Operation>, run: impl Fn(&[Operation])) {
    let fails = |operations: &[Operation]| catch_unwind(AssertUnwindSafe(|| run(operations))).err();
    if fails(&operations).is_none() {
        return;
    }
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut shortest = operations;
    let mut attempts = 0;
    let mut length = shortest.len() / 2;
    while length > 0 && attempts < 3000 {
        let mut start = 0;
        while start < shortest.len() && attempts < 3000 {
            let mut shorter = shortest.clone();
            shorter.drain(start..(start + length).min(shortest.len()));
            attempts += 1;
            if fails(&shorter).is_some() {
                shortest = shorter;
            } else {
                start += length;
            }
        }
        length /= 2;
    }
    let fault = fails(&shortest).map_or("it passes now".to_owned(), |fault| {
        let text = fault.downcast_ref::<String>().cloned();
        text.or_else(|| fault.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_default()
    });
    std::panic::set_hook(hook);
    let shown: Vec<String> = shortest
        .iter()
        .skip(shortest.len().saturating_sub(60))
        .map(|operation| format!("  {operation:?}"))
        .collect();
    panic!("{name}\n{} operations: {fault}\n{}", shortest.len(), shown.join("\n"));
}
