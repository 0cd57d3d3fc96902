//! Everybody who is connected: who has asked for something, and who takes replies.

use std::io;
use std::time::Duration;

use crate::connection::Connection;
use crate::poll::{Interest, Poll, Ready};
use crate::request::{Answer, Asker, Body, Client, Request};
use crate::server::Doors;

use super::places::Places;

/// Bytes that are read from a connection at once.
const ROOM: usize = 256 << 10;

pub struct Clients {
    poll: Poll,
    all: Places<(Connection, Interest)>,
    /// Answers that programs wait for that use files.
    files: Places<Answer>,
    ready: Vec<Ready>,
    /// Places of those with replies that are to be sent, or to be looked at otherwise.
    touched: Vec<usize>,
    room: Vec<u8>,
}

impl Clients {
    pub fn new(poll: Poll) -> Self {
        Clients {
            poll,
            all: Places::default(),
            files: Places::default(),
            ready: Vec::new(),
            touched: Vec::new(),
            room: vec![0; ROOM],
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A client has come in.
    pub fn enter(&mut self, connection: Connection, doors: &Doors) {
        let interest = Interest {
            reads: true,
            writes: false,
        };
        let number = connection.number;
        let place = self.all.enter((connection, interest));
        let socket = &self.all.get(place).0.socket;
        if socket.set_waiting(false).is_err() || self.poll.add(socket, place as u64, interest).is_err() {
            self.all.leave(place);
            doors.let_out(number);
        }
    }

    /// A program waits for this answer.
    pub fn waits(&mut self, answer: Answer) -> Asker {
        Asker::File(self.files.enter(answer))
    }

    /// Waits at most so long for somebody; whether there is anything to do.
    pub fn wait(&mut self, longest: Duration) -> io::Result<bool> {
        self.poll.wait(longest, &mut self.ready)
    }

    /// Takes the requests that have come. Those that were sent before all connections were broken off are no longer wanted.
    pub fn read(&mut self, epoch: u64, out: &mut Vec<Request>) {
        for ready in std::mem::take(&mut self.ready) {
            let place = ready.key as usize;
            let Some((connection, _)) = self.all.find_mut(place) else {
                continue;
            };
            self.touched.push(place);
            if connection.epoch != epoch {
                connection.give_up();
                continue;
            }
            if ready.writes {
                connection.send();
            }
            let client = Client {
                place,
                number: connection.number,
            };
            if ready.reads && connection.listens() {
                connection.read(client, &mut self.room, out);
            } else if ready.reads {
                // Nothing was asked for, so that it has gone.
                connection.give_up();
            }
        }
    }

    /// Puts a reply where it waits to be sent; of a client that has gone, nowhere. Programs that use files have theirs at once.
    pub fn answer(&mut self, request: &Request, error: u32, body: Body) {
        let Client { place, number } = match request.asker {
            Asker::Connection(client) => client,
            Asker::File(place) => return self.files.leave(place)(error, body),
        };
        if let Some((connection, _)) = self.all.find_mut(place)
            && connection.number == number
        {
            connection.answer(&request.head, request.carried, error, &body);
            if self.touched.last() != Some(&place) {
                self.touched.push(place);
            }
        }
    }

    /// Sends the replies that wait, and takes requests for which there is room then. Who is through goes out.
    pub fn send(&mut self, doors: &Doors, out: &mut Vec<Request>) {
        let touched = std::mem::take(&mut self.touched);
        for &place in &touched {
            let Some((connection, known)) = self.all.find_mut(place) else {
                continue;
            };
            let client = Client {
                place,
                number: connection.number,
            };
            connection.send();
            while connection.take(client, out) {
                connection.send();
            }
            let interest = Interest {
                reads: connection.listens(),
                writes: connection.has_unsent(),
            };
            if interest != *known && self.poll.change(&connection.socket, place as u64, interest).is_ok() {
                *known = interest;
            }
            if connection.is_over() {
                self.poll.remove(&connection.socket);
                connection.give_up();
                doors.let_out(connection.number);
                self.all.leave(place);
            }
        }
        self.touched = touched;
        self.touched.clear();
    }

    /// Who takes no replies for too long is gone.
    pub fn look_for_slow(&mut self) {
        for place in self.all.places() {
            let (connection, _) = self.all.get_mut(place);
            if connection.is_too_slow() {
                connection.give_up();
                self.touched.push(place);
            }
        }
    }
}
