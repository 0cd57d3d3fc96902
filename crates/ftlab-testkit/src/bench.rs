//! A drive, its flash and the reference, side by side.

use std::collections::BTreeMap;

use ftlab_core::request::together;
use ftlab_core::{IoContext, Lpn, OpKind, RuId, Slot, Stream, flags};
use ftlab_ftl::parts::NOTHING;
use ftlab_ftl::record::{Entry, Target};
use ftlab_ftl::verify::content_stamp;
use ftlab_ftl::{Admitted, Backend, Ftl, HostRequest, Overrides, Ticket};

use crate::case::Case;
use crate::double::Double;
use crate::operation::Operation;
use crate::reference::Reference;

const QUEUE_DEPTH: usize = 32;

/// A request whose ticket has not completed.
#[derive(Clone, Debug)]
struct Unacknowledged {
    ticket: Ticket,
    request: u64,
    /// LPNs that it makes durable when it completes; `None`: all that came before.
    durable: Option<Vec<u32>>,
}

/// What the quarters of a unit hold that is written with one of a few contents; neighbours share half of them.
pub fn quarters_of(content: u8) -> [u64; 4] {
    let content = u64::from(content);
    [content * 2, content * 2 + 1, content * 2 + 2, 7]
}

/// A write of a whole unit that holds `content`.
pub fn write_content<B: Backend>(ftl: &mut Ftl<B>, lpn: u32, content: u8, ticket: Ticket) {
    let context = IoContext {
        contents: &quarters_of(content),
        content_bytes: ftl.layout.geometry.unit_bytes / 4,
        ..IoContext::NONE
    };
    let request = HostRequest {
        context: &context,
        ..HostRequest::whole(OpKind::Write, Lpn(lpn), 1)
    };
    ftl.admit(&request, ticket);
}

pub struct Bench<B: Double> {
    pub ftl: Ftl<B>,
    pub reference: Reference,
    pub cuts: u32,
    waiting: Vec<Unacknowledged>,
    under_way: Vec<Ticket>,
    requests: u64,
    /// Stamp of the last unit written, as the FTL counts them.
    stamp: u32,
    /// The FTL may give contents stamps of their own.
    stamps_contents: bool,
    random: Stream,
    contents: Vec<u64>,
    /// What the quarters of each LPN hold, as far as it is known.
    quarters: BTreeMap<u32, [Option<u64>; 4]>,
    /// The quarters of each content that has been written, by its stamp.
    pub written: BTreeMap<u32, [u64; 4]>,
    skip: u32,
    checked: u32,
}

impl<B: Double> Bench<B> {
    pub fn new(case: &Case, given: Overrides) -> Self {
        let deduplicates = match &given.roles {
            Some(roles) => roles.dedup.is_some(),
            None => case.config.dedup.name != "none",
        };
        let ftl = case.build(given).unwrap_or_else(|fault| panic!("{fault}: {case:?}"));
        let backend = B::new(&case.layout, case.config.seed);
        let mut ftl = ftl.with_backend(backend);
        ftl.start_idle_work();
        Bench {
            ftl,
            reference: Reference::new(case.config.logical_units),
            cuts: 0,
            waiting: Vec::new(),
            under_way: Vec::new(),
            requests: 0,
            stamp: 0,
            stamps_contents: deduplicates,
            random: Stream::new(case.config.seed, "bench"),
            contents: Vec::new(),
            quarters: BTreeMap::new(),
            written: BTreeMap::new(),
            skip: case.layout.geometry.unit_bytes / 4,
            checked: 0,
        }
    }

    /// Carries out one operation and checks everything that can be checked quickly.
    pub fn apply(&mut self, operation: &Operation) {
        let units = self.reference.len();
        match *operation {
            Operation::Write {
                first,
                units: count,
                head,
                tail,
                fua,
                stream,
                content,
            } => {
                let count = count.min(units);
                let first = first.min(units - count);
                self.write(first, count, head, tail, fua, stream, content);
            }
            Operation::Read {
                first,
                units: count,
                head,
                tail,
            } => {
                let count = count.min(units);
                self.read(first.min(units - count), count, head, tail);
            }
            Operation::Trim {
                first,
                units: count,
                head,
                tail,
            } => {
                let count = count.min(units);
                self.trim(first.min(units - count), count, head, tail);
            }
            Operation::Flush => self.flush(),
            Operation::Run(steps) => self.run(steps),
            Operation::Settle => self.settle(),
            Operation::PowerCut => {
                if self.ftl.config.checkpoint_units > 0 {
                    self.power_cut();
                }
            }
        }
        self.notices();
        self.acknowledge();
        self.check_reads();
        self.checked += 1;
        if self.checked.is_multiple_of(4) || matches!(operation, Operation::PowerCut) {
            self.check();
        }
    }

