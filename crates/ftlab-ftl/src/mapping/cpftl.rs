//! CPFTL: entries that are read one after the other, wherever they lie, share a flash page; changed entries are kept apart.
//!
//! # Model
//! * **Base ("SP")**: entries are cached, prefetched and written back as in `tpftl`.
//! * **Correlated translation pages**: a mining run finds groups of LPNs that are read soon after each other. Their
//!   entries are programmed into pages of their own, the groups with the highest support first. An LPN with its entry
//!   takes 8 bytes; a page holds up to `page_lpns` of them. The pages are written with the answer to the first read,
//!   from look-up `start` on. They are written again after a power cut, which loses the directory. With `renew`, pages
//!   that were removed are written again every `renew` look-ups, as if a new mining run had found the same groups. LPNs
//!   that are unmapped at that moment are left out.
//! * **Mining during the run** (`online`): the LPNs of reads go into a buffer. A full buffer is mined as by the miner
//!   `clustered` of `ftlab mine`. With the answer to that read the existing correlated pages are removed, the pages of
//!   the new groups are written, and the buffer is emptied. A power cut loses the mined groups and the buffer. A set
//!   that was given as a parameter survives it, until the first mining replaces it.
//! * **Prediction directory**: for each page, the smallest and the largest LPN, a Bloom filter, and the counts of hits
//!   and loads. It takes at most `directory` bytes of `ftl.map_cache`. Pages that do not fit, those with the least
//!   support, are not kept.
//! * **Read**: a miss reads the pages whose filters match, one after the other, until one holds the LPN. The entries of
//!   all the LPN's groups on that page enter the cache, up to `load_limit` of it. If no page holds the LPN, the regular
//!   load follows.
//! * **Write, trim, collection**: a changed entry makes the pages that hold it stale, and a stale page is removed as a
//!   whole. To find these pages, each page whose filter matches is read (`write_check=load`), or it is removed without
//!   a read (`directory`). A collection reads a page once for all entries that it moved.
//! * **Adaptive removal**, `removal=balance`: each page has a balance of the flash reads that it saves and costs. A
//!   page whose balance falls `patience` reads behind is removed.
//! * *Savings*: a read of the page that finds the LPN replaces one regular load; a second one of the same request for
//!   the same translation page replaces none. Each request that hits an unused entry that the page brought replaces one
//!   more load. A regular load also brings entries along, which answer `u` more requests, so each of these savings
//!   counts as `1 / (1 + u)` loads.
//! * *Costs*: each read of the page costs one, also a read in vain, and so does its program. All live pages together
//!   pay for the memory of the directory and of unused entries. The price is the regular loads of entries that were
//!   evicted so recently that this memory would still hold them. Each counts twice, because the entries that such a
//!   load brings along evict others. The price of a hundredth of the memory is at least a hundredth of all regular loads:
//!   in a loop what was evicted comes back long after, maybe when the page has gone. But what such a loop still finds it
//!   finds just before that would be evicted. So the price is at least that of the requests which use the tail of the
//!   cache (see *What a trial leaves behind*), that a cache smaller by as much again would not answer: a use of one of
//!   its entries, unless a page brought it for this, costs `1 / (1 + u)` loads, times the memory in sizes of the tail.
//!   What loads have been charged is set off against it, at most `patience` reads of it. To recognise loads of
//!   entries that memory would still hold, evicted keys are remembered, 4 bytes each, taken from `ftl.map_cache`: as many as entries find room in the directory's
//!   bytes, or a quarter of more than 32. Where the memory would hold more than that, those remembered are a sample of all of them.
//! * *Trials*: one page, the one with the most support, is tried first. It is tried again when pages are renewed or
//!   mined anew, unless pages on trial have lost more than they may. Every 512 look-ups, or sooner where memory has
//!   cost `patience`, more pages follow: as many as can fail without all pages together losing more than a hundredth of
//!   the regular loads so far, a tenth of the loads that writes avoided (`dei=shared`), and what pages have saved. So a
//!   set that does not pay costs about a hundredth, but for loops a little larger than the cache, and a set that pays
//!   is in use sooner the more it saves, though pages that would have paid later are given up too.
//! * *What a trial leaves behind*: its memory pushes out the tail of the cache, as many of the entries that were used
//!   least recently as the memory holds, and they come back by loads after the page has gone. In a loop that just fits,
//!   one entry too many is enough for a cache that thrashes. So the tail is watched before a trial: its entries are
//!   those last used before a time `T`. `T` is found from the times of all entries: `size` and a quarter more are
//!   older, less as many as would still find room; and found anew, at the next look-up, when more than `size / 2` have
//!   gone since. An entry of the tail that is used has gone, and any entry that is evicted. Once a quarter of all
//!   entries has gone (at most `16 size`, at most 32,767), the share of the used ones among them, times `size`, counts
//!   as a loss of each trial beside `patience`; both counts are halved beyond twice as many. `size` is what the memory
//!   of one page would hold: its directory, its evicted keys and 10 bytes of its account, at the bytes that an entry
//!   takes in the mean.
//! * *When it looks*: while a page would be tried if it left nothing behind, or a page is live. A
//!   look that finds `patience` loads or more left behind, too much to try a page, with no page live, counts them as
//!   lost, so that the next look is when there is as much to lose again. Each removal by this rule begins the look
//!   anew.
//! * *A cache that is full for the first time*: until then there is room and nothing to look at. Then all pages go, and
//!   trials begin anew; only those stay that have saved a load for each entry of the tail. From then on nothing is
//!   counted until an entry is evicted: a loop that fits needs no page, and a page would make it one that does not.
//! * *What removed pages leave behind*: unused entries that a page had brought which is no longer there are the first
//!   to go when room is needed, unless they have changed. The balance does not cover everything (see the guide,
//!   *Correlations in real traces*). `corr_on_share` is the share of look-ups made while there was a page.
//! * *Selective prefetching* follows the number of nodes, and where a changed number switches it, it stays so for long. So
//!   nodes are counted as the base would have them. One that holds only unused entries which a page brought is not
//!   counted. One that has left is, until the entries that left after its last one, less those of them that came back,
//!   would fill the memory that pages take and what the cache has free. It may still be switched a little earlier or
//!   later than in the base, or where the base just misses it.
//! * *Memory of the rule*, taken from `ftl.map_cache` as long as a page is live or may be tried: 4 bytes, a word of
//!   what may be lost (20 bits, in hundredths of a read, so at most 5,000) and of the number of pages tried (12 bits).
//!   While a page is live, it looks, or the cache has never been full: 4 more, the regular loads and the requests that
//!   they answered, a count of 2 bytes each, halved every 16,384 look-ups; without these bytes both begin at 0. While
//!   it looks: 10 more, `T` with 4 and three counts of 2. While a page is live: 10 more, what the memory has cost,
//!   what of it since the last reckoning (4 each), and what uses of the tail cost beyond loads (2); and with selective
//!   prefetching 4 for each node that may be counted after it has left, its number (3 bytes) and how many entries left between it and the one before (1): as many as a page's
//!   directory has room for keys of the cache, at most 8, until the last of them has gone. The account of a page is in its 16 bytes of the directory, where `regular`
//!   has its counts of hits and loads. `balance` among the parts of the controller's memory in the summary is the sum.
//!   Nothing is kept without a set, or once no page will be tried any more.
//! * **Adaptive removal as published**, `removal=regular`: after `min_loads` loads, a page is removed if its entries
//!   get fewer hits per load of the page than entries of the clean cache get per regular load, in the last
//!   `removal_window` look-ups.
//! * **Writes without reads** (`dei=shared`, ours, the default): changed entries stay among the others. A write that
//!   misses puts its entry into the cache, together with the entries that the rest of the request will need, just as a
//!   load would. The request overwrites these entries, so nothing is read. Only where selective prefetching would bring
//!   entries beyond the request, the load is made. So the cache holds the same entries as `tpftl`'s at every moment,
//!   and without a set the policy never reads or writes more of the map than `tpftl` on the counting backend. The read of
//!   the write-back shows where the old data lies. `writes_deferred` counts the loads saved, and those of translation
//!   pages that do not exist yet.
//! * **Many requests under way** (timed backend, `ftl.share_loads`): a load or a read of a correlated page that is on
//!   its way already is shared. Where a share `u` of the loads is read, one less saves `u²` reads: a page asked for at
//!   a rate `r`, whose loads take `t`, is read `r / (1 + r t)` times, so `u = 1 / (1 + r t)`, and `u²` is the
//!   derivative by `r`. What correlated pages save is reckoned at `u²` reads a load; `patience` shrinks with it, to 2
//!   at the least. Which loads are shared depends on when each request completes, and any change moves the reads of a
//!   run by up to a tenth of the share that is shared: a single program lets requests go apart that came together and
//!   shared their loads. So no page is tried where more than a tenth of the loads is shared, nor before 128 loads have
//!   shown that; a page that has not earned what it cost goes. Without a page the rule keeps no memory there, and
//!   forgets what it knew. And writes load as in `tpftl` (`writes_not_deferred`) while deferring them would save less
//!   of the reads than a tenth of the share that is shared. With `share_loads = false`, as on the drive `cpftl-sim`,
//!   nothing is shared and a set is on however many requests are under way.
//! * **Dirty entry index** (`dei=on` and `skew`, published): changed entries are kept in nodes by translation page,
//!   apart from the clean cache, up to `dirty_share` of the entries' bytes. The least recently used node is written
//!   back with one read and one program, and is removed. Its entries that were read since their write move to the clean
//!   cache (`after_write_back`). Prefetching takes an entry as cached in either place. With `skew`, a node of fewer
//!   than `second_chance` entries whose translation page is frequently updated moves to the front instead of being
//!   written back; it does so once, and again only after a further change.
//!
//! The steps of the published ablation: no set and `dei=off` (SP); a set with `directory=search,dei=off` (SP+CM or SP+CC, by the miner
//! of the set); `dei=off` (with the predictor); `dei=on` (DEI); `dei=skew` (DEI S); all with `removal=regular`.
//!
//! # Parameters
//! * `correlations` (file of `ftlab mine`, default none): the groups. LPNs beyond the drive are left out and counted.
//! * `pairs` (default none): further groups, written in the parameter itself, key first, as in `1-900/4-30-31`. They
//!   follow those of the file.
//! * `start`, `renew` (look-ups, default 0): when the pages are first written, and how often removed pages are written
//!   again; 0: never again.
//! * `online` (reads, default 0: never): the buffer's size in pages read, 4 bytes each; at least two windows. The
//!   author's emulator has 131072. `online_pages` (count, at least 1, default 293, as published for the lowest support): the most
//!   correlated pages of mined groups. The drive reserves room for them.
//! * `support`, `least`, `confidence`, `window`, `region`, `mass`, `region_pairs`: parameters of mining during the run,
//!   with the meaning and the defaults that they have in `ftlab mine` (0.001, 2, 0, 512, 4096, 0.9, 4096). `support` and
//!   `confidence` are shares from 0 to 1, `mass` one above 0; `window` is 2 to 65536 reads; the others are at least 1.
//! * `directory` (bytes, a share of `ftl.map_cache` or `search`; default 0.06): the largest size of the directory. It
//!   takes only what its live pages need; cached entries use the rest. A filter takes 1.8 bytes for an LPN, a cached
//!   entry 6 and more. The published size is 16 of 272 KiB, 0.059, which holds 9,100 LPNs at the default
//!   `false_positive`. On most real traces a larger directory costs more than it saves (see the guide, *Correlations in real
//!   traces*). `search` knows exactly which page holds which LPN, in memory that is not counted.
//! * `false_positive` (share, default 0.001): false positive rate of a filter whose page is full. It sets the size of
//!   all filters.
//! * `filter_bits` (bits up to 2^24, default 0): size of a filter; 0: the size follows from `false_positive`.
//! * `fit` (`pages` or `filters`, default `pages`): when the directory is too small, keep fewer pages, or all with smaller filters.
//!   The published sizes leave it open: 293 pages in 16 KiB have 40 bytes of filter each.
//! * `page_lpns` (LPNs, default 0): most LPNs in a correlated page, from 2 to what a page has room for, 512 in 4 KiB. 0: as
//!   many as that or, if the directory has no room for even one filter of that size, as many as it has room for. With a
//!   smaller page, a write removes fewer LPNs.
//! * `bring` (`groups` or `keyed`, default `groups`): what a load brings beside the LPN: all its groups there, or the
//!   group whose key it is. The source calls an LPN the key of its group, and says that a page that holds it brings
//!   "the correlated entries".
//! * `load_limit` (share, above 0, default 0.25): the largest share of the clean cache that one load may fill, members
//!   with the most support first, and one member in any case. Assumed: at the published sizes a load fills less than a
//!   tenth, but it would flood a small cache.
//! * `write_check` (`load` or `directory`, default `load`).
//! * `removal` (`balance`, `regular`, `off` or hits per load; default `balance`): the rule. `balance` is ours, `regular` and a fixed number of
//!   hits per load are published. `patience` (reads, above 0, default 8): of `balance`. `removal_floor` (hits per load, default 0.1): the
//!   least that the threshold of `regular` may be. `min_loads` (count, default 16), `removal_window` (look-ups, default 65536). Assumed.
//! * `dei` (`off`, `shared`, `on` or `skew`, default `shared`): how changed entries are kept: as in `tpftl` (`off`);
//!   the same without the reads that writes can avoid (`shared`); in an index of their own (`on`); in an index that
//!   spares frequently updated pages (`skew`, published). With caches of few entries, an index mostly saves more than
//!   `shared` where most requests are writes. Where most are reads, it needs up to three times what `tpftl` needs
//!   (docs/measured.md). The parameters from here to `second_chance` belong to the index.
//! * `dirty_share` (share, above 0 and below 1, default 0.4): assumed. The clean cache uses what changed entries leave
//!   free. Changed entries may take more than their share while `margin` of the entries' bytes is unused. On 44
//!   excerpts of real traces with caches of 1, 4 and 16 % of the map, without a set, 0.3, 0.4, 0.5 and 0.8 need medians
//!   of 31, 33, 33 and 31 % fewer reads and writes of the map than `tpftl`; In one case 0.5 needs 5 % more and in one
//!   0.8 needs 76 % more, where 0.3 and 0.4 need fewer. 0.8 agrees better with the source's TPC-C.
//! * `margin` (share, default 0.0625, at most 1): changed entries beyond their share are written back when a load finds
//!   less than half of the margin unused; 1: always. Where all of the map but this margin is in memory, changed entries
//!   are written back once they exceed their share; `tpftl` never does so there.
//! * `after_write_back` (`room`, `read`, `clean` or `drop`, default `room`): which entries of a node go to the clean
//!   cache after its write-back: those read since their write, and all while `margin` is unused (`room`); those read
//!   (`read`); all (`clean`); none (`drop`). Where the whole map is in memory, collections still write pages back, for
//!   entries that no request has asked for yet. `read` is nearest to the source, which removes changed entries to leave
//!   room for others, because few are ever read again (8 to 17 % of the writes of Financial). On eight runs of excerpts
//!   of real traces `drop` needs from 7 % fewer to 5 % more translation reads than `read`, `clean` from 1 to 16 % more.
//!   `clean` is better only where the same addresses are read and written all the time.
//! * `second_chance` (entries, default 16), `frequent` (default 0.05): below 1 the share of the translation pages that
//!   counts as frequently updated, otherwise the number of updates that makes a page one of them. Assumed. Updates are
//!   counted during the run, in a byte each.
//! * `write_miss` (`defer` or `load`, default `defer`): what a write does whose entry is in neither structure, unless
//!   `dei=off`. `load` reads its translation page, as `tpftl` does. `defer`, as in the published loop, reads nothing
//!   but correlated pages, and the read of the write-back shows where the old data lies. A deferred write is no hit,
//!   though nothing is read for it. `writes_deferred` is the number of deferred writes, and `map_cache.unread_ratio`
//!   counts them with the hits.
//! * `own_blocks` (bool, default false): correlated pages fill reclaim units of their own, apart from translation
//!   pages; a page is removed as a whole, so such a unit is soon empty. The drive needs one more free unit for each
//!   pool and one more open unit for each lane.
//! * `request_prefetch`, `selective_prefetch`, `clean_first`, `batch`, `threshold`, `order`, `entry_bytes`, `node_bytes`, `serial`: as for
//!   `tpftl`. Entries and nodes of the dirty entry index take as many bytes.
//!
//! # Not modelled
//! Unmapped entries with `dei=shared`: a real drive that reads nothing cannot know which entries of a request are
//! unmapped and so not prefetched. The reads of translation pages that filling correlated pages takes: the simulator
//! has their entries. The time of mining during the run: the source mines when the drive is idle. The memory of mining,
//! that is the buffer and the miner's own (`mining_peak_bytes`), is reported and not taken from `ftl.map_cache`: the
//! source has memory beside it. Separate translation blocks by update frequency. Updates counted before the run. Old
//! data of a deferred write that counts as valid until the write-back: here its place is known at once. The times of last
//! use, from which the tail of the cache is found, and marks of entries (changed, brought along, unused): as in `tpftl` they
//! are not counted. Which page brought an unused entry: a drive asks the directory's filters again, the simulator knows it.
//! The five counts of loads that are shared, 2 bytes each, which are there without a set as well.
//!
//! # Errors
//! A value out of range (of mining, too, where nothing is mined), a set mined in another unit than the drive's, a group of
//! `pairs` of one LPN only or with an LPN twice, an LPN of `pairs` that has more than 32 bits, a directory as large as the cache or
//! without room for one page, a buffer of less than two windows, or a cache that does not hold two nodes with an entry each
//! in its clean part and one in its dirty part is refused.
//!
//! # Cost
//! A miss asks all filters at once: a few words for each 64 pages. Each change of an entry does the same. Mining takes
//! 0.2 to 10 microseconds for each read in the buffer, depending on how often the same pages occur together.
//!
//! # Source
//! Zhou, PhD thesis, University of Central Florida 2018, chapter 3. What is marked as assumed is not given there. Nor
//! are the layout of a page and which of an LPN's groups a load brings.

