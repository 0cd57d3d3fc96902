//! What a client may send, as functions that take any bytes: they must neither panic nor allocate without bound.
//!
//! `fuzz/` at the top of the repository has a libFuzzer target for each; the test `fuzz_smoke` drives them on every run.

use std::io::{self, Read, Write};

use crate::Export;
use crate::handshake::negotiate;
use crate::protocol::{MOST_OPTION, MOST_PAYLOAD, REQUEST_BYTES, RequestHead};

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
                end.is_some_and(|end| end <= SIZE) || head.command == crate::protocol::Command::Disconnect,
                "{head:?}"
            );
            assert!(
                head.command != crate::protocol::Command::Read || head.length <= MOST_PAYLOAD,
                "{head:?}"
            );
        }
    }
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
