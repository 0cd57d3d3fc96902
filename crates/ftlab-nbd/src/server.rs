//! The server as a whole: doors, sessions, the operator's socket, and the engine on the calling thread.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ftlab_core::faults::Faults;
use ftlab_core::{Error, LiveDrive, Result};
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::Export;
use crate::clock::{Clock, Pace};
use crate::connection::Connection;
use crate::engine::{Clients, Engine};
use crate::files::Files;
use crate::listen::{Address, Listener, Socket, Sockets};
use crate::poll::{Poll, Ringing, ringing};
use crate::report::Report;
use crate::request::Message;
use crate::session;
use crate::store::Store;

/// How often doors are looked at.
const DOOR: Duration = Duration::from_millis(5);
/// Longest command of an operator.
const MOST_COMMAND: u64 = 4096;

/// How a drive is served.
pub struct Options {
    pub sockets: Sockets,
    pub exports: Vec<Export>,
    pub pace: Pace,
    pub store: Box<dyn Store>,
    /// Flush and FUA also synchronise the store.
    pub durable: bool,
    /// Folder in which the exports are files.
    pub folder: Option<PathBuf>,
    pub faults: Faults,
    pub most_connections: usize,
}

/// The way in, and who is inside.
pub struct Doors {
    closed: AtomicBool,
    inside: Mutex<FxHashMap<u64, Socket>>,
    accepted: AtomicU64,
    refused: AtomicU64,
    /// How often every connection was broken off; changed under the lock of `inside`.
    epoch: AtomicU64,
}

impl Doors {
    fn new() -> Self {
        Doors {
            closed: AtomicBool::new(false),
            inside: Mutex::new(FxHashMap::default()),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
        }
    }

    /// Nobody comes in, and nobody inside may ask for more.
    pub fn close(&self) {
        if !self.closed.swap(true, Ordering::Relaxed) {
            self.shut(Shutdown::Read);
        }
    }

    pub fn are_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Every connection ends at once.
    pub fn hang_up(&self) {
        if let Ok(inside) = self.inside.lock() {
            self.epoch.fetch_add(1, Ordering::Relaxed);
            inside.values().for_each(|socket| socket.shut(Shutdown::Both));
        }
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Connections taken and refused.
    pub fn counts(&self) -> (u64, u64) {
        (
            self.accepted.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        )
    }

    fn shut(&self, how: Shutdown) {
        if let Ok(inside) = self.inside.lock() {
            inside.values().for_each(|socket| socket.shut(how));
        }
    }

    /// Room for a connection, unless there are too many: its number, and the epoch it belongs to.
    fn let_in(&self, socket: &Socket, most: usize) -> Option<(u64, u64)> {
        let mut inside = self.inside.lock().ok()?;
        if inside.len() >= most || self.are_closed() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        inside.insert(number, socket.another().ok()?);
        Some((number, self.epoch()))
    }

    pub fn let_out(&self, number: u64) {
        if let Ok(mut inside) = self.inside.lock() {
            inside.remove(&number);
        }
    }
}

/// Serves `drive` until it says that it does not go on, or an operator stops it. `ready` is told where it listens.
pub fn serve<D: LiveDrive>(drive: &mut D, options: Options, ready: &mut dyn FnMut(&[Address])) -> Result<Report> {
    let Sockets { listeners, control } = options.sockets;
    let addresses: Vec<Address> = listeners.iter().map(Listener::address).collect();
    let doors = Arc::new(Doors::new());
    let poll = Poll::new().map_err(|error| Error::Io(format!("cannot wait for connections: {error}")))?;
    let (to_engine, messages) = ringing(&poll);
    let unit = drive.geometry().unit_bytes;
    let exports: Arc<[Export]> = options.exports.into();
    let files = options.folder.as_ref();
    let files = files.map(|folder| Files::show(folder, exports.clone(), to_engine.clone()));
    let porter = Porter {
        doors: doors.clone(),
        files: files.transpose()?,
        exports,
        unit,
        most: options.most_connections,
        to_engine,
    };
    let watch = thread::Builder::new().name("nbd-doors".to_owned());
    let watching = watch
        .spawn(move || porter.watch(&listeners, control.as_ref()))
        .map_err(|error| Error::Io(format!("cannot start a thread: {error}")))?;
    ready(&addresses);
    let clock = Clock::start(options.pace);
    let clients = Clients::new(poll);
    let engine = Engine::new(
        drive,
        options.store,
        options.durable,
        clock,
        &doors,
        clients,
        options.faults,
    );
    let report = engine.run(&messages);
    let _ = watching.join();
    Ok(report)
}

/// Lets connections in.
struct Porter {
    doors: Arc<Doors>,
    /// They go when the doors close.
    #[expect(dead_code, reason = "held until then")]
    files: Option<Files>,
    exports: Arc<[Export]>,
    unit: u32,
    most: usize,
    to_engine: Ringing<Message>,
}

impl Porter {
    fn watch(self, listeners: &[Listener], control: Option<&Listener>) {
        while !self.doors.are_closed() {
            let mut quiet = true;
            for listener in listeners {
                if let Ok(Some(socket)) = listener.accept() {
                    quiet = false;
                    self.welcome(socket);
                }
            }
            if let Some(Ok(Some(socket))) = control.map(Listener::accept) {
                quiet = false;
                let to_engine = self.to_engine.clone();
                let _ = thread::Builder::new()
                    .name("nbd-control".to_owned())
                    .spawn(move || obey(socket, &to_engine));
            }
            if quiet {
                thread::sleep(DOOR);
            }
        }
    }

    fn welcome(&self, socket: Socket) {
        let Some((number, epoch)) = self.doors.let_in(&socket, self.most) else {
            return;
        };
        let (doors, exports, unit) = (self.doors.clone(), self.exports.clone(), self.unit);
        let to_engine = self.to_engine.clone();
        let started = thread::Builder::new().name("nbd-session".to_owned()).spawn(move || {
            let mut socket = socket;
            // What a client does wrong on the wire ends its own connection and nothing else.
            let agreed = session::agree(&mut socket, &exports, unit).ok().flatten();
            let connection = agreed.map(|agreed| {
                let export = exports[agreed.export].clone();
                Box::new(Connection::new(socket, number, epoch, agreed, export))
            });
            let sent = connection.map(|connection| to_engine.send(Message::Connection(connection)));
            if !matches!(sent, Some(Ok(()))) {
                doors.let_out(number);
            }
        });
        if started.is_err() {
            self.doors.let_out(number);
        }
    }
}

/// Takes commands line by line, and answers each with a line of JSON.
fn obey(socket: Socket, to_engine: &Ringing<Message>) {
    let patience = Some(Duration::from_secs(10));
    let (Ok(()), Ok(mut out)) = (socket.set_patience(patience, patience), socket.another()) else {
        return;
    };
    let mut lines = BufReader::new(socket);
    loop {
        let mut line = Vec::new();
        match lines.by_ref().take(MOST_COMMAND).read_until(b'\n', &mut line) {
            Ok(count) if count > 0 => {}
            _ => return,
        }
        // What is no text is no command either, and is answered like one that is unknown.
        let line = String::from_utf8_lossy(&line).into_owned();
        let (answer_to, answer) = mpsc::channel();
        if to_engine.send(Message::Command(line, answer_to)).is_err() {
            return;
        }
        let said = answer
            .recv()
            .unwrap_or_else(|_| json!({ "error": "the service has ended" }));
        // In one call: written piece by piece, a client that reads once would get the first of them.
        if out.write_all(format!("{said}\n").as_bytes()).is_err() {
            return;
        }
    }
}