mod balance;
mod changed;
mod correlated;
mod directory;
mod dirty;
mod figures;
mod filters;
mod looking;
mod online;
mod params;
mod plan;
mod preloading;
mod quality;
mod set;
mod sharing;
#[cfg(test)]
mod tests;
mod updates;

use ftlab_core::{Error, PolicySpec, Result, Slot};

use super::ghost::{self, Ghost};
use super::grouped::{CORRELATED, CORRELATED_USED, Grouped, PREFETCHED};
use super::lingering::{self, Lingering};
use super::paging::{self, Paging};
use super::tail::{self, Tail};
use super::{CacheCounts, Charge, HostMemory, MapCause, MappingPolicy, RecordView, Setup, Table, Why, allocated};
use crate::frontier::Frontier;
use crate::owner::Owner;
use balance::Balance;
use correlated::Pages;
use directory::Directory;
use dirty::{DirtyIndex, Left};
use figures::{Because, Figures};
use online::Online;
pub use params::Params;
use params::{Dei, Removal, RemovalKind, WriteMiss};
use plan::{LaidOut, Plan};
use quality::Quality;
use set::Given;
use sharing::Sharing;
use updates::UpdateTable;

pub fn new(mut params: Params, setup: &mut Setup) -> Result<Box<dyn MappingPolicy>> {
    params.entry_bytes = params.entry_bytes.saturating_add(setup.beside_slot);
    params.check()?;
    let given = Given::new(&params.correlations, &params.pairs, setup)?;
    let plan = params.plan(setup)?;
    let online = params.online(setup)?;
    let LaidOut {
        pages,
        directory,
        left_out,
        bytes: for_pages,
    } = plan.lay_out(&given.groups)?;
    // Sets that are mined later vary in size: there must be room for the directory's whole budget.
    let (own_pages, for_directory) = match online {
        Some(_) => plan
            .lay_out(&[vec![0, 1]])
            .map(|_| (plan.most_pages(), plan.budget.unwrap_or(0)))?,
        None => (pages.len(), for_pages),
    };
    let paging = setup.paging();
    let updates = (params.dei == Dei::Skew).then(|| UpdateTable::new(paging.pages(), params.frequent));
    let for_updates = updates.as_ref().map_or(0, UpdateTable::bytes);
    let judged = params.removal == Removal::Named(RemovalKind::Balance);
    let for_ghost = match judged {
        true => ghost::bytes(params.keys_in(for_directory)),
        false => 0,
    };
    let for_rule = match judged && (pages.len() > 0 || online.is_some()) {
        true => {
            let kept = match params.selective_prefetch {
                true => lingering::bytes(params.keys_in(for_directory)),
                false => 0,
            };
            balance::BYTES + balance::BYTES_OF_WORTH + balance::BYTES_OF_RENT + tail::BYTES + kept
        }
        false => 0,
    };
    let beside = for_directory + for_ghost + for_rule + for_updates;
    let budget = setup.cache_bytes.saturating_sub(beside);
    let node = u64::from(params.entry_bytes) + u64::from(params.node_bytes);
    let limit = match params.dei {
        Dei::Off | Dei::Shared => 0,
        Dei::On | Dei::Skew => (params.dirty_share * budget as f64) as u64,
    };
    if budget - limit < 2 * node || (limit < node && matches!(params.dei, Dei::On | Dei::Skew)) {
        return Err(Error::input(format!(
            "ftl.map_cache = {} bytes, {beside} of them for the directory and the update counts, {limit} for changed entries: mapping \
             policy `cpftl` expects {} for the others and {node} for changed ones",
            setup.cache_bytes,
            2 * node
        )));
    }
    let follows = params.removal == Removal::Named(RemovalKind::Regular);
    let floor = match params.removal {
        Removal::Below(below) => below,
        Removal::Named(RemovalKind::Regular) => params.removal_floor,
        Removal::Named(RemovalKind::Balance | RemovalKind::Off) => 0.0,
    };
    let budget_alone = setup.cache_bytes - for_updates;
    let mut cache = Grouped::new(params.base(), paging, budget_alone, setup.checked);
    cache.ghost = judged.then(Ghost::default);
    cache.tail = (judged && (pages.len() > 0 || online.is_some())).then(Tail::default);
    cache.lingering = (cache.tail.is_some() && params.selective_prefetch).then(Lingering::default);
    let mut policy = Cpftl {
        cache,
        taken: 0.0,
        tails: 0.0,
        filled: false,
        filled_after: 0,
        judges: true,
        rests: false,
        has_orphans: false,
        lingering_bytes: 0,
        sharing: Sharing::default(),
        balance: judged.then(|| Balance::new(params.patience)),
        dirty: matches!(params.dei, Dei::On | Dei::Skew).then(|| {
            let most = budget - 2 * node;
            DirtyIndex::new(
                paging,
                (limit, most),
                params.entry_bytes,
                params.node_bytes,
                setup.checked,
            )
        }),
        quality: Quality::new(params.min_loads.max(1), floor, follows, params.removal_window),
        due: (pages.len() > 0).then_some(params.start),
        probed: vec![0; own_pages],
        origins: Vec::new(),
        first_origin: 0,
        online,
        plan,
        calls: 0,
        found: Vec::new(),
        group: Vec::new(),
        leaving: Vec::new(),
        look_ups: 0,
        admitted: 0,
        lpns_left_out: given.left_out,
        pages_left_out: left_out,
        counts: CacheCounts::default(),
        figures: Figures::default(),
        loads: 0,
        regular_hits: 0,
        params,
        paging,
        budget: budget_alone,
        updates,
        pages,
        directory,
    };
    policy.share(&mut Vec::new());
    Ok(Box::new(policy))
}

