//! Allocation: the lane (plane, or set of planes of a superblock) of the next page.

use crate::frontier::Frontier;
use ftlab_core::geometry::PlaneOrder;
use ftlab_core::{Catalogue, Error, LaneId, Lpn, PolicySpec, Result, member};

use crate::backend::Load;

pub mod least_loaded;
pub mod round_robin;
pub mod static_order;

/// Chooses the lane on which a frontier puts its next page.
pub trait AllocationPolicy: Send {
    /// The lane for the page that holds `lpn`. `load` tells how busy a lane's first die is.
    fn lane(&mut self, lpn: Lpn, frontier: Frontier, load: &mut dyn FnMut(LaneId) -> Load) -> LaneId;

    /// Whether the lane depends on the address alone: units of one page then share a lane by address, not by arrival.
    fn by_address(&self) -> bool {
        false
    }
}

/// What an allocation policy is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub lanes: u32,
    pub units_per_page: u32,
    pub frontiers: Frontier,
}

/// The policies; a permutation of the letters C, W, D, P names a static order, channel, way, die and plane in the order
/// in which they change.
pub fn catalogue() -> Catalogue<dyn AllocationPolicy, Setup> {
    let mut catalogue = member!(Catalogue::new("allocation"), round_robin, least_loaded);
    for name in STATIC_ORDERS {
        catalogue = catalogue.with(name, static_order::new, include_str!("static_order.rs"));
    }
    catalogue
}

pub const STATIC_ORDERS: [&str; 24] = [
    "CWDP", "CWPD", "CDWP", "CDPW", "CPWD", "CPDW", "WCDP", "WCPD", "WDCP", "WDPC", "WPCD", "WPDC", "DCWP", "DCPW",
    "DWCP", "DWPC", "DPCW", "DPWC", "PCWD", "PCDW", "PWCD", "PWDC", "PDCW", "PDWC",
];

/// The order in which this policy goes over the planes: its own name for a static order, else its parameter `order`.
pub fn plane_order(spec: &PolicySpec) -> Result<PlaneOrder> {
    let named = spec.params.get("order").and_then(|value| value.as_str());
    let name = if STATIC_ORDERS.contains(&spec.name.as_str()) {
        spec.name.as_str()
    } else {
        named.unwrap_or("CWDP")
    };
    PlaneOrder::parse(name).ok_or_else(|| Error::input(format!("plane order `{name}`: expected a permutation of CWDP")))
}
