//! Writes fio's I/O logs, for `fio --read_iolog`; they are described with the [reader](crate::formats::fio).
//!
//! Each volume is a file: added and opened before its first request, closed at the end. Offsets and lengths are in
//! bytes, times in µs. Times of version 3 begin at 1, because fio takes no pause behind a line of time 0. Version 2 has
//! `wait` lines, which give the time of the next request in ms since the start: fio's code reads them so, though the
//! HOWTO says otherwise (issues 247, 756 and 1568 of axboe/fio). Times are rounded down to 1 ms there. Trims and
//! flushes (`sync`) are written; flags are not.
//!
//! Source: axboe/fio, `iolog.c` and HOWTO (trace file format).
//!
//! # Options
//! | key | meaning | default |
//! | --- | --- | --- |
//! | `version` | 3 (fio since 3.31), or 2 | 3 |
//! | `device` | what the files are called: a device or a file's path; of several volumes the name so far follows behind a `.` | the volumes' names |

use ftlab_core::{Batch, OpKind, Result};

use super::text::number;
use super::{Form, Holds, Keys, Named, VolumeNames};

pub const ENDINGS: &[&str] = &["fio", "iolog"];

pub fn new(keys: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let version = match keys.text("version").as_deref() {
        None | Some("3") => 3,
        Some("2") => 2,
        Some(other) => return Err(keys.wrong("version", other, "2 or 3")),
    };
    let device = keys.text("device");
    if let Some(name) = device.as_deref().filter(|name| !is_name(name)) {
        return Err(keys.wrong("device", name, "a name of at most 200 letters without blanks"));
    }
    let holds = Holds {
        volumes: VolumeNames::Words,
        tick_ns: Some(tick_ns(version)),
        ..Holds::reads_and_writes()
    };
    let form = Fio {
        version,
        device,
        files: Vec::new(),
        now: 0,
    };
    Ok((Box::new(form), holds.and(OpKind::Trim).and(OpKind::Flush)))
}

/// Version 3 counts µs, version 2 ms.
fn tick_ns(version: u8) -> u64 {
    if version == 3 { 1000 } else { 1_000_000 }
}

/// fio reads names with `%256s`.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 200 && name.bytes().all(|b| b.is_ascii_graphic())
}

struct Fio {
    version: u8,
    device: Option<String>,
    /// By volume; `None` until its first request.
    files: Vec<Option<Vec<u8>>>,
    /// Time of the last request, in µs; of version 2 in ms.
    now: u64,
}

impl Fio {
    fn open(&mut self, volume: usize, named: Named<'_>, out: &mut Vec<u8>) {
        let text = named.volumes.get(volume).map_or(&b"0"[..], Vec::as_slice);
        let first = self.files.iter().all(Option::is_none);
        let name = match &self.device {
            None => text.to_vec(),
            Some(device) if first => device.clone().into_bytes(),
            Some(device) => [device.as_bytes(), b".", text].concat(),
        };
        self.line(&name, b" add\n", out);
        self.line(&name, b" open\n", out);
        if self.files.len() <= volume {
            self.files.resize(volume + 1, None);
        }
        self.files[volume] = Some(name);
    }

    /// The time in version 3, the file, and what follows.
    fn line(&self, file: &[u8], rest: &[u8], out: &mut Vec<u8>) {
        if self.version == 3 {
            number(out, self.now + 1);
            out.push(b' ');
        }
        out.extend_from_slice(file);
        out.extend_from_slice(rest);
    }
}

impl Form for Fio {
    fn start(&mut self, _: &Batch, _: Named<'_>, _: &mut Holds, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(match self.version {
            3 => b"fio version 3 iolog\n",
            _ => b"fio version 2 iolog\n",
        });
        Ok(())
    }

    fn rows(&mut self, batch: &Batch, named: Named<'_>, out: &mut Vec<u8>) -> Result<()> {
        for i in 0..batch.len() {
            let volume = usize::from(batch.volume[i]);
            let now = batch.time_ns[i] / tick_ns(self.version);
            let later = now > self.now;
            self.now = now;
            if self.files.get(volume).is_none_or(Option::is_none) {
                self.open(volume, named, out);
            }
            let Some(Some(file)) = self.files.get(volume) else {
                continue;
            };
            if self.version == 2 && later {
                out.extend_from_slice(file);
                out.extend_from_slice(b" wait ");
                number(out, now);
                out.extend_from_slice(b" 0\n");
            }
            self.line(
                file,
                match batch.op[i] {
                    OpKind::Read => b" read ",
                    OpKind::Write => b" write ",
                    OpKind::Trim => b" trim ",
                    OpKind::Flush => b" sync ",
                },
                out,
            );
            number(out, batch.offset[i]);
            out.push(b' ');
            number(out, batch.length[i].into());
            out.push(b'\n');
        }
        Ok(())
    }

    fn finish(&mut self, _: Named<'_>, out: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
        for file in self.files.iter().flatten() {
            self.line(file, b" close\n", out);
        }
        Ok(None)
    }
}
