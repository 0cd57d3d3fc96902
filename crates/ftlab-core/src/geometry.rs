//! The flash hierarchy and the numbering of slots in it.
//!
//! A *plane* is numbered with the channel fastest (`plane = channel + C·(way + W·(die + D·plane))`), so consecutive
//! numbers lie on different channels. A *die* number is the plane number modulo the number of dies; a die's channel is
//! its number modulo the number of channels.

use crate::error::{Error, Result};
use crate::ids::{LaneId, RuId, Slot};

/// Sizes of the flash hierarchy, as a drive file states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub channels: u32,
    /// Chips (packages) per channel.
    pub ways: u32,
    /// Dies per chip.
    pub dies: u32,
    pub planes: u32,
    /// Blocks per plane.
    pub blocks: u32,
    /// Pages per block.
    pub pages: u32,
    pub page_bytes: u32,
    /// Bytes of a mapping unit; a page holds a whole number of them.
    pub unit_bytes: u32,
    /// Spare bytes written with each page.
    pub oob_bytes: u32,
}

impl Geometry {
    pub fn units_per_page(&self) -> u32 {
        self.page_bytes / self.unit_bytes
    }

    pub fn total_dies(&self) -> u32 {
        self.channels * self.ways * self.dies
    }

    pub fn total_planes(&self) -> u32 {
        self.total_dies() * self.planes
    }

    /// Raw mapping units of the drive (`T` of the accounting rules).
    pub fn raw_units(&self) -> u64 {
        u64::from(self.total_planes())
            * u64::from(self.blocks)
            * u64::from(self.pages)
            * u64::from(self.units_per_page())
    }

    /// Refuses sizes of zero, units that do not divide a page, and more units than a slot number can hold.
    pub fn validate(&self) -> Result<()> {
        let sizes = [
            ("channels", self.channels),
            ("ways", self.ways),
            ("dies", self.dies),
            ("planes", self.planes),
            ("blocks", self.blocks),
            ("pages", self.pages),
        ];
        for (name, value) in sizes {
            if value == 0 || value > 1 << 24 {
                return Err(Error::input(format!(
                    "geometry.{name} = {value}: expected 1 to {}",
                    1 << 24
                )));
            }
        }
        if self.unit_bytes < 256 || !self.unit_bytes.is_power_of_two() {
            let unit = self.unit_bytes;
            return Err(Error::input(format!(
                "geometry.unit = {unit} bytes: expected a power of two of at least 256"
            )));
        }
        if self.page_bytes == 0 || !self.page_bytes.is_multiple_of(self.unit_bytes) {
            return Err(Error::input(format!(
                "geometry.page_size = {} bytes: expected a multiple of the mapping unit ({} bytes)",
                self.page_bytes, self.unit_bytes
            )));
        }
        let factors = [
            self.channels,
            self.ways,
            self.dies,
            self.planes,
            self.blocks,
            self.pages,
            self.units_per_page(),
        ];
        let units = factors
            .iter()
            .try_fold(1u64, |product, &f| product.checked_mul(u64::from(f)));
        match units {
            Some(units) if units <= MAX_UNITS => Ok(()),
            _ => Err(Error::input(format!(
                "geometry: more than {MAX_UNITS} mapping units; use a larger unit, fewer blocks or fewer dies"
            ))),
        }
    }
}

/// Slot numbers have 31 bits: the map's highest bit marks an indirection (see the record).
pub const MAX_UNITS: u64 = (1 << 31) - 16;

/// What is erased and collected as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimKind {
    /// A block of one plane.
    Block,
    /// The same block number on all planes of `dies` dies.
    Superblock { dies: u32 },
}

/// Which level of the hierarchy changes first when consecutive pages are laid out; `CWDP` = channel first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneOrder([Level; 4]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Channel,
    Way,
    Die,
    Plane,
}

