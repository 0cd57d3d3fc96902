//! Channels: one transfer at a time, and a table of what each die waits for.

use super::table::Table;

/// A wish nobody has.
const NO_WISH: u64 = u64::MAX;

pub(super) struct Channel {
    pub busy_until_ns: u64,
    /// When an event (its own or that of a die that sends) will next wake it.
    pub woken_at_ns: u64,
    /// Dies that wait.
    pub waiting: u32,
    pub dirty: bool,
    pub busy_ns: u64,
}

impl Channel {
    /// Time in transfers up to `now`; a transfer is booked as a whole when it starts.
    pub fn busy_before(&self, now: u64) -> u64 {
        self.busy_ns - self.busy_until_ns.saturating_sub(now)
    }
}

/// All channels with the wishes of their dies.
pub(super) struct Channels {
    pub each: Table<Channel>,
    /// By channel, then by die: rank in the upper three bits, waiting since (ns) below; one comparison decides.
    wishes: Table<u64>,
    per_channel: usize,
}

impl Channels {
    pub fn new(channels: usize, dies_per_channel: usize) -> Self {
        let each = (0..channels)
            .map(|_| Channel {
                busy_until_ns: 0,
                woken_at_ns: 0,
                waiting: 0,
                dirty: false,
                busy_ns: 0,
            })
            .collect();
        Channels {
            each,
            wishes: (0..channels * dies_per_channel).map(|_| NO_WISH).collect(),
            per_channel: dies_per_channel,
        }
    }

    /// Whether the channel is free and no die waits for it.
    #[inline(always)]
    pub fn is_idle(&self, channel: u32, now: u64) -> bool {
        let channel = &self.each[channel as usize];
        channel.waiting == 0 && channel.busy_until_ns <= now
    }

    /// Whether a die waits for the channel, and it is free.
    #[inline(always)]
    pub fn can_grant(&self, channel: u32, now: u64) -> bool {
        let channel = &self.each[channel as usize];
        channel.waiting > 0 && channel.busy_until_ns <= now
    }

    #[inline(always)]
    pub fn wish(&mut self, channel: u32, place: u32, rank: u8, since_ns: u64) {
        let key = u64::from(rank) << 61 | since_ns;
        if std::mem::replace(&mut self.wishes[place as usize], key) == NO_WISH {
            self.each[channel as usize].waiting += 1;
        }
    }

    #[inline(always)]
    pub fn withdraw(&mut self, channel: u32, place: u32) {
        if std::mem::replace(&mut self.wishes[place as usize], NO_WISH) != NO_WISH {
            self.each[channel as usize].waiting -= 1;
        }
    }

    /// The channel carries something for `duration` from `now` on.
    #[inline(always)]
    pub fn occupy(&mut self, channel: u32, now: u64, duration: u64) {
        let channel = &mut self.each[channel as usize];
        channel.busy_until_ns = now + duration;
        channel.busy_ns += duration;
    }

    /// Takes the wish of the waiting die that goes next: by rank, then longest waiting, then lowest number. Returns its place.
    #[inline]
    pub fn take_next(&mut self, channel: u32) -> usize {
        let from = channel as usize * self.per_channel;
        let (mut best, mut least) = (0, NO_WISH);
        for die in 0..self.per_channel {
            let wish = self.wishes[from + die];
            if wish < least {
                (best, least) = (die, wish);
            }
        }
        self.wishes[from + best] = NO_WISH;
        self.each[channel as usize].waiting -= 1;
        best
    }

    pub fn clear(&mut self, now: u64) {
        self.wishes.fill(NO_WISH);
        for channel in self.each.iter_mut() {
            channel.busy_until_ns = channel.busy_until_ns.min(now);
            channel.woken_at_ns = 0;
            channel.waiting = 0;
            channel.dirty = false;
        }
    }
}
