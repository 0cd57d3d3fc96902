//! What the driver has to react to, all of it at the present instant, in the order in which it happened.
//!
//! Nearly always there is one thing at most, which lies in a field of its own.

use std::collections::VecDeque;

use super::Event;

#[derive(Default)]
pub(super) struct Raised {
    first: Option<Event>,
    /// Those after the first.
    more: VecDeque<Event>,
}

impl Raised {
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.more.push_back(event);
        }
    }

    #[inline(always)]
    pub fn pop(&mut self) -> Option<Event> {
        let event = self.first.take()?;
        if !self.more.is_empty() {
            self.first = self.more.pop_front();
        }
        Some(event)
    }

    pub fn clear(&mut self) {
        self.first = None;
        self.more.clear();
    }
}
