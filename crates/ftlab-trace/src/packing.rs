//! Compressed files: told by their first bytes, unpacked as a stream, within bounds of memory.

use std::io::{self, BufRead, Read};

/// First bytes that [`Packing::of`] looks at.
pub const MAGIC_BYTES: usize = 10;
/// Memory that unpacking xz may take; its highest level takes 65 MiB.
const XZ_MEMORY: u64 = 256 << 20;
/// Zstandard streams may ask for a window this large (as a power of two) and no larger.
const ZSTD_WINDOW_LOG: u32 = 27;

/// How a file is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    Plain,
    Gzip,
    Bzip2,
    Xz,
    Zstandard,
}

impl Packing {
    /// The packing of a file that begins with these bytes.
    pub fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            // Level, then the mark of a block (the digits of pi) or of the end (those of its root).
            [b'B', b'Z', b'h', b'1'..=b'9', mark @ ..] if BLOCK.starts_with(mark) || END.starts_with(mark) => {
                Packing::Bzip2
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
            // A frame, or a skippable one, with which pzstd begins.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstandard,
            _ => Packing::Plain,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Bzip2 => "bzip2",
            Packing::Xz => "xz",
            Packing::Zstandard => "zstd",
        }
    }

    /// Memory that unpacking may take, in MiB, where a file can ask for more.
    pub fn memory_limit_mib(self) -> Option<u64> {
        match self {
            Packing::Xz => Some(XZ_MEMORY >> 20),
            Packing::Zstandard => Some(1 << (ZSTD_WINDOW_LOG - 20)),
            Packing::Plain | Packing::Gzip | Packing::Bzip2 => None,
        }
    }

    /// The unpacked bytes of `source`. Streams one after the other count as one.
    pub fn unpack(self, source: impl BufRead + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Packing::Plain => Box::new(source),
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
            Packing::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(source)),
            Packing::Xz => {
                use liblzma::stream::{CONCATENATED, Stream};
                let stream = Stream::new_stream_decoder(XZ_MEMORY, CONCATENATED)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(source, stream))
            }
            Packing::Zstandard => {
                let mut decoder = zstd::Decoder::with_buffer(source)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG)?;
                Box::new(decoder)
            }
        })
    }
}

const BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
const END: [u8; 6] = [0x17, 0x72, 0x45, 0x38, 0x50, 0x90];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_begins_like_a_packing_is_text() {
        assert_eq!(Packing::of(b"BZh9,1,2,3"), Packing::Plain);
        assert_eq!(Packing::of(b"7zXZ"), Packing::Plain);
        assert_eq!(Packing::of(b""), Packing::Plain);
        assert_eq!(Packing::of(b"BZh91AY&SY"), Packing::Bzip2);
        assert_eq!(Packing::of(b"BZh9\x17rE8P\x90"), Packing::Bzip2);
        assert_eq!(Packing::of(b"\x50\x2a\x4d\x18\x04\0\0\0"), Packing::Zstandard);
    }
}