/// Frontiers of its pages.
pub fn frontiers(policy: &PolicySpec) -> Frontier {
    1 + Frontier::from(policy.params.get("own_blocks") == Some(&true.into()))
}

struct Cpftl {
    params: Params,
    paging: Paging,
    /// Bytes for entries, clean and dirty, and the directory.
    budget: u64,
    cache: Grouped,
    dirty: Option<DirtyIndex>,
    updates: Option<UpdateTable>,
    pages: Pages,
    directory: Directory,
    quality: Quality,
    sharing: Sharing,
    /// Share of `budget` that correlated pages take: their directory, and entries that they brought and nothing has used.
    taken: f64,
    /// The same memory, in sizes of the tail.
    tails: f64,
    /// Whether the cache has been full.
    filled: bool,
    /// Evictions until then.
    filled_after: u64,
    /// Of the rule `balance`; and whether it keeps accounts now, which takes memory.
    balance: Option<Balance>,
    judges: bool,
    /// Or waits with them until the cache gives something up.
    rests: bool,
    /// Of the rule `balance`: a page has gone since entries without one were looked for.
    has_orphans: bool,
    /// Bytes of the memory for nodes that linger.
    lingering_bytes: u64,
    /// Pages, the first ones, that have been tried since they were due.
    admitted: u32,
    /// From which look-up on pages that are not live are to be written.
    due: Option<u64>,
    plan: Plan,
    online: Option<Online>,
    /// By node of the cache, for entries that were brought for a correlation: the number of the page that did. Page 0 has
    /// `first_origin`; entries that pages of earlier sets brought have other numbers.
    origins: Vec<u32>,
    first_origin: u32,
    /// The last collection that read each page, as many as there may be, and the number of collections.
    probed: Vec<u64>,
    calls: u64,
    /// For the time of a look-up.
    found: Vec<u32>,
    group: Vec<(u32, u32)>,
    leaving: Vec<Left>,
    /// Since the drive was new.
    look_ups: u64,
    lpns_left_out: u64,
    pages_left_out: u64,
    counts: CacheCounts,
    figures: Figures,
    /// Regular loads, and hits on entries of the clean cache that these brought, since the drive was new; the rule of removal
    /// compares them.
    loads: u64,
    regular_hits: u64,
}

