//! FIU I/O deduplication traces: requests with digests of their content.
//!
//! # Origin
//! Koller and Rangaswami, "I/O Deduplication", FAST 2010; SNIA IOTTA trace set 391: `homes`, `mail`, `web-vm`, one file
//! for each day.
//!
//! # Columns
//! Between blanks:
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 timestamp | arrival | ns |
//! | 2 pid | process id | |
//! | 3 process | its name, the label | |
//! | 4 lba | first sector | 512 B |
//! | 5 size | length | 512 B |
//! | 6 op | `R` or `W` | |
//! | 7 major, 8 minor | the volume, shown as `6.0` | |
//! | 9 digest | MD5 in hexadecimal, or several one after the other | |
//!
//! # Content ids
//! There is one id for each 4 KiB of a request; the last unit may be shorter. With one MD5 for each 4 KiB the id is its
//! first 8 bytes. With one for each 512 B, as in `homes`, the id is a hash over the MD5s of those 4 KiB. With one
//! digest for a request of several 4 KiB, each id is a hash of the digest and of the unit's place within the request.
//!
//! A request of less than 4 KiB, such as a row of 512 B, has one id, for its own bytes only: it never equals the id of
//! 4 KiB that contain the same 512 B.
//!
//! Rows of 512 B with equal time and process at adjacent addresses may be one request cut into sectors, or requests of
//! their own. The format does not distinguish them, so each row stays a request.
//!
//! # What is dropped
//! All but the first 8 bytes of an MD5.

use ftlab_core::Result;

use super::names::Names;
use super::text_format::TextFormat;
use super::{Strength, digest};
use crate::columns::Columns;
use crate::health::{Defect, Parsed};
use crate::lines::{LineParser, Requests, VolumeTable};
use crate::settings::Settings;

#[derive(Default)]
pub struct Fiu {
    labels: Names,
}

impl TextFormat for Fiu {
    const STRENGTH: Strength = Strength::Likely;
    const REASON: &str = "nine columns between blanks, the sixth R or W, the last hexadecimal digests: FIU I/O deduplication, times in ns";
    const SAMPLE: &[u8] = b"89966522969723 4270 rpc.mountd 18579576 8 W 6 0 d6c75ba46e82326fefa545b57a12e221\n\
                            89966527950584 4253 nfsd 508516672 1 R 6 16 88b93b628d84082186026d9da044f173\n\
                            89966527996712 4253 nfsd 508516680 8 W 6 0 \
                            bf619eac0cdf3f68d496ea9344137e8bbf619eac0cdf3f68d496ea9344137e8b\
                            bf619eac0cdf3f68d496ea9344137e8bbf619eac0cdf3f68d496ea9344137e8b\
                            bf619eac0cdf3f68d496ea9344137e8bbf619eac0cdf3f68d496ea9344137e8b\
                            bf619eac0cdf3f68d496ea9344137e8bbf619eac0cdf3f68d496ea9344137e8b\n";

    fn new(_: &Settings) -> Result<Self> {
        Ok(Fiu::default())
    }
}

impl LineParser for Fiu {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let mut columns = Columns::<b' '>::new(line);
        let time_ns = columns.number()?;
        let pid = columns.process_id()?;
        let from = columns.position();
        let mut process = columns.key()?;
        if !line.get(columns.position()).is_some_and(u8::is_ascii_digit) {
            process = name_with_blanks(line, from, &mut columns)?;
        }
        let offset = columns.address(512, "a sector below 2^51")?;
        let length = columns.length(512, "a size below 2^23 sectors")?;
        let op = columns.read_or_write("R or W")?;
        let (major, minor) = (columns.key()?, columns.key()?);
        if length > 0 {
            let (units, sectors) = (length.div_ceil(4096) as usize, length as usize / 512);
            let known = to.batch.content.len();
            if !digest::ids(columns.key()?, units, sectors, &mut to.batch.content) {
                return Err(columns.defect("hexadecimal digests, of the request or of each 4 KiB or 512 B"));
            }
            // A line that is refused makes no volume known.
            let volume = volume(to.volumes, major, minor).inspect_err(|_| to.batch.content.truncate(known))?;
            to.batch.content_end.push(to.batch.content.len() as u32);
            to.batch.push(time_ns, op, offset, length, volume, 0);
            to.batch.pid.push(pid);
            to.batch.label.push(self.labels.id(process));
        } else {
            *to.empty += 1;
        }
        Ok(())
    }

    fn labels(&self) -> &[String] {
        self.labels.all()
    }
}

