//! What the forms of vSCSI traces share: which SCSI commands are requests.

use ftlab_core::OpKind;

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
