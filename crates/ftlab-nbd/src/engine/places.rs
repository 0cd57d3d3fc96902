//! Things by number; numbers are used again.

/// Things by number.
pub struct Places<T> {
    all: Vec<Option<T>>,
    unused: Vec<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Places {
            all: Vec::new(),
            unused: Vec::new(),
        }
    }
}

impl<T> Places<T> {
    pub fn enter(&mut self, thing: T) -> usize {
        let place = self.unused.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[place] = Some(thing);
        place
    }

    pub fn get(&self, place: usize) -> &T {
        self.all[place].as_ref().expect("nothing has left this place")
    }

    pub fn get_mut(&mut self, place: usize) -> &mut T {
        self.all[place].as_mut().expect("nothing has left this place")
    }

    pub fn find_mut(&mut self, place: usize) -> Option<&mut T> {
        self.all.get_mut(place)?.as_mut()
    }

    /// The numbers in use.
    pub fn places(&self) -> Vec<usize> {
        (0..self.all.len()).filter(|&place| self.all[place].is_some()).collect()
    }

    pub fn leave(&mut self, place: usize) -> T {
        self.unused.push(place);
        self.all[place].take().expect("nothing leaves twice")
    }

    pub fn len(&self) -> usize {
        self.all.len() - self.unused.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&mut self) -> Vec<T> {
        self.unused.clear();
        std::mem::take(&mut self.all).into_iter().flatten().collect()
    }
}
