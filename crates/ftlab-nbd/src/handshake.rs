//! The negotiation of a connection: which export, and how replies look.
//!
//! # Model
//! Fixed newstyle. Options are answered one by one: LIST, INFO, GO, EXPORT_NAME, ABORT, STRUCTURED_REPLY, and the metadata context
//! `base:allocation`. Everything else, TLS and extended headers among it, is answered as unsupported.
//!
//! # Not modelled
//! Oldstyle negotiation, TLS, extended headers.

use std::io::{self, Read, Write};

use crate::Export;
use crate::protocol::{
    Fields, INIT_MAGIC, MOST_OPTION, MOST_PAYLOAD, OPTION_MAGIC, OPTION_REPLY_MAGIC, SECTOR, allocation, answer,
    greeting, info, option, transmission,
};

/// Options that a client may send: more is no negotiation.
const MOST_OPTIONS: usize = 1000;

/// What was agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Number of the export.
    pub export: usize,
    pub structured: bool,
    /// Block status tells what is allocated.
    pub allocation: bool,
}

/// What an export announces.
pub fn transmission_flags(structured: bool) -> u16 {
    use transmission::{
        CAN_MULTI_CONN, HAS_FLAGS, SEND_DF, SEND_FAST_ZERO, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES,
    };
    let all = HAS_FLAGS | SEND_FLUSH | SEND_FUA | SEND_TRIM | SEND_WRITE_ZEROES | CAN_MULTI_CONN | SEND_FAST_ZERO;
    if structured { all | SEND_DF } else { all }
}

/// Negotiates; `None`: the client went away, in order or because it asked for what is not there.
pub fn negotiate(wire: &mut (impl Read + Write), exports: &[Export], unit: u32) -> io::Result<Option<Agreed>> {
    let mut hello = Vec::with_capacity(18);
    hello.extend(INIT_MAGIC.to_be_bytes());
    hello.extend(OPTION_MAGIC.to_be_bytes());
    hello.extend((greeting::FIXED_NEWSTYLE | greeting::NO_ZEROES).to_be_bytes());
    wire.write_all(&hello)?;
    let flags = u32::from_be_bytes(read(wire)?);
    let known = u32::from(greeting::FIXED_NEWSTYLE | greeting::NO_ZEROES);
    if flags & !known != 0 || flags & u32::from(greeting::FIXED_NEWSTYLE) == 0 {
        return Ok(None);
    }
    let zeroes = flags & u32::from(greeting::NO_ZEROES) == 0;
    let mut talk = Talk {
        wire,
        exports,
        unit,
        agreed: Agreed::default(),
        status_of: None,
    };
    for _ in 0..MOST_OPTIONS {
        if u64::from_be_bytes(read(talk.wire)?) != OPTION_MAGIC {
            return Ok(None);
        }
        let number = u32::from_be_bytes(read(talk.wire)?);
        let length = u32::from_be_bytes(read(talk.wire)?);
        if length > MOST_OPTION {
            // Longer data is read past, so that an honest client may go on; a dishonest one pays for what it sends.
            io::copy(&mut talk.wire.take(u64::from(length)), &mut io::sink())?;
            talk.answer(number, answer::TOO_BIG, b"")?;
            continue;
        }
        let mut data = vec![0; length as usize];
        talk.wire.read_exact(&mut data)?;
        match talk.option(number, &data, zeroes)? {
            Step::More => {}
            Step::Agreed => return Ok(Some(talk.agreed)),
            Step::Gone => return Ok(None),
        }
    }
    Ok(None)
}

enum Step {
    More,
    Agreed,
    Gone,
}

struct Talk<'a, W> {
    wire: &'a mut W,
    exports: &'a [Export],
    unit: u32,
    agreed: Agreed,
    /// The export for which a context was set: it holds for no other.
    status_of: Option<usize>,
}

