//! What each correlated page saves and costs, in reads of flash: a page that costs more than it saves is given up.
//!
//! A read of a correlated page answers for one regular load, and each request that finds an entry it brought for another. A regular
//! load has the same merit by what it brings along; so `n` requests answered by correlated pages would have taken
//! `n / (1 + u)` regular loads, where `u` is the number of requests that what a regular load brings along answers. Reads that find
//! nothing are lost. And all pages together pay for the memory that the directory and unused entries take from the cache: the
//! regular loads of entries that left a moment ago and would still be there. Each counts twice, as a load for want of memory brings
//! entries along that push out others. And at least, loads grow as memory shrinks: by a hundredth for each hundredth of it that is taken.
//! For where the map is read in a loop, what was pushed out comes back long after it left, or after the page has gone. But what such a
//! loop still finds it finds just before that would leave. So the price is more where the requests are more that use the tail of the
//! cache ([`crate::mapping::tail`]), which a cache smaller by as much again would not answer.
//!
//! With many requests under way loads are shared ([`super::sharing`]): where only a share `u` of them is read, one load less saves `u²`
//! reads. And a program more, however little it brings, lets requests go apart that came together and shared their loads. So where less
//! than nine in ten loads are reads no page is tried, and those that have not earned what they cost go.
//!
//! What all pages together may lose is bounded too: a new one is tried only while what has been lost, and what those on trial can still
//! lose, stay within a share of what the map has cost so far.

/// Look-ups between two reckonings of all pages.
pub const EVERY: u64 = 512;
/// Shares of the regular loads, and of the loads that writes did without, that correlated pages may lose.
const OF_LOADS: f64 = 0.01;
const OF_SKIPPED: f64 = 0.1;
/// Loads that one for want of memory stands for.
const RENT: f64 = 2.0;
/// Look-ups in which what is known of regular loads loses half its weight.
const FADES: u64 = 16_384;
/// Share of the loads that must be reads for a trial. Which loads are shared depends on when each request completes, so that one
/// program more moves the reads of a run by up to a tenth of the share that is shared: here, a hundredth.
pub const ALONE: f64 = 0.9;
/// Reads that a page may lose however little a load is worth: its program, and one read that could save more.
const LEAST_PATIENCE: f64 = 2.0;

/// Bytes of the drive's memory: a word of 20 bits for what may be lost less what has been, in hundredths of a read, and 12 for how many
/// pages have been tried. The look-ups are counted anyway.
pub const BYTES: u64 = 4;
/// What that word holds: reads to either side.
const MOST_CREDIT: f64 = 5000.0;
/// Further ones where pages are judged, or the tail is looked at: loads and requests answered, which fade, 2 each.
pub const BYTES_OF_WORTH: u64 = 4;
/// Further ones while there is a page: rent, and the rent since the last reckoning, 4 each, and 2 for what is owed. An account is in the directory: what the
/// page has earned since it began to pay, less the rent then, and what it has saved take the place of its loads and hits there.
pub const BYTES_OF_RENT: u64 = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Reads saved less reads made.
    earned: f64,
    /// The same of all time; it may be more than a page can save up.
    saved: f64,
    /// The rent of a page when this one began to pay, or later if it had saved up enough.
    since: f64,
}

#[derive(Clone, Debug)]
pub struct Balance {
    /// Reads by which a page may fall behind where each load is one, and that it can save up. What it had saved beyond that would be
    /// spent once it no longer pays, and what it pushed out of the cache meanwhile comes back only after it has gone.
    patience: f64,
    accounts: Vec<Account>,
    /// What pages that are no longer there had lost, less what they had saved.
    lost: f64,
    /// What may be lost.
    allowance: f64,
    /// Rent of a page that has been there from the beginning.
    rent: f64,
    /// The price by uses of the tail, less that by loads: what is charged is the larger of the two. From `-patience` to 0.
    owed: f64,
    /// Regular loads, and requests answered by what they brought along; both fade.
    loads: f64,
    answered: f64,
    /// Whether these are counted.
    counts: bool,
    faded: u64,
    /// Look-ups, in units of `EVERY`, and rent of the last reckoning.
    reckoned: u64,
    reckoned_rent: f64,
    /// Share of the loads for which something is read.
    read: f64,
    /// In this request: the translation page that it has been answered for, and the page that earned by it, if one did.
    request: Option<(u32, Option<u32>)>,
}

