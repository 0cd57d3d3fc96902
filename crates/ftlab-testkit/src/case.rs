//! Tiny drives that between them use every member of every seam.

use std::sync::LazyLock;

use ftlab_core::geometry::PlaneOrder;
use ftlab_core::{Geometry, Layout, PolicySpec, ReclaimKind, Stream};
use ftlab_ftl::{BufferConfig, Ftl, FtlConfig, GcConfig, Overrides, PoolScope, Survivors};
use ftlab_ftl::{allocation, buffer, dedup, mapping, placement, replication, victim, wear};

use crate::draw::Drawer;

/// One drive of a property test.
#[derive(Clone, Debug)]
pub struct Case {
    pub layout: Layout,
    pub config: FtlConfig,
}

/// What a test wants of the drives that are drawn for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wish {
    /// Keeps recovery information.
    pub recovers: bool,
    /// Collects in steps and in the background.
    pub steps: bool,
    /// Power-loss protection: as drawn, or as given.
    pub protected: Option<bool>,
    /// Blocks wear out.
    pub wears_out: bool,
    /// A mapping or role is given by the test, which needs a larger reserve.
    pub reserve: u32,
    /// Keeps the map in flash, with a member of the mapping family in front of it.
    pub mapping: bool,
    /// Has a replication policy, and room for its copies.
    pub replicates: bool,
}

impl Wish {
    /// Drives that collect in steps, with at least so many units of reserve.
    pub fn stepped(reserve: u32) -> Wish {
        Wish {
            steps: true,
            reserve,
            ..Wish::default()
        }
    }

    /// The same whose power may be cut.
    pub fn cut(self, protected: Option<bool>) -> Wish {
        Wish {
            recovers: true,
            protected,
            ..self
        }
    }
}

