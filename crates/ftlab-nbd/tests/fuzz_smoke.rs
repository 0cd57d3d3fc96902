//! Drives the fuzz targets, and a real server, with bytes that no honest client sends; the same ones on every run.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ftlab_core::Stream;
use ftlab_nbd::fuzz::{fuzz_connection, fuzz_negotiation, fuzz_requests};
use ftlab_nbd::protocol::{OPTION_MAGIC, REQUEST_MAGIC};

const CASES: u32 = 20_000;

/// A negotiation as honest clients lead it: flags, then options.
fn negotiation(random: &mut Stream) -> Vec<u8> {
    let mut bytes = Vec::from(3u32.to_be_bytes());
    for _ in 0..random.below(5) {
        bytes.extend(OPTION_MAGIC.to_be_bytes());
        let option = [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 99][random.below(11) as usize];
        bytes.extend(u32::to_be_bytes(option));
        let mut data = Vec::new();
        for name in ["db", "base:allocation", ""] {
            data.extend((name.len() as u32).to_be_bytes());
            data.extend(name.as_bytes());
        }
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
    }
    bytes
}

fn requests(random: &mut Stream) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(4) {
        bytes.extend(REQUEST_MAGIC.to_be_bytes());
        bytes.extend((random.below(32) as u16).to_be_bytes());
        bytes.extend((random.below(10) as u16).to_be_bytes());
        bytes.extend(random.next_u64().to_be_bytes());
        let offset = [0, 512, 1 << 20, u64::MAX - 511, random.next_u64()][random.below(5) as usize];
        bytes.extend(offset.to_be_bytes());
        let length = [0, 512, 4096, u32::MAX, 33 << 20, random.next_u64() as u32][random.below(6) as usize];
        bytes.extend(length.to_be_bytes());
    }
    bytes
}

/// Some bytes changed, a piece lost, or the end cut off.
fn mutated(mut bytes: Vec<u8>, random: &mut Stream) -> Vec<u8> {
    for _ in 0..random.below(4) {
        let Some(at) = (!bytes.is_empty()).then(|| random.below(bytes.len() as u64) as usize) else {
            break;
        };
        match random.below(3) {
            0 => bytes[at] = random.next_u64() as u8,
            1 => bytes.truncate(at),
            _ => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
        }
    }
    bytes
}

/// Requests that lie on the export or beside it, the writes among them with their data.
fn conversation(random: &mut Stream) -> Vec<u8> {
    let mut bytes = vec![random.next_u64() as u8];
    for _ in 0..=random.below(8) {
        let command = [0, 0, 0, 1, 1, 1, 3, 4, 6, 7, 9, 2][random.below(12) as usize];
        let offset = random.below(2100) * 512;
        let mut length = [512, 4096, 512 * random.below(200), random.below(1 << 33)][random.below(4) as usize] as u32;
        if command == 1 {
            length = length.min(100_352);
        }
        bytes.extend(REQUEST_MAGIC.to_be_bytes());
        bytes.extend(u16::to_be_bytes([0, 0, 1, 8][random.below(4) as usize]));
        bytes.extend(u16::to_be_bytes(command));
        bytes.extend(random.next_u64().to_be_bytes());
        bytes.extend((if command == 3 { 0 } else { offset }).to_be_bytes());
        bytes.extend((if command == 3 { 0 } else { length }).to_be_bytes());
        if command == 1 {
            bytes.extend(std::iter::repeat_n(7, length as usize));
        }
    }
    bytes
}

fn converse(cases: u32) -> usize {
    let mut random = Stream::new(3, "fuzz");
    let each = (0..cases).map(|number| {
        let said = conversation(&mut random);
        // Every other as it should be, so that requests are taken.
        fuzz_connection(&if number % 2 == 0 {
            said
        } else {
            mutated(said, &mut random)
        })
    });
    each.sum()
}

#[test]
fn no_conversation_does_harm() {
    let taken = converse(2000);
    assert!(taken > 2000, "{taken} requests were taken");
}

#[test]
#[ignore = "takes minutes: ten million messages; built with -Zsanitizer=address for what only that finds"]
fn ten_million_messages_do_no_harm() {
    let mut random = Stream::new(4, "fuzz");
    for _ in 0..1_000_000 {
        let said = negotiation(&mut random);
        fuzz_negotiation(&mutated(said, &mut random));
        let asked = requests(&mut random);
        fuzz_requests(&mutated(asked, &mut random));
    }
    assert!(converse(2_200_000) > 2_000_000);
}

#[test]
fn no_bytes_of_a_client_do_harm() {
    let mut random = Stream::new(1, "fuzz");
    for _ in 0..CASES {
        let said = negotiation(&mut random);
        fuzz_negotiation(&mutated(said, &mut random));
        let asked = requests(&mut random);
        fuzz_requests(&mutated(asked, &mut random));
    }
}

/// Clients that send garbage, hang up in the middle, or claim data that never comes; after each an honest one is served.
#[test]
fn a_server_outlives_its_clients() {
    let server = support::Server::start();
    let mut random = Stream::new(2, "fuzz");
    for round in 0..200 {
        let mut client = UnixStream::connect(&server.socket).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut hello = [0; 18];
        client.read_exact(&mut hello).unwrap();
        let mut said = 3u32.to_be_bytes().to_vec();
        if round % 2 == 0 {
            said = mutated(negotiation(&mut random), &mut random);
        } else {
            // GO, then requests of any kind, the last of them perhaps cut off.
            said.extend(OPTION_MAGIC.to_be_bytes());
            said.extend(7u32.to_be_bytes());
            said.extend(6u32.to_be_bytes());
            said.extend([0; 6]);
            let asked = requests(&mut random);
            said.extend(mutated(asked, &mut random));
        }
        // The server may have hung up before everything is said.
        let _ = client.write_all(&said);
        drop(client);
        if round % 20 == 0 {
            server.check();
        }
    }
    server.check();
    server.stop();
}

#[test]
fn every_target_is_there_for_libfuzzer() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");
    let listed = std::fs::read_to_string(format!("{folder}/Cargo.toml")).unwrap();
    for name in ["nbd_connection", "nbd_negotiation", "nbd_requests"] {
        assert!(
            listed.contains(&format!("name = \"{name}\"")),
            "fuzz/Cargo.toml lacks {name}"
        );
        let code = std::fs::read_to_string(format!("{folder}/fuzz_targets/{name}.rs")).unwrap();
        assert!(code.contains("fuzz_target!"), "{name}");
    }
}
