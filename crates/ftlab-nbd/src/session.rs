//! One connection: a thread that reads requests, and one that writes replies as they come, in any order.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::Export;
use crate::handshake::{Agreed, negotiate};
use crate::listen::Socket;
use crate::protocol::{
    Command, MOST_PAYLOAD, REQUEST_BYTES, RequestHead, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, allocation, chunk,
    error,
};
use crate::request::{Body, Budget, Message, Reply, Request};

/// A client that has not agreed on an export by then is gone.
const NEGOTIATION: Duration = Duration::from_secs(10);
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
    let (reply_to, replies) = mpsc::channel();
    let out = socket.another()?;
    let writer_budget = budget.clone();
    let writer = thread::Builder::new().name("nbd-replies".to_owned()).spawn(move || {
        if write_replies(&out, &replies, agreed).is_err() {
            out.shut(Shutdown::Both);
        }
        writer_budget.end();
        // Replies that nobody will read give their room back as they are dropped.
        drop(replies);
    })?;
    let ended = read_requests(
        &socket,
        (&exports[agreed.export], epoch),
        agreed,
        &budget,
        &reply_to,
        engine,
    );
    drop(reply_to);
    let _ = writer.join();
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
    reply_to: &Sender<Reply>,
    engine: &Sender<Message>,
) -> io::Result<()> {
    let mut wire = BufReader::with_capacity(64 << 10, socket.another()?);
    loop {
        let mut bytes = [0; REQUEST_BYTES];
        if let Err(error) = wire.read_exact(&mut bytes) {
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
        let Some(permit) = budget.acquire(u64::from(carried)) else {
            return Ok(());
        };
        let mut data = Vec::new();
        if is_write {
            data = vec![0; carried as usize];
            wire.read_exact(&mut data)?;
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
            reply_to: reply_to.clone(),
            permit,
        });
        match fault {
            Some(error) => request.answer(error, Body::None),
            None => {
                if let Err(unsent) = engine.send(Message::Request(request))
                    && let Message::Request(request) = unsent.0
                {
                    request.answer(error::ESHUTDOWN, Body::None);
                }
            }
        }
    }
}

fn write_replies(socket: &Socket, replies: &Receiver<Reply>, agreed: Agreed) -> io::Result<()> {
    let mut wire = BufWriter::with_capacity(64 << 10, socket.another()?);
    while let Ok(reply) = replies.recv() {
        write_reply(&mut wire, &reply, agreed)?;
        // What has come meanwhile goes out by the same call.
        while let Ok(reply) = replies.try_recv() {
            write_reply(&mut wire, &reply, agreed)?;
        }
        wire.flush()?;
    }
    Ok(())
}

fn write_reply(wire: &mut impl Write, reply: &Reply, agreed: Agreed) -> io::Result<()> {
    let cookie = reply.head.cookie.to_be_bytes();
    let chunked = matches!(reply.head.command, Command::Read | Command::BlockStatus);
    if !agreed.structured || !chunked {
        wire.write_all(&SIMPLE_REPLY_MAGIC.to_be_bytes())?;
        wire.write_all(&reply.error.to_be_bytes())?;
        wire.write_all(&cookie)?;
        return match &reply.body {
            Body::Data(data) if reply.error == 0 => wire.write_all(data),
            _ => Ok(()),
        };
    }
    let mut head = |kind: u16, length: u32| -> io::Result<()> {
        wire.write_all(&STRUCTURED_REPLY_MAGIC.to_be_bytes())?;
        wire.write_all(&chunk::DONE.to_be_bytes())?;
        wire.write_all(&kind.to_be_bytes())?;
        wire.write_all(&cookie)?;
        wire.write_all(&length.to_be_bytes())
    };
    match &reply.body {
        _ if reply.error != 0 => {
            head(chunk::ERROR, 6)?;
            wire.write_all(&reply.error.to_be_bytes())?;
            wire.write_all(&0u16.to_be_bytes())
        }
        Body::Data(data) => {
            head(chunk::OFFSET_DATA, 8 + data.len() as u32)?;
            wire.write_all(&(reply.head.offset - reply.base).to_be_bytes())?;
            wire.write_all(data)
        }
        Body::Extents(extents) => {
            head(chunk::BLOCK_STATUS, 4 + 8 * extents.len() as u32)?;
            wire.write_all(&allocation::ID.to_be_bytes())?;
            for (length, state) in extents {
                wire.write_all(&length.to_be_bytes())?;
                wire.write_all(&state.to_be_bytes())?;
            }
            Ok(())
        }
        Body::None => head(chunk::NONE, 0),
    }
}
