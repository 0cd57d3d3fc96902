//! A request on its way from a connection to the engine, and its reply on the way back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use serde_json::Value;

use crate::protocol::RequestHead;

/// What the engine hears.
pub enum Message {
    Request(Box<Request>),
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
    pub reply_to: Sender<Reply>,
    pub permit: Permit,
}

/// The answer to a request.
pub struct Reply {
    pub head: RequestHead,
    pub base: u64,
    /// 0: done.
    pub error: u32,
    /// Data of a read, or the extents of a block status.
    pub body: Body,
    /// Given back when the reply is dropped, which is when it is on the wire.
    _permit: Permit,
}

pub enum Body {
    None,
    Data(Vec<u8>),
    /// Length and state of each.
    Extents(Vec<(u32, u32)>),
}

impl Request {
    pub fn answer(self, error: u32, body: Body) {
        let reply = Reply {
            head: self.head,
            base: self.base,
            error,
            body,
            _permit: self.permit,
        };
        // A client that has gone away wants no answer.
        let _ = self.reply_to.send(reply);
    }
}

/// What one connection may have under way: bytes and requests.
#[derive(Default)]
pub struct Budget {
    taken: Mutex<(u64, usize)>,
    returned: Condvar,
    gone: AtomicUsize,
}

impl Budget {
    const MOST_BYTES: u64 = 32 << 20;
    const MOST_REQUESTS: usize = 256;

    /// Waits until there is room. A single request may always be under way, however large. `None`: the connection ends.
    pub fn acquire(self: &Arc<Self>, bytes: u64) -> Option<Permit> {
        let mut taken = self.taken.lock().ok()?;
        while taken.1 > 0 && (taken.0 + bytes > Self::MOST_BYTES || taken.1 >= Self::MOST_REQUESTS) {
            if self.gone.load(Ordering::Relaxed) > 0 {
                return None;
            }
            taken = self.returned.wait(taken).ok()?;
        }
        *taken = (taken.0 + bytes, taken.1 + 1);
        Some(Permit {
            budget: self.clone(),
            bytes,
        })
    }

    /// Whoever waits for room does so no longer.
    pub fn end(&self) {
        self.gone.store(1, Ordering::Relaxed);
        let _guard = self.taken.lock();
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
        if let Ok(mut taken) = self.budget.taken.lock() {
            *taken = (taken.0 - self.bytes, taken.1 - 1);
        }
        self.budget.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back_and_a_large_request_passes_alone() {
        let budget = Arc::new(Budget::default());
        let large = budget.acquire(u64::from(u32::MAX)).unwrap();
        budget.end();
        assert!(budget.acquire(1).is_none(), "no room beside it");
        drop(large);
        assert!(budget.acquire(1).is_some());
    }
}
