//! Texts in other encodings than ASCII or UTF-8 with line feeds: UTF-16 with its mark, and lines that end with a carriage
//! return alone. Told by the first bytes of a file; everything else passes as it is.

use std::io::{self, Cursor, Read};

/// Bytes that are looked at.
const SAMPLE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// Bytes as they are.
    Plain,
    Utf16 {
        big_endian: bool,
    },
    ReturnsAlone,
}

impl Encoding {
    fn of(sample: &[u8]) -> Self {
        let readable = |byte: u8| (b' '..0x7f).contains(&byte);
        match *sample {
            // Behind the mark of a text stands a letter, a digit or a sign; of numbers that may begin so, hardly.
            [0xff, 0xfe, letter, 0, ..] if readable(letter) => Encoding::Utf16 { big_endian: false },
            [0xfe, 0xff, 0, letter, ..] if readable(letter) => Encoding::Utf16 { big_endian: true },
            _ => {
                let text = sample.iter().all(|&b| matches!(b, b'\t' | b'\r' | b' '..) && b != 0x7f);
                match text && sample.contains(&b'\r') {
                    true => Encoding::ReturnsAlone,
                    false => Encoding::Plain,
                }
            }
        }
    }
}

/// The bytes of `stream` as text that the readers know, where it is text.
pub fn readable(mut stream: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    let mut sample = vec![0; SAMPLE];
    let mut length = 0;
    let mut failed = None;
    while length < SAMPLE {
        match stream.read(&mut sample[length..]) {
            Ok(0) => break,
            Ok(n) => length += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => {
                failed = Some(e);
                break;
            }
        }
    }
    sample.truncate(length);
    let encoding = Encoding::of(&sample);
    let bytes = Cursor::new(sample).chain(Failing(failed)).chain(stream);
    match encoding {
        Encoding::Plain => Box::new(bytes),
        Encoding::ReturnsAlone => Box::new(LineFeeds(bytes)),
        Encoding::Utf16 { big_endian } => Box::new(Utf16 {
            inner: bytes,
            big_endian,
            units: Vec::new(),
            odd: None,
            text: Cursor::default(),
        }),
    }
}

/// An error of the sample, given out behind it.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Carriage returns become line feeds.
struct LineFeeds<R>(R);

impl<R: Read> Read for LineFeeds<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let n = self.0.read(target)?;
        for byte in &mut target[..n] {
            if *byte == b'\r' {
                *byte = b'\n';
            }
        }
        Ok(n)
    }
}

/// UTF-16 becomes UTF-8, without its mark; what is no character becomes the sign for that.
struct Utf16<R> {
    inner: R,
    big_endian: bool,
    /// Not yet written; at most a half of a pair from one call to the next.
    units: Vec<u16>,
    odd: Option<u8>,
    text: Cursor<Vec<u8>>,
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.text.read(target)?;
            if n > 0 || target.is_empty() {
                return Ok(n);
            }
            let mut bytes = [0; SAMPLE];
            let n = self.inner.read(&mut bytes)?;
            let whole = self.odd.take().into_iter().chain(bytes[..n].iter().copied());
            let whole: Vec<u8> = whole.collect();
            let (pairs, rest) = whole.as_chunks::<2>();
            self.odd = rest.first().copied();
            let unit = |&pair: &[u8; 2]| match self.big_endian {
                true => u16::from_be_bytes(pair),
                false => u16::from_le_bytes(pair),
            };
            self.units.extend(pairs.iter().map(unit));
            let split = self.units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) && n > 0;
            let kept = self.units.split_off(self.units.len() - usize::from(split));
            let text = String::from_utf16_lossy(&std::mem::replace(&mut self.units, kept));
            self.text = Cursor::new(text.replace('\u{feff}', "").into_bytes());
            if n == 0 && self.text.get_ref().is_empty() {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read in steps of a few bytes, as pipes give them.
    fn read(bytes: Vec<u8>) -> Vec<u8> {
        struct Steps(Cursor<Vec<u8>>);
        impl Read for Steps {
            fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
                let most = target.len().min(3);
                self.0.read(&mut target[..most])
            }
        }
        let mut all = Vec::new();
        readable(Box::new(Steps(Cursor::new(bytes))))
            .read_to_end(&mut all)
            .unwrap();
        all
    }

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn utf_16_becomes_utf_8() {
        let text = "\u{feff}time,op\r\n1,ü😀\n".repeat(1000);
        let wanted = text.replace('\u{feff}', "");
        assert_eq!(read(utf16(&text, u16::to_le_bytes)), wanted.as_bytes());
        assert_eq!(read(utf16(&text, u16::to_be_bytes)), wanted.as_bytes());
        // Half a character at the end is given up.
        let cut = utf16("\u{feff}ab😀", u16::to_le_bytes);
        assert_eq!(read(cut[..cut.len() - 2].to_vec()), "ab\u{fffd}".as_bytes());
    }

    #[test]
    fn carriage_returns_alone_end_lines() {
        assert_eq!(read(b"a,b\r1,2\r".repeat(2000)), b"a,b\n1,2\n".repeat(2000));
    }

    #[test]
    fn everything_else_passes() {
        for bytes in [
            b"a,b\r\n1,2\r\n".repeat(2000),
            vec![0xff, 0xfe, 7, 0, 1, 2],
            vec![0xff, 0xfe],
            b"\r\0\x01".repeat(3000),
            vec![],
            (0..=255).collect(),
        ] {
            assert_eq!(read(bytes.clone()), bytes);
        }
    }
}