/// Options that are worth trying and that nobody finds by chance, beside the members of the catalogues.
const VICTIMS: &[&str] = &[
    "d_choices:d=3,replacement=false",
    "cost_benefit:formula=cat",
    "windowed_greedy:window=0.4",
    "greedy",
];
const WEARS: &[&str] = &["static:threshold=2,interval=3", "remaining_life:limit=40,share=0.98"];
/// The static orders are 24 of the catalogue's names.
const ALLOCATIONS: &[&str] = &[
    "round_robin",
    "round_robin:order=PCWD",
    "least_loaded",
    "round_robin",
    "round_robin:order=DCWP",
    "least_loaded:order=WCDP",
    "round_robin",
    "round_robin",
    "least_loaded",
    "round_robin:order=CPWD",
    "round_robin",
    "least_loaded",
];
/// Ranges and periods that tiny drives reach.
const PLACEMENTS: &[&str] = &[
    "manual:streams=2",
    "manual:streams=1,open=2",
    "autostream_sfr:streams=3,chunk_kib=2",
    "autostream_mq:streams=3,chunk_kib=1,log_base=1.5",
    "fstream:streams=3",
    "vstream:streams=2,by=label,sample=2,remap=20",
    "vstream:streams=3,by=pid,sample=1,remap=50,distance=log",
    "pcstream:streams=2,range_kib=1,contexts=2",
    "pcstream:streams=3,range_kib=2,distance=log,weight=writes",
    "two_level_lru:hot=8,candidates=8",
    "bloom_filters:bits=64,decay=16",
    "multi_hash:counters=64,decay=64,threshold=2",
    "dac:classes=3,promote_within=50,demote_after=20",
    "eti:extents=8,decay=16,threshold=2",
    "fadac:classes=3,base=2",
    "warcip:clusters=3,period=2",
    "sepbit:segments=2",
    "sepbit:host=false,segments=1",
    "sepbit:survivors=false,segments=1",
    "sfs:groups=3",
    "sfs:groups=2,scale=linear,age=write",
    "sfs:groups=3,victim=drive",
    "multilog:levels=3",
    "multilog:levels=3,sink=always",
    "multilog:levels=2,victim=drive",
    "midas:groups=3,epoch=0.2,hot_share=0.2",
    "midas:groups=2,epoch=0.3,hot=false,last=cost_benefit",
    "midas:groups=3,epoch=0.2,victim=drive",
    "asa:period=20,sample=10",
    "fdp:handles=2,isolation=persistently",
    "fdp:handles=3,by=label",
    "asa:period=30,gc=oob,scale=linear",
];
/// Tables that are full, on drives that write a dozen contents; and half of the drives share nothing.
const DEDUPS: &[&str] = &[
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "none",
    "page_dedup:entries=5,eviction=lru",
    "page_dedup:entries=3,eviction=lru,prefetch=true",
    "page_dedup:entries=4,eviction=two_level,second=0.5",
    "page_dedup:entries=0,hash_units=2",
    "caftl:entries=4,idle_us=70,idle_units=9",
    "caftl:entries=0,sampling=false,crc=false,switch=false,out_of_line=false",
    "caftl:entries=6,eviction=two_level,crc=false,high=0.3,low=0.1,idle_us=100,idle_units=20",
    "ca_ssd:entries=6",
    "pcdedup:entries=4,trial=10,rate=0.3,halve=50,reexamine=90",
    "pcdedup:entries=6,eviction=two_level,by=stream,trial=5,rate=0.5,reexamine=40",
    "pcdedup:entries=0,blacklist=false,by=volume,skip_metadata=true,skip_labels=1-2",
    "finededup:entries=0,chunk_buffer_kib=2",
    "finededup:entries=0,chunk_buffer_kib=1,repack=false",
    "pcdedup:entries=4,eviction=two_level,prefetch=true,trial=20,rate=0.1",
    "finededup:entries=9,eviction=count,packing=false,read_buffer_kib=0",
    "finededup:entries=14,eviction=two_level,chunk_buffer_kib=1,read_buffer_kib=1",
];
const MAPPINGS: &[&str] = &[
    "dftl:policy=lru,batch=true",
    "dftl:policy=flashsim_age,serial=true",
    "dftl:protected=0",
    "dftl:protected=1,batch=true,serial=true",
    "cdftl:first_level=0.2",
    "cdftl:first_level=0.25,window=1,serial=true",
    "cdftl:first_level=0.4,adapt=7",
    "sftl:bitmap_bits=2,buffer=0.2,sparse=30,serial=true",
    "sftl:buffer=0,sparse=0",
    "tpftl:threshold=1,order=mru,serial=true",
    "tpftl:clean_first=false,batch=false,selective_prefetch=false",
    "leaftl:buffer=8,compact=50",
    "leaftl:gamma=4,buffer=16",
    "leaftl:gamma=16,buffer=12,group=24,compact=30,serial=true",
    "cpftl:dei=off,serial=true,directory=search,start=60,renew=40,pairs=0-60-33/1-90/2-7-70-110/5-41-42/80-3/81-4/82-6",
    "cpftl:dei=off,fit=filters,directory=90,start=60,renew=40,pairs=0-60-33/1-90/2-7-70-110/5-41-42/80-3/81-4/82-6",
    "cpftl:dei=skew,fit=filters,directory=60,start=90,renew=25,after_write_back=clean,page_lpns=6,bring=keyed,pairs=0-60-33/1-90-33-34-35/2-7-70-110/5-41-42/80-3/150-4/182-6",
    "cpftl:dei=skew,write_check=directory,filter_bits=40,directory=90,start=30,renew=20,write_miss=defer,frequent=2,pairs=0-60-33/1-90/3-4-5-6/99-12",
    "cpftl:online=48,window=6,online_pages=3,directory=120,region=32,renew=20,min_loads=4",
    "cpftl:dei=on,dirty_share=0.2,directory=search,min_loads=2,removal=0.4,start=50,renew=30,serial=true,pairs=0-60/1-61/2-62/7-9-77/140-141",
    "cpftl:own_blocks=true,fit=filters,directory=90,start=30,renew=20,pairs=0-60-33/1-90/2-7-70-110/5-41-42/80-3/81-4/82-6",
];

