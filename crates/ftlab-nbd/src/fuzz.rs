//! What a client may send, as functions that take any bytes: they must neither panic nor allocate without bound.
//!
//! `fuzz/` at the top of the repository has a libFuzzer target for each; the test `fuzz_smoke` drives them on every run.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;

use crate::Export;
use crate::connection::Connection;
use crate::handshake::{Agreed, negotiate};
use crate::listen::Socket;
use crate::protocol::{Command, MOST_OPTION, MOST_PAYLOAD, REQUEST_BYTES, RequestHead};
use crate::request::{Body, Request};

/// A client that says `bytes` in the negotiation, and listens to everything.
pub fn fuzz_negotiation(bytes: &[u8]) {
    let exports = ["", "db"].map(|name| Export {
        name: name.to_owned(),
        offset: 0,
        size: 1 << 20,
    });
    let mut client = Client { says: bytes, heard: 0 };
    if let Ok(Some(agreed)) = negotiate(&mut client, &exports, 4096) {
        assert!(agreed.export < exports.len());
    }
    // An answer is no longer than a few times what was asked.
    assert!(
        client.heard <= 1024 + 64 * bytes.len() + MOST_OPTION as usize,
        "{} bytes answered to {}",
        client.heard,
        bytes.len()
    );
}

/// A client that sends `bytes` as requests: what is accepted lies on the export and fits in memory.
pub fn fuzz_requests(bytes: &[u8]) {
    const SIZE: u64 = 1 << 20;
    for head in bytes.chunks_exact(REQUEST_BYTES) {
        let Ok(head) = head.try_into() else { continue };
        let Some(head) = RequestHead::parse(head) else { continue };
        if head.fault(SIZE).is_none() {
            let end = head.offset.checked_add(u64::from(head.length));
            assert!(
                end.is_some_and(|end| end <= SIZE) || head.command == Command::Disconnect,
                "{head:?}"
            );
            assert!(head.command != Command::Read || head.length <= MOST_PAYLOAD, "{head:?}");
        }
    }
}

/// A client that sends `bytes` in pieces whose length the first of them says, and takes every reply: what the server takes lies on the
/// export, has its data, and is bounded. How many requests those were.
pub fn fuzz_connection(bytes: &[u8]) -> usize {
    let Some((&step, bytes)) = bytes.split_first() else {
        return 0;
    };
    let export = Export {
        name: String::new(),
        offset: 1 << 20,
        size: 1 << 20,
    };
    let area = export.offset..export.offset + export.size;
    let (ours, mut client) = UnixStream::pair().expect("a pair of sockets");
    for end in [&ours, &client] {
        end.set_nonblocking(true).expect("a socket of this process");
    }
    let agreed = Agreed {
        structured: step % 2 == 0,
        allocation: step % 4 == 0,
        ..Agreed::default()
    };
    let mut connection = Connection::new(Socket::Unix(ours), 0, 0, agreed, export);
    let name = crate::request::Client { place: 0, number: 0 };
    let (mut room, mut taken, mut heard) = (vec![0; 4096], Vec::new(), vec![0; 64 << 10]);
    let mut count = 0;
    // From single bytes to 32 KiB, and not many more than forty pieces.
    let length = (1 << (step % 16)).max(bytes.len() / 40);
    for piece in bytes.chunks(length) {
        if client.write(piece).is_err() || connection.is_over() {
            break;
        }
        // So often that all of the piece has been read.
        for _ in 0..piece.len() / room.len() + 2 {
            if connection.listens() {
                connection.read(name, &mut room, &mut taken);
            }
            assert!(connection.is_within_bounds());
            count += taken.len();
            for request in taken.drain(..) {
                answer(&mut connection, &request, &area);
            }
            connection.send();
            while client.read(&mut heard).is_ok_and(|count| count > 0) {
                connection.send();
            }
            connection.take(name, &mut taken);
        }
    }
    count
}

/// Answers a request that was taken from a connection to `area`, with an error or without one.
fn answer(connection: &mut Connection, request: &Request, area: &Range<u64>) {
    let head = request.head;
    let end = head.offset.checked_add(u64::from(head.length));
    let is_there = area.contains(&head.offset) && end.is_some_and(|end| end <= area.end);
    assert!(is_there || head.command == Command::Flush, "{head:?}");
    let brought = if head.command == Command::Write { head.length } else { 0 };
    assert_eq!(request.data.len(), brought as usize, "{head:?}");
    let body = match head.command {
        Command::Read => Body::Data(vec![0; head.length as usize]),
        Command::BlockStatus => Body::Extents(vec![(head.length, 0)]),
        _ => Body::None,
    };
    connection.answer(&head, request.carried, (head.cookie % 3) as u32, &body);
}

struct Client<'a> {
    says: &'a [u8],
    heard: usize,
}

impl Read for Client<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.says.read(into)
    }
}

impl Write for Client<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.heard += from.len();
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