impl Cpftl {
    /// A look-up of an entry that is cached. False if it is not.
    #[inline]
    fn hit(&mut self, key: u32, why: Why) -> bool {
        if let Some(dirty) = &mut self.dirty
            && let Some(id) = dirty.find(key)
        {
            dirty.hit(key, id, why == Why::HostRead, self.cache.clock());
            self.figures.hits_dirty += 1;
            return true;
        }
        let Some(id) = self.cache.find(key) else {
            return false;
        };
        let was_dirty = self.cache.is_dirty(key);
        let tag = self.cache.hit(key, id);
        if why == Why::HostRead && tag != CORRELATED && self.judges && self.pages.live() > 0 {
            self.pay_for_tail();
        }
        match tag {
            CORRELATED | CORRELATED_USED => {
                self.figures.hits_correlated += 1;
                self.figures.preloaded_used += u64::from(tag == CORRELATED);
                if let Some(page) = self.origin(id) {
                    let page = self.pages.page_mut(page);
                    page.hits += u32::from(page.live);
                }
            }
            _ => {
                self.regular_hits += 1;
                match was_dirty {
                    true => self.figures.hits_dirty += 1,
                    false => self.figures.hits_regular += 1,
                }
            }
        }
        if why == Why::HostRead && (tag == CORRELATED || tag == PREFETCHED) && self.judges {
            let page = (tag == CORRELATED).then(|| self.origin(id));
            // What a page of an earlier set brought is nobody's merit.
            if page != Some(None)
                && let Some(balance) = &mut self.balance
            {
                balance.used(self.paging.page_of(key), page.flatten());
            }
        }
        true
    }

