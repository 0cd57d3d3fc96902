//! A request on its way from a connection to the engine, and what its reply carries.

use std::sync::mpsc::Sender;
use std::time::Instant;

use serde_json::Value;

use crate::connection::Connection;
use crate::protocol::RequestHead;

/// What the engine hears from others.
pub enum Message {
    /// A client that has agreed on an export.
    Connection(Box<Connection>),
    /// A command of an operator; the answer goes back.
    Command(String, Sender<Value>),
    /// A request to one of the files.
    Asked(Box<Request>, Answer),
}

/// Takes the error (0: none) and what a request brings.
pub type Answer = Box<dyn FnOnce(u32, Body) + Send>;

/// A connection as requests name it: its place among all, and which of those that were there it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    pub place: usize,
    pub number: u64,
}

/// Who is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asker {
    Connection(Client),
    /// A program that uses a file: the place at which the answer waits.
    File(usize),
}

/// A request of a client.
pub struct Request {
    /// As it came, but with the offset on the drive.
    pub head: RequestHead,
    /// The number of its export.
    pub export: usize,
    pub asker: Asker,
    /// Of a write.
    pub data: Vec<u8>,
    /// Bytes that it brings or asks for.
    pub carried: u64,
    pub arrived: Instant,
}

pub enum Body {
    None,
    Data(Vec<u8>),
    /// Length and state of each.
    Extents(Vec<(u32, u32)>),
}