/// How the policies of each role are drawn.
macro_rules! drawer {
    ($name:ident, $role:ident, $trait:ty, $also:expr, $setup:expr) => {
        static $name: LazyLock<Drawer<'static, $trait, $role::Setup>> = LazyLock::new(|| Drawer {
            catalogue: $role::catalogue(),
            also: $also,
            setup: || $setup,
        });
    };
}

/// Logical units and bytes of cache on which options of policies are tried.
const UNITS: u32 = 200;
const CACHE_BYTES: u64 = 700;

drawer!(
    MAPPING,
    mapping,
    dyn mapping::MappingPolicy,
    MAPPINGS,
    mapping::Setup {
        logical_units: UNITS,
        values: 0,
        rows: 0,
        unit_bytes: 512,
        cache_bytes: CACHE_BYTES,
        layout: None,
        checked: true,
        beside_slot: 0,
    }
);
drawer!(
    PLACEMENT,
    placement,
    dyn placement::PlacementPolicy,
    PLACEMENTS,
    placement::Setup {
        logical_units: UNITS,
        unit_bytes: 512,
        units_per_ru: 16,
        rus: 128,
        // Drives of one lane are drawn too, which have no two reclaim groups.
        lanes: 1,
        survivors: Survivors::Shared,
        seed: 1,
    }
);
drawer!(
    VICTIM,
    victim,
    dyn victim::VictimPolicy,
    VICTIMS,
    victim::Setup {
        random: Stream::new(1, "victim"),
    }
);
drawer!(WEAR, wear, dyn wear::WearPolicy, WEARS, wear::Setup::default());
drawer!(
    ALLOCATION,
    allocation,
    dyn allocation::AllocationPolicy,
    ALLOCATIONS,
    allocation::Setup {
        lanes: 4,
        units_per_page: 1,
        frontiers: 4,
    }
);
drawer!(
    DEDUP,
    dedup,
    dyn dedup::DedupPolicy,
    DEDUPS,
    dedup::Setup {
        logical_units: UNITS,
        raw_units: 2 * UNITS,
        unit_bytes: 512
    }
);
drawer!(
    REPLICATION,
    replication,
    dyn replication::ReplicationPolicy,
    &[
        "rr_ssd:alpha=60,day_units=40,idle_units=5",
        "rr_ssd:alpha=60,when=on_line,copies=all,idle_us=50,idle_units=5",
        "random:alpha=60,day_units=30,idle_units=5,copies=count",
        "static:alpha=60,day_units=50,idle_units=5,mirror=false,idle_us=50",
        "pblru:deadline_us=60,read_us=20,write_us=60,blocked=late,epoch_s=0.01",
        "pblru:deadline_us=60,read_us=20,write_us=60,blocked=late,further=idle,eviction=lru,space=0.02,epoch_s=0.01",
    ],
    replication::Setup {
        logical_units: UNITS,
        chips: vec![0, 1, 2, 3],
        seed: 1,
    }
);
drawer!(
    BUFFER,
    buffer,
    dyn buffer::BufferPolicy,
    &["write_back:order=lpn", "write_back:order=lpn,share=0.6"],
    buffer::Setup { capacity_units: 8 }
);

/// Dedup policies that tests draw: in each of `rounds` all members of the catalogue, half of them with options of their own, and what
/// is worth trying beside.
pub fn dedups(rounds: u64) -> impl Iterator<Item = PolicySpec> {
    let turns = rounds * DEDUP.turns();
    (0..turns).map(|turn| DEDUP.draw(turn, &mut Stream::new(turn, "options")))
}

