//! The table of fingerprints: which contents lie where, of how many there is room for, and which of them leave.
//!
//! A fingerprint leaves when what it stands for is gone, and when room is needed. Who leaves then is the table's rule
//! ([`Eviction`]); every member of the family that keeps fingerprints keeps them here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use ftlab_core::{Error, Result};
use serde::{Deserialize, Serialize};

pub use super::nodes::Place;
use super::nodes::{By, NONE, Node, Nodes, half_hash};

mod ahead;

/// Bytes of a fingerprint in a drive's memory: 20 of a SHA-1 digest, 4 of a place, 8 of the links of its list, 4 of its chain in
/// the hash table, 4 of a count and a context.
pub const ENTRY_BYTES: u64 = 40;

/// Who leaves when there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Eviction {
    /// Whoever was found or written least recently.
    Lru,
    /// Whoever was found the fewest times (up to 255 are counted), and of those the least recent.
    #[default]
    Count,
    /// New fingerprints are in the first level; who is found comes to the front of the second. The first level's least recent
    /// leaves; and the second level's, when it has more than its share.
    TwoLevel,
    /// The least recent of the context that was worth least, as it was [credited](Fingerprints::credit).
    Contexts,
}

/// The same of a table that knows no contexts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlainEviction {
    Lru,
    #[default]
    Count,
    TwoLevel,
}

impl From<PlainEviction> for Eviction {
    fn from(rule: PlainEviction) -> Self {
        match rule {
            PlainEviction::Lru => Eviction::Lru,
            PlainEviction::Count => Eviction::Count,
            PlainEviction::TwoLevel => Eviction::TwoLevel,
        }
    }
}

/// How large a table is, and its rule: parameters that the members share.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Fingerprints; 0: any number.
    pub entries: u32,
    pub eviction: Eviction,
    /// Share of the second level.
    pub second: f64,
}

/// A fingerprint in the table, valid until the table changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found(u32);

/// A fingerprint of this context had to leave; [`Fingerprints::left_last`] says what it stood for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    pub context: u32,
}

const MOST_COUNT: u32 = 255;

/// Room that a table has from the start: a large one, or one without a bound, grows as it is filled.
fn at_once(most: u32) -> u32 {
    if most == NONE { 0 } else { most.min(1 << 20) }
}

#[derive(Clone, Copy, Debug)]
struct List {
    front: u32,
    back: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List {
            front: NONE,
            back: NONE,
            len: 0,
        }
    }
}

/// What a context was worth, and its fingerprints in the table.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    worth: u64,
    entries: u32,
    /// It stands in the order with what it is worth, or was when it was worth less.
    is_ordered: bool,
}

#[derive(Clone, Debug)]
pub struct Fingerprints {
    eviction: Eviction,
    most: u32,
    second: u32,
    nodes: Nodes,
    /// Neighbours of each node in its list, before and after it; empty where there is no bound.
    links: Vec<[u32; 2]>,
    lists: Vec<List>,
    contexts: Vec<Context>,
    /// Contexts that have fingerprints here, and some that had, the least worth first (only where they are the rule). An entry is
    /// put right when it comes first: most hits are of contexts that are worth much, and change nothing until then.
    order: BinaryHeap<Reverse<(u64, u32)>>,
    pub evicted: u64,
    /// Fingerprints that have come in.
    entered: u64,
    left_last: (u64, Place),
}

/// A table as bytes: each list from its back to its front (one in any order where there is no bound), and the worth of the contexts.
#[derive(Serialize, Deserialize)]
struct Saved {
    lists: Vec<Vec<(u64, Place, u32)>>,
    worth: Vec<u64>,
    evicted: u64,
}

impl Fingerprints {
    /// # Errors
    /// A share of the second level outside 0 to 1.
    pub fn new(policy: &str, room: Room) -> Result<Self> {
        if !(0.0..=1.0).contains(&room.second) {
            return Err(Error::input(format!(
                "dedup policy `{policy}`: second = {}, expected 0 to 1",
                room.second
            )));
        }
        let most = if room.entries == 0 { NONE } else { room.entries };
        // Nobody leaves a table without a bound, so that no order needs to be kept.
        let eviction = if most == NONE { Eviction::Lru } else { room.eviction };
        let lists = match eviction {
            Eviction::Lru => 1,
            Eviction::Count => MOST_COUNT as usize + 1,
            Eviction::TwoLevel => 2,
            Eviction::Contexts => 0,
        };
        Ok(Fingerprints {
            eviction,
            most,
            second: match most {
                NONE => NONE,
                most => (f64::from(most) * room.second) as u32,
            },
            nodes: Nodes::with_room(at_once(most)),
            links: Vec::new(),
            lists: vec![List::default(); lists],
            contexts: Vec::new(),
            order: BinaryHeap::new(),
            evicted: 0,
            entered: 0,
            left_last: (0, 0),
        })
    }