    /// Correlated pages pay for an entry that has just been used, if it is of the tail.
    fn pay_for_tail(&mut self) {
        if self.cache.tail.as_ref().is_some_and(Tail::is_used)
            && let Some(balance) = &mut self.balance
        {
            balance.tail_used(self.tails, self.pages.live());
        }
    }

    /// The page that brought an entry of the cache, if it is of the set there is.
    fn origin(&self, id: u32) -> Option<u32> {
        let page = self.origins[id as usize].wrapping_sub(self.first_origin);
        ((page as usize) < self.pages.len()).then_some(page)
    }

    fn load(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.look_for_room(key, record, charges);
        if let Some(balance) = self.balance.as_mut().filter(|_| self.judges) {
            let back = self.cache.ghost.as_mut().and_then(|ghost| ghost.take(key));
            if let (Some(lingering), Some(back)) = (&mut self.cache.lingering, back) {
                lingering.came_back(back);
            }
            let still_there = back.map_or(0.0, |back| back.keys);
            balance.loaded(self.paging.page_of(key), still_there, self.taken, self.pages.live());
        }
        self.give_back(charges);
        let dirty = &self.dirty;
        let is_dirty = |key| dirty.as_ref().is_some_and(|dirty| dirty.find(key).is_some());
        self.cache.miss_beside(key, record, charges, is_dirty);
        self.ask(key, charges);
    }