/// A process name of several words, which begins at `from` and ends before the last six columns of the line. The columns go
/// on behind it.
#[cold]
fn name_with_blanks<'a>(line: &'a [u8], from: usize, columns: &mut Columns<'a, b' '>) -> Parsed<&'a [u8]> {
    let wrong = Defect {
        at: 4,
        expected: "a sector, size, R or W, major, minor and digest behind the process",
    };
    let mut end = line.trim_ascii_end();
    for _ in 0..6 {
        let word = end.iter().rposition(|b| matches!(b, b' ' | b'\t')).ok_or(wrong)?;
        end = line[..word].trim_ascii_end();
    }
    let name = line.get(from..end.len()).filter(|name| !name.is_empty()).ok_or(wrong)?;
    while columns.position() < end.len() {
        columns.skip();
    }
    Ok(name)
}

/// The number of the device major.minor.
#[inline]
fn volume(volumes: &mut VolumeTable, major: &[u8], minor: &[u8]) -> Parsed<u16> {
    let mut key = [0; 64];
    let end = major.len() + 1 + minor.len();
    if end > key.len() {
        return Err(Defect {
            at: 7,
            expected: "a device's major and minor numbers",
        });
    }
    key[..major.len()].copy_from_slice(major);
    key[major.len()] = b',';
    key[major.len() + 1..end].copy_from_slice(minor);
    volumes.id(&key[..end])
}

#[cfg(test)]
mod tests {
    use ftlab_core::OpKind;

    use super::super::testing::{bad_lines, read, read_as};
    use super::*;

    #[test]
    fn three_lines_of_the_three_kinds_of_rows() {
        let (format, batch) = read(Fiu::SAMPLE);
        assert_eq!(format, "fiu");
        assert_eq!(
            batch.time_ns,
            [89_966_522_969_723, 89_966_527_950_584, 89_966_527_996_712]
        );
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Write]);
        assert_eq!(batch.offset, [18_579_576 * 512, 508_516_672 * 512, 508_516_680 * 512]);
        assert_eq!(batch.length, [4096, 512, 4096]);
        assert_eq!((&batch.volume, &batch.pid), (&vec![0, 1, 0], &vec![4270, 4253, 4253]));
        assert_eq!(batch.label, [0, 1, 1]);
        assert_eq!(batch.content_end, [1, 2, 3]);
        assert_eq!(batch.content[..2], [0xd6c7_5ba4_6e82_326f, 0x88b9_3b62_8d84_0821]);
        // Eight equal sectors are not what one of them is.
        assert_ne!(batch.content[2], 0xbf61_9eac_0cdf_3f68);
    }

    #[test]
    fn names_of_processes_may_have_blanks() {
        let text = b"1 5 Web Content #2 8 16 W 8 1 d6c75ba46e82326fefa545b57a12e22188b93b628d84082186026d9da044f173\n\
                     2 5 a b 64 8 R 8 1 d6c75ba46e82326fefa545b57a12e221\n";
        let (reader, batch) = read_as::<Fiu>(text, &Settings::NONE).unwrap();
        assert_eq!(reader.labels(), ["Web Content #2", "a b"]);
        assert_eq!(reader.volumes(), ["8.1"]);
        assert_eq!((batch.offset, batch.length), (vec![4096, 32768], vec![8192, 4096]));
        assert_eq!(batch.content_end, [2, 3]);
        assert_eq!(batch.content[0], batch.content[2]);
    }

    #[test]
    fn odd_lines_are_bad_lines_and_leave_no_trace() {
        let good = "1 2 p 8 8 W 6 0 d6c75ba46e82326fefa545b57a12e221";
        let bad = [
            "1 2 p 8 8 W 6 0",
            "1 2 p 8 8 W 6 0 d6c7",
            "1 2 p 8 8 W 6 0 g6c75ba46e82326fefa545b57a12e221",
            "1 2 p -8 8 W 6 0 d6c75ba46e82326fefa545b57a12e221",
            "1 2 p 8 8388608 W 6 0 d6c75ba46e82326fefa545b57a12e221",
            "1 2 p 99999999999999999999 8 W 6 0 d6c75ba46e82326fefa545b57a12e221",
            "1 2 p 8 8 D 6 0 d6c75ba46e82326fefa545b57a12e221",
            "1 2 p 8 16 W 6 0 d6c75ba46e82326fefa545b57a12e221d6c75ba46e82326f\0fa545b57a12e221",
            "1 2 p",
            "1 99999999999 p 8 8 W 6 0 d6c75ba46e82326fefa545b57a12e221",
        ];
        assert_eq!(bad_lines::<Fiu>(good, &bad).content_end, [1, 2]);
        let text = format!("{good}\n1 2 p 8 8 W 7 0 d6c7\n");
        let (reader, _) = read_as::<Fiu>(text.as_bytes(), &Settings::NONE).unwrap();
        assert_eq!(reader.volumes(), ["6.0"], "a refused line names no volume");
    }
}
