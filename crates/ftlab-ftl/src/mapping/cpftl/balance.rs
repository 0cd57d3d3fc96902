//! What each correlated page saves and costs, in reads of flash: a page that costs more than it saves is given up.
//!
//! A read of a correlated page answers for one regular load, and each request that finds an entry it brought for another. A regular
//! load has the same merit by what it brings along; so `n` requests answered by correlated pages would have taken
//! `n / (1 + u)` regular loads, where `u` is the number of requests that what a regular load brings along answers. Reads that find
//! nothing are lost. And all pages together pay for the memory that the directory and unused entries take from the cache: the
//! regular loads of entries that left a moment ago and would still be there.

/// Look-ups between two reckonings of all pages.
pub const EVERY: u64 = 1024;
/// Look-ups in which what is known of regular loads loses half its weight.
const FADES: u64 = 16_384;
/// Times `patience` that a page can save up.
const MOST_SAVED: f64 = 4.0;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    /// Reads saved less reads made.
    earned: f64,
    /// The rent of a page when this one began to pay, or later if it had saved up enough.
    since: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Balance {
    /// Reads by which a page may fall behind.
    patience: f64,
    accounts: Vec<Account>,
    /// What pages that were given up as failures had lost.
    lost: f64,
    /// Rent of a page that has been there from the beginning.
    rent: f64,
    /// Regular loads, and requests answered by what they brought along; both fade.
    loads: f64,
    answered: f64,
    faded: u64,
    reckoned: u64,
    /// In this request: the translation page that it has been answered for, and the page that earned by it, if one did.
    request: Option<(u32, Option<u32>)>,
}

impl Balance {
    pub fn new(patience: f64) -> Self {
        Balance {
            patience,
            ..Balance::default()
        }
    }

    /// A request begins.
    pub fn begin(&mut self) {
        self.request = None;
    }

    /// A set is new: nothing is known of its pages.
    pub fn begin_set(&mut self) {
        self.lost = 0.0;
    }

    /// The page has been programmed.
    pub fn open(&mut self, page: u32) {
        if self.accounts.len() <= page as usize {
            self.accounts.resize(page as usize + 1, Account::default());
        }
        self.accounts[page as usize] = Account {
            earned: -1.0,
            since: self.rent,
        };
    }

    /// Regular loads that one request answered is worth.
    fn worth(&self) -> f64 {
        self.loads.max(1.0) / (self.loads.max(1.0) + self.answered)
    }

    fn earn(&mut self, page: u32, reads: f64) {
        let most = MOST_SAVED * self.patience;
        let Some(account) = self.accounts.get_mut(page as usize) else {
            return;
        };
        account.earned = (account.earned + reads).min(most + self.rent - account.since);
    }

    /// The page has been read, and held what was wanted or not.
    pub fn read(&mut self, page: u32, tvpn: u32, served: bool) {
        self.earn(page, if served { self.worth() - 1.0 } else { -1.0 });
        if served {
            self.request = Some((tvpn, None));
        }
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
            None => self.answered += 1.0,
        }
    }

    /// A regular load. `still_there`: with the memory that `live` correlated pages take it would not have been needed, or that
    /// times as many.
    pub fn loaded(&mut self, tvpn: u32, still_there: f64, live: u32) {
        self.loads += 1.0;
        if let Some((answered, Some(page))) = self.request
            && answered == tvpn
        {
            // What was found saved nothing.
            let worth = self.worth();
            self.earn(page, -worth);
        }
        self.request = Some((tvpn, None));
        self.rent += still_there / f64::from(live.max(1));
    }

    /// What the page has saved less what it has cost.
    fn net(&self, page: u32) -> f64 {
        let account = self.accounts.get(page as usize).copied().unwrap_or_default();
        account.earned - (self.rent - account.since)
    }

    pub fn fails(&self, page: u32) -> bool {
        self.net(page) < -self.patience
    }

    /// The page is given up because it fails.
    pub fn close(&mut self, page: u32) {
        self.lost -= self.net(page);
    }

    /// Whether the pages tried so far, of which these are `live`, have saved more than they cost.
    pub fn gains(&self, live: impl Iterator<Item = u32>) -> bool {
        live.map(|page| self.net(page)).sum::<f64>() > self.lost
    }

    /// Whether all pages are to be reckoned with at this look-up.
    pub fn is_due(&mut self, look_ups: u64) -> bool {
        if look_ups / FADES > self.faded {
            self.faded = look_ups / FADES;
            self.loads /= 2.0;
            self.answered /= 2.0;
        }
        let due = look_ups / EVERY > self.reckoned;
        self.reckoned = look_ups / EVERY;
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
        balance.begin();
        balance.read(0, 3, false);
        assert_eq!(balance.net(0), 0.0);
        // What is found beside a miss of the same translation page saves nothing.
        balance.begin();
        balance.used(3, Some(0));
        assert_eq!(balance.net(0), 1.0);
        balance.loaded(3, 0.0, 1);
        assert_eq!(balance.net(0), 0.0);
    }

    /// Two regular loads, each of which answers two more requests: an answer is worth 2 / (2 + 4), a third. A read that serves costs two
    /// thirds, and with two requests answered it has saved nothing.
    #[test]
    fn what_regular_loads_bring_along_counts_against() {
        let mut balance = opened(8.0);
        for _ in 0..2 {
            balance.begin();
            balance.loaded(5, 0.0, 1);
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

    /// Two pages share a rent of 4 for a load that their memory made necessary; the one that comes later does not pay for it.
    #[test]
    fn pages_pay_for_the_memory_they_take() {
        let mut balance = opened(2.0);
        balance.open(1);
        balance.loaded(9, 4.0, 2);
        balance.open(2);
        assert_eq!([0, 1, 2].map(|page| balance.net(page)), [-3.0, -3.0, -1.0]);
        assert_eq!([0, 1, 2].map(|page| balance.fails(page)), [true, true, false]);
        // One goes for good with its loss of 3; the other earns 8, of which 8 could be saved up.
        balance.close(0);
        for _ in 0..9 {
            balance.begin();
            balance.used(7, Some(1));
        }
        assert_eq!(balance.net(1), 6.0);
        assert!(balance.gains([1, 2].into_iter()));
        assert!(!balance.gains([2].into_iter()));
        for _ in 0..9 {
            balance.begin();
            balance.used(7, Some(1));
        }
        assert_eq!(balance.net(1), 8.0);
        balance.begin_set();
        assert!(balance.gains([1].into_iter()));
    }
}
