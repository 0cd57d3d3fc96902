//! A request on its way from a connection to the engine, and its reply on the way back.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value;

use crate::outbox::{Outbox, Reply};
use crate::protocol::RequestHead;

/// What the engine hears.
pub enum Message {
    /// Of one connection, in their order.
    Requests(Vec<Box<Request>>),
    /// A command of an operator; the answer goes back.
    Command(String, Sender<Value>),
}

/// A request of a client.
pub struct Request {
    /// As it came, but with the offset on the drive.
    pub head: RequestHead,
    /// Where the export begins, and its number.
    pub base: u64,
    pub export: usize,
    /// How often all connections had been broken off when its own was made.
    pub epoch: u64,
    /// Of a write; of a read its room.
    pub data: Vec<u8>,
    pub arrived: Instant,
    pub outbox: Arc<Outbox>,
    pub permit: Permit,
}

pub enum Body {
    None,
    Data(Vec<u8>),
    /// Length and state of each.
    Extents(Vec<(u32, u32)>),
}

impl Request {
    /// Puts the answer where its client's wait, which must be sent if one is named.
    #[must_use]
    pub fn answer(self, error: u32, body: &Body) -> Option<Arc<Outbox>> {
        let reply = Reply {
            head: self.head,
            base: self.base,
            error,
            body,
        };
        self.outbox.add(&reply, self.permit).then_some(self.outbox)
    }

    /// Answers without data, and sends it.
    pub fn answer_now(self, error: u32) {
        if let Some(outbox) = self.answer(error, &Body::None) {
            outbox.send();
        }
    }
}

/// What one connection may have under way: bytes and requests.
#[derive(Default)]
pub struct Budget {
    taken: Mutex<Taken>,
    returned: Condvar,
}

#[derive(Default)]
struct Taken {
    bytes: u64,
    requests: usize,
    /// The reader waits for room.
    is_awaited: bool,
    /// The connection ends.
    is_over: bool,
}

impl Budget {
    const MOST_BYTES: u64 = 32 << 20;
    const MOST_REQUESTS: usize = 256;

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the return of room while `must` says so, or the connection ends.
    fn wait_while<'a>(
        &'a self,
        mut taken: MutexGuard<'a, Taken>,
        must: impl Fn(&Taken) -> bool,
    ) -> MutexGuard<'a, Taken> {
        while must(&taken) && !taken.is_over {
            taken.is_awaited = true;
            taken = self.returned.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.is_awaited = false;
        taken
    }

    /// Waits until there is room, and calls `before` if it must. A single request may always be under way, however large. `None`: the
    /// connection ends.
    pub fn acquire(self: &Arc<Self>, bytes: u64, before: impl FnOnce()) -> Option<Permit> {
        let is_full = |taken: &Taken| {
            taken.requests > 0 && (taken.bytes + bytes > Self::MOST_BYTES || taken.requests >= Self::MOST_REQUESTS)
        };
        let mut taken = self.lock();
        if is_full(&taken) {
            drop(taken);
            before();
            taken = self.wait_while(self.lock(), is_full);
        }
        if is_full(&taken) {
            return None;
        }
        taken.bytes += bytes;
        taken.requests += 1;
        Some(Permit {
            budget: self.clone(),
            bytes,
        })
    }

    /// Waits until all room has come back, or the connection ends.
    pub fn wait_for_all(&self) {
        drop(self.wait_while(self.lock(), |taken| taken.requests > 0));
    }

    /// Whoever waits for room does so no longer.
    pub fn end(&self) {
        self.lock().is_over = true;
        self.returned.notify_all();
    }
}

/// Room that a request takes from its arrival until its reply is on the wire.
pub struct Permit {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.budget.lock();
        taken.bytes -= self.bytes;
        taken.requests -= 1;
        if taken.is_awaited {
            self.budget.returned.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_and_a_large_request_passes_alone() {
        let budget = Arc::new(Budget::default());
        let large = budget.acquire(u64::from(u32::MAX), || {}).unwrap();
        budget.end();
        assert!(budget.acquire(1, || {}).is_none(), "no room beside it");
        drop(large);
        assert!(budget.acquire(1, || {}).is_some());
    }
}
