//! The beginning of a connection, on a thread of its own: a client that says nothing keeps nobody else waiting.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use crate::Export;
use crate::handshake::{Agreed, negotiate};
use crate::listen::Socket;

/// A client that has not agreed on an export by then is gone.
const NEGOTIATION: Duration = Duration::from_secs(10);

/// Negotiates; `None`: the client went away.
pub fn agree(socket: &mut Socket, exports: &[Export], unit: u32) -> io::Result<Option<Agreed>> {
    socket.set_patience(Some(NEGOTIATION), Some(NEGOTIATION))?;
    let deadline = Instant::now() + NEGOTIATION;
    negotiate(&mut Hurried { socket, deadline }, exports, unit)
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