    pub fn count(&self) -> u32 {
        self.nodes.count()
    }

    /// Content and place of the fingerprint that had to leave last.
    pub fn left_last(&self) -> (u64, Place) {
        self.left_last
    }

    /// Bytes in a drive's memory: the room, or what is used of it where there is no bound.
    pub fn bytes(&self) -> u64 {
        let entries = if self.most == NONE { self.count() } else { self.most };
        u64::from(entries) * ENTRY_BYTES
    }

    pub fn clear(&mut self) {
        self.nodes = Nodes::with_room(at_once(self.most));
        self.links.clear();
        self.lists.fill(List::default());
        self.contexts.clear();
        self.order.clear();
    }

    /// Whether somebody may have to leave, in an order.
    fn is_bounded(&self) -> bool {
        self.most != NONE
    }

    #[inline]
    pub fn find(&self, content: u64) -> Option<Found> {
        self.nodes.with_content(content).map(Found)
    }

    /// Whether there is a content whose hash begins with the same 32 bits.
    #[inline]
    pub fn has_hash_of(&self, content: u64) -> bool {
        self.nodes.with_half_hash(half_hash(content))
    }

    /// How many fingerprints have come in so far: a content that was not there is not there while this stays the same.
    #[inline]
    pub fn entered(&self) -> u64 {
        self.entered
    }

    #[inline]
    pub fn place(&self, found: Found) -> Place {
        self.nodes[found.0].place
    }

    pub fn context(&self, found: Found) -> u32 {
        self.nodes[found.0].context
    }

