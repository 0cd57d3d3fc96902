//! One connection: a thread that reads requests, and one for replies that the client is slow to take. Replies come in any order.

use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use crate::Export;
use crate::handshake::{Agreed, negotiate};
use crate::listen::Socket;
use crate::outbox::Outbox;
use crate::protocol::{Command, MOST_PAYLOAD, REQUEST_BYTES, RequestHead, error};
use crate::request::{Budget, Message, Request};

/// A client that has not agreed on an export by then is gone.
const NEGOTIATION: Duration = Duration::from_secs(10);
/// Bytes that are read from a connection at once.
const BUFFER: usize = 256 << 10;
/// A client that takes nothing of its replies for so long is gone.
const UNREAD: Duration = Duration::from_secs(30);

/// Serves a connection until it ends.
pub fn serve(socket: Socket, exports: &[Export], unit: u32, engine: &Sender<Message>, epoch: u64) -> io::Result<()> {
    let mut socket = socket;
    socket.set_patience(Some(NEGOTIATION), Some(NEGOTIATION))?;
    let deadline = Instant::now() + NEGOTIATION;
    let agreed = negotiate(
        &mut Hurried {
            socket: &mut socket,
            deadline,
        },
        exports,
        unit,
    )?;
    let Some(agreed) = agreed else { return Ok(()) };
    socket.set_patience(None, Some(UNREAD))?;
    let budget = Arc::new(Budget::default());
    let outbox = Arc::new(Outbox::new(socket.another()?, agreed, budget.clone()));
    let (slow, out) = (outbox.clone(), socket.another()?);
    let own = thread::Builder::new()
        .name("nbd-replies".to_owned())
        .spawn(move || slow.send_slowly(out))?;
    let ended = read_requests(
        &socket,
        (&exports[agreed.export], epoch),
        agreed,
        &budget,
        &outbox,
        engine,
    );
    budget.wait_for_all();
    outbox.complete();
    let _ = own.join();
    socket.shut(Shutdown::Both);
    ended
}

/// A connection that must say what it wants before a deadline, not only something now and then.
struct Hurried<'a> {
    socket: &'a mut Socket,
    deadline: Instant,
}

impl Read for Hurried<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if Instant::now() > self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.read(into)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.socket.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read_requests(
    socket: &Socket,
    (export, epoch): (&Export, u64),
    agreed: Agreed,
    budget: &Arc<Budget>,
    outbox: &Arc<Outbox>,
    engine: &Sender<Message>,
) -> io::Result<()> {
    let mut incoming = Incoming {
        wire: BufReader::with_capacity(BUFFER, socket.another()?),
        together: Vec::new(),
        engine,
    };
    loop {
        let mut bytes = [0; REQUEST_BYTES];
        if let Err(error) = incoming.read(&mut bytes) {
            return match error.kind() {
                io::ErrorKind::UnexpectedEof => Ok(()),
                _ => Err(error),
            };
        }
        let arrived = Instant::now();
        let Some(head) = RequestHead::parse(&bytes) else {
            return Ok(());
        };
        if head.command == Command::Disconnect {
            return Ok(());
        }
        let is_write = head.command == Command::Write;
        if is_write && head.length > MOST_PAYLOAD {
            // What follows is not worth reading.
            return Ok(());
        }
        let mut fault = head.fault(export.size);
        if head.command == Command::BlockStatus && !agreed.allocation {
            fault = Some(error::EINVAL);
        }
        let carried = match head.command {
            Command::Write => head.length,
            Command::Read if fault.is_none() => head.length,
            _ => 0,
        };
        let permit = budget.acquire(u64::from(carried), || incoming.hand_over());
        let Some(permit) = permit else { return Ok(()) };
        let mut data = Vec::new();
        if is_write {
            data = vec![0; carried as usize];
            incoming.read(&mut data)?;
        }
        let request = Box::new(Request {
            head: RequestHead {
                offset: head.offset.saturating_add(export.offset),
                ..head
            },
            base: export.offset,
            export: agreed.export,
            epoch,
            data,
            arrived,
            outbox: outbox.clone(),
            permit,
        });
        match fault {
            Some(error) => request.answer_now(error),
            None => incoming.together.push(request),
        }
    }
}

/// Requests on their way to the engine. What has come together goes together, so that the engine wakes up once for it.
struct Incoming<'a> {
    wire: BufReader<Socket>,
    together: Vec<Box<Request>>,
    engine: &'a Sender<Message>,
}

impl Incoming<'_> {
    /// Reads from the connection. What has come before does not wait for it.
    fn read(&mut self, into: &mut [u8]) -> io::Result<()> {
        if self.wire.buffer().len() < into.len() {
            self.hand_over();
        }
        self.wire.read_exact(into)
    }

    fn hand_over(&mut self) {
        if self.together.is_empty() {
            return;
        }
        let requests = Message::Requests(std::mem::take(&mut self.together));
        if let Err(unsent) = self.engine.send(requests)
            && let Message::Requests(requests) = unsent.0
        {
            for request in requests {
                request.answer_now(error::ESHUTDOWN);
            }
        }
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        self.hand_over();
    }
}
