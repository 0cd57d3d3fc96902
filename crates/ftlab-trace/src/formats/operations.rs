//! Words, letters and numbers that tables have for operations and flags. Part of the format `csv`.

use ftlab_core::{OpKind, flags};

use super::block_events::{Rwbs, rwbs};
use super::scsi;
use crate::settings::Codes;

/// Reads one letter; other words are rarer.
#[inline]
pub fn operation(field: &[u8], codes: Option<Codes>, decimal_opcodes: bool) -> Option<Rwbs> {
    let plain = |op| Rwbs {
        op,
        flush_before: false,
        flags: 0,
    };
    match field {
        b"R" | b"r" | b"read" => Some(plain(Some(OpKind::Read))),
        b"W" | b"w" | b"write" => Some(plain(Some(OpKind::Write))),
        b"0" | b"1" => codes?.operation(u64::from(field[0] - b'0')).map(|op| plain(Some(op))),
        b"T" | b"t" => Some(plain(Some(OpKind::Trim))),
        b"" => Some(plain(None)),
        _ if decimal_opcodes && field[0].is_ascii_digit() => Some(plain(Some(scsi::decimal(field)?))),
        _ => operation_word(field, codes, plain),
    }
}

/// Whether a field has the meaning that the codes give it.
pub fn is_code(field: &[u8]) -> bool {
    let [one, other] = [Codes::ReadIsOne, Codes::ReadIsZero].map(|codes| operation(field, Some(codes), false));
    one.map(|found| found.op) != other.map(|found| found.op)
}

fn operation_word(field: &[u8], codes: Option<Codes>, plain: impl Fn(Option<OpKind>) -> Rwbs) -> Option<Rwbs> {
    if let Some(rwbs) = rwbs(field) {
        return Some(rwbs);
    }
    let mut word = [0; 16];
    let word = word.get_mut(..field.len())?;
    word.copy_from_slice(field);
    word.make_ascii_lowercase();
    let op = match &*word {
        b"read" | b"rd" | b"28" | b"0x28" | b"88" | b"0x88" | b"a8" | b"0xa8" => OpKind::Read,
        b"write" | b"wr" | b"2a" | b"0x2a" | b"8a" | b"0x8a" | b"aa" | b"0xaa" => OpKind::Write,
        b"trim" | b"discard" | b"unmap" | b"deallocate" | b"42" | b"0x42" => OpKind::Trim,
        b"flush" | b"sync" | b"fsync" | b"35" | b"0x35" | b"91" | b"0x91" => OpKind::Flush,
        b"none" | b"nan" => return Some(plain(None)),
        b"true" => codes?.operation(1)?,
        b"false" => codes?.operation(0)?,
        word => {
            // RWBS letters in lower case.
            let mut upper = [0; 16];
            let upper = upper.get_mut(..word.len())?;
            upper.copy_from_slice(word);
            upper.make_ascii_uppercase();
            return rwbs(upper);
        }
    };
    Some(plain(Some(op)))
}

#[inline]
pub fn flag_letters(field: &[u8]) -> Option<u8> {
    field.iter().try_fold(0, |bits, letter| match letter {
        b'F' | b'f' => Some(bits | flags::FUA),
        b'S' | b's' => Some(bits | flags::SYNC),
        b'M' | b'm' => Some(bits | flags::METADATA),
        b'-' => Some(bits),
        _ => None,
    })
}
