//! What the forms of vSCSI traces share: which SCSI commands are requests.

use ftlab_core::OpKind;

/// UNMAP.
pub const UNMAP: u8 = 0x42;

/// The operation of a code written as a decimal number.
pub fn decimal(text: &[u8]) -> Option<OpKind> {
    match std::str::from_utf8(text).ok()?.parse().ok()? {
        UNMAP => Some(OpKind::Trim),
        code => operation(code),
    }
}

/// Whether these texts of operations have SCSI opcodes in decimal: one that only decimal numbers have (42 is WRITE so, and
/// UNMAP in hexadecimal), and none that only hexadecimal ones have.
pub fn are_decimal(texts: &[&[u8]]) -> bool {
    let hexadecimal = |text: &&[u8]| {
        let text = text.to_ascii_lowercase();
        text.starts_with(b"0x") || matches!(&*text, b"28" | b"2a" | b"35" | b"88" | b"8a" | b"91" | b"a8" | b"aa")
    };
    // 8 and 10, READ and WRITE of 6 bytes, may be anything.
    let telling = |text: &&[u8]| !matches!(*text, b"8" | b"08" | b"10") && decimal(text).is_some();
    texts.iter().any(telling) && !texts.iter().any(hexadecimal)
}

/// SBC-4 and SPC-4: reads and writes of 6, 10, 12 and 16 bytes, writes with verification among them, and SYNCHRONIZE CACHE.
#[inline]
pub fn operation(code: u8) -> Option<OpKind> {
    match code {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(OpKind::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(OpKind::Write),
        0x35 | 0x91 => Some(OpKind::Flush),
        _ => None,
    }
}
