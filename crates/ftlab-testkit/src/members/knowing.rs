//! A placement that needs everything a placement may be told, and holds it against what it has seen itself.

use ftlab_core::{Lpn, RuId};
use ftlab_ftl::placement::{Asks, Event, HostWrite, PlacementPolicy, Survivor};
use ftlab_ftl::units::{Closed, Orders};
use ftlab_ftl::victim::VictimPolicy;
use ftlab_ftl::{Frontier, Now};

const STREAMS: Frontier = 3;

/// The stream that a test's host gives a request of `units` units from `first` on: so the borders of a request can be told from
/// the stream that comes with each of its units.
pub fn stream_of(first: u32, units: u32) -> u16 {
    ((first.wrapping_mul(7) ^ units) % 4) as u16
}

/// Host writes go by stream, survivors by age; victims are the oldest unit of the frontier whose turn it is.
pub struct Knowing {
    placed: Vec<Option<u64>>,
    /// Host writes see requests made by [`stream_of`].
    streams_tell: bool,
    turn: Frontier,
    /// What was placed last, and when its version before was.
    under_way: Option<(Lpn, Option<u64>)>,
    /// Collections and erases told of, survivors with and without a cached entry, survivors known by a VPN only.
    pub seen: [u64; 5],
}

impl Knowing {
    pub fn new(units: u32, streams_tell: bool) -> Self {
        Knowing {
            placed: vec![None; units as usize],
            streams_tell,
            turn: 0,
            under_way: None,
            seen: [0; 5],
        }
    }
}

impl PlacementPolicy for Knowing {
    fn report(&self) -> Vec<(&'static str, f64)> {
        let names = ["collections", "erases", "cached", "not_cached", "values"];
        names.into_iter().zip(self.seen.map(|count| count as f64)).collect()
    }

    fn host_frontiers(&self) -> Frontier {
        STREAMS
    }

    fn own_survivor_frontiers(&self) -> Frontier {
        1
    }

    fn leaves_survivors(&self) -> bool {
        true
    }

    fn asks(&self) -> Asks {
        Asks {
            since: true,
            is_cached: true,
            ..Asks::default()
        }
    }

    fn host(&mut self, write: &HostWrite<'_>) -> Frontier {
        let (lpn, context) = (write.lpn, write.context);
        let (first, units) = (context.request_first.0, context.request_units);
        assert!(
            (first..first + units).contains(&lpn.0),
            "{lpn:?} came with a request of {units} units from {first} on"
        );
        assert_eq!(context.begins_with(lpn), lpn.0 == first);
        if self.streams_tell {
            assert_eq!(
                context.stream,
                stream_of(first, units),
                "{lpn:?} has the context of another request"
            );
        }
        assert_eq!(write.since, self.placed[lpn.at()], "{lpn:?} at {:?}", write.now);
        self.under_way = Some((lpn, write.since));
        self.placed[lpn.at()] = Some(write.now.tick);
        context.stream % STREAMS
    }

    fn survivor(&mut self, survivor: &Survivor) -> Option<Frontier> {
        let Survivor { opened, now, .. } = *survivor;
        assert!(opened <= now.tick, "opened at {opened}, collected at {now:?}");
        let Some(lpn) = survivor.lpn else {
            assert!(survivor.vpn.is_some(), "a survivor that nobody owns");
            self.seen[4] += 1;
            return None;
        };
        // The old version of what is being placed may survive the collection that makes room.
        let is_old = self.under_way == Some((lpn, survivor.since));
        if !is_old {
            assert_eq!(survivor.since, self.placed[lpn.at()], "{lpn:?} survives at {now:?}");
        }
        if survivor.from < STREAMS {
            assert!(
                survivor.since.is_some_and(|tick| tick >= opened),
                "{lpn:?} lies in a unit that was opened after it was placed"
            );
        }
        self.seen[2 + usize::from(!survivor.is_cached)] += 1;
        Some(STREAMS)
    }

    fn victim(&mut self) -> Option<&mut dyn VictimPolicy> {
        Some(self)
    }

    fn on(&mut self, event: Event, now: Now) {
        match event {
            // What is being trimmed may survive a collection that the look-up of its entry causes.
            Event::Trimmed(lpn) => self.under_way = Some((lpn, self.placed[lpn.at()].take())),
            Event::Collecting { opened, last_tick, .. } => {
                assert!(opened <= last_tick && last_tick <= now.tick, "{event:?} at {now:?}");
                self.seen[0] += 1;
            }
            Event::Erased { .. } => self.seen[1] += 1,
            Event::Placed { .. } | Event::Gone(_) => unreachable!("it has not asked where units lie"),
        }
    }

    fn save(&self) -> Vec<u8> {
        let ticks = self.placed.iter().map(|tick| tick.map_or(0, |tick| tick + 1));
        ticks.flat_map(u64::to_le_bytes).collect()
    }

    fn load(&mut self, saved: &[u8]) -> Result<(), String> {
        if saved.len() != 8 * self.placed.len() {
            return Err(format!("{} bytes for {} units", saved.len(), self.placed.len()));
        }
        for (tick, bytes) in self.placed.iter_mut().zip(saved.chunks_exact(8)) {
            let one_more = u64::from_le_bytes(bytes.try_into().map_err(|_| "eight bytes each")?);
            *tick = one_more.checked_sub(1);
        }
        Ok(())
    }
}

impl VictimPolicy for Knowing {
    fn orders(&self) -> Orders {
        Orders {
            by_age: true,
            ..Orders::default()
        }
    }

    fn choose(&mut self, closed: &mut Closed<'_>, _: Now) -> Option<RuId> {
        self.turn = (self.turn + 1) % (STREAMS + 1);
        let of_turn = closed.oldest_of(self.turn);
        if let Some(ru) = of_turn {
            assert_eq!(closed.ru(ru).frontier, self.turn);
        }
        let gains = |ru: &RuId| closed.ru(*ru).valid + 3 < closed.units_per_ru();
        of_turn.filter(gains).or_else(|| {
            let units = closed.iter().map(|ru| (closed.ru(ru).valid, ru));
            units.min().map(|(_, ru)| ru)
        })
    }
}
