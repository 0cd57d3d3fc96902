//! Chips as a policy sees them that puts copies on some of them: their free space, wear, and the popularity of what lies there.

use ftlab_core::{LaneId, Stream};

use super::popularity::Popularity;
use super::{Idle, Setup};

/// Which chip gets the next copy of a value.
pub(super) enum Choice {
    /// The one with the greatest S / (E · Pop), divided by its load as well if `load`.
    Metric { load: bool },
    /// Any one.
    Random(Stream),
    /// The one after the last copy's.
    Next,
}

#[derive(Clone, Debug, Default)]
struct Chip {
    lanes: Vec<LaneId>,
    /// The lane that gets the next copy.
    next: usize,
    /// S: slots that hold nothing valid.
    space: u64,
    /// Valid slots.
    values: u64,
    /// E: mean erases of its reclaim units.
    erases: f64,
    /// Counts of reads of the popular values that lie there, summed.
    popularity: u64,
    /// Took no copy when it was asked to.
    full: bool,
}

impl Chip {
    /// S / (E · Pop); one is added to what may be zero.
    fn worth(&self) -> f64 {
        let popularity = self.popularity as f64 / self.values.max(1) as f64;
        self.space as f64 / ((self.erases + 1.0) * (popularity + 1.0))
    }
}

pub(super) struct Chips {
    chips: Vec<Chip>,
    of_lane: Vec<u32>,
}

impl Chips {
    pub fn new(setup: &Setup) -> Self {
        let (lanes_of, of_lane) = setup.chips_in_order();
        let chip = |lanes| Chip {
            lanes,
            ..Chip::default()
        };
        let chips = lanes_of.into_iter().map(chip).collect();
        Chips { chips, of_lane }
    }

    pub fn count(&self) -> usize {
        self.chips.len()
    }

    /// Looks at space and wear of all chips, and at where everything popular lies.
    pub fn survey(&mut self, idle: &Idle<'_>, popularity: &Popularity) {
        for chip in &mut self.chips {
            (chip.space, chip.values, chip.popularity, chip.full) = (0, 0, 0, false);
            let (mut erases, mut slots) = (0, 0);
            for &lane in &chip.lanes {
                let (all, space) = idle.space(lane);
                slots += all;
                chip.space += space;
                erases += idle.erases(lane);
            }
            chip.values = slots - chip.space;
            chip.erases = erases as f64 / (slots / idle.slots_per_unit()).max(1) as f64;
        }
        let mut lanes = Vec::new();
        for (count, of) in popularity.ranking() {
            idle.lanes_of(of, &mut lanes);
            for &lane in &lanes {
                self.chips[self.of_lane[lane.at()] as usize].popularity += u64::from(count);
            }
        }
    }

    /// The lane for one more copy of a value whose copies lie on `lanes`, none of which is on the chip; `None` if every chip has a copy,
    /// is full or, where only idle ones count (`idle_ns`), has no idle lane.
    pub fn choose(
        &mut self,
        choice: &mut Choice,
        lanes: &[LaneId],
        idle: &Idle<'_>,
        idle_ns: Option<u64>,
    ) -> Option<LaneId> {
        let taken = |chip: u32| lanes.iter().any(|&lane| self.of_lane[lane.at()] == chip);
        let count = self.chips.len() as u32;
        let free = |&chip: &u32| !self.chips[chip as usize].full && !taken(chip);
        let idles = |&chip: &u32| idle_ns.is_none_or(|ns| self.idle_lane(chip, idle, ns).is_some());
        let chip = match choice {
            Choice::Next => {
                let last = lanes.last().map_or(0, |&lane| self.of_lane[lane.at()]);
                let next = (1..count).map(|step| (last + step) % count).find(free);
                next.filter(idles)
            }
            Choice::Random(random) => {
                let free: Vec<u32> = (0..count).filter(free).filter(idles).collect();
                (!free.is_empty()).then(|| free[random.below(free.len() as u64) as usize])
            }
            Choice::Metric { load } => {
                let worth = |chip: u32| {
                    let of = &self.chips[chip as usize];
                    let queued = of.lanes.iter().map(|&lane| u64::from(idle.loads.of(lane).queued));
                    match load {
                        true => of.worth() / (1 + queued.sum::<u64>()) as f64,
                        false => of.worth(),
                    }
                };
                let mut best: Option<(f64, u32)> = None;
                for chip in (0..count).filter(free).filter(idles) {
                    let worth = worth(chip);
                    if best.is_none_or(|(most, _)| worth > most) {
                        best = Some((worth, chip));
                    }
                }
                best.map(|(_, chip)| chip)
            }
        }?;
        let lane = match idle_ns {
            Some(ns) => self.idle_lane(chip, idle, ns)?,
            None => self.chips[chip as usize].lanes[self.chips[chip as usize].next],
        };
        let chip = &mut self.chips[chip as usize];
        chip.next = (chip.lanes.iter().position(|&other| other == lane)? + 1) % chip.lanes.len();
        Some(lane)
    }

    /// A lane of `chip` that has been idle for so long, from the next one on.
    fn idle_lane(&self, chip: u32, idle: &Idle<'_>, idle_ns: u64) -> Option<LaneId> {
        let chip = &self.chips[chip as usize];
        let lanes = chip.lanes.iter().cycle().skip(chip.next).take(chip.lanes.len());
        let is_idle = |lane: LaneId| {
            let since = idle.loads.of(lane).idle_since_ns;
            since.is_some_and(|since| idle.now.time_ns == 0 || since + idle_ns <= idle.now.time_ns)
        };
        lanes.copied().find(|&lane| is_idle(lane))
    }

    /// A copy of a value that was read `count` times has been put on `lane`.
    pub fn copied(&mut self, lane: LaneId, count: u8) {
        let chip = &mut self.chips[self.of_lane[lane.at()] as usize];
        chip.space = chip.space.saturating_sub(1);
        chip.values += 1;
        chip.popularity += u64::from(count);
    }

    /// The chip of `lane` has taken no copy: it is not asked again until the next survey.
    pub fn refused(&mut self, lane: LaneId) {
        self.chips[self.of_lane[lane.at()] as usize].full = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worth_is_space_by_wear_and_popularity() {
        let chip = |space, values, erases, popularity| {
            let chip = Chip {
                space,
                values,
                erases,
                popularity,
                ..Chip::default()
            };
            chip.worth()
        };
        assert!((chip(100, 50, 4.0, 200) - 100.0 / (5.0 * 5.0)).abs() < 1e-12);
        assert!(chip(100, 50, 0.0, 0) > chip(99, 50, 0.0, 0));
        assert!(chip(100, 50, 1.0, 0) < chip(100, 50, 0.0, 0) && chip(100, 50, 0.0, 9) < chip(100, 50, 0.0, 0));
    }

    #[test]
    fn chips_are_numbered_without_gaps() {
        let setup = Setup {
            logical_units: 8,
            chips: vec![4, 0, 4, 9],
            seed: 1,
        };
        let chips = Chips::new(&setup);
        assert_eq!((chips.count(), chips.of_lane), (3, vec![1, 0, 1, 2]));
    }
}
