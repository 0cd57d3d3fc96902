//! Where a server listens, and connections of either kind.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ftlab_core::{Error, Result};
use rustix::net::{SendFlags, send};

/// An address as NBD clients write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// `host:port`.
    Tcp(String),
}

impl FromStr for Address {
    type Err = Error;

    /// `nbd+unix:///?socket=PATH`, `nbd+unix:///PATH`, a path, `nbd://HOST:PORT`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::input(format!(
                "listen `{text}`: expected nbd+unix:///PATH, or nbd://HOST:PORT"
            ))
        };
        if let Some(rest) = text.strip_prefix("nbd+unix://") {
            let path = match rest.split_once("?socket=") {
                Some((_, path)) => path,
                None => rest,
            };
            return match path.is_empty() || path == "/" {
                true => Err(wrong()),
                false => Ok(Address::Unix(PathBuf::from(path))),
            };
        }
        if let Some(rest) = text.strip_prefix("nbd://") {
            let place = rest.trim_end_matches('/');
            let port = place.rsplit_once(':').and_then(|(host, port)| {
                let known = !host.is_empty();
                port.parse::<u16>().ok().filter(|_| known)
            });
            return match port {
                Some(_) => Ok(Address::Tcp(place.to_owned())),
                None => Err(wrong()),
            };
        }
        match text.starts_with('/') || text.starts_with('.') {
            true => Ok(Address::Unix(PathBuf::from(text))),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "nbd+unix:///?socket={}", path.display()),
            Address::Tcp(place) => write!(f, "nbd://{place}"),
        }
    }
}

/// An open door.
pub enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    pub fn open(address: &Address) -> Result<Self> {
        let refused = |error: io::Error| Error::Io(format!("listen {address}: {error}"));
        let listener = match address {
            Address::Unix(path) => {
                take_away_stale(path)?;
                Listener::Unix(UnixListener::bind(path).map_err(refused)?, path.clone())
            }
            Address::Tcp(place) => Listener::Tcp(TcpListener::bind(place).map_err(refused)?),
        };
        match &listener {
            Listener::Unix(door, _) => door.set_nonblocking(true),
            Listener::Tcp(door) => door.set_nonblocking(true),
        }
        .map_err(refused)?;
        Ok(listener)
    }

    /// Where it listens, with the port that the system chose for port 0.
    pub fn address(&self) -> Address {
        match self {
            Listener::Unix(_, path) => Address::Unix(path.clone()),
            Listener::Tcp(door) => Address::Tcp(door.local_addr().map(|at| at.to_string()).unwrap_or_default()),
        }
    }

    /// A connection, if one waits.
    pub fn accept(&self) -> io::Result<Option<Socket>> {
        let accepted = match self {
            Listener::Unix(door, _) => door.accept().map(|(socket, _)| Socket::Unix(socket)),
            Listener::Tcp(door) => door.accept().map(|(socket, _)| Socket::Tcp(socket)),
        };
        match accepted {
            Ok(socket) => {
                match &socket {
                    Socket::Unix(unix) => unix.set_nonblocking(false)?,
                    Socket::Tcp(tcp) => {
                        tcp.set_nonblocking(false)?;
                        tcp.set_nodelay(true)?;
                    }
                }
                Ok(Some(socket))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A socket that nobody listens at any more is in the way; anything else there is left alone.
fn take_away_stale(path: &std::path::Path) -> Result<()> {
    let Ok(facts) = path.symlink_metadata() else {
        return Ok(());
    };
    if !facts.file_type().is_socket() {
        return Err(Error::input(format!(
            "listen {}: a file that is no socket lies there",
            path.display()
        )));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(Error::input(format!(
            "listen {}: another server listens there",
            path.display()
        )));
    }
    std::fs::remove_file(path).map_err(|error| Error::io(path, &error))
}

/// A connection.
#[derive(Debug)]
pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub fn another(&self) -> io::Result<Self> {
        Ok(match self {
            Socket::Unix(socket) => Socket::Unix(socket.try_clone()?),
            Socket::Tcp(socket) => Socket::Tcp(socket.try_clone()?),
        })
    }

    pub fn shut(&self, how: Shutdown) {
        let _ = match self {
            Socket::Unix(socket) => socket.shutdown(how),
            Socket::Tcp(socket) => socket.shutdown(how),
        };
    }

    /// Sends what the connection takes without waiting: how many bytes.
    pub fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    /// Whether reads wait for something to come, and writes for room.
    pub fn set_waiting(&self, waits: bool) -> io::Result<()> {
        match self {
            Socket::Unix(socket) => socket.set_nonblocking(!waits),
            Socket::Tcp(socket) => socket.set_nonblocking(!waits),
        }
    }

    /// How long a read and a write may take; `None`: for ever.
    pub fn set_patience(&self, read: Option<Duration>, write: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(socket) => {
                socket.set_read_timeout(read)?;
                socket.set_write_timeout(write)
            }
            Socket::Tcp(socket) => {
                socket.set_read_timeout(read)?;
                socket.set_write_timeout(write)
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(socket) => socket.as_fd(),
            Socket::Tcp(socket) => socket.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(socket) => socket.read(into),
            Socket::Tcp(socket) => socket.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(socket) => socket.write(from),
            Socket::Tcp(socket) => socket.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_clients() {
        let unix = Address::Unix("/a/b".into());
        for text in ["nbd+unix:///?socket=/a/b", "nbd+unix:///a/b", "/a/b"] {
            assert_eq!(text.parse::<Address>().unwrap(), unix, "{text}");
        }
        assert_eq!(unix.to_string(), "nbd+unix:///?socket=/a/b");
        assert_eq!(
            "nbd://[::1]:7".parse::<Address>().unwrap(),
            Address::Tcp("[::1]:7".to_owned())
        );
        for wrong in [
            "",
            "nbd://",
            "nbd://:1",
            "nbd://a",
            "nbd://a:99999",
            "nbd+unix://",
            "http://a:1",
            "a",
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_stale_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        std::fs::write(&path, "mine").unwrap();
        assert!(Listener::open(&Address::Unix(path.clone())).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(&path).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let first = Listener::open(&Address::Unix(path.clone())).unwrap();
        assert!(Listener::open(&Address::Unix(path.clone())).is_err());
        drop(first);
        assert!(!path.exists());
    }
}