    fn ask(&mut self, key: u32, charges: &mut Vec<Charge>) {
        self.loads += 1;
        self.sharing.ask();
        if let Some(balance) = &mut self.balance {
            balance.set_read(self.sharing.read());
        }
        paging::load(self.paging.page_of(key), charges);
    }

    /// A write misses where changed entries share the cache: its entry, and those that the rest of the request will need, enter as
    /// if they were loaded. The request overwrites them, so nothing is read, unless more than these is loaded ahead, or so few loads
    /// could be saved that it is better to change nothing.
    fn enter(&mut self, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.look_for_room(key, record, charges);
        if self.cache.miss(key, record, charges) {
            self.ask(key, charges);
        } else if !self.sharing.defers() {
            self.figures.not_deferred += 1;
            self.ask(key, charges);
        } else {
            self.counts.deferred += 1;
            if let Some(balance) = self.balance.as_mut().filter(|_| self.judges) {
                balance.skipped();
            }
        }
    }

    /// Clean entries get what changed ones and the directory leave.
    fn share(&mut self, charges: &mut Vec<Charge>) {
        self.decide();
        let dirty = self.dirty.as_ref().map_or(0, DirtyIndex::used);
        let directory = self.directory.bytes(self.pages.live());
        if let Some(lingering) = &mut self.cache.lingering {
            lingering.lend(self.params.keys_in(directory));
        }
        self.lingering_bytes = self.cache.lingering.as_ref().map_or(0, Lingering::bytes);
        self.cache.budget = self.budget - directory - self.ghost_bytes(directory) - self.rule_bytes() - dirty;
        self.watch();
        if self.cache.used > self.cache.budget {
            self.discard_orphans();
        }
        self.cache.shrink(charges);
    }