impl Case {
    /// Drive number `number`: consecutive numbers go through all members of every seam; the rest is drawn from `number`.
    pub fn draw(number: u64, wish: Wish) -> Case {
        let mut random = Stream::new(number, "case");
        let mut pick = |of: usize| random.below(of as u64) as usize;
        let mut options = Stream::new(number, "options");
        let units = [1, 4][pick(2)];
        let geometry = Geometry {
            channels: [1, 2, 4][pick(3)],
            ways: [1, 1, 2][pick(3)],
            dies: 1,
            planes: [1, 1, 2][pick(3)],
            blocks: 0,
            pages: [4, 6, 8][pick(3)],
            page_bytes: 512 * units,
            unit_bytes: 512,
            oob_bytes: 16,
        };
        let geometry = Geometry {
            channels: geometry.channels.min(8 / geometry.ways / geometry.planes),
            ..geometry
        };
        let dies = geometry.total_dies();
        let reclaim = [
            ReclaimKind::Block,
            ReclaimKind::Block,
            ReclaimKind::Superblock { dies },
            ReclaimKind::Superblock { dies: 1 },
        ][pick(4)];
        let placement = PLACEMENT.draw(number, &mut options);
        let allocation = ALLOCATION.draw(number, &mut options);
        let survivors = Survivors::ALL[pick(3)];
        let preemptible = wish.steps && pick(2) == 0;
        let checkpoints = wish.recovers || pick(3) == 0;
        let reserve = wish.reserve.max(u32::from(wish.mapping));
        let hard = 1 + reserve.max(u32::from(checkpoints)) + pick(2) as u32;
        let gc = GcConfig {
            pool: [PoolScope::Lane, PoolScope::Die, PoolScope::Drive][pick(3)],
            hard,
            soft: hard + if wish.steps { 1 + pick(3) as u32 } else { 0 },
            preemptible,
            step_units: 1 + pick(6) as u32,
            background: wish.steps && !preemptible,
            idle_ns: [0, 100_000][pick(2)],
            survivors,
        };
        let policy = BUFFER.draw(number, &mut options);
        let buffer = BufferConfig {
            capacity_units: if policy.name == "none" { 0 } else { 1 + pick(24) as u32 },
            power_loss_protected: wish.protected.unwrap_or_else(|| pick(2) == 0),
            policy,
        };
        let order = ftlab_ftl::allocation::plane_order(&allocation).expect("an order");
        let dedup = DEDUP.draw(number, &mut options);
        // The journal of values has no bound while a checkpoint is under way (ARCHITECTURE.md 13, S17): it needs room for that.
        let shares = dedup.name != "none";
        let journals = shares && checkpoints && !buffer.power_loss_protected && wish.steps;
        // A unit that is shared changes entries in several tables of a map in flash.
        let more = if shares && wish.mapping { 2 } else { 0 };
        let gc = GcConfig {
            hard: gc.hard + more,
            soft: gc.soft + more,
            ..gc
        };
        let blocks = (8 + gc.hard + pick(8) as u32) * if journals { 4 } else { 1 };
        let mut config = FtlConfig {
            logical_units: 0,
            mapping: match wish.mapping {
                true => MAPPING.draw(number, &mut options),
                false => PolicySpec::named("page"),
            },
            placement,
            victim: VICTIM.draw(number, &mut options),
            wear: WEAR.draw(number, &mut options),
            allocation,
            dedup,
            replication: match wish.replicates {
                true => REPLICATION.draw(number, &mut options),
                false => PolicySpec::named("none"),
            },
            gc,
            buffer,
            erase_limit: wish.wears_out.then(|| 3 + pick(6) as u32),
            map_cache_bytes: if wish.mapping { [700, 1200, 4000][pick(3)] } else { 0 },
            share_loads: number.is_multiple_of(2),
            checkpoint_units: if checkpoints { 20 + pick(600) as u64 } else { 0 },
            seed: number,
            verify: true,
        };
        // Some members do not work at all with as little memory as most do.
        let accepts = |&cache_bytes: &u64| {
            let setup = (MAPPING.setup)();
            let mut setup = mapping::Setup {
                cache_bytes,
                // As much as any placement policy keeps in an entry.
                beside_slot: 4,
                ..setup
            };
            MAPPING.catalogue.build(&config.mapping, &mut setup).is_ok()
        };
        let bytes = (0..12).map(|double| config.map_cache_bytes << double);
        config.map_cache_bytes = bytes.clone().find(accepts).unwrap_or(config.map_cache_bytes);
        let geometry = Geometry { blocks, ..geometry };
        let layout = with_room(&geometry, reclaim, order, &mut config);
        // Every unit may have two places where there are copies.
        let copies = 1 + u32::from(config.replication.name != "none");
        // What is shared by quarters lies in packs that are not full, and in flash there are tables of values and rows.
        let spread = match (config.dedup.name.as_str(), wish.mapping) {
            ("none", _) => 1,
            ("finededup", true) => 4,
            _ => 2,
        };
        let most = most_units(&layout, &config) / copies / spread;
        config.logical_units = match pick(3) {
            0 => most,
            1 => most * 9 / 10,
            _ => most / 2,
        }
        .max(1);
        Case { layout, config }
    }