impl<W: Read + Write> Talk<'_, W> {
    fn option(&mut self, number: u32, data: &[u8], zeroes: bool) -> io::Result<Step> {
        match number {
            option::EXPORT_NAME => {
                // There is no way to refuse but to hang up.
                let Some(export) = self.find(data) else {
                    return Ok(Step::Gone);
                };
                let mut reply = Vec::from(self.exports[export].size.to_be_bytes());
                reply.extend(transmission_flags(self.agreed.structured).to_be_bytes());
                if zeroes {
                    reply.extend([0; 124]);
                }
                self.wire.write_all(&reply)?;
                Ok(self.settle(export))
            }
            option::ABORT => {
                self.answer(number, answer::ACK, b"")?;
                Ok(Step::Gone)
            }
            option::LIST if data.is_empty() => {
                for export in self.exports {
                    let mut name = Vec::from((export.name.len() as u32).to_be_bytes());
                    name.extend(export.name.as_bytes());
                    self.answer(number, answer::SERVER, &name)?;
                }
                self.answered(number, answer::ACK)
            }
            option::INFO | option::GO => self.go(number, data),
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.agreed.structured = true;
                self.answered(number, answer::ACK)
            }
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(number, data),
            option::LIST | option::STRUCTURED_REPLY => self.answered(number, answer::INVALID),
            _ => self.answered(number, answer::UNSUPPORTED),
        }
    }

    fn go(&mut self, number: u32, data: &[u8]) -> io::Result<Step> {
        let mut fields = Fields(data);
        let asked = fields.text().zip(fields.u16());
        let Some((name, count)) = asked.filter(|(_, count)| fields.0.len() == 2 * usize::from(*count)) else {
            return self.answered(number, answer::INVALID);
        };
        let Some(export) = self.find(name) else {
            return self.answered(number, answer::UNKNOWN);
        };
        let export_info = &self.exports[export];
        let mut facts = Vec::from(info::EXPORT.to_be_bytes());
        facts.extend(export_info.size.to_be_bytes());
        facts.extend(transmission_flags(self.agreed.structured).to_be_bytes());
        self.answer(number, answer::INFO, &facts)?;
        let mut sizes = Vec::from(info::BLOCK_SIZE.to_be_bytes());
        sizes.extend((SECTOR as u32).to_be_bytes());
        sizes.extend(self.unit.max(SECTOR as u32).to_be_bytes());
        sizes.extend(MOST_PAYLOAD.to_be_bytes());
        self.answer(number, answer::INFO, &sizes)?;
        if (0..count).any(|_| fields.u16() == Some(info::NAME)) {
            let mut canonical = Vec::from(info::NAME.to_be_bytes());
            canonical.extend(export_info.name.as_bytes());
            self.answer(number, answer::INFO, &canonical)?;
        }
        self.answer(number, answer::ACK, b"")?;
        Ok(match number {
            option::GO => self.settle(export),
            _ => Step::More,
        })
    }

    fn contexts(&mut self, number: u32, data: &[u8]) -> io::Result<Step> {
        let mut fields = Fields(data);
        let set = number == option::SET_META_CONTEXT;
        if set {
            self.status_of = None;
        }
        let Some((name, count)) = fields.text().zip(fields.u32()) else {
            return self.answered(number, answer::INVALID);
        };
        let mut wanted = count == 0 && !set;
        for _ in 0..count {
            let Some(query) = fields.text() else {
                return self.answered(number, answer::INVALID);
            };
            wanted |= query == allocation::CONTEXT.as_bytes() || (!set && query == b"base:");
        }
        if !fields.0.is_empty() || (set && !self.agreed.structured) {
            return self.answered(number, answer::INVALID);
        }
        let Some(export) = self.find(name) else {
            return self.answered(number, answer::UNKNOWN);
        };
        if wanted {
            let id = if set { allocation::ID } else { 0 };
            let mut reply = Vec::from(id.to_be_bytes());
            reply.extend(allocation::CONTEXT.as_bytes());
            self.answer(number, answer::META_CONTEXT, &reply)?;
            if set {
                self.status_of = Some(export);
            }
        }
        self.answered(number, answer::ACK)
    }

    fn settle(&mut self, export: usize) -> Step {
        self.agreed.export = export;
        self.agreed.allocation = self.status_of == Some(export);
        Step::Agreed
    }

    /// The export of this name; the empty name is the first's.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let named = self.exports.iter().position(|export| export.name.as_bytes() == name);
        named.or_else(|| name.is_empty().then_some(0))
    }

    fn answered(&mut self, number: u32, kind: u32) -> io::Result<Step> {
        self.answer(number, kind, b"")?;
        Ok(Step::More)
    }

    fn answer(&mut self, number: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let mut reply = Vec::with_capacity(20 + data.len());
        reply.extend(OPTION_REPLY_MAGIC.to_be_bytes());
        reply.extend(number.to_be_bytes());
        reply.extend(kind.to_be_bytes());
        reply.extend((data.len() as u32).to_be_bytes());
        reply.extend(data);
        self.wire.write_all(&reply)
    }
}

fn read<const N: usize>(wire: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    wire.read_exact(&mut bytes)?;
    Ok(bytes)
}
