//! Replies on their way to a client.
//!
//! Whoever answers also sends, as far as the connection takes it at once, so that no other thread has to wake up for a reply. What a slow client
//! does not take is left to a thread of the connection's own, so that nobody else waits for it.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::handshake::Agreed;
use crate::listen::Socket;
use crate::protocol::{Command, RequestHead, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, allocation, chunk};
use crate::request::{Body, Budget, Permit};

/// Room that is kept for the next replies.
const KEPT: usize = 1 << 20;

/// The answer to a request.
pub struct Reply<'a> {
    pub head: RequestHead,
    /// Where the export begins.
    pub base: u64,
    /// 0: done.
    pub error: u32,
    pub body: &'a Body,
}

#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Given back when the bytes are on the wire.
    permits: Vec<Permit>,
    /// The connection's own thread sends, and everybody else only adds.
    is_slow: bool,
    /// No reply will be added.
    is_complete: bool,
    /// The client has gone, and wants no answer.
    is_gone: bool,
}

/// What one client has not been sent yet.
pub struct Outbox {
    socket: Socket,
    agreed: Agreed,
    budget: Arc<Budget>,
    waiting: Mutex<Waiting>,
    for_own_thread: Condvar,
}

impl Outbox {
    pub fn new(socket: Socket, agreed: Agreed, budget: Arc<Budget>) -> Self {
        Outbox {
            socket,
            agreed,
            budget,
            waiting: Mutex::new(Waiting::default()),
            for_own_thread: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reply. True: it is the first that waits, and [`Outbox::send`] must be called for it.
    pub fn add(&self, reply: &Reply<'_>, permit: Permit) -> bool {
        let mut waiting = self.lock();
        if waiting.is_gone {
            return false;
        }
        let is_first = waiting.bytes.is_empty() && !waiting.is_slow;
        write(&mut waiting.bytes, reply, self.agreed);
        waiting.permits.push(permit);
        is_first
    }

    /// Sends what the connection takes without waiting, and leaves the rest to its own thread.
    pub fn send(&self) {
        let mut waiting = self.lock();
        if waiting.is_slow || waiting.bytes.is_empty() {
            return;
        }
        let sent = match self.socket.send_now(&waiting.bytes) {
            Ok(sent) => sent,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => return self.give_up(waiting),
        };
        if sent < waiting.bytes.len() {
            waiting.bytes.drain(..sent);
            waiting.is_slow = true;
            return self.for_own_thread.notify_one();
        }
        waiting.bytes.clear();
        waiting.bytes.shrink_to(KEPT);
        waiting.permits.clear();
    }

    /// What the connection's own thread does, until the last reply is on the wire.
    pub fn send_slowly(&self, mut socket: Socket) {
        loop {
            let mut waiting = self.lock();
            while waiting.bytes.is_empty() || !waiting.is_slow {
                waiting.is_slow = false;
                if waiting.is_complete || waiting.is_gone {
                    return;
                }
                waiting = self
                    .for_own_thread
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let (bytes, permits) = (std::mem::take(&mut waiting.bytes), std::mem::take(&mut waiting.permits));
            drop(waiting);
            if socket.write_all(&bytes).is_err() {
                return self.give_up(self.lock());
            }
            drop(permits);
        }
    }

    /// Everything has been asked and answered.
    pub fn complete(&self) {
        self.lock().is_complete = true;
        self.for_own_thread.notify_one();
    }

    /// The client takes no replies any more: nobody waits for it.
    fn give_up(&self, mut waiting: MutexGuard<'_, Waiting>) {
        waiting.is_gone = true;
        waiting.bytes = Vec::new();
        waiting.permits.clear();
        drop(waiting);
        self.socket.shut(Shutdown::Both);
        self.budget.end();
        self.for_own_thread.notify_one();
    }
}

fn write(wire: &mut Vec<u8>, reply: &Reply<'_>, agreed: Agreed) {
    let cookie = reply.head.cookie.to_be_bytes();
    let chunked = matches!(reply.head.command, Command::Read | Command::BlockStatus);
    if !agreed.structured || !chunked {
        wire.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        wire.extend_from_slice(&reply.error.to_be_bytes());
        wire.extend_from_slice(&cookie);
        if let (0, Body::Data(data)) = (reply.error, reply.body) {
            wire.extend_from_slice(data);
        }
        return;
    }
    let mut head = |kind: u16, length: u32| {
        wire.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        wire.extend_from_slice(&chunk::DONE.to_be_bytes());
        wire.extend_from_slice(&kind.to_be_bytes());
        wire.extend_from_slice(&cookie);
        wire.extend_from_slice(&length.to_be_bytes());
    };
    match reply.body {
        _ if reply.error != 0 => {
            head(chunk::ERROR, 6);
            wire.extend_from_slice(&reply.error.to_be_bytes());
            wire.extend_from_slice(&0u16.to_be_bytes());
        }
        Body::Data(data) => {
            head(chunk::OFFSET_DATA, 8 + data.len() as u32);
            wire.extend_from_slice(&(reply.head.offset - reply.base).to_be_bytes());
            wire.extend_from_slice(data);
        }
        Body::Extents(extents) => {
            head(chunk::BLOCK_STATUS, 4 + 8 * extents.len() as u32);
            wire.extend_from_slice(&allocation::ID.to_be_bytes());
            for (length, state) in extents {
                wire.extend_from_slice(&length.to_be_bytes());
                wire.extend_from_slice(&state.to_be_bytes());
            }
        }
        Body::None => head(chunk::NONE, 0),
    }
}
