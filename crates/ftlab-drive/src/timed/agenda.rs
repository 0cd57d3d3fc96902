//! The agenda: one pending event per source (die, channel, timer queue) in a tournament tree.
//!
//! A die has at most one event ahead of it, and a suspension *moves* that event. So instead of a heap with stale entries
//! there is one leaf per source; changing a leaf replays one path of the tree. Equal times come out by source number.

/// No event.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy)]
struct Node {
    time: u64,
    source: u32,
}

/// Next event times of a fixed set of sources.
pub(super) struct Agenda {
    /// Node 1 is the root, nodes `width..2·width` the leaves.
    nodes: Vec<Node>,
    width: usize,
}

impl Agenda {
    pub fn new(sources: usize) -> Self {
        let width = sources.next_power_of_two().max(2);
        let nodes = (0..2 * width)
            .map(|n| Node {
                time: NEVER,
                source: n.saturating_sub(width) as u32,
            })
            .collect();
        Agenda { nodes, width }
    }

    /// The earliest event: its time ([`NEVER`] if there is none) and source.
    #[inline(always)]
    pub fn first(&self) -> (u64, u32) {
        let root = self.nodes[1];
        (root.time, root.source)
    }

    #[inline(always)]
    pub fn time_of(&self, source: usize) -> u64 {
        self.nodes[self.width + source].time
    }

    /// Sets the time of a source's only event.
    #[inline]
    pub fn set(&mut self, source: usize, time: u64) {
        let mut at = self.width + source;
        let mut winner = Node {
            time,
            source: source as u32,
        };
        self.nodes[at] = winner;
        while at > 1 {
            let other = self.nodes[at ^ 1];
            // On equal times the left child, which has the lower source, wins.
            let take_other = if at & 1 == 0 {
                other.time < winner.time
            } else {
                other.time <= winner.time
            };
            winner = if take_other { other } else { winner };
            at >>= 1;
            self.nodes[at] = winner;
        }
    }

    pub fn clear(&mut self) {
        for (n, node) in self.nodes.iter_mut().enumerate() {
            *node = Node {
                time: NEVER,
                source: n.saturating_sub(self.width) as u32,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    #[test]
    fn the_first_is_the_minimum_with_ties_to_the_lower_source() {
        for sources in [1usize, 2, 5, 41, 64] {
            let mut agenda = Agenda::new(sources);
            let mut times = vec![NEVER; sources];
            let mut draw = Stream::new(3, "agenda");
            for _ in 0..5000 {
                let source = draw.below(sources as u64) as usize;
                let time = if draw.below(5) == 0 { NEVER } else { draw.below(20) };
                agenda.set(source, time);
                times[source] = time;
                let least = *times.iter().min().unwrap();
                assert_eq!(agenda.first().0, least);
                if least != NEVER {
                    assert_eq!(
                        agenda.first().1 as usize,
                        times.iter().position(|&t| t == least).unwrap()
                    );
                }
            }
        }
    }
}