    /// The case in a few lines, for the report of a failure.
    pub fn show(&self) -> String {
        let (layout, c) = (&self.layout, &self.config);
        let policies: Vec<String> = [
            &c.mapping,
            &c.victim,
            &c.wear,
            &c.allocation,
            &c.placement,
            &c.dedup,
            &c.replication,
            &c.buffer.policy,
        ]
        .iter()
        .map(|policy| policy.show())
        .collect();
        format!(
            "{} lanes of {} units of {} x {} slots ({:?}), {} logical units, {} bytes of map cache\n  {}\n  {:?}\n  buffer of {}, protected {}, erase limit {:?}, checkpoint {}",
            layout.lanes,
            layout.geometry.blocks,
            layout.pages_per_ru,
            layout.units_per_page,
            layout.reclaim,
            c.logical_units,
            c.map_cache_bytes,
            policies.join(" "),
            c.gc,
            c.buffer.capacity_units,
            c.buffer.power_loss_protected,
            c.erase_limit,
            c.checkpoint_units
        )
    }

    /// One lane of `blocks` blocks of `pages` pages with `units` units each; a plain drive to start from.
    pub fn plain(blocks: u32, pages: u32, units: u32) -> Case {
        Self::plain_lanes(1, blocks, pages, units)
    }

    /// The same with several lanes (channels).
    pub fn plain_lanes(lanes: u32, blocks: u32, pages: u32, units: u32) -> Case {
        let geometry = Geometry {
            channels: lanes,
            ways: 1,
            dies: 1,
            planes: 1,
            blocks,
            pages,
            page_bytes: 512 * units,
            unit_bytes: 512,
            oob_bytes: 16,
        };
        let order = PlaneOrder::parse("CWDP").expect("an order");
        let layout = Layout::new(geometry, ReclaimKind::Block, order).expect("a tiny drive");
        let named = PolicySpec::named;
        let mut config = FtlConfig {
            logical_units: 0,
            mapping: named("page"),
            placement: named("none"),
            victim: named("greedy"),
            wear: named("none"),
            allocation: named("round_robin"),
            dedup: named("none"),
            replication: named("none"),
            gc: GcConfig {
                pool: PoolScope::Lane,
                hard: 1,
                soft: 1,
                preemptible: false,
                step_units: 4,
                background: false,
                idle_ns: 0,
                survivors: Survivors::Shared,
            },
            buffer: BufferConfig {
                policy: named("none"),
                capacity_units: 0,
                power_loss_protected: false,
            },
            erase_limit: None,
            map_cache_bytes: 0,
            share_loads: true,
            checkpoint_units: 0,
            seed: 1,
            verify: true,
        };
        config.logical_units = most_units(&layout, &config) * 9 / 10;
        Case { layout, config }
    }