    /// Every invariant.
    pub fn check(&self) {
        if let Err(fault) = self.ftl.check() {
            panic!("{fault}");
        }
        self.check_programs();
        self.check_flash();
        self.check_wear();
    }

    fn request(&self, op: OpKind, first: u32, units: u32, head: bool, tail: bool) -> HostRequest<'static> {
        HostRequest {
            op,
            first: Lpn(first),
            units,
            head_skip: u32::from(head) * self.skip,
            tail_skip: u32::from(tail) * self.skip,
            context: &IoContext::NONE,
        }
    }

    /// At most [`QUEUE_DEPTH`] requests are under way: before one more is admitted, others must complete.
    fn admit(&mut self, request: &HostRequest<'_>) -> (Ticket, Admitted) {
        loop {
            let backend = &self.ftl.backend;
            self.under_way.retain(|&ticket| !backend.is_acknowledged(ticket));
            if self.under_way.len() < QUEUE_DEPTH {
                break;
            }
            let progress = self.ftl.backend.run(1);
            assert!(progress, "requests that never complete: {:?}", self.under_way);
            self.notices();
        }
        self.acknowledge();
        self.requests += 1;
        let ticket = self.ftl.backend.open(self.requests);
        self.under_way.push(ticket);
        let admitted = self.ftl.admit(request, ticket);
        self.ftl.backend.seal(ticket);
        (ticket, admitted)
    }

    /// A read waits for every page that holds some of it.
    fn read(&mut self, first: u32, units: u32, head: bool, tail: bool) {
        let request = self.request(OpKind::Read, first, units, head, tail);
        let (ticket, _) = self.admit(&request);
        let Some(read) = self.ftl.backend.pages_read(ticket) else {
            return;
        };
        // An oracle reads whatever lies on the least loaded die.
        if self.ftl.config.buffer.policy.name != "none" || self.ftl.reads_anywhere() {
            return;
        }
        let assembling = self.assembling();
        for lpn in (first..first + units).map(Lpn) {
            if let Target::Slot(slot) = self.ftl.record.entry(lpn).target() {
                let page = self.ftl.layout.page_of(slot);
                assert!(
                    read.contains(&page) || assembling.contains(&page),
                    "{lpn:?} lies in page {page}, but its reader waits for the pages {read:?} only"
                );
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one operation")]
    fn write(&mut self, first: u32, units: u32, head: bool, tail: bool, fua: bool, stream: u16, content: u8) {
        let contents = std::mem::take(&mut self.contents);
        let mut contents = contents;
        contents.clear();
        if self.stamps_contents {
            contents.extend((0..units).flat_map(|i| quarters_of(content + (i % 3) as u8)));
        }
        let context = IoContext {
            flags: if fua { flags::FUA } else { 0 },
            stream,
            // Some contexts come often, one is unknown (0).
            pc: u64::from(stream) * u64::from(content % 3),
            contents: &contents,
            content_bytes: self.ftl.layout.geometry.unit_bytes / 4,
            ..IoContext::NONE
        };
        let request = HostRequest {
            context: &context,
            ..self.request(OpKind::Write, first, units, head, tail)
        };
        let worn_out = self.ftl.end_of_life;
        let lpns: Vec<u32> = (first..first + units).collect();
        let known = self.known_contents(&lpns, &contents, head, tail);
        let hits = self.ftl.counts.dedup_hits;
        let (ticket, admitted) = self.admit(&request);
        let hit = self.ftl.counts.dedup_hits > hits;
        self.contents = contents;
        if worn_out {
            return;
        }
        for (&lpn, content) in lpns.iter().zip(known) {
            let stamp = self.ftl.stamp(Lpn(lpn));
            if admitted == Admitted::Done {
                self.stamp += 1;
                let written = content.map_or(self.stamp, content_stamp);
                assert!(stamp == written, "LPN {lpn} reads {stamp} after the write of {written}");
            }
            self.reference.changed(lpn, stamp, self.requests);
        }
        if admitted == Admitted::EndOfLife {
            assert!(
                self.ftl.config.erase_limit.is_some() || self.journal_has_no_bound(),
                "a drive that does not wear out is at its end of life: {}",
                self.show_units()
            );
            return;
        }
        if !self.has_volatile_buffer() || fua {
            // What a unit shares or consists of is said by the journal, which a write past the buffer waits for if it is FUA.
            let by_journal = |lpn: u32| match self.ftl.record.entry(Lpn(lpn)).target() {
                Target::Unmapped | Target::Slot(_) => false,
                Target::Vpn(_) => hit,
                Target::Chunks(_) => true,
            };
            let (lazy, durable) = lpns.into_iter().partition(|&lpn| !fua && by_journal(lpn));
            for lpn in Vec::into_iter(lazy) {
                self.reference.lazy(lpn, self.requests);
            }
            self.waiting.push(Unacknowledged {
                ticket,
                request: self.requests,
                durable: Some(durable),
            });
        }
    }

    /// Contents of the units of a write of quarters with these contents, the first and last of which may be missing.
    fn known_contents(&mut self, lpns: &[u32], contents: &[u64], head: bool, tail: bool) -> Vec<Option<u64>> {
        if !self.stamps_contents {
            return vec![None; lpns.len()];
        }
        let mut given = contents.iter();
        let mut known = Vec::new();
        for (step, &lpn) in lpns.iter().enumerate() {
            if self.ftl.is_lost(Lpn(lpn)) {
                self.quarters.insert(lpn, [None; 4]);
            }
            let holds_nothing = self.ftl.stamp(Lpn(lpn)) == 0;
            let before = if holds_nothing { Some(NOTHING) } else { None };
            let quarters = self.quarters.entry(lpn).or_insert([before; 4]);
            for (number, quarter) in quarters.iter_mut().enumerate() {
                let is_missing = (head && step == 0 && number == 0) || (tail && step + 1 == lpns.len() && number == 3);
                if !is_missing {
                    *quarter = given.next().copied();
                }
            }
            let all = quarters.iter().copied().collect::<Option<Vec<u64>>>();
            let content = all.as_ref().and_then(|all| together(all));
            if let (Some(content), Some(all)) = (content, all) {
                self.written
                    .insert(content_stamp(content), all.try_into().expect("four"));
            }
            known.push(content);
        }
        known
    }

    fn show_units(&self) -> String {
        let units = &self.ftl.units;
        let show = |ru: RuId| format!("{:?} {}, ", units.rus[ru.at()].state, units.valid(ru));
        (0..self.ftl.layout.rus).map(RuId).map(show).collect()
    }

    /// A journal of values is as long as the checkpoint under way takes, and may fill a small drive (ARCHITECTURE.md 13, S17).
    fn journal_has_no_bound(&self) -> bool {
        let config = &self.ftl.config;
        let shares = config.dedup.name != "none" || config.replication.name != "none";
        shares && config.checkpoint_units > 0 && !config.buffer.power_loss_protected
    }

    fn has_volatile_buffer(&self) -> bool {
        matches!(self.ftl.config.buffer.policy.name.as_str(), "write_back" | "lru")
    }

    fn trim(&mut self, first: u32, units: u32, head: bool, tail: bool) {
        let request = self.request(OpKind::Trim, first, units, head, tail);
        self.admit(&request);
        for lpn in first + u32::from(head)..(first + units).saturating_sub(u32::from(tail)) {
            self.reference.changed(lpn, 0, self.requests);
            self.quarters.remove(&lpn);
        }
    }

    fn flush(&mut self) {
        let request = self.request(OpKind::Flush, 0, 0, false, false);
        let (ticket, admitted) = self.admit(&request);
        if admitted == Admitted::Done {
            self.waiting.push(Unacknowledged {
                ticket,
                request: self.requests,
                durable: None,
            });
        }
    }

    fn run(&mut self, steps: u32) {
        for _ in 0..steps {
            if !self.ftl.backend.run(1) {
                return;
            }
            self.notices();
        }
    }

    fn settle(&mut self) {
        for _ in 0..20_000 {
            if !self.ftl.backend.run(1) {
                return;
            }
            self.notices();
        }
    }

    fn notices(&mut self) {
        for _ in 0..64 {
            let notices = self.ftl.backend.take_notices();
            if notices.is_empty() {
                return;
            }
            notices.into_iter().for_each(|notice| self.ftl.notice(notice));
        }
    }

    fn acknowledge(&mut self) {
        let backend = &self.ftl.backend;
        let (done, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|request| backend.is_acknowledged(request.ticket));
        self.waiting = waiting;
        for request in done {
            match request.durable {
                Some(lpns) => lpns
                    .iter()
                    .for_each(|&lpn| self.reference.durable(lpn, request.request)),
                None => self.reference.flushed(request.request, !self.has_volatile_buffer()),
            }
        }
    }

    fn power_cut(&mut self) {
        self.cuts += 1;
        self.run(self.random.clone().below(20) as u32);
        self.random.next_u64();
        self.acknowledge();
        let protected = self.ftl.config.buffer.power_loss_protected;
        self.ftl.power_cut();
        self.ftl.backend.cut(protected);
        self.check_flash();
        self.waiting.clear();
        self.under_way.clear();
        if !protected {
            self.quarters.clear();
        }
        for lpn in 0..self.reference.len() {
            let found = self.ftl.stamp(Lpn(lpn));
            let allowed = if protected {
                found == self.reference.latest(lpn)
            } else {
                self.reference.allows(lpn, found)
            };
            assert!(
                allowed,
                "after power cut {} LPN {lpn} holds {found}; (stamp, request) since the last durable: {}",
                self.cuts,
                self.reference.show(lpn)
            );
            self.reference.settle(lpn, found);
        }
        if let Err(fault) = self.ftl.check() {
            panic!("after power cut {}: {fault}", self.cuts);
        }
        if self.ftl.power_on() {
            self.settle();
        }
    }

    fn check_reads(&self) {
        for lpn in 0..self.reference.len() {
            let (found, expected) = (self.ftl.stamp(Lpn(lpn)), self.reference.latest(lpn));
            assert!(found == expected, "LPN {lpn} reads {found}, last written {expected}");
            let entry = self.ftl.record.entry(Lpn(lpn));
            assert!(
                expected != 0 || entry == Entry::UNMAPPED,
                "LPN {lpn} holds nothing, but is mapped to {entry:?}"
            );
        }
    }

    /// Programs = the sum over causes: what flash saw is what the counters say, in whole pages.
    fn check_programs(&self) {
        let per_page = u64::from(self.ftl.layout.units_per_page);
        let counts = &self.ftl.counts;
        if self.cuts == 0 {
            let assembling: u64 = self.ftl.open_units().map(|(_, next)| u64::from(next) % per_page).sum();
            let (pages, total) = (counts.page_programs * per_page, counts.total_programmed());
            assert!(
                pages + assembling == total,
                "{pages} units in whole pages and {assembling} in pages being assembled, but {total} by cause"
            );
        }
        if let Some((programs, erases)) = self.ftl.backend.tally() {
            assert!(
                programs == counts.page_programs,
                "flash programmed {programs} pages, counted {}",
                counts.page_programs
            );
            assert!(
                erases == counts.erases,
                "flash erased {erases} blocks, counted {}",
                counts.erases
            );
        }
    }

    fn check_wear(&self) {
        if let Some(limit) = self.ftl.config.erase_limit {
            for (number, ru) in self.ftl.units.rus.iter().enumerate() {
                assert!(ru.erases <= limit, "unit {number} has been erased {} times", ru.erases);
            }
        }
    }

    /// Pages that are being assembled in the controller.
    fn assembling(&self) -> Vec<u32> {
        let layout = &self.ftl.layout;
        let begun = self
            .ftl
            .open_units()
            .filter(|(_, next)| next % layout.units_per_page != 0);
        begun
            .map(|(ru, next)| layout.page_of(Slot(layout.first_slot(ru).0 + next)))
            .collect()
    }

    /// Every valid slot lies in a page that is programmed, or in one being assembled.
    fn check_flash(&self) {
        let (layout, record) = (&self.ftl.layout, &self.ftl.record);
        let assembling = self.assembling();
        record.for_each_valid(Slot(0), layout.slots(), |slot| {
            let page = layout.page_of(slot);
            assert!(
                self.ftl.backend.holds(page) || assembling.contains(&page),
                "{slot:?} is valid, but page {page} of {:?} is not programmed",
                layout.ru_of(slot)
            );
        });
    }

    /// A number that depends on everything the drive has become.
    pub fn state_hash(&self) -> u64 {
        use std::hash::{Hash, Hasher};
        let mut hasher = rustc_hash::FxHasher::default();
        self.ftl.record.map.hash(&mut hasher);
        self.ftl.record.owners.hash(&mut hasher);
        self.ftl.record.validity().hash(&mut hasher);
        let units = &self.ftl.units;
        for number in (0..self.ftl.layout.rus).map(RuId) {
            let ru = &units.rus[number.at()];
            (units.valid(number), ru.erases, ru.last_tick, ru.state as u8).hash(&mut hasher);
        }
        format!("{:?}", self.ftl.counts).hash(&mut hasher);
        hasher.finish()
    }
}
