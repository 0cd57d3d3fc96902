//! One connection after its negotiation: requests come in, replies go out in any order, and nothing waits.
//!
//! What a client has under way is bounded in bytes and requests; beyond that its requests stay on the wire. A reply counts until it is sent, so
//! that a client that takes no replies can ask for no more.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::Export;
use crate::handshake::Agreed;
use crate::listen::Socket;
use crate::protocol::{
    Command, MOST_PAYLOAD, REQUEST_BYTES, RequestHead, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, allocation, chunk,
    error,
};
use crate::request::{Asker, Body, Client, Request};

/// A client that takes nothing of its replies for so long is gone.
const UNREAD: Duration = Duration::from_secs(30);
/// What a connection may have under way. A single request may always be, however large.
const MOST_BYTES: u64 = 32 << 20;
const MOST_REQUESTS: usize = 256;
/// Room that is kept for the next replies.
const KEPT: usize = 1 << 20;
/// Payloads that are larger are read to where they stay.
const DIRECT: usize = 64 << 10;

/// Bytes of data and requests.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    bytes: u64,
    requests: usize,
}

/// A request whose data is coming, or that has none.
struct Arriving {
    head: RequestHead,
    fault: Option<u32>,
    data: Vec<u8>,
    filled: usize,
    at: Instant,
}

impl Arriving {
    fn missing(&self) -> usize {
        self.data.len() - self.filled
    }
}

pub struct Connection {
    pub socket: Socket,
    /// Its number at the doors.
    pub number: u64,
    /// How often all connections had been broken off when it was made.
    pub epoch: u64,
    agreed: Agreed,
    export: Export,
    /// What has been read and belongs to no request yet.
    input: Vec<u8>,
    arriving: Option<Arriving>,
    output: Vec<u8>,
    sent: usize,
    under_way: Load,
    /// Of it, what has been answered and is not sent yet.
    answered: Load,
    /// Since when the client has taken none of its replies.
    unread: Option<Instant>,
    /// The client asks for nothing more.
    has_ended: bool,
    is_gone: bool,
}

impl Connection {
    pub fn new(socket: Socket, number: u64, epoch: u64, agreed: Agreed, export: Export) -> Self {
        Connection {
            socket,
            number,
            epoch,
            agreed,
            export,
            input: Vec::new(),
            arriving: None,
            output: Vec::new(),
            sent: 0,
            under_way: Load::default(),
            answered: Load::default(),
            unread: None,
            has_ended: false,
            is_gone: false,
        }
    }

    /// Whether a request of so many bytes may come in.
    fn has_room(&self, bytes: u64) -> bool {
        let Load { bytes: taken, requests } = self.under_way;
        requests == 0 || (taken + bytes <= MOST_BYTES && requests < MOST_REQUESTS)
    }

    /// Whether what is under way is what a client may have.
    pub fn is_within_bounds(&self) -> bool {
        let Load { bytes, requests } = self.under_way;
        requests <= 1 || (bytes <= MOST_BYTES && requests <= MOST_REQUESTS)
    }

    /// Whether anything that comes is of interest.
    pub fn listens(&self) -> bool {
        !self.has_ended && (self.arriving.is_some() || self.has_room(0)) && !self.waits_for_room()
    }

    /// There is a whole head, and no room for what it asks.
    fn waits_for_room(&self) -> bool {
        self.arriving.is_none() && self.input.len() >= REQUEST_BYTES
    }