impl Balance {
    pub fn new(patience: f64) -> Self {
        Balance {
            patience,
            accounts: Vec::new(),
            lost: 0.0,
            allowance: 0.0,
            rent: 0.0,
            owed: 0.0,
            loads: 0.0,
            answered: 0.0,
            counts: true,
            faded: 0,
            reckoned: 0,
            reckoned_rent: 0.0,
            read: 1.0,
            request: None,
        }
    }

    /// Whether it is known from now on what regular loads bring along. What was known is forgotten otherwise.
    pub fn count(&mut self, counts: bool) {
        self.counts = counts;
        if !counts {
            (self.loads, self.answered) = (0.0, 0.0);
        }
    }

    /// A request begins.
    pub fn begin(&mut self) {
        self.request = None;
    }

    /// The page has been programmed.
    pub fn open(&mut self, page: u32) {
        if self.accounts.len() <= page as usize {
            self.accounts.resize(page as usize + 1, Account::default());
        }
        self.accounts[page as usize] = Account {
            earned: -1.0,
            saved: -1.0,
            since: self.rent,
        };
    }

    /// Reads that one regular load less saves.
    fn stake(&self) -> f64 {
        self.read * self.read
    }

    /// Reads that one request answered is worth.
    fn worth(&self) -> f64 {
        self.stake() * self.loads.max(1.0) / (self.loads.max(1.0) + self.answered)
    }

    /// Reads by which a page may fall behind now.
    fn patience(&self) -> f64 {
        self.patience.min((self.patience * self.stake()).max(LEAST_PATIENCE))
    }

    fn earn(&mut self, page: u32, reads: f64) {
        let Some(account) = self.accounts.get_mut(page as usize) else {
            return;
        };
        account.saved += reads;
        account.earned = (account.earned + reads).min(self.patience + self.rent - account.since);
    }

    /// The page has been read, and held what was wanted or not. What one regular load would have brought for the whole request is
    /// saved once.
    pub fn read(&mut self, page: u32, tvpn: u32, served: bool) {
        let saves = served && self.request.is_none_or(|(answered, _)| answered != tvpn);
        self.earn(page, if saves { self.worth() - 1.0 } else { -1.0 });
        if served {
            self.request = Some((tvpn, None));
        }
    }

    /// The page has been read because an entry changes that it may hold.
    pub fn checked(&mut self, page: u32) {
        self.earn(page, -1.0);
    }

    /// The page was being read already.
    pub fn read_is_shared(&mut self, page: u32) {
        self.earn(page, 1.0);
    }

    /// For this share of the loads something is read; for the others what is under way serves.
    pub fn set_read(&mut self, share: f64) {
        self.read = share;
    }

    /// A write did without the load that the base would have made.
    pub fn skipped(&mut self) {
        self.allowance += OF_SKIPPED * self.stake();
    }

    /// The request finds an entry that nothing had used since `page` brought it; none: since a regular load brought it along.
    pub fn used(&mut self, tvpn: u32, page: Option<u32>) {
        if self.request.is_some_and(|(answered, _)| answered == tvpn) {
            // The same read would have brought it.
            return;
        }
        self.request = Some((tvpn, page));
        match page {
            Some(page) => self.earn(page, self.worth()),
            None => self.answered += f64::from(u8::from(self.counts)),
        }
    }

    /// A regular load. `still_there`: with the memory that `live` correlated pages take it would not have been needed, or that
    /// times as many. `taken`: that memory, as a share of all there is.
    pub fn loaded(&mut self, tvpn: u32, still_there: f64, taken: f64, live: u32) {
        self.loads += f64::from(u8::from(self.counts));
        self.allowance += OF_LOADS * self.read;
        if let Some((answered, Some(page))) = self.request
            && answered == tvpn
        {
            // What was found saved nothing.
            let worth = self.worth();
            self.earn(page, -worth);
        }
        self.request = Some((tvpn, None));
        let price = self.stake() * taken.max(RENT * still_there);
        self.rent += price / f64::from(live.max(1));
        self.owed = (self.owed - price).max(-self.patience);
    }