    /// All contents with their places, in no order that means anything.
    pub fn contents(&self) -> impl Iterator<Item = (u64, Place)> + '_ {
        self.nodes.in_use().map(|node| (node.content, node.place))
    }

    /// Fingerprints of a context.
    pub fn entries_of(&self, context: u32) -> u32 {
        self.contexts.get(context as usize).map_or(0, |context| context.entries)
    }

    /// A duplicate of the fingerprint has been written. Who had to leave, if a level was full.
    pub fn hit(&mut self, found: Found) -> Option<Left> {
        if !self.is_bounded() {
            return None;
        }
        let Node { list, .. } = self.nodes[found.0];
        let to = match self.eviction {
            Eviction::Lru | Eviction::Contexts => list,
            Eviction::Count => (list + 1).min(MOST_COUNT),
            Eviction::TwoLevel => 1,
        };
        if self.lists[to as usize].front != found.0 {
            self.unlink(found.0);
            self.link(found.0, to);
        }
        let full = self.eviction == Eviction::TwoLevel && self.lists[1].len > self.second;
        full.then(|| self.evict(self.lists[1].back))
    }

    /// The context has proved to be worth something; see [`Eviction::Contexts`].
    pub fn credit(&mut self, context: u32) {
        self.grow_contexts(context);
        self.contexts[context as usize].worth += 1;
    }

    /// Nothing is known any more of what the context was worth.
    pub fn forget_worth(&mut self, context: u32) {
        self.grow_contexts(context);
        self.contexts[context as usize].worth = 0;
        self.order_anew();
    }

    /// Each context is worth half of what it was.
    pub fn halve(&mut self) {
        self.contexts.iter_mut().for_each(|context| context.worth /= 2);
        self.order_anew();
    }

    fn order_anew(&mut self) {
        self.order.clear();
        if self.eviction == Eviction::Contexts {
            for (number, context) in (0..).zip(&mut self.contexts) {
                context.is_ordered = context.entries > 0;
                if context.is_ordered {
                    self.order.push(Reverse((context.worth, number)));
                }
            }
        }
    }

    /// The context that was worth least of those that have fingerprints, of equal ones the first.
    fn least_worth(&mut self) -> Option<u32> {
        while let Some(mut first) = self.order.peek_mut() {
            let Reverse((worth, number)) = *first;
            let context = &mut self.contexts[number as usize];
            if context.entries == 0 {
                context.is_ordered = false;
                PeekMut::pop(first);
            } else if context.worth != worth {
                *first = Reverse((context.worth, number));
            } else {
                return Some(number);
            }
        }
        None
    }

    #[inline]
    fn grow_contexts(&mut self, context: u32) {
        let knows = |len: usize| len > context as usize;
        if !knows(self.contexts.len()) || (self.eviction == Eviction::Contexts && !knows(self.lists.len())) {
            self.grow_contexts_to(context);
        }
    }

    #[cold]
    fn grow_contexts_to(&mut self, context: u32) {
        if self.contexts.len() <= context as usize {
            self.contexts.resize(context as usize + 1, Context::default());
        }
        if self.eviction == Eviction::Contexts && self.lists.len() <= context as usize {
            self.lists.resize(context as usize + 1, List::default());
        }
    }

    /// A new fingerprint of a context. Who had to leave for it. One that is there already stays as it is.
    pub fn insert(&mut self, content: u64, place: Place, context: u32) -> Option<Left> {
        match self.nodes.with_content(content) {
            Some(_) => None,
            None => self.insert_absent(content, place, context),
        }
    }

    /// As [`Fingerprints::insert`], of one that is known not to be there.
    pub fn insert_absent(&mut self, content: u64, place: Place, context: u32) -> Option<Left> {
        debug_assert!(
            self.nodes.with_content(content).is_none(),
            "content {content:#x} is there already"
        );
        self.entered += 1;
        self.grow_contexts(context);
        let node = Node::new(content, place, context);
        let (number, left) = if self.count() >= self.most {
            let number = self.victim();
            let before = self.taken_over(number, node);
            (number, Some(Left { context: before }))
        } else {
            (self.nodes.add(node), None)
        };
        self.link(number, self.list_of_new(context));
        self.counted(context, 1);
        left
    }

    /// As an eviction of fingerprint `number`, which gets to be that of `node` and is in no list yet. The context that it was of.
    #[inline]
    fn taken_over(&mut self, number: u32, node: Node) -> u32 {
        self.evicted += 1;
        self.prefetch_evictions_after(number);
        self.unlink(number);
        let before = self.nodes.exchange(number, node);
        self.counted(before.context, -1);
        self.left_last = (before.content, before.place);
        before.context
    }

    /// As [`Fingerprints::gone`] and [`Fingerprints::insert_absent`] of one place. Nobody has to leave where there was a fingerprint.
    #[inline]
    pub fn replace(&mut self, place: Place, content: u64, context: u32) -> Option<Left> {
        let Some(number) = self.nodes.at_place(place) else {
            return self.insert_absent(content, place, context);
        };
        debug_assert!(
            self.nodes.with_content(content).is_none(),
            "content {content:#x} is there already"
        );
        self.entered += 1;
        self.grow_contexts(context);
        self.unlink(number);
        let before = self.nodes.replace(number, content, context);
        self.counted(before, -1);
        self.counted(context, 1);
        self.link(number, self.list_of_new(context));
        None
    }

    /// The list that a new fingerprint of a context comes into.
    #[inline]
    fn list_of_new(&self, context: u32) -> u32 {
        match self.eviction {
            Eviction::Contexts => context,
            Eviction::Lru | Eviction::Count | Eviction::TwoLevel => 0,
        }
    }

    /// What was at a place is known by another one.
    pub fn renamed(&mut self, old: Place, new: Place) {
        if let Some(number) = self.nodes.at_place(old) {
            self.nodes.rename(number, new);
        }
    }

    /// What was at a place is gone, and with it its fingerprint. Whether there was one.
    #[inline]
    pub fn gone(&mut self, place: Place) -> bool {
        let number = self.nodes.at_place(place);
        number.map(|number| self.remove(number)).is_some()
    }

    fn victim(&mut self) -> u32 {
        let of = match self.eviction {
            Eviction::Lru => 0,
            Eviction::Count | Eviction::TwoLevel => {
                let mut lists = self.lists.iter();
                lists.position(|list| list.len > 0).unwrap_or(0)
            }
            Eviction::Contexts => self.least_worth().unwrap_or(0) as usize,
        };
        self.lists[of].back
    }

    fn evict(&mut self, number: u32) -> Left {
        self.evicted += 1;
        self.prefetch_evictions_after(number);
        let Node {
            content,
            place,
            context,
            ..
        } = self.remove(number);
        self.left_last = (content, place);
        Left { context }
    }

    fn remove(&mut self, number: u32) -> Node {
        self.unlink(number);
        let node = self.nodes.remove(number);
        self.counted(node.context, -1);
        node
    }

    /// A context has one fingerprint more or less.
    #[inline]
    fn counted(&mut self, context: u32, more: i32) {
        let of = &mut self.contexts[context as usize];
        of.entries = of.entries.wrapping_add_signed(more);
        if self.eviction == Eviction::Contexts && of.entries > 0 && !of.is_ordered {
            of.is_ordered = true;
            self.order.push(Reverse((of.worth, context)));
        }
    }

    fn link(&mut self, number: u32, list: u32) {
        if !self.is_bounded() {
            return;
        }
        let ends = &mut self.lists[list as usize];
        let old = std::mem::replace(&mut ends.front, number);
        ends.len += 1;
        if old == NONE {
            ends.back = number;
        } else {
            self.links[old as usize][0] = number;
        }
        if self.links.len() == number as usize {
            self.links.push([NONE; 2]);
        }
        self.links[number as usize] = [NONE, old];
        self.nodes[number].list = list;
    }

    fn unlink(&mut self, number: u32) {
        if !self.is_bounded() {
            return;
        }
        let [before, after] = self.links[number as usize];
        let ends = &mut self.lists[self.nodes[number].list as usize];
        ends.len -= 1;
        match before {
            NONE => ends.front = after,
            before => self.links[before as usize][1] = after,
        }
        match after {
            NONE => ends.back = before,
            after => self.links[after as usize][0] = before,
        }
    }

    /// The most fingerprints of the second level.
    pub fn most_in_second(&self) -> u32 {
        self.second
    }

    /// A table with other room and the same rule, in which each fingerprint gives way to several, in its list and one after the other.
    ///
    /// # Panics
    /// If there is no room for them, or two of them are equal.
    pub fn each_made_of<I>(&self, room: Room, parts: impl Fn(u64, Place) -> I) -> Fingerprints
    where
        I: Iterator<Item = (u64, Place)>,
    {
        let mut made = Fingerprints::new("", room).expect("the share is that of another table");
        let mut take_over = |node: &Node, list: u32, parts: I| {
            for (content, place) in parts {
                let left = made.insert_absent(content, place, node.context);
                assert!(left.is_none(), "there is room");
                let number = made.nodes.with_content(content).expect("it has just come in");
                made.unlink(number);
                made.link(number, list);
            }
        };
        if self.is_bounded() {
            for (list, ends) in (0..).zip(&self.lists) {
                let mut next = ends.back;
                while let Some(node) = self.nodes.get(next) {
                    take_over(node, list, parts(node.content, node.place));
                    next = self.links[next as usize][0];
                }
            }
        } else {
            let nodes = self.nodes.in_use();
            nodes.for_each(|node| take_over(node, 0, parts(node.content, node.place)));
        }
        made
    }

    /// The table for a saved state.
    pub fn to_saved(&self) -> impl Serialize + use<> {
        let entry = |node: &Node| (node.content, node.place, node.context);
        let from_back = |list: &List| {
            let mut next = list.back;
            let mut entries = Vec::with_capacity(list.len as usize);
            while let Some(node) = self.nodes.get(next) {
                entries.push(entry(node));
                next = self.links[next as usize][0];
            }
            entries
        };
        Saved {
            lists: match self.is_bounded() {
                true => self.lists.iter().map(from_back).collect(),
                false => vec![self.nodes.in_use().map(entry).collect()],
            },
            worth: self.contexts.iter().map(|context| context.worth).collect(),
            evicted: self.evicted,
        }
    }
}