    /// Whether replies wait for the client to take others.
    pub fn has_unsent(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Whether nothing is left to do for it.
    pub fn is_over(&self) -> bool {
        self.is_gone || (self.has_ended && self.under_way.requests == 0)
    }

    /// A write whose data will not come is none.
    fn end(&mut self) {
        self.has_ended = true;
        if let Some(write) = self.arriving.take() {
            self.under_way.bytes -= carried(&write.head, write.fault);
            self.under_way.requests -= 1;
        }
    }

    /// Nobody answers it any more.
    pub fn give_up(&mut self) {
        self.is_gone = true;
        self.socket.shut(Shutdown::Both);
    }

    pub fn is_too_slow(&self) -> bool {
        self.unread.is_some_and(|since| since.elapsed() > UNREAD)
    }

    /// Takes what has come, by way of `room`; requests go to `out`.
    pub fn read(&mut self, client: Client, room: &mut [u8], out: &mut Vec<Request>) {
        let large = self.arriving.as_mut().filter(|write| write.missing() >= DIRECT);
        let is_large = large.is_some();
        let came = match large {
            Some(write) => self.socket.read(&mut write.data[write.filled..]),
            None => self.socket.read(room),
        };
        match came {
            Ok(0) => self.end(),
            Ok(count) if is_large => {
                self.arriving.iter_mut().for_each(|write| write.filled += count);
                self.parse(&[], client, out);
            }
            Ok(count) if self.input.is_empty() => {
                let taken = self.parse(&room[..count], client, out);
                self.input.extend_from_slice(&room[taken..count]);
            }
            Ok(count) => {
                self.input.extend_from_slice(&room[..count]);
                self.take(client, out);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.give_up(),
        }
    }

    /// Takes requests from what had been read before, as far as there is room now; whether there was any.
    pub fn take(&mut self, client: Client, out: &mut Vec<Request>) -> bool {
        if self.input.is_empty() {
            return false;
        }
        let input = std::mem::take(&mut self.input);
        let taken = self.parse(&input, client, out);
        self.input = input;
        self.input.drain(..taken);
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        taken > 0
    }

    /// How many of `bytes` have become requests, or parts of one.
    fn parse(&mut self, bytes: &[u8], client: Client, out: &mut Vec<Request>) -> usize {
        let mut taken = 0;
        while !self.has_ended {
            if let Some(write) = &mut self.arriving {
                let count = write.missing().min(bytes.len() - taken);
                write.data[write.filled..][..count].copy_from_slice(&bytes[taken..][..count]);
                write.filled += count;
                taken += count;
                if write.missing() > 0 {
                    break;
                }
                let write = self.arriving.take().expect("it has just been looked at");
                self.has_come(write, client, out);
                continue;
            }
            let Some(head) = bytes[taken..].first_chunk::<REQUEST_BYTES>() else {
                break;
            };
            let Some(head) = RequestHead::parse(head) else {
                // Nothing that follows can be trusted.
                self.end();
                break;
            };
            let is_write = head.command == Command::Write;
            if head.command == Command::Disconnect || (is_write && head.length > MOST_PAYLOAD) {
                self.end();
                break;
            }
            let mut fault = head.fault(self.export.size);
            if head.command == Command::BlockStatus && !self.agreed.allocation {
                fault = Some(error::EINVAL);
            }
            let carried = carried(&head, fault);
            if !self.has_room(carried) {
                break;
            }
            taken += REQUEST_BYTES;
            self.under_way.bytes += carried;
            self.under_way.requests += 1;
            self.arriving = Some(Arriving {
                head,
                fault,
                data: vec![0; if is_write { carried as usize } else { 0 }],
                filled: 0,
                at: Instant::now(),
            });
        }
        taken
    }

    fn has_come(&mut self, request: Arriving, client: Client, out: &mut Vec<Request>) {
        let head = RequestHead {
            offset: request.head.offset.saturating_add(self.export.offset),
            ..request.head
        };
        let carried = carried(&request.head, request.fault);
        match request.fault {
            Some(error) => self.answer(&head, carried, error, &Body::None),
            None => out.push(Request {
                head,
                export: self.agreed.export,
                asker: Asker::Connection(client),
                data: request.data,
                carried,
                arrived: request.at,
            }),
        }
    }

    /// Puts a reply behind those that wait.
    pub fn answer(&mut self, head: &RequestHead, carried: u64, error: u32, body: &Body) {
        write(&mut self.output, head, self.export.offset, error, body, self.agreed);
        self.answered.bytes += carried;
        self.answered.requests += 1;
    }

    /// Sends what the client takes without waiting.
    pub fn send(&mut self) {
        while self.has_unsent() {
            match self.socket.send_now(&self.output[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.unread = None;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.unread.get_or_insert_with(Instant::now);
                    return;
                }
                Err(_) => return self.give_up(),
            }
        }
        self.output.clear();
        self.output.shrink_to(KEPT);
        self.sent = 0;
        self.under_way.bytes -= self.answered.bytes;
        self.under_way.requests -= self.answered.requests;
        self.answered = Load::default();
    }
}

/// Bytes of data that a request brings or asks for.
fn carried(head: &RequestHead, fault: Option<u32>) -> u64 {
    match head.command {
        Command::Write => head.length.into(),
        Command::Read if fault.is_none() => head.length.into(),
        _ => 0,
    }
}

fn write(wire: &mut Vec<u8>, head: &RequestHead, base: u64, error: u32, body: &Body, agreed: Agreed) {
    let cookie = head.cookie.to_be_bytes();
    let chunked = matches!(head.command, Command::Read | Command::BlockStatus);
    if !agreed.structured || !chunked {
        wire.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        wire.extend_from_slice(&error.to_be_bytes());
        wire.extend_from_slice(&cookie);
        if let (0, Body::Data(data)) = (error, body) {
            wire.extend_from_slice(data);
        }
        return;
    }
    let mut begin = |kind: u16, length: u32| {
        wire.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        wire.extend_from_slice(&chunk::DONE.to_be_bytes());
        wire.extend_from_slice(&kind.to_be_bytes());
        wire.extend_from_slice(&cookie);
        wire.extend_from_slice(&length.to_be_bytes());
    };
    match body {
        _ if error != 0 => {
            begin(chunk::ERROR, 6);
            wire.extend_from_slice(&error.to_be_bytes());
            wire.extend_from_slice(&0u16.to_be_bytes());
        }
        Body::Data(data) => {
            begin(chunk::OFFSET_DATA, 8 + data.len() as u32);
            wire.extend_from_slice(&(head.offset - base).to_be_bytes());
            wire.extend_from_slice(data);
        }
        Body::Extents(extents) => {
            begin(chunk::BLOCK_STATUS, 4 + 8 * extents.len() as u32);
            wire.extend_from_slice(&allocation::ID.to_be_bytes());
            for (length, state) in extents {
                wire.extend_from_slice(&length.to_be_bytes());
                wire.extend_from_slice(&state.to_be_bytes());
            }
        }
        Body::None => begin(chunk::NONE, 0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    const CLIENT: Client = Client { place: 0, number: 0 };

    /// A connection to 64 MiB, and the client's end of it.
    fn pair() -> (Connection, UnixStream) {
        let (ours, client) = UnixStream::pair().unwrap();
        let export = Export {
            name: String::new(),
            offset: 1 << 20,
            size: 64 << 20,
        };
        let ours = Connection::new(Socket::Unix(ours), 0, 0, Agreed::default(), export);
        ours.socket.set_waiting(false).unwrap();
        (ours, client)
    }

    fn head(command: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
        let mut bytes = Vec::from(crate::protocol::REQUEST_MAGIC.to_be_bytes());
        bytes.extend(0u16.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes
    }

    fn read(connection: &mut Connection) -> Vec<Request> {
        let (mut room, mut out) = (vec![0; 4096], Vec::new());
        for _ in 0..100 {
            if connection.listens() {
                connection.read(CLIENT, &mut room, &mut out);
            }
        }
        out
    }

    /// Wherever the bytes are cut, the same requests come of them.
    #[test]
    fn requests_come_in_any_pieces() {
        let data: Vec<u8> = (0..1024u32).map(|number| number as u8).collect();
        let wire = [head(1, 1, 0, 1024), data.clone(), head(0, 2, 512, 512)].concat();
        for cut in [1, 27, 28, 29, 500, 1052, 1053, 1079] {
            let (mut connection, mut client) = pair();
            client.write_all(&wire[..cut]).unwrap();
            let mut came = read(&mut connection);
            client.write_all(&wire[cut..]).unwrap();
            came.extend(read(&mut connection));
            let seen: Vec<_> = came
                .iter()
                .map(|request| (request.head.cookie, request.head.offset))
                .collect();
            assert_eq!(seen, [(1, 1 << 20), (2, (1 << 20) + 512)], "cut at {cut}");
            assert_eq!((&came[0].data, came[0].carried, came[1].carried), (&data, 1024, 512));
        }
    }

    /// Beyond 256 requests nothing is taken until replies are sent, and then all of it is.
    #[test]
    fn what_is_under_way_is_bounded() {
        let (mut connection, mut client) = pair();
        let wire: Vec<u8> = (0..600).flat_map(|number| head(0, number, 0, 512)).collect();
        client.write_all(&wire).unwrap();
        let mut taken = read(&mut connection);
        assert_eq!(taken.len(), MOST_REQUESTS);
        assert!(!connection.listens());
        let mut answered = 0;
        while answered < 600 {
            assert!(taken.len() <= MOST_REQUESTS);
            for request in taken.split_off(taken.len() / 2) {
                connection.answer(&request.head, request.carried, error::EIO, &Body::None);
                answered += 1;
            }
            connection.send();
            connection.take(CLIENT, &mut taken);
            taken.extend(read(&mut connection));
        }
        let mut replies = vec![0; 600 * 16];
        client.read_exact(&mut replies).unwrap();
        assert!(!connection.has_unsent());
    }

    /// A client that takes nothing is not waited for; when it does, all of it arrives.
    #[test]
    fn replies_wait_for_a_slow_client() {
        let (mut connection, mut client) = pair();
        client.write_all(&head(0, 1, 0, 8 << 20)).unwrap();
        let request = read(&mut connection).pop().unwrap();
        let data: Vec<u8> = (0..8u32 << 20).map(|number| (number >> 9) as u8).collect();
        connection.answer(&request.head, request.carried, 0, &Body::Data(data.clone()));
        connection.send();
        assert!(connection.has_unsent() && !connection.is_over());
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; 16 + (8 << 20)];
            client.read_exact(&mut all).map(|()| all)
        });
        while connection.has_unsent() {
            connection.send();
        }
        assert_eq!(reader.join().unwrap().unwrap()[16..], data);
    }

    /// Who hangs up in the middle of a write is through when everything else is answered.
    #[test]
    fn a_write_that_breaks_off_is_none() {
        let (mut connection, mut client) = pair();
        client.write_all(&head(0, 1, 0, 512)).unwrap();
        client
            .write_all(&[head(1, 2, 0, 1 << 20), vec![7; 300_000 - 28]].concat()[..100])
            .unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let came = read(&mut connection);
        assert_eq!(came.len(), 1);
        assert!(!connection.is_over());
        connection.answer(&came[0].head, came[0].carried, error::EIO, &Body::None);
        connection.send();
        assert!(connection.is_over());
    }
}