    /// A request uses an entry of the tail. `times`: what `live` correlated pages take, in sizes of the tail. A load in place of it
    /// would bring others along.
    pub fn tail_used(&mut self, times: f64, live: u32) {
        self.owed += times * self.worth();
        if self.owed > 0.0 {
            self.rent += self.owed / f64::from(live.max(1));
            self.owed = 0.0;
        }
    }

    /// What the page has saved less what it has cost.
    fn net(&self, page: u32) -> f64 {
        let account = self.accounts.get(page as usize).copied().unwrap_or_default();
        account.earned - (self.rent - account.since)
    }

    /// Whether it has saved what its memory may cost, that of so many entries: a load for each. Without memory it costs nothing.
    pub fn covers(&self, page: u32, entries: u32) -> bool {
        let saved = self.accounts.get(page as usize).map_or(0.0, |account| account.saved);
        entries == 0 || saved >= self.stake() * f64::from(entries)
    }

    /// Where loads are shared, a page on credit goes as well.
    pub fn fails(&self, page: u32) -> bool {
        let net = self.net(page);
        let is_uncovered = self.read < ALONE && -net > (self.allowance - self.lost).max(0.0);
        net < -self.patience() || is_uncovered
    }

    /// The page is no longer there.
    pub fn close(&mut self, page: u32) {
        self.lost -= self.net(page);
    }

    /// Whether a page may be tried whatever it loses: pages have not lost a trial more than they may, with the loads that this one
    /// would leave behind.
    pub fn has_credit(&self, left_behind: f64) -> bool {
        self.read >= ALONE && self.lost + self.stake() * left_behind - self.allowance < self.patience
    }

    /// A look has shown that a trial would leave so many loads behind, and that is too much. As if one had been lost: the next look is
    /// when there is as much to lose again.
    pub fn refrain(&mut self, left_behind: f64) {
        if left_behind >= self.patience {
            self.lost += self.stake() * left_behind;
        }
    }

    /// How many more pages may be tried, where these are live and each leaves so many loads behind when it goes: none where loads
    /// are shared. One that has saved its patience is no longer on trial.
    pub fn affords(&self, live: impl Iterator<Item = u32>, left_behind: f64) -> u32 {
        if self.read < ALONE {
            return 0;
        }
        let patience = self.patience();
        let spent: f64 = live
            .map(|page| self.net(page))
            .map(|net| {
                if net < patience {
                    patience.min(patience + net).max(0.0) - net
                } else {
                    -net
                }
            })
            .sum();
        let most = (self.allowance - self.lost - spent) / (patience + 1.0 + self.stake() * left_behind);
        most.max(0.0) as u32
    }

