//! Doubly linked lists of numbered things that keep their links themselves.

/// No number.
pub const NONE: u32 = u32::MAX;

/// What stands in a list.
pub trait Linked {
    /// The numbers before (towards the front) and after it.
    fn links(&self) -> [u32; 2];
    fn links_mut(&mut self) -> &mut [u32; 2];
}

/// Nothing but links.
impl Linked for [u32; 2] {
    fn links(&self) -> [u32; 2] {
        *self
    }

    fn links_mut(&mut self) -> &mut [u32; 2] {
        self
    }
}

/// Front = most recent by convention. The things are the same slice in every call.
#[derive(Clone, Copy, Debug)]
pub struct List {
    front: u32,
    back: u32,
    len: u32,
}

impl Default for List {
    fn default() -> Self {
        List::EMPTY
    }
}

impl List {
    pub const EMPTY: List = List {
        front: NONE,
        back: NONE,
        len: 0,
    };

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The most recent; `NONE` of an empty list.
    pub fn front(&self) -> u32 {
        self.front
    }

    /// The least recent.
    pub fn back(&self) -> Option<u32> {
        (self.back != NONE).then_some(self.back)
    }

    pub fn push_front<T: Linked>(&mut self, things: &mut [T], number: u32) {
        self.insert(things, number, [NONE, self.front]);
    }

    pub fn push_back<T: Linked>(&mut self, things: &mut [T], number: u32) {
        self.insert(things, number, [self.back, NONE]);
    }

    /// Puts something between two neighbours (`NONE`: an end).
    pub fn insert<T: Linked>(&mut self, things: &mut [T], number: u32, [before, after]: [u32; 2]) {
        *things[number as usize].links_mut() = [before, after];
        match before {
            NONE => self.front = number,
            before => things[before as usize].links_mut()[1] = number,
        }
        match after {
            NONE => self.back = number,
            after => things[after as usize].links_mut()[0] = number,
        }
        self.len += 1;
    }

    /// Takes out what is in this list.
    pub fn unlink<T: Linked>(&mut self, things: &mut [T], number: u32) {
        let [before, after] = things[number as usize].links();
        match before {
            NONE => self.front = after,
            before => things[before as usize].links_mut()[1] = after,
        }
        match after {
            NONE => self.back = before,
            after => things[after as usize].links_mut()[0] = before,
        }
        self.len -= 1;
    }

    /// Moves to the front what is in this list.
    #[inline]
    pub fn touch<T: Linked>(&mut self, things: &mut [T], number: u32) {
        if self.front != number {
            self.unlink(things, number);
            self.push_front(things, number);
        }
    }

    /// From the back (least recent) to the front.
    pub fn from_back<'a, T: Linked>(&self, things: &'a [T]) -> impl Iterator<Item = u32> + use<'a, T> {
        let mut at = self.back;
        std::iter::from_fn(move || {
            let thing = things.get(at as usize)?;
            Some(std::mem::replace(&mut at, thing.links()[0]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ftlab_core::Stream;

    #[test]
    fn behaves_like_a_queue() {
        let mut things = vec![[0; 2]; 9];
        let (mut list, mut model) = (List::default(), Vec::new());
        let mut random = Stream::new(5, "list");
        for _ in 0..5000 {
            let number = random.below(9) as u32;
            let held = model.iter().position(|&n| n == number);
            match (held, random.below(2)) {
                (None, 0) => {
                    list.push_front(&mut things, number);
                    model.push(number);
                }
                (None, _) => {
                    list.push_back(&mut things, number);
                    model.insert(0, number);
                }
                (Some(at), 0) => {
                    list.unlink(&mut things, number);
                    model.remove(at);
                }
                (Some(at), _) => {
                    list.touch(&mut things, number);
                    model.remove(at);
                    model.push(number);
                }
            }
            assert_eq!(list.from_back(&things).collect::<Vec<_>>(), model);
            assert_eq!(
                (list.back(), list.len() as usize),
                (model.first().copied(), model.len())
            );
        }
    }
}
