//! Where a server listens, and connections of either kind.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ftlab_core::{Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use rustix::net::{SendFlags, send};

/// What stands as it is in the paths of an NBD URI.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

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
                "listen `{text}`: expected nbd+unix:///PATH, or nbd://HOST:PORT; names of exports are given by export"
            ))
        };
        if let Some(rest) = text.strip_prefix("nbd+unix://") {
            let path = match rest.split_once('?') {
                Some(("" | "/", query)) => query.strip_prefix("socket=").ok_or_else(wrong)?,
                Some(_) => return Err(wrong()),
                None => rest,
            };
            return match path.is_empty() || path == "/" {
                true => Err(wrong()),
                false => Ok(Address::Unix(
                    OsString::from_vec(percent_decode_str(path).collect()).into(),
                )),
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

impl Address {
    /// How clients name an export there.
    pub fn uri(&self, export: &str) -> String {
        let export = percent_encode(export.as_bytes(), PLAIN);
        match self {
            Address::Unix(path) => {
                let path = percent_encode(path.as_os_str().as_bytes(), PLAIN);
                format!("nbd+unix:///{export}?socket={path}")
            }
            Address::Tcp(place) => format!("nbd://{place}/{export}"),
        }
    }

    fn place(&self) -> Cow<'_, str> {
        match self {
            Address::Unix(path) => path.to_string_lossy(),
            Address::Tcp(place) => place.into(),
        }
    }
}

/// The sockets of a server. They are opened before anything else is touched, so that a place that cannot be had costs nothing;
/// whoever comes before the server is ready waits.
pub struct Sockets {
    pub(crate) listeners: Vec<Listener>,
    /// For commands of an operator.
    pub(crate) control: Option<Listener>,
}

impl Sockets {
    /// # Errors
    /// A place where something else lies or listens, or that the system refuses.
    pub fn open(listen: &[Address], control: Option<&Path>) -> Result<Self> {
        let opened = listen.iter().map(|address| Listener::open("listen", address));
        let listeners = opened.collect::<Result<_>>()?;
        let control = control.map(|path| Listener::open("control", &Address::Unix(path.to_owned())));
        Ok(Sockets {
            listeners,
            control: control.transpose()?,
        })
    }
}

/// An open door.
pub enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    /// `option` is what asked for it.
    fn open(option: &str, address: &Address) -> Result<Self> {
        let refused = |error: io::Error| Error::Io(format!("{option} {}: {error}", address.place()));
        let listener = match address {
            Address::Unix(path) => {
                take_away_stale(option, path)?;
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
        if let Listener::Unix(_, path) = self
            // What somebody else has put there stays.
            && path.symlink_metadata().is_ok_and(|facts| facts.file_type().is_socket())
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A socket that nobody listens at any more is in the way; anything else there is left alone.
fn take_away_stale(option: &str, path: &Path) -> Result<()> {
    let Ok(facts) = path.symlink_metadata() else {
        return Ok(());
    };
    if !facts.file_type().is_socket() {
        return Err(Error::input(format!(
            "{option} {}: a file that is no socket lies there",
            path.display()
        )));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(Error::input(format!(
            "{option} {}: another server listens there",
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
        assert_eq!(unix.uri(""), "nbd+unix:///?socket=/a/b");
        let spaced = Address::Unix("/a b".into());
        assert_eq!(spaced.uri("x?y/z"), "nbd+unix:///x%3Fy/z?socket=/a%20b");
        for text in ["nbd+unix:///?socket=/a%20b", "nbd+unix:///a%20b", "/a b"] {
            assert_eq!(text.parse::<Address>().unwrap(), spaced, "{text}");
        }
        assert_eq!(Address::Tcp("[::1]:7".to_owned()).uri("e"), "nbd://[::1]:7/e");
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
            "nbd+unix:///?foo=/a",
            "nbd+unix:///export?socket=/a",
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
        assert!(Sockets::open(&[], Some(&path)).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(&path).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let first = Sockets::open(&[], Some(&path)).unwrap();
        assert!(Sockets::open(&[], Some(&path)).is_err());
        drop(first);
        assert!(!path.exists());
        let second = Sockets::open(&[], Some(&path)).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        drop(second);
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }
}
