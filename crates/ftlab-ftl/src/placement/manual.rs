//! Manual streams: the host says with each write which stream it belongs to.
//!
//! # Model
//! A write with stream id `s` goes to frontier `s`; id 0 (none) is the default stream. Ids beyond the device's streams
//! share the last one. Data of different streams never share a reclaim unit as long as survivors are kept apart too
//! (`gc.survivors = stream` or `internal`).
//!
//! Write-lifetime hints that a recorded program gives by `fcntl` are streams as well: short is 1, medium 2, long 3, extreme 4, as the
//! NVMe driver of Linux 4.13 to 5.17 had them.
//!
//! The policy models these parts of NVMe's streams directive: a stream opens with its first write, and its granularity
//! (SGS) is the reclaim unit, one on each lane. `open` is the number of streams that may be open at once (with the
//! default stream). Beyond it the controller closes the least recently used stream. Its open unit is left as it is, and
//! the stream opens a new one when it is written again.
//!
//! # Parameters
//! * `streams` (count, default 8, 1 to 4,095): streams of the device besides the default one.
//!
//! * `open` (count, default all, 2 to `streams` + 1): streams that may be open at once on a lane.
//!
//! # Not modelled
//! Commands: allocation of streams to a namespace, and Release Identifier and Release Resources, which no record of a
//! trace carries. Their effect, closing the open unit of a stream, is what `open` does to the least recently used
//! stream. The stream write size (SWS): a page that a request leaves half full is padded or waits as without streams.
//!
//! # Errors
//! A count outside the range is refused; so is `open` with `gc.survivors = stream`, because each collection would open
//! its victim's stream again and close another one half empty.
//!
//! # Cost
//! O(1) per write; one open unit per stream and lane.
//!
//! # Source
//! Kang, Hyun, Maeng and Cho, HotStorage 2014; NVM Express Base Specification 1.3 (2017), streams directive.
//! Hints: Linux 5.17, `drivers/nvme/host/core.c` (`nvme_assign_write_stream`). FDP: `fdp`.

use crate::config::Survivors;
use crate::frontier::Frontier;
use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{HostWrite, PlacementPolicy, Setup};

/// Each stream has an open unit on every lane: more would be a slip of the pen.
const MOST_STREAMS: u16 = 4095;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    pub streams: u16,
    pub open: Option<u16>,
}

impl Default for Params {
    fn default() -> Self {
        Params { streams: 8, open: None }
    }
}

pub fn new(params: Params, setup: &mut Setup) -> Result<Box<dyn PlacementPolicy>> {
    if !(1..=MOST_STREAMS).contains(&params.streams) {
        return Err(Error::input(format!(
            "placement policy `manual`: streams = {}, expected 1 to {MOST_STREAMS}",
            params.streams
        )));
    }
    let all = params.streams + 1;
    if let Some(open) = params.open.filter(|open| !(2..=all).contains(open)) {
        return Err(Error::input(format!(
            "placement policy `manual`: open = {open}, expected 2 to {all}, the streams with the default one"
        )));
    }
    if params.open.is_some_and(|open| open < all) && setup.survivors == Survivors::Stream {
        return Err(Error::input(
            "placement policy `manual`: `open` with gc.survivors = stream, expected gc.survivors = shared or internal",
        ));
    }
    Ok(Box::new(Manual {
        last: params.streams,
        open: params.open.unwrap_or(all),
    }))
}

struct Manual {
    last: u16,
    open: u16,
}

impl PlacementPolicy for Manual {
    fn host_frontiers(&self) -> Frontier {
        self.last + 1
    }

    fn open_at_once(&self) -> Frontier {
        self.open
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        write.context.stream.min(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_streams_are_limited_unless_survivors_open_them_again() {
        let made = |params, survivors| {
            let mut setup = Setup {
                logical_units: 1000,
                unit_bytes: 4096,
                units_per_ru: 10,
                rus: 200,
                lanes: 4,
                survivors,
                seed: 1,
            };
            new(params, &mut setup)
        };
        let with = |open| Params { streams: 4, open };
        assert_eq!(made(with(Some(2)), Survivors::Shared).unwrap().open_at_once(), 2);
        assert_eq!(made(with(None), Survivors::Stream).unwrap().open_at_once(), 5);
        assert!(made(with(Some(5)), Survivors::Stream).is_ok());
        assert!(made(with(Some(2)), Survivors::Stream).is_err());
        assert!(made(with(Some(1)), Survivors::Internal).is_err());
        assert!(made(with(Some(6)), Survivors::Internal).is_err());
    }
}
