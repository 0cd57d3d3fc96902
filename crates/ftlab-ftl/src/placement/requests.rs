//! Telling requests apart, for policies that learn from a request and not from each of its units.

use serde::{Deserialize, Serialize};

use super::HostWrite;

/// The request of the unit that was placed last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Requests {
    first: u32,
    units: u32,
    /// The unit that was placed last.
    unit: u32,
}

impl Requests {
    /// Whether `write` is the first unit of its request that is placed. Behind a write buffer, where units leave their requests, one
    /// that comes after units of others begins its request again.
    #[inline]
    pub fn begins(&mut self, write: &HostWrite<'_>) -> bool {
        let context = write.context;
        let now = Requests {
            first: context.request_first.0,
            units: context.request_units,
            unit: write.lpn.0,
        };
        let before = std::mem::replace(self, now);
        (before.first, before.units) != (now.first, now.units) || now.unit <= before.unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Now;
    use crate::request::WriteContext;
    use ftlab_core::Lpn;

    #[test]
    fn a_request_begins_once_and_the_same_one_again_begins_again() {
        let mut requests = Requests::default();
        let mut begins = |first: u32, units: u32, unit: u32| {
            let context = WriteContext {
                request_first: Lpn(first),
                request_units: units,
                ..WriteContext::default()
            };
            requests.begins(&HostWrite {
                lpn: Lpn(unit),
                context: &context,
                since: None,
                dies: None,
                now: Now { tick: 0, time_ns: 0 },
            })
        };
        let placed = [
            (8, 3, 8, true),
            (8, 3, 9, false),
            (8, 3, 10, false),
            (8, 3, 8, true),
            (0, 1, 0, true),
            (0, 1, 0, true),
            (8, 3, 10, true),
        ];
        for (first, units, unit, expected) in placed {
            assert_eq!(begins(first, units, unit), expected, "{first} {units} {unit}");
        }
    }
}