    /// Adds blocks until the drive has room for the policies of `make`.
    ///
    /// # Panics
    /// If no reasonable number is enough.
    pub fn make_room(&mut self, make: impl Fn(&Case) -> Overrides) {
        let order = ftlab_ftl::allocation::plane_order(&self.config.allocation).expect("an order");
        let (hard, soft) = (self.config.gc.hard, self.config.gc.soft);
        for more in 0..40 {
            // The reserve grows more slowly than the drive.
            (self.config.gc.hard, self.config.gc.soft) = (hard + more / 4, soft + more / 4);
            let geometry = Geometry {
                blocks: self.layout.geometry.blocks + 4 * more,
                ..self.layout.geometry.clone()
            };
            let larger = Case {
                layout: Layout::new(geometry, self.layout.reclaim, order).expect("a tiny drive"),
                config: self.config.clone(),
            };
            if larger.build(make(&larger)).is_ok() {
                *self = larger;
                return;
            }
        }
        panic!("no drive is large enough: {}", self.show());
    }

    /// The drive, some of whose policies may be given.
    pub fn build(&self, given: Overrides) -> ftlab_core::Result<Ftl<ftlab_ftl::Counting>> {
        Ftl::with(self.layout.clone(), self.config.clone(), given)
    }
}

/// The drive with as many blocks, and as large a reserve, as its policies need: those that nobody knows yet may have any
/// number of frontiers.
fn with_room(geometry: &Geometry, reclaim: ReclaimKind, order: PlaneOrder, config: &mut FtlConfig) -> Layout {
    config.logical_units = 8;
    let (hard, soft) = (config.gc.hard, config.gc.soft);
    for more in 0..60 {
        // The reserve grows more slowly than the drive.
        (config.gc.hard, config.gc.soft) = (hard + more / 4, soft + more / 4);
        let geometry = Geometry {
            blocks: geometry.blocks + 2 * more,
            ..geometry.clone()
        };
        let layout = Layout::new(geometry, reclaim, order).expect("a tiny drive");
        if Ftl::new(layout.clone(), config.clone()).is_ok() {
            return layout;
        }
    }
    let fault = |layout: Layout| Ftl::new(layout, config.clone()).err();
    let layout = Layout::new(geometry.clone(), reclaim, order).expect("a tiny drive");
    panic!("no drive is large enough for {config:?}: {:?}", fault(layout))
}

/// The most logical units that the FTL accepts on this drive.
pub fn most_units(layout: &Layout, config: &FtlConfig) -> u32 {
    let mut config = config.clone();
    let (mut low, mut high) = (1, layout.slots());
    while low + 1 < high {
        let middle = (low + high) / 2;
        config.logical_units = middle;
        match Ftl::new(layout.clone(), config.clone()) {
            Ok(_) => low = middle,
            Err(_) => high = middle,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A role's catalogue is its list: whoever is added there is drawn.
    #[test]
    fn every_member_of_every_catalogue_is_drawn() {
        let wish = Wish {
            mapping: true,
            replicates: true,
            ..Wish::default()
        };
        let cases: Vec<FtlConfig> = (0..120).map(|number| Case::draw(number, wish).config).collect();
        let drawn = |names: Vec<&str>, also: &[&str], of: fn(&FtlConfig) -> &PolicySpec| {
            for name in names {
                assert!(cases.iter().any(|case| of(case).name == name), "{name}");
            }
            for line in also {
                let spec = PolicySpec::parse(line).expect("a spec of the test's own");
                assert!(cases.iter().any(|case| *of(case) == spec), "{line}");
            }
        };
        drawn(MAPPING.catalogue.names(), MAPPING.also, |case| &case.mapping);
        drawn(VICTIM.catalogue.names(), VICTIM.also, |case| &case.victim);
        drawn(WEAR.catalogue.names(), WEAR.also, |case| &case.wear);
        drawn(ALLOCATION.catalogue.names(), ALLOCATION.also, |case| &case.allocation);
        drawn(PLACEMENT.catalogue.names(), PLACEMENT.also, |case| &case.placement);
        drawn(BUFFER.catalogue.names(), BUFFER.also, |case| &case.buffer.policy);
        drawn(DEDUP.catalogue.names(), DEDUP.also, |case| &case.dedup);
        drawn(REPLICATION.catalogue.names(), REPLICATION.also, |case| {
            &case.replication
        });
    }
}