    /// Whether all pages are to be reckoned with at this look-up: every `EVERY` ones, or sooner where the rent alone makes pages fail.
    pub fn is_due(&mut self, look_ups: u64) -> bool {
        if look_ups / FADES > self.faded {
            self.faded = look_ups / FADES;
            self.loads /= 2.0;
            self.answered /= 2.0;
        }
        self.lost = self
            .lost
            .max(self.allowance - MOST_CREDIT)
            .min(self.allowance + MOST_CREDIT);
        let due = look_ups / EVERY > self.reckoned || self.rent - self.reckoned_rent > self.patience();
        if due {
            self.reckoned = look_ups / EVERY;
            self.reckoned_rent = self.rent;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(patience: f64) -> Balance {
        let mut balance = Balance::new(patience);
        balance.open(0);
        balance
    }

    /// No regular load brings anything that is used, so a request answered is worth a load. The program costs 1; a read that serves
    /// 0; each of two requests for what it brought saves 1; one for the translation page that has just been read saves nothing.
    #[test]
    fn requests_answered_are_saved_and_reads_are_spent() {
        let mut balance = opened(8.0);
        balance.begin();
        balance.read(0, 3, true);
        balance.used(3, Some(0));
        assert_eq!(balance.net(0), -1.0);
        for tvpn in [3, 7] {
            balance.begin();
            balance.used(tvpn, Some(0));
            // Another entry of that page in the same request.
            balance.used(tvpn, Some(0));
        }
        assert_eq!(balance.net(0), 1.0);
        // A second read for the same translation page within a request, which one load would have answered.
        balance.read(0, 7, true);
        assert_eq!(balance.net(0), 0.0);
        balance.begin();
        balance.used(9, Some(0));
        balance.begin();
        balance.read(0, 3, false);
        assert_eq!(balance.net(0), 0.0);
        // What is found beside a miss of the same translation page saves nothing.
        balance.begin();
        balance.used(3, Some(0));
        assert_eq!(balance.net(0), 1.0);
        balance.loaded(3, 0.0, 0.0, 1);
        assert_eq!(balance.net(0), 0.0);
    }

    /// Two regular loads, each of which answers two more requests: an answer is worth 2 / (2 + 4), a third. A read that serves costs two
    /// thirds, and with two requests answered it has saved nothing.
    #[test]
    fn what_regular_loads_bring_along_counts_against() {
        let mut balance = opened(8.0);
        for _ in 0..2 {
            balance.begin();
            balance.loaded(5, 0.0, 0.0, 1);
            for _ in 0..2 {
                balance.begin();
                balance.used(5, None);
            }
        }
        balance.begin();
        balance.read(0, 3, true);
        assert!((balance.net(0) + 1.0 + 2.0 / 3.0).abs() < 1e-9);
        for _ in 0..2 {
            balance.begin();
            balance.used(3, Some(0));
        }
        assert!((balance.net(0) + 1.0).abs() < 1e-9);
        // After a while half of what was known is left, and the worth is the same but for one load that is always assumed.
        assert!(balance.is_due(FADES));
        assert_eq!((balance.loads, balance.answered), (1.0, 2.0));
        assert!(!balance.is_due(FADES + 1));
    }

    /// Two pages share a rent of 4, twice the weight of a load that their memory made necessary; the one that comes later does not pay for it.
    #[test]
    fn pages_pay_for_the_memory_they_take() {
        let mut balance = opened(2.0);
        balance.open(1);
        balance.loaded(9, 2.0, 0.0, 2);
        balance.open(2);
        assert_eq!([0, 1, 2].map(|page| balance.net(page)), [-3.0, -3.0, -1.0]);
        assert_eq!([0, 1, 2].map(|page| balance.fails(page)), [true, true, false]);
        // One goes for good with its loss of 3; the other earns 4, and then more than can be saved up.
        balance.close(0);
        for saved in [-2.0, -1.0, 0.0, 1.0, 2.0, 2.0, 2.0] {
            balance.begin();
            balance.used(7, Some(1));
            assert_eq!(balance.net(1), saved);
        }
    }

    /// Two pages take a tenth of the memory: 60 loads cost 6 reads by that, and one of a key that has just left 2 more.
    #[test]
    fn memory_costs_at_least_its_share_of_the_loads() {
        let mut balance = opened(4.0);
        balance.open(1);
        (0..60).for_each(|_| balance.loaded(9, 0.0, 0.1, 2));
        let owed = |balance: &Balance| [0, 1].map(|page| balance.net(page));
        assert!(owed(&balance).iter().all(|net| (net + 4.0).abs() < 1e-9) && !balance.fails(0));
        balance.loaded(9, 1.0, 0.1, 2);
        assert!(owed(&balance).iter().all(|net| (net + 5.0).abs() < 1e-9) && balance.fails(1));
    }

    /// Uses of the tail cost what loads have not been charged; and loads charged long ago count for no more than the patience.
    #[test]
    fn uses_of_the_tail_cost_in_place_of_loads() {
        let mut balance = opened(4.0);
        (0..10).for_each(|_| balance.loaded(9, 0.0, 0.125, 1));
        let before = balance.net(0);
        balance.tail_used(1.25, 1);
        assert_eq!(balance.net(0), before, "as much has been charged by loads");
        balance.tail_used(2.0, 1);
        assert_eq!(balance.net(0), before - 2.0);
        (0..100).for_each(|_| balance.loaded(9, 0.0, 0.125, 1));
        let before = balance.net(0);
        balance.tail_used(5.0, 1);
        assert_eq!(balance.net(0), before - 1.0, "12.5 by loads, of which the last 4 count");
        // Regular loads bring along what answers as many requests as there are loads: a use is worth half of one.
        (0..110).for_each(|_| {
            balance.begin();
            balance.used(9, None);
        });
        let before = balance.net(0);
        balance.tail_used(2.0, 2);
        assert_eq!(balance.net(0), before - 0.5, "a half of it for each of two pages");
    }

    /// Half of the loads are shared, so one less saves a quarter of a read, and a page may lose 2 reads instead of 4.
    #[test]
    fn where_loads_are_shared_less_is_at_stake() {
        let mut balance = opened(4.0);
        (0..300).for_each(|_| balance.loaded(5, 0.0, 0.0, 1));
        balance.set_read(0.5);
        balance.begin();
        balance.used(3, Some(0));
        assert_eq!(balance.net(0), -0.75);
        // A read of the page that is shared is no loss.
        balance.checked(0);
        balance.read_is_shared(0);
        assert_eq!(balance.net(0), -0.75);
        balance.checked(0);
        assert!(!balance.fails(0), "3 may be lost, and 2 of them by one page");
        balance.checked(0);
        assert!(balance.fails(0));
    }

    /// A page on credit goes once loads are shared, and there is no other until there is something to lose.
    #[test]
    fn where_loads_are_shared_nothing_is_on_credit() {
        let mut balance = opened(8.0);
        assert!(!balance.fails(0) && balance.has_credit(0.0));
        balance.set_read(0.8);
        assert!(balance.fails(0) && !balance.has_credit(0.0));
        (0..200).for_each(|_| balance.loaded(5, 0.0, 0.0, 1));
        assert!(!balance.fails(0), "it has lost 1 of 1.6");
    }

    /// However much may be lost: 40 reads, of which a trial takes 9, or 7.5 where patience has shrunk.
    #[test]
    fn where_loads_are_shared_nothing_is_tried() {
        let mut balance = Balance::new(8.0);
        (0..4000).for_each(|_| balance.loaded(5, 0.0, 0.0, 0));
        for (read, tried) in [(1.0, 4), (0.9, 5), (0.89, 0)] {
            balance.set_read(read);
            assert_eq!(balance.affords(std::iter::empty(), 0.0), tried, "{read}");
        }
    }

    /// The first trial is on credit; one lost uses it up, until there is something to lose again.
    #[test]
    fn one_trial_is_on_credit() {
        let mut balance = opened(2.0);
        assert!(balance.has_credit(0.0));
        balance.checked(0);
        balance.close(0);
        assert!(!balance.has_credit(0.0), "a program and a read are lost");
        balance.skipped();
        assert!(balance.has_credit(0.0));
    }

    /// A rent beyond the patience is not waited with until look-ups are due.
    #[test]
    fn a_high_rent_is_reckoned_at_once() {
        let mut balance = opened(2.0);
        assert!(!balance.is_due(1));
        balance.loaded(9, 1.0, 0.0, 1);
        assert!(!balance.is_due(2), "2 is not more than 2");
        balance.loaded(9, 1.0, 0.0, 1);
        assert!(balance.is_due(3) && !balance.is_due(4));
        assert!(balance.is_due(EVERY) && !balance.is_due(EVERY + 1));
    }

    /// With a patience of 2 a page on trial can lose 2, and one costs 3 until it is given up.
    #[test]
    fn no_more_is_tried_than_may_be_lost() {
        let mut balance = Balance::new(2.0);
        assert_eq!(balance.affords(std::iter::empty(), 0.0), 0);
        // 40 loads skipped and 250 made: 4 + 2.5 reads may be lost, two pages.
        (0..40).for_each(|_| balance.skipped());
        (0..250).for_each(|_| balance.loaded(9, 0.0, 0.0, 0));
        assert_eq!(balance.affords(std::iter::empty(), 0.0), 2);
        // A page that has been programmed has lost 1 and can lose 1 more; and so the other.
        balance.open(0);
        assert_eq!(balance.affords([0].into_iter(), 0.0), 1);
        balance.open(1);
        assert_eq!(balance.affords([0, 1].into_iter(), 0.0), 0);
        // One is given up with a loss of 2: what the other can lose and a new one are too much.
        balance.checked(1);
        balance.close(1);
        assert_eq!((balance.lost, balance.affords([0].into_iter(), 0.0)), (2.0, 0));
        // The other saves what it can and is proven: 6.5 - 2 + 2.
        for _ in 0..5 {
            balance.begin();
            balance.used(7, Some(0));
        }
        assert_eq!((balance.net(0), balance.affords([0].into_iter(), 0.0)), (2.0, 2));
    }
}
