//! Where objects are born: on fresh pages, or over earlier ones of the age that the model says.

use super::{Fitted, Object, TRIM, number};
use crate::model::{together, width};

/// Requests of the wanted age that are looked at for a place.
const TRIES: u64 = 8;
/// Those and further ones beside the wanted age.
const PROBES: u64 = 40;

/// What the last page of a new object's first run should be.
#[derive(Clone, Copy, PartialEq)]
enum Tail {
    Any,
    Fresh,
    /// Touched about when the first one was, in a run of so many requests.
    Together(u64),
}

impl Fitted {
    /// Where an object is born whose first request, with its run, covers `pages` in so many `requests`.
    pub(super) fn birth(&mut self, object: &Object, op: usize, pages: u32, requests: u64) -> u32 {
        let overlap = self.model.classes[object.class as usize].overlap;
        let over = self.random.places.unit() < overlap;
        if op == TRIM {
            return self.old_place(object.class as usize, op, pages, Tail::Any);
        }
        let ahead = self.space.touched() as f64 - self.wanted_touches();
        // Within half a percent of the pages births are as their class says; beyond it they make up for the difference.
        let slack = (f64::from(self.asked.pages) * 0.005).max(4.0);
        let random = &mut self.random.places;
        let class = &self.model.classes[object.class as usize];
        let overlap = class.over.as_ref().unwrap_or(&self.model.overlap[op]);
        let end = random.unit();
        let tail = match () {
            () if pages < 2 => Tail::Any,
            () if end < overlap.fresh => Tail::Fresh,
            () if end < overlap.fresh + overlap.together => Tail::Together(requests),
            () => Tail::Any,
        };
        // References placed one by one know best themselves which of them are fresh.
        let ahead = if class.over.is_some() { ahead / 4.0 } else { ahead };
        let fresh = match over {
            true if tail == Tail::Fresh && ahead < slack => self.space.extend(pages, random),
            // Runs that begin on touched pages may go on over fresh ones.
            true if ahead < -2.0 * slack && pages > 1 => self.space.extend(pages, random),
            true if ahead < -4.0 * slack => self.space.fresh(pages, pages, random),
            true => None,
            false if class.over.is_some() && pages > 1 && tail != Tail::Fresh => {
                self.space.fresh(pages, pages.div_ceil(2), random)
            }
            false if ahead > 8.0 * slack => None,
            // A little ahead, half of a long run lies over what is behind it.
            false if ahead > 2.0 * slack => self.space.fresh(pages, pages.div_ceil(2), random),
            false => self.space.fresh(pages, pages, random),
        };
        fresh.unwrap_or_else(|| self.old_place(object.class as usize, op, pages, tail))
    }

    /// Pages that should have been touched by now.
    fn wanted_touches(&self) -> f64 {
        let pages = f64::from(self.asked.pages);
        let parts = self.model.first_touches.len();
        let at = self.given as f64 / self.episode as f64 * parts as f64;
        let share = |part: usize| match part {
            0 => 0.0,
            _ => self.model.first_touches.get(part - 1).copied().unwrap_or(1.0),
        };
        let part = at as usize;
        if parts == 0 {
            // Without a curve, pages are touched as their objects are born.
            return self.space.touched() as f64;
        }
        pages * (share(part) + (share(part + 1) - share(part)) * at.fract())
    }

    /// A touched page: of the age that the model says, where the request is remembered.
    fn old_place(&mut self, class: usize, op: usize, pages: u32, tail: Tail) -> u32 {
        let over = self.model.classes[class].over.as_ref();
        let aligned = over.unwrap_or(&self.model.overlap[op]).aligned;
        let random = &mut self.random.places;
        let ages = self.class_ages[class].as_mut().unwrap_or(&mut self.ages[op]);
        let aligned = random.unit() < aligned;
        let mut found = None;
        if let Some(edge) = ages.draw(random) {
            let edge = edge.max(1);
            let width = width(edge);
            for probe in 0..PROBES {
                // First within the bin, then farther and farther beside it.
                let (age, off) = match probe.checked_sub(TRIES) {
                    None => (edge + random.below(width), 0.0),
                    Some(far) => {
                        let by = (far / 2 + 1) * width.div_ceil(8);
                        let age = match far % 2 {
                            0 => edge.saturating_sub(by),
                            _ => edge + width - 1 + by,
                        };
                        (age, 0.1 * (far + 1) as f64)
                    }
                };
                if age == 0 || age > self.given || age > self.history.len() as u64 {
                    continue;
                }
                let request = self.given - age;
                let (start, covered) = self.history[(request % self.history.len() as u64) as usize];
                if covered == 0 {
                    continue;
                }
                let stamp = number(request);
                let from = if aligned {
                    0
                } else {
                    random.below(u64::from(covered)) as u32
                };
                // The page, or the next behind it that this request was the last to touch.
                let alive =
                    (from..covered.min(from.saturating_add(64))).find(|&at| self.space.last(start + at) == stamp);
                let Some(at) = alive else {
                    continue;
                };
                let page = start + at;
                let mut cost = off + f64::from(u8::from(aligned && at > 0));
                if !self.space.holds(page, pages) {
                    cost += 2.0;
                }
                for part in [2, 1] {
                    let last = self.space.last(page.saturating_add((pages - 1) / part));
                    let fits = match tail {
                        Tail::Any => true,
                        Tail::Fresh => part == 2 || last == 0,
                        Tail::Together(requests) => {
                            let last_age = u64::from(number(self.given).wrapping_sub(last));
                            last != 0 && together(age, last_age + requests, requests)
                        }
                    };
                    cost += f64::from(u8::from(!fits));
                }
                if found.is_none_or(|(best, _)| cost < best) {
                    found = Some((cost, page));
                }
                if cost <= off {
                    break;
                }
            }
        }
        if let Some((_, page)) = found {
            return page;
        }
        let mut page = self.space.any(random);
        for _ in 0..TRIES * TRIES {
            if self.space.last(page) != 0 {
                break;
            }
            page = self.space.any(random);
        }
        page
    }
}
