//! Frames become text.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use xxhash_rust::xxh64::xxh64;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use super::bgzf::{self, HEAD, TAIL};
use super::{Frames, Kind};

/// A window that is larger than the largest text is of no use.
const WINDOW: u32 = 30;

/// What a thread uses again.
#[derive(Default)]
pub struct Unpacker {
    pub(super) packed: Vec<u8>,
    zstd: Option<DCtx<'static>>,
    inflate: Option<Decompress>,
}

type Said<T> = std::result::Result<T, String>;

/// What the library says of a number.
fn said(code: usize) -> String {
    match get_error_name(code) {
        "Destination buffer is too small" => "more unpacked than was said".to_owned(),
        name => name.to_lowercase(),
    }
}

impl Unpacker {
    /// All of a frame, as long as its text must be.
    pub(super) fn whole(&mut self, frames: &Frames, frame: usize, packed: &[u8], text: &mut [u8]) -> Said<()> {
        let length = match frames.kind {
            Kind::Zstd => {
                let unpacked = self.zstd().decompress(text, packed);
                unpacked.map_err(said)?
            }
            Kind::Bgzf => {
                let (read, length) = self.blocks(packed, text, frames.teller)?;
                if read < packed.len() {
                    return Err(format!(
                        "it ends within a block, where {} says otherwise",
                        frames.teller
                    ));
                }
                length
            }
        };
        if length != text.len() {
            let (wanted, teller) = (text.len(), frames.teller);
            return Err(format!("{length} bytes unpacked, and {teller} says {wanted}"));
        }
        match frames.checks.get(frame) {
            Some(&check) if check != xxh64(text, 0) as u32 => Err("its text is not that of the seek table".to_owned()),
            _ => Ok(()),
        }
    }

    /// The text of the whole blocks that begin a frame, at most as long as `text`; not checked. How long it is.
    pub(super) fn beginning(&mut self, frames: &Frames, packed: &[u8], text: &mut [u8]) -> Said<usize> {
        match frames.kind {
            Kind::Bgzf => Ok(self.blocks(packed, text, frames.teller)?.1),
            Kind::Zstd => {
                let zstd = self.zstd();
                let mut from = InBuffer::around(packed);
                let mut to = OutBuffer::around(text);
                let mut done = Ok(1);
                while from.pos() < packed.len() && done.is_ok_and(|left| left > 0) {
                    let before = (from.pos(), to.pos());
                    done = zstd.decompress_stream(&mut to, &mut from);
                    if (from.pos(), to.pos()) == before {
                        break;
                    }
                }
                let length = to.pos();
                // The next frame is not the rest of this one.
                let _ = zstd.reset(ResetDirective::SessionOnly);
                done.map_err(said)?;
                Ok(length)
            }
        }
    }

    fn zstd(&mut self) -> &mut DCtx<'static> {
        self.zstd.get_or_insert_with(|| {
            let mut context = DCtx::create();
            let _ = context.set_parameter(DParameter::WindowLogMax(WINDOW));
            context
        })
    }

    /// Whole members of BGZF, one behind the other: bytes of these, and of their text.
    fn blocks(&mut self, packed: &[u8], text: &mut [u8], teller: &str) -> Said<(usize, usize)> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(false));
        let (mut at, mut to) = (0, 0);
        while let Some(head) = packed[at..].first_chunk::<HEAD>() {
            let length =
                bgzf::length(head).ok_or_else(|| format!("no block of BGZF {at} bytes behind its beginning"))?;
            let Some(block) = packed[at..].get(..length) else { break };
            let (data, tail) = block[HEAD..].split_at(length - HEAD - TAIL);
            let number = |at: usize| u32::from_le_bytes([tail[at], tail[at + 1], tail[at + 2], tail[at + 3]]);
            let wanted = number(4) as usize;
            let Some(own) = text[to..].get_mut(..wanted) else {
                return Err(format!("more unpacked than {teller} says"));
            };
            inflate.reset(false);
            // Where nothing is expected something would be seen.
            let mut one = [0];
            let room = if wanted == 0 { &mut one[..] } else { &mut *own };
            let done = inflate.decompress(data, room, FlushDecompress::Finish);
            let is_whole = matches!(done, Ok(Status::StreamEnd)) && inflate.total_out() == wanted as u64;
            let mut sum = Crc::new();
            sum.update(own);
            if !is_whole || sum.sum() != number(0) {
                return Err(format!(
                    "the block {at} bytes behind its beginning has another sum or length than it says"
                ));
            }
            at += length;
            to += wanted;
        }
        Ok((at, to))
    }
}