impl PlaneOrder {
    /// One of the 24 permutations of the letters C, W, D and P.
    pub fn parse(name: &str) -> Option<Self> {
        let mut levels = [Level::Channel; 4];
        let mut seen = [false; 4];
        if name.len() != 4 {
            return None;
        }
        for (place, letter) in name.chars().enumerate() {
            let (level, index) = match letter {
                'C' => (Level::Channel, 0),
                'W' => (Level::Way, 1),
                'D' => (Level::Die, 2),
                'P' => (Level::Plane, 3),
                _ => return None,
            };
            if std::mem::replace(&mut seen[index], true) {
                return None;
            }
            levels[place] = level;
        }
        Some(PlaneOrder(levels))
    }

    /// All planes of `geometry` in this order.
    fn planes(self, g: &Geometry) -> Vec<u32> {
        let size = |level| match level {
            Level::Channel => g.channels,
            Level::Way => g.ways,
            Level::Die => g.dies,
            Level::Plane => g.planes,
        };
        (0..g.total_planes())
            .map(|mut index| {
                let (mut channel, mut way, mut die, mut plane) = (0, 0, 0, 0);
                for level in self.0 {
                    let digit = index % size(level);
                    index /= size(level);
                    match level {
                        Level::Channel => channel = digit,
                        Level::Way => way = digit,
                        Level::Die => die = digit,
                        Level::Plane => plane = digit,
                    }
                }
                channel + g.channels * (way + g.ways * (die + g.dies * plane))
            })
            .collect()
    }
}

/// Division of 32-bit numbers by a fixed divisor with one multiplication (Lemire, Kaser, Kurz 2019: exact for 32 bits).
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    magic: u64,
    divisor: u32,
}

impl Divisor {
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Divisor {
            magic: (u64::MAX / u64::from(divisor)).wrapping_add(1),
            divisor,
        }
    }

    #[inline(always)]
    pub fn quotient(self, n: u32) -> u32 {
        // A divisor of 1 has the magic 0 (2^64 does not fit).
        if self.magic == 0 {
            n
        } else {
            ((u128::from(self.magic) * u128::from(n)) >> 64) as u32
        }
    }

    #[inline(always)]
    pub fn split(self, n: u32) -> (u32, u32) {
        let q = self.quotient(n);
        (q, n - q * self.divisor)
    }

    pub fn get(self) -> u32 {
        self.divisor
    }
}

/// Where a page lies, as the timed backend needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageAddress {
    pub plane: u32,
    pub block: u32,
    /// Page number within the block.
    pub page: u32,
}

/// Reclaim units, lanes and the numbering of slots.
///
/// A lane is a set of `width` planes; reclaim unit `lane · blocks + block` is block number `block` on all of them.
/// Slots of a reclaim unit are consecutive and in fill order: `slot = ru · slots_per_ru + (page · width + k) · units + unit`,
/// where `k` runs over the lane's planes in the plane order. [`Layout::striped`] gives the number in which consecutive
/// slots are consecutive across lanes as well.
#[derive(Clone, Debug)]
pub struct Layout {
    pub geometry: Geometry,
    pub reclaim: ReclaimKind,
    /// Planes per lane, and so blocks per reclaim unit.
    pub width: u32,
    pub lanes: u32,
    pub units_per_page: u32,
    pub slots_per_ru: u32,
    pub pages_per_ru: u32,
    pub rus: u32,
    /// `width` planes of each lane, lane after lane, in fill order.
    planes: Vec<u32>,
    /// The die of each of them.
    dies: Vec<u32>,
    by_ru: Divisor,
    by_unit: Divisor,
    by_width: Divisor,
    by_blocks: Divisor,
}

