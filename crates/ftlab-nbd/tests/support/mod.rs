//! A server over a device that takes ten microseconds for everything, and a client of a few lines.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use ftlab_core::faults::Faults;
use ftlab_core::{BlockDevice, Breakdown, Completion, DeviceGeometry, IoRequest, LiveDrive, PowerLoss, Status};
use ftlab_nbd::protocol::{OPTION_MAGIC, REQUEST_MAGIC};
use ftlab_nbd::store::Memory;
use ftlab_nbd::{Address, Export, Options, Pace, Report, Sockets};
use serde_json::{Value, json};

pub const SIZE: u64 = 1 << 20;
const LATENCY_NS: u64 = 10_000;

#[derive(Default)]
struct Steady {
    under_way: Vec<Completion>,
}

impl BlockDevice for Steady {
    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry {
            capacity_bytes: SIZE,
            unit_bytes: 4096,
        }
    }

    fn submit(&mut self, tag: u64, io: &IoRequest<'_>, now_ns: u64) {
        self.under_way.push(Completion {
            tag,
            op: io.op,
            status: Status::Done,
            submitted_ns: now_ns,
            done_ns: now_ns + LATENCY_NS,
            parts: Breakdown {
                flash_ns: LATENCY_NS,
                ..Breakdown::default()
            },
        });
    }

    fn next_wakeup(&mut self) -> Option<u64> {
        self.under_way.first().map(|first| first.done_ns)
    }

    fn advance(&mut self, now_ns: u64, out: &mut Vec<Completion>) {
        let done = self.under_way.partition_point(|request| request.done_ns <= now_ns);
        out.extend(self.under_way.drain(..done));
    }
}

impl LiveDrive for Steady {
    fn completed(&mut self, _: &Completion, _: u64, _: u32) {}

    fn version(&self, _: u64) -> Option<u32> {
        None
    }

    fn keeps_what_it_acknowledged(&self) -> bool {
        true
    }

    fn cut_power(&mut self) -> PowerLoss {
        PowerLoss::default()
    }

    fn figures(&mut self, _: u64) -> Value {
        json!({})
    }

    fn reset(&mut self, _: u64) {}

    fn goes_on(&mut self, _: u64) -> bool {
        true
    }

    fn content_bytes(&self) -> Option<u32> {
        None
    }
}

pub struct Server {
    pub socket: PathBuf,
    control: PathBuf,
    thread: JoinHandle<Report>,
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (socket, control) = (folder.path().join("s"), folder.path().join("c"));
        let options = Options {
            sockets: Sockets::open(&[Address::Unix(socket.clone())], Some(&control)).unwrap(),
            exports: vec![Export {
                name: String::new(),
                offset: 0,
                size: SIZE,
            }],
            pace: Pace::None,
            store: Box::new(Memory::new(SIZE, 2 * SIZE)),
            durable: false,
            folder: None,
            faults: Faults::new(1, &[]).unwrap(),
            most_connections: 1000,
        };
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut ready = |_: &[Address]| tell.send(()).unwrap();
            ftlab_nbd::serve(&mut Steady::default(), options, &mut ready).unwrap()
        });
        told.recv_timeout(Duration::from_secs(20)).unwrap();
        Server {
            socket,
            control,
            thread,
            _folder: folder,
        }
    }

    /// An honest client writes and reads back.
    pub fn check(&self) {
        let mut client = UnixStream::connect(&self.socket).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut hello = [0; 18];
        client.read_exact(&mut hello).unwrap();
        let mut said = 3u32.to_be_bytes().to_vec();
        said.extend(OPTION_MAGIC.to_be_bytes());
        // EXPORT_NAME with the empty name: size and flags follow.
        said.extend(1u32.to_be_bytes());
        said.extend(0u32.to_be_bytes());
        client.write_all(&said).unwrap();
        let mut export = [0; 10];
        client.read_exact(&mut export).unwrap();
        assert_eq!(export[..8], SIZE.to_be_bytes());
        let mut ask = |command: u16, data: &[u8], answer: usize| {
            let mut request = Vec::from(REQUEST_MAGIC.to_be_bytes());
            request.extend([0; 2]);
            request.extend(command.to_be_bytes());
            request.extend(77u64.to_be_bytes());
            request.extend(4096u64.to_be_bytes());
            request.extend(512u32.to_be_bytes());
            request.extend(data);
            client.write_all(&request).unwrap();
            let mut reply = vec![0; 16 + answer];
            client.read_exact(&mut reply).unwrap();
            assert_eq!((&reply[4..8], &reply[8..16]), (&[0; 4][..], &77u64.to_be_bytes()[..]));
            reply.split_off(16)
        };
        ask(1, &[9; 512], 0);
        assert_eq!(ask(0, &[], 512), [9; 512]);
    }

    /// Ends the service in order; its report.
    pub fn stop(self) -> Report {
        let mut line = UnixStream::connect(&self.control).unwrap();
        line.write_all(b"stop\n").unwrap();
        self.thread.join().unwrap()
    }
}
