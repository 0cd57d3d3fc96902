//! Waiting for sockets, to the nanosecond.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};

/// What has happened to a socket that was added under `key`.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    pub key: u64,
    /// Something has come, or the other end has gone.
    pub reads: bool,
    /// There is room to send.
    pub writes: bool,
}

/// What one waits for, beside the end of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    pub reads: bool,
    pub writes: bool,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, self.reads);
        flags.set(epoll::EventFlags::OUT, self.writes);
        flags
    }
}

/// Sockets, and a bell that others ring.
pub struct Poll {
    epoll: OwnedFd,
    bell: Arc<OwnedFd>,
    events: Vec<epoll::Event>,
}

/// The key of the bell.
const BELL: u64 = u64::MAX;

impl Poll {
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let key = epoll::EventData::new_u64(BELL);
        epoll::add(&epoll, &bell, key, epoll::EventFlags::IN)?;
        Ok(Poll {
            epoll,
            bell,
            events: Vec::with_capacity(64),
        })
    }

    pub fn add(&self, socket: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(key),
            interest.flags(),
        )?)
    }

    pub fn change(&self, socket: &impl AsFd, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            socket,
            epoll::EventData::new_u64(key),
            interest.flags(),
        )?)
    }

    pub fn remove(&self, socket: &impl AsFd) {
        let _ = epoll::delete(&self.epoll, socket);
    }

    /// Waits at most so long for something to happen, and adds it to `ready`; a ring of the bell ends the wait as well.
    ///
    /// # Errors
    /// Those of the system; an interrupted wait is none.
    pub fn wait(&mut self, longest: Duration, ready: &mut Vec<Ready>) -> io::Result<bool> {
        if self.look(ready)? {
            return Ok(true);
        }
        if longest.is_zero() {
            return Ok(false);
        }
        // A wait of epoll's own is as coarse as milliseconds on older kernels.
        let timeout = Timespec {
            tv_sec: longest.as_secs().cast_signed(),
            tv_nsec: longest.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => Ok(false),
            Ok(_) => self.look(ready),
            Err(error) if io::Error::from(error).kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn look(&mut self, ready: &mut Vec<Ready>) -> io::Result<bool> {
        self.events.clear();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&at_once)) {
            Ok(_) => {}
            Err(error) if io::Error::from(error).kind() == ErrorKind::Interrupted => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            let (key, flags) = (event.data.u64(), event.flags);
            if key == BELL {
                let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
                continue;
            }
            let over = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            ready.push(Ready {
                key,
                reads: over || flags.contains(epoll::EventFlags::IN),
                writes: over || flags.contains(epoll::EventFlags::OUT),
            });
        }
        Ok(!self.events.is_empty())
    }
}

/// A channel whose messages ring the bell.
pub fn ringing<T>(poll: &Poll) -> (Ringing<T>, Receiver<T>) {
    let (sender, receiver) = channel();
    let ringing = Ringing {
        sender: Some(sender),
        bell: poll.bell.clone(),
    };
    (ringing, receiver)
}

/// The sending end. The bell is rung when it is dropped, too.
pub struct Ringing<T> {
    sender: Option<Sender<T>>,
    bell: Arc<OwnedFd>,
}

impl<T> Clone for Ringing<T> {
    fn clone(&self) -> Self {
        Ringing {
            sender: self.sender.clone(),
            bell: self.bell.clone(),
        }
    }
}

impl<T> Ringing<T> {
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match &self.sender {
            Some(sender) => sender.send(message)?,
            None => return Err(SendError(message)),
        }
        self.ring();
        Ok(())
    }

    fn ring(&self) {
        // A bell that is ringing already need not ring again.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

impl<T> Drop for Ringing<T> {
    fn drop(&mut self) {
        self.sender = None;
        self.ring();
    }
}