    /// Watches what the cache would still hold if it had the memory that correlated pages take: their directory, the keys kept
    /// beside it, and entries that they brought and nothing has used yet. And the entries that one page more would push out.
    fn watch(&mut self) {
        let directory = self.directory.bytes(self.pages.live());
        let unused = u64::from(self.cache.unused) * u64::from(self.params.entry_bytes);
        let rule = if directory > 0 { self.rule_bytes() } else { 0 };
        let taken = directory + self.ghost_bytes(directory) + rule + unused;
        self.taken = taken as f64 / self.budget.max(1) as f64;
        let alike = taken * u64::from(self.cache.entries()) / self.cache.used.max(1);
        if let Some(ghost) = &mut self.cache.ghost {
            ghost.keep(alike, self.params.keys_in(directory));
        }
        if let Some(lingering) = &mut self.cache.lingering {
            lingering.keep(if directory > 0 {
                taken
            } else {
                taken + self.lingering_bytes
            });
        }
        let one = self.directory.bytes(1);
        let one = one + self.ghost_bytes(one) + balance::BYTES_OF_RENT.min(one);
        let alike = one * u64::from(self.cache.entries()) / self.cache.used.max(1);
        if let Some(tail) = &mut self.cache.tail {
            tail.keep(alike as u32);
            self.tails = taken as f64 / one.max(1) as f64;
        }
    }

    /// Bytes of the keys that the rule `balance` keeps beside a directory of so many.
    fn ghost_bytes(&self, directory: u64) -> u64 {
        match self.balance {
            Some(_) => ghost::bytes(self.params.keys_in(directory)),
            None => 0,
        }
    }

    /// Bytes that the rule `balance` keeps beside the directory.
    fn rule_bytes(&self) -> u64 {
        let lingering = self.lingering_bytes;
        if !self.judges {
            return lingering + if self.rests { balance::BYTES } else { 0 };
        }
        let (live, looks) = (
            self.pages.live() > 0,
            self.cache.tail.as_ref().is_some_and(Tail::is_looking),
        );
        let parts = [
            (live || looks || !self.filled, balance::BYTES_OF_WORTH),
            (live, balance::BYTES_OF_RENT),
            (looks, tail::BYTES),
        ];
        lingering + balance::BYTES + parts.iter().map(|&(kept, bytes)| u64::from(kept) * bytes).sum::<u64>()
    }

    /// Whether enough is known to try pages on their merits; without the rule `balance` they are not tried but written.
    fn may_try(&self) -> bool {
        self.balance.is_none() || (self.judges && self.sharing.is_known() && self.leaves_behind().is_some())
    }

    /// Whether the entry is cached, clean or dirty.
    fn holds(&self, key: u32) -> bool {
        let is_dirty = self.dirty.as_ref().is_some_and(|dirty| dirty.find(key).is_some());
        is_dirty || self.cache.find(key).is_some()
    }
}

impl MappingPolicy for Cpftl {
    fn report(&self) -> Vec<(&'static str, f64)> {
        self.figures()
    }

    fn tables(&self) -> Vec<Table> {
        self.paging.tables()
    }

    fn look_up(&mut self, _: u8, first: u32, count: u32, why: Why, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        if let Some(balance) = &mut self.balance {
            balance.begin();
        }
        for key in first..first + count {
            self.counts.lookups += 1;
            self.look_ups += 1;
            self.cache.tick();
            self.figures.on += u64::from(self.pages.live() > 0);
            if why != Why::HostRead {
                self.invalidate(key, Because::Write, charges);
            }
            if self.hit(key, why) {
                self.counts.hits += 1;
            } else if why == Why::HostRead {
                if !self.search(key, record, charges) {
                    self.load(key, record, charges);
                }
            } else if self.params.write_miss == WriteMiss::Load || self.params.dei == Dei::Off {
                self.load(key, record, charges);
            } else if self.dirty.is_none() {
                self.enter(key, record, charges);
            } else {
                self.counts.deferred += 1;
            }
        }
        self.quality.observe(self.look_ups, self.loads, self.regular_hits);
        if why == Why::HostRead && self.online.is_some() {
            for key in first..first + count {
                if let Some(groups) = self.online.as_mut().and_then(|online| online.read(key)) {
                    self.replace(&groups, charges);
                }
            }
        }
        // With the answer to a read, so that no entry of the answer is about to change.
        if why == Why::HostRead
            && let Some(balance) = self.balance.as_mut().filter(|_| self.judges)
            && balance.is_due(self.look_ups)
        {
            self.reckon(record, charges);
        }
        if why == Why::HostRead && self.due.is_some_and(|due| self.look_ups >= due) && self.may_try() {
            self.write_pages(record, charges);
        }
    }