impl Layout {
    pub fn new(geometry: Geometry, reclaim: ReclaimKind, order: PlaneOrder) -> Result<Self> {
        geometry.validate()?;
        let total_dies = geometry.total_dies();
        let (width, lanes) = match reclaim {
            ReclaimKind::Block => (1, geometry.total_planes()),
            ReclaimKind::Superblock { dies } => {
                if dies == 0 || dies > total_dies || !total_dies.is_multiple_of(dies) {
                    return Err(Error::input(format!(
                        "geometry.superblock_dies = {dies}: expected a divisor of the drive's {total_dies} dies"
                    )));
                }
                (dies * geometry.planes, total_dies / dies)
            }
        };
        let ordered = order.planes(&geometry);
        let lane_of = |plane: u32| match reclaim {
            ReclaimKind::Block => None,
            ReclaimKind::Superblock { dies } => Some((plane % total_dies) / dies),
        };
        let planes = match reclaim {
            ReclaimKind::Block => ordered,
            ReclaimKind::Superblock { .. } => (0..lanes)
                .flat_map(|lane| {
                    ordered
                        .iter()
                        .copied()
                        .filter(move |&p| lane_of(p) == Some(lane))
                        .collect::<Vec<_>>()
                })
                .collect(),
        };
        let units_per_page = geometry.units_per_page();
        let slots_per_ru = u64::from(width) * u64::from(geometry.pages) * u64::from(units_per_page);
        if slots_per_ru > 1 << 26 {
            return Err(Error::input(format!(
                "a reclaim unit of {slots_per_ru} mapping units is too large (at most 2^26)"
            )));
        }
        let dies = planes.iter().map(|plane| plane % total_dies).collect();
        Ok(Layout {
            reclaim,
            width,
            lanes,
            units_per_page,
            slots_per_ru: slots_per_ru as u32,
            pages_per_ru: width * geometry.pages,
            rus: lanes * geometry.blocks,
            planes,
            dies,
            by_ru: Divisor::new(slots_per_ru as u32),
            by_unit: Divisor::new(units_per_page),
            by_width: Divisor::new(width),
            by_blocks: Divisor::new(geometry.blocks),
            geometry,
        })
    }

    pub fn slots(&self) -> u32 {
        self.rus * self.slots_per_ru
    }

    #[inline(always)]
    pub fn ru_of(&self, slot: Slot) -> RuId {
        RuId(self.by_ru.quotient(slot.0))
    }

    #[inline(always)]
    pub fn first_slot(&self, ru: RuId) -> Slot {
        Slot(ru.0 * self.slots_per_ru)
    }

    #[inline(always)]
    pub fn lane_of(&self, ru: RuId) -> LaneId {
        LaneId(self.by_blocks.quotient(ru.0))
    }

    /// Index of the page that holds `slot`, in fill order over the whole drive.
    #[inline(always)]
    pub fn page_of(&self, slot: Slot) -> u32 {
        self.by_unit.quotient(slot.0)
    }

    /// Which of the lane's planes page number `page_in_ru` (in fill order) lies on, and its page number there.
    #[inline(always)]
    pub fn place_in_ru(&self, page_in_ru: u32) -> (u32, u32) {
        let (page, k) = self.by_width.split(page_in_ru);
        (k, page)
    }

    /// Physical address of the page with this drive-wide index.
    #[inline]
    pub fn address(&self, page_index: u32) -> PageAddress {
        let slot = page_index * self.units_per_page;
        let (ru, offset) = self.by_ru.split(slot);
        let (k, page) = self.place_in_ru(self.by_unit.quotient(offset));
        let (lane, block) = self.by_blocks.split(ru);
        PageAddress {
            plane: self.planes[(lane * self.width + k) as usize],
            block,
            page,
        }
    }

    /// The planes of `lane` in fill order.
    #[inline]
    pub fn lane_planes(&self, lane: LaneId) -> &[u32] {
        let start = (lane.0 * self.width) as usize;
        &self.planes[start..start + self.width as usize]
    }

    /// The die of each plane of `lane`, in fill order.
    #[inline]
    pub fn lane_dies(&self, lane: LaneId) -> &[u32] {
        let start = (lane.0 * self.width) as usize;
        &self.dies[start..start + self.width as usize]
    }

    /// The die that holds plane number `plane`.
    #[inline(always)]
    pub fn die_of_plane(&self, plane: u32) -> u32 {
        plane % self.geometry.total_dies()
    }

    /// The slot's number in striping order: consecutive numbers are consecutive in the order in which a drive whose
    /// lanes advance together fills them. What S-FTL and LeaFTL call consecutive physical pages.
    #[inline]
    pub fn striped(&self, slot: Slot) -> u32 {
        let (ru, offset) = self.by_ru.split(slot.0);
        let (lane, block) = self.by_blocks.split(ru);
        let (page, unit) = self.by_unit.split(offset);
        let (row, k) = self.by_width.split(page);
        let page_row = block * self.geometry.pages + row;
        ((page_row * self.lanes + lane) * self.width + k) * self.units_per_page + unit
    }