/// What [`Fingerprints::to_saved`] has made bytes of.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct SavedTable(Saved);

impl Fingerprints {
    /// Takes over a saved table.
    ///
    /// # Errors
    /// One of another rule or with more entries than there is room for.
    pub fn take_over(&mut self, SavedTable(saved): SavedTable) -> std::result::Result<(), String> {
        let entries: usize = saved.lists.iter().map(Vec::len).sum();
        let lists = saved.lists.len();
        let by_list = self.is_bounded() && self.eviction != Eviction::Contexts;
        if entries > self.most as usize || (by_list && lists != self.lists.len()) {
            return Err(format!(
                "{entries} fingerprints in {lists} lists, which is no table with this room and rule"
            ));
        }
        self.clear();
        for (number, worth) in saved.worth.into_iter().enumerate() {
            self.grow_contexts(number as u32);
            self.contexts[number].worth = worth;
        }
        for (list, entries) in saved.lists.into_iter().enumerate() {
            for (content, place, context) in entries {
                self.insert(content, place, context);
                let number = self.nodes.with_content(content).expect("it has just come in");
                if self.nodes[number].list != list as u32 {
                    self.unlink(number);
                    self.link(number, list as u32);
                }
            }
        }
        self.evicted = saved.evicted;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;

    use super::*;
    use crate::learnt;

    /// The same table as a list of (content, place, context, level or count), the most recent last.
    struct Naive {
        room: Room,
        entries: Vec<(u64, Place, u32, u32)>,
        worth: [u64; 4],
    }

    impl Naive {
        fn second(&self) -> usize {
            (f64::from(self.room.entries) * self.room.second) as usize
        }

        fn of_level(&self, level: u32) -> usize {
            self.entries.iter().filter(|entry| entry.3 == level).count()
        }

        fn victim(&self) -> usize {
            let numbered = || self.entries.iter().enumerate();
            let least = match self.room.eviction {
                Eviction::Lru => Some(0),
                Eviction::Count | Eviction::TwoLevel => {
                    numbered().min_by_key(|(at, entry)| (entry.3, *at)).map(|(at, _)| at)
                }
                Eviction::Contexts => numbered()
                    .min_by_key(|(at, entry)| (self.worth[entry.2 as usize], entry.2, *at))
                    .map(|(at, _)| at),
            };
            least.expect("the table is full")
        }

        fn write(&mut self, content: u64, place: Place, context: u32) -> bool {
            if let Some(at) = self.entries.iter().position(|entry| entry.0 == content) {
                let mut entry = self.entries.remove(at);
                entry.3 = match self.room.eviction {
                    Eviction::Lru | Eviction::Contexts => 0,
                    Eviction::Count => (entry.3 + 1).min(255),
                    Eviction::TwoLevel => 1,
                };
                self.worth[entry.2 as usize] += 1;
                self.entries.push(entry);
                let bounded = self.room.entries > 0;
                if bounded && self.room.eviction == Eviction::TwoLevel && self.of_level(1) > self.second() {
                    let oldest = self
                        .entries
                        .iter()
                        .position(|entry| entry.3 == 1)
                        .expect("one of the level");
                    self.entries.remove(oldest);
                }
                return true;
            }
            if self.room.entries > 0 && self.entries.len() == self.room.entries as usize {
                self.entries.remove(self.victim());
            }
            self.entries.push((content, place, context, 0));
            false
        }
    }

    #[test]
    fn every_rule_is_that_of_a_plain_list() {
        let rules = [Eviction::Lru, Eviction::Count, Eviction::TwoLevel, Eviction::Contexts];
        for (eviction, entries) in rules
            .into_iter()
            .flat_map(|rule| [0, 1, 2, 7, 30].map(|entries| (rule, entries)))
        {
            let room = Room {
                entries,
                eviction,
                second: 0.4,
            };
            let mut table = Fingerprints::new("test", room).unwrap();
            let mut naive = Naive {
                room,
                entries: Vec::new(),
                worth: [0; 4],
            };
            let mut random = Stream::new(u64::from(entries), "table");
            for step in 0..4000 {
                let content = random.below(20) + random.below(40);
                let what = format!("{eviction:?} with room for {entries}, step {step}");
                match random.below(10) {
                    0 => {
                        let at = naive.entries.iter().position(|entry| entry.0 == content);
                        let place = at.map_or(9999, |at| naive.entries.remove(at).1);
                        assert_eq!(table.gone(place), at.is_some(), "{what}");
                    }
                    1 => {
                        let entry = naive.entries.iter_mut().find(|entry| entry.0 == content);
                        if let Some(entry) = entry {
                            table.renamed(entry.1, entry.1 + 100_000);
                            entry.1 += 100_000;
                        }
                    }
                    2 => {
                        let bytes = learnt::save(&table.to_saved());
                        table.take_over(learnt::load(&bytes).unwrap()).unwrap();
                    }
                    _ => {
                        let context = random.below(4) as u32;
                        let found = table.find(content);
                        let mut place = step;
                        match found {
                            Some(found) => {
                                table.credit(table.context(found));
                                table.hit(found);
                            }
                            None if random.below(3) == 0 => {
                                // The unit that was there is overwritten, if there is one.
                                place = naive.entries.first().map_or(step, |entry| entry.1);
                                naive.entries.retain(|entry| entry.1 != place);
                                table.replace(place, content, context);
                            }
                            None => {
                                table.insert(content, step, context);
                            }
                        }
                        assert_eq!(naive.write(content, place, context), found.is_some(), "{what}");
                    }
                }
                let mut kept: Vec<(u64, Place)> = table
                    .contents()
                    .map(|(content, _)| (content, table.place(table.find(content).unwrap())))
                    .collect();
                let mut expected: Vec<_> = naive.entries.iter().map(|entry| (entry.0, entry.1)).collect();
                kept.sort_unstable();
                expected.sort_unstable();
                assert_eq!(kept, expected, "{what}");
            }
        }
    }
}