    fn loads_take_time(&mut self) {
        self.sharing.may_share();
    }

    fn shared(&mut self, charge: Charge) {
        match (charge, &mut self.balance) {
            (Charge::Probe { page }, Some(balance)) => balance.read_is_shared(page),
            (
                Charge::Load {
                    cause: MapCause::MissLoad,
                    ..
                },
                _,
            ) => self.sharing.share(),
            _ => {}
        }
    }

    fn prefetch(&self, key: u32) {
        self.cache.prefetch(key);
        if let Some(dirty) = &self.dirty {
            dirty.prefetch(key);
        }
    }

    fn updated(&mut self, _: u8, key: u32, record: RecordView<'_>, charges: &mut Vec<Charge>) {
        // Nearly always done by the look-up; a page may have been written since.
        if self.pages.with(key).next().is_some() {
            self.invalidate(key, Because::Write, charges);
        }
        if let Some(updates) = &mut self.updates {
            updates.count(self.paging.page_of(key));
        }
        if self.dirty.is_none() {
            return self.cache.updated(key, record, charges);
        }
        self.cache.set_beside(self.paging.page_of(key), true);
        if let Some(id) = self.cache.find(key) {
            self.cache.discard(key, id);
        }
        self.put_dirty(key, record.entries[key as usize], charges);
    }

    fn moved(&mut self, _: u8, keys: &[u32], record: RecordView<'_>, charges: &mut Vec<Charge>) {
        self.calls += 1;
        for &key in keys {
            self.invalidate(key, Because::Collection, charges);
        }
        match self.dirty.is_some() {
            true => self.moved_beside_dirty(keys, record, charges),
            false => self.cache.moved(keys, record, charges),
        }
    }

    fn frontiers(&self) -> Frontier {
        1 + Frontier::from(self.params.own_blocks)
    }

    fn frontier_of(&self, page: Owner) -> Frontier {
        Frontier::from(self.params.own_blocks && matches!(page, Owner::Policy(_)))
    }

    fn own_pages(&self) -> u32 {
        self.probed.len() as u32
    }

    fn is_live(&self, page: u32) -> bool {
        (page as usize) < self.pages.len() && self.pages.page(page).live
    }

    fn page_moved(&mut self, owner: Owner, _: Slot) {
        self.figures.moved += u64::from(matches!(owner, Owner::Policy(_)));
    }

    fn cached(&self, table: u8, key: u32) -> Option<(u32, bool)> {
        if table != 0 {
            return None;
        }
        if let Some(dirty) = &self.dirty
            && dirty.find(key).is_some()
        {
            return Some((dirty.entry(key)?, true));
        }
        self.cache.cached(key)
    }

    fn is_cached(&self, key: u32) -> bool {
        self.dirty.as_ref().is_some_and(|dirty| dirty.find(key).is_some()) || self.cache.find(key).is_some()
    }

    fn counts(&self) -> CacheCounts {
        self.counts
    }

    fn reset_counts(&mut self) {
        self.counts = CacheCounts::default();
        self.cache.reset_counts();
        self.figures = Figures {
            live_before: u64::from(self.pages.live()),
            loads_before: self.loads,
            mining_runs_before: self.mining_runs(),
            ..Figures::default()
        };
    }

    fn forget(&mut self) {
        self.cache.clear();
        self.dirty.iter_mut().for_each(DirtyIndex::clear);
        self.updates.iter_mut().for_each(UpdateTable::clear);
        self.balance = self.balance.is_some().then(|| Balance::new(self.params.patience));
        self.pages.remove_all();
        self.directory.remove_all();
        if let Some(online) = &mut self.online {
            online.forget();
            // A set that was given can be read again; one that was mined is lost.
            if online.figures.runs > 0 {
                (self.pages, self.directory) = (Pages::default(), Directory::default());
            }
        }
        self.admitted = 0;
        self.filled = false;
        self.has_orphans = false;
        self.origins.clear();
        self.due = (self.pages.len() > 0).then_some(self.params.start);
        self.share(&mut Vec::new());
    }

    fn memory(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("map_cache", self.cache.used),
            ("dirty_entry_index", self.dirty.as_ref().map_or(0, DirtyIndex::used)),
            ("prediction_directory", self.directory.bytes(self.pages.live())),
            (
                "evicted_keys",
                self.ghost_bytes(self.directory.bytes(self.pages.live())),
            ),
            ("balance", self.rule_bytes()),
            ("mining_buffer", self.online.as_ref().map_or(0, Online::bytes)),
            ("update_counts", self.updates.as_ref().map_or(0, UpdateTable::bytes)),
            ("gtd", self.paging.directory_bytes()),
        ]
    }

    fn host_memory(&self) -> HostMemory {
        let cache = self.cache.host_memory();
        let dirty = self.dirty.as_ref();
        HostMemory {
            entries: cache.entries + u64::from(dirty.map_or(0, DirtyIndex::len)),
            bytes: cache.bytes + allocated(&self.origins) + dirty.map_or(0, DirtyIndex::bytes),
        }
    }
}