    /// The slot with this number in striping order.
    pub fn unstriped(&self, number: u32) -> Slot {
        let (page, unit) = self.by_unit.split(number);
        let (page, k) = self.by_width.split(page);
        let (page_row, lane) = (page / self.lanes, page % self.lanes);
        let (block, row) = (page_row / self.geometry.pages, page_row % self.geometry.pages);
        let first = (lane * self.geometry.blocks + block) * self.slots_per_ru;
        Slot(first + (row * self.width + k) * self.units_per_page + unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry() -> Geometry {
        Geometry {
            channels: 2,
            ways: 2,
            dies: 1,
            planes: 2,
            blocks: 3,
            pages: 4,
            page_bytes: 16384,
            unit_bytes: 4096,
            oob_bytes: 64,
        }
    }

    #[test]
    fn divisor_equals_division() {
        for d in [1, 2, 3, 5, 7, 255, 256, 257, 65_521, 1 << 26] {
            let by = Divisor::new(d);
            for n in [
                0,
                1,
                2,
                254,
                255,
                256,
                257,
                65_520,
                65_521,
                1 << 30,
                u32::MAX - 1,
                u32::MAX,
            ] {
                assert_eq!(by.split(n), (n / d, n % d), "{n} / {d}");
            }
        }
    }

    #[test]
    fn striping_is_a_bijection_and_every_page_has_one_address() {
        for reclaim in [
            ReclaimKind::Block,
            ReclaimKind::Superblock { dies: 2 },
            ReclaimKind::Superblock { dies: 4 },
        ] {
            for order in ["CWDP", "PDWC", "WCPD"] {
                let layout = Layout::new(geometry(), reclaim, PlaneOrder::parse(order).unwrap()).unwrap();
                assert_eq!(u64::from(layout.slots()), layout.geometry.raw_units());
                for lane in (0..layout.lanes).map(LaneId) {
                    let planes = layout.lane_planes(lane).iter();
                    let dies: Vec<u32> = planes.map(|&plane| layout.die_of_plane(plane)).collect();
                    assert_eq!(layout.lane_dies(lane), dies, "{lane:?}");
                }
                let mut striped: Vec<u32> = (0..layout.slots()).map(|s| layout.striped(Slot(s))).collect();
                let back = striped.iter().map(|&number| layout.unstriped(number).0);
                assert!(back.eq(0..layout.slots()));
                striped.sort_unstable();
                assert!(striped.iter().enumerate().all(|(i, &s)| i as u32 == s));
                let mut addresses: Vec<_> = (0..layout.slots() / 4).map(|p| layout.address(p)).collect();
                addresses.sort_by_key(|a| (a.plane, a.block, a.page));
                addresses.dedup();
                assert_eq!(addresses.len() as u32, layout.slots() / 4);
            }
        }
    }

    #[test]
    fn a_superblock_fills_its_planes_in_turn() {
        let layout = Layout::new(
            geometry(),
            ReclaimKind::Superblock { dies: 4 },
            PlaneOrder::parse("CWDP").unwrap(),
        )
        .unwrap();
        let planes: Vec<u32> = (0..8).map(|page| layout.address(page).plane).collect();
        assert_eq!(planes, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(
            layout.address(8),
            PageAddress {
                plane: 0,
                block: 0,
                page: 1
            }
        );
    }

    #[test]
    fn impossible_geometries_are_refused_in_a_sentence() {
        type Spoil = fn(&mut Geometry);
        let cases: [(Spoil, &str); 4] = [
            (|g| g.blocks = 0, "geometry.blocks"),
            (|g| g.page_bytes = 10_000, "geometry.page_size"),
            (|g| g.unit_bytes = 100, "geometry.unit"),
            (
                |g| (g.blocks, g.pages, g.channels) = (1 << 20, 1 << 20, 1 << 20),
                "mapping units",
            ),
        ];
        for (spoil, word) in cases {
            let mut g = geometry();
            spoil(&mut g);
            let message = g.validate().unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
