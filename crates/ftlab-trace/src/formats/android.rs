//! Android block traces with a hash of every page.
//!
//! # Origin
//! The mobile deduplication traces of dongfengxue/dedup- (`gc_dedup/test.release/trace`): requests of applications on a
//! phone, with the MD5 of each 4 KiB.
//!
//! # Columns
//! Between tabs:
//!
//! | column | meaning | unit |
//! | --- | --- | --- |
//! | 1 time | since 1970; the point is followed by a whole number of ns without leading zeros, so that `.47` is 47 ns | s.ns |
//! | 2 op | `R` or `W` | |
//! | 3 sector | first sector | 512 B |
//! | 4 size | length of the whole request | bytes |
//! | 5 process | its name, the label; blanks in it may appear as tabs | |
//! | 6 device | the volume | |
//! | 7 digest | MD5 of one page, in hexadecimal | |
//!
//! A request of N pages of 4 KiB has N rows, equal but for the digest, in the order of its pages. Rows of concurrent
//! requests interleave. So a row belongs to the latest request, among the last 32, that equals it and still lacks
//! pages. A request that never becomes complete is read with the ids it has. Some tools count runs of equal rows
//! instead: they read each piece of an interleaved request as a request of full size, and two writes of one page as
//! one.
//!
//! A content id is the first 8 bytes of the MD5. A process name with blanks may push the device or the digest out of
//! its row. Then the device is that of the row before, and the request has no ids from there on.
//!
//! # What is dropped
//! All but the first 8 bytes of an MD5.

use std::collections::VecDeque;

use ftlab_core::{Batch, OpKind, Result};

use super::fields::Fields;
use super::names::Names;
use super::text_format::{self, TextFormat};
use super::{Claim, Sample, Strength, digest};
use crate::columns::read_or_write;
use crate::health::{Defect, Parsed, left_out};
use crate::lines::{EMPTY, LineParser, Requests};
use crate::report::Skipped;
use crate::settings::Settings;

/// Requests that may lack pages at the same time.
const WAITING: usize = 32;

#[derive(Default)]
pub struct Android {
    /// In the order of their first rows.
    waiting: VecDeque<Request>,
    /// Emptied vectors of ids, to be used again.
    spare: Vec<Vec<u64>>,
    labels: Names,
    device: Option<u16>,
    digests: u64,
    empty: u64,
    next_pages: u64,
    interleaved: u64,
}

/// What all rows of a request have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    time_ns: u64,
    op: OpKind,
    offset: u64,
    length: u32,
    volume: u16,
    label: u16,
}

struct Request {
    head: Head,
    rows: u32,
    ids: Vec<u64>,
}

impl Request {
    fn is_complete(&self) -> bool {
        self.rows >= self.head.length.div_ceil(4096)
    }

    fn add(&mut self, id: Option<u64>) {
        // Ids stand for the pages in their order: behind a missing one there can be none.
        if let Some(id) = id
            && self.ids.len() == self.rows as usize
        {
            self.ids.push(id);
        }
        self.rows += 1;
    }
}

impl Android {
    /// Gives out the requests at the front that are complete, and one that is not if there are too many.
    #[inline]
    fn release(&mut self, batch: &mut Batch, most: usize) {
        while let Some(request) = self.waiting.front()
            && (request.is_complete() || self.waiting.len() > most)
        {
            let head = request.head;
            batch.push(head.time_ns, head.op, head.offset, head.length, head.volume, 0);
            batch.label.push(head.label);
            batch.content.extend_from_slice(&request.ids);
            batch.content_end.push(batch.content.len() as u32);
            if let Some(mut request) = self.waiting.pop_front() {
                request.ids.clear();
                self.spare.push(request.ids);
            }
        }
    }
}

impl TextFormat for Android {
    const STRENGTH: Strength = Strength::Likely;
    const REASON: &str = "time, R or W, sector, bytes, process, device and digest between tabs, one row for each 4 KiB: Android \
                          with hashes; rows of concurrent requests that interleave are put together";
    const SAMPLE: &[u8] = b"1484803046.187999857\tW\t49135896\t4096\tmain\tdm-1\t080617000bbba905fb80567c1165d6fa\n\
          1484803046.197999857\tR\t18104\t8192\tmain\tdm-1\t8686b0d3553eb6f980fbbe2c927be5e9\n\
          1484803046.197999857\tR\t20496\t4096\tpool-1\tdm-1\t3d86b5c9653cf4eecc2a2ec771764b68\n\
          1484803046.197999857\tR\t18104\t8192\tmain\tdm-1\t45ae785d59f0609ed7b1becba0685afd\n";

    fn new(_: &Settings) -> Result<Self> {
        Ok(Android::default())
    }

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        let mut parser = Android::default();
        Sample::fits(&sample.lines, &mut parser);
        text_format::claim::<Self>(sample).filter(|_| parser.digests > 0)
    }
}

impl LineParser for Android {
    #[inline]
    fn parse(&mut self, line: &[u8], to: &mut Requests<'_>) -> Parsed {
        let missing = Defect::whole("time, R or W, sector, bytes, process, device and digest between tabs");
        let mut fields = Fields::new(line, b'\t');
        let time_ns = stamp(fields.next().ok_or(missing)?).ok_or_else(|| fields.defect("seconds.nanoseconds"))?;
        let op = read_or_write(fields.next().ok_or(missing)?).ok_or_else(|| fields.defect("R or W"))?;
        let sector = fields.next().ok_or(missing)?;
        let offset = fields.sectors(sector, "a sector below 2^51")?;
        let size = fields.next().ok_or(missing)?;
        let length = u32::try_from(fields.number(size)?).map_err(|_| fields.defect("a size below 4 GiB"))?;
        let origin = Origin::of(fields.rest()).ok_or(missing)?;
        if length == 0 {
            self.empty += 1;
            return Ok(());
        }
        let volume = match (origin.device, self.device) {
            (Some(device), _) => to.volumes.id(device)?,
            (None, Some(device)) => device,
            (None, None) => to.volumes.id(b"0")?,
        };
        self.device = Some(volume);
        self.digests += u64::from(origin.id.is_some());
        let head = Head {
            time_ns,
            op,
            offset,
            length,
            volume,
            label: self.labels.id(origin.process),
        };
        let mut open = self.waiting.iter_mut().rev().enumerate();
        match open.find(|(_, request)| request.head == head && !request.is_complete()) {
            Some((age, request)) => {
                request.add(origin.id);
                self.next_pages += 1;
                self.interleaved += u64::from(age > 0);
            }
            None => {
                let ids = self.spare.pop().unwrap_or_default();
                let mut request = Request { head, rows: 0, ids };
                request.add(origin.id);
                self.waiting.push_back(request);
            }
        }
        self.release(to.batch, WAITING);
        Ok(())
    }

    fn finish(&mut self, batch: &mut Batch) {
        self.release(batch, 0);
    }

    fn left_out(&self) -> Vec<Skipped> {
        left_out(&[
            (
                "a further row of the request before it (one row for each 4 KiB)",
                self.next_pages - self.interleaved,
            ),
            (
                "a further row of a request whose rows interleave with another's (one row for each 4 KiB)",
                self.interleaved,
            ),
            (EMPTY, self.empty),
        ])
    }

    fn labels(&self) -> &[String] {
        self.labels.all()
    }
}

/// Seconds, a point, nanoseconds without leading zeros.
fn stamp(text: &[u8]) -> Option<u64> {
    let (seconds, nanoseconds) = match text.iter().position(|&b| b == b'.') {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b"0"[..]),
    };
    let number = |digits: &[u8]| {
        let all = !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0u64, |n, &b| n * 10 + u64::from(b - b'0')))
    };
    let nanoseconds = number(nanoseconds).filter(|&ns| ns < 1_000_000_000)?;
    number(seconds)?.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// The last three columns of a row, as far as they are there.
struct Origin<'a> {
    process: &'a [u8],
    device: Option<&'a [u8]>,
    id: Option<u64>,
}

impl<'a> Origin<'a> {
    fn of(rest: &'a [u8]) -> Option<Self> {
        let tab = |text: &[u8]| text.iter().rposition(|&b| b == b'\t');
        let rest = rest.trim_ascii_end();
        let last = tab(rest).map_or(rest, |at| &rest[at + 1..]);
        let before = &rest[..rest.len() - last.len()];
        let id = digest::id(last).filter(|_| last.len() >= 16);
        let (process, device) = if id.is_some() {
            let before = before.strip_suffix(b"\t")?;
            let at = tab(before)?;
            (&before[..at], Some(&before[at + 1..]))
        } else if is_device(last) {
            (before, Some(last))
        } else {
            (rest, None)
        };
        let process = process.trim_ascii();
        (!process.is_empty()).then_some(Origin { process, device, id })
    }
}

/// Whether this looks like a block device and not like the end of a name.
fn is_device(word: &[u8]) -> bool {
    let kinds: [&[u8]; 7] = [b"dm-", b"mmcblk", b"sd", b"loop", b"zram", b"nvme", b"vd"];
    let rest = kinds.iter().find_map(|kind| word.strip_prefix(*kind));
    rest.is_some_and(|rest| (1..=8).contains(&rest.len()) && rest.iter().all(u8::is_ascii_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::super::testing::{read, read_as};
    use super::*;

    fn read_rows(text: &str) -> (Box<dyn Reader>, Batch) {
        read_as::<Android>(text.as_bytes(), &Settings::NONE).unwrap()
    }

    const MD5: &str = "8686b0d3553eb6f980fbbe2c927be5e9";

    #[test]
    fn four_rows_of_three_requests_two_of_which_interleave() {
        let (format, batch) = read(Android::SAMPLE);
        assert_eq!(format, "android");
        assert_eq!(batch.op, [OpKind::Write, OpKind::Read, OpKind::Read]);
        assert_eq!(batch.offset, [49_135_896 * 512, 18104 * 512, 20496 * 512]);
        assert_eq!(batch.length, [4096, 8192, 4096]);
        assert_eq!((&batch.label, &batch.content_end), (&vec![0, 0, 1], &vec![1, 3, 4]));
        let ids = [
            0x0806_1700_0bbb_a905,
            0x8686_b0d3_553e_b6f9,
            0x45ae_785d_59f0_609e,
            0x3d86_b5c9_653c_f4ee,
        ];
        assert_eq!(batch.content, ids);
        assert_eq!(batch.time_ns[1] - batch.time_ns[0], 10_000_000);
        let (reader, _) = read_as::<Android>(Android::SAMPLE, &Settings::NONE).unwrap();
        assert_eq!(reader.progress().left_out[0].count, 1);
        assert!(reader.progress().left_out[0].reason.contains("interleave"));
    }

    #[test]
    fn two_writes_of_one_page_are_two_requests_and_an_unfinished_one_is_given_out() {
        let row = format!("5.1\tW\t8\t4096\tx\tdm-0\t{MD5}\n");
        let long = format!("6.1\tW\t8\t12288\tx\tdm-0\t{MD5}\n");
        let (_, batch) = read_rows(&(row.repeat(2) + &long.repeat(2)));
        assert_eq!(
            (batch.length, batch.content_end),
            (vec![4096, 4096, 12288], vec![1, 2, 4])
        );
    }

    #[test]
    fn a_name_with_blanks_may_have_pushed_the_digest_out() {
        let text = format!(
            "1.1\tR\t8\t4096\tAsyncTask\t#3\tdm-1\n\
             1.2\tR\t8\t4096\tError\tdump:\tsys\n\
             1.3\tR\t8\t4096\tAsync\t#3\tdm-2\t{MD5}\n"
        );
        let (reader, batch) = read_rows(&text);
        assert_eq!(reader.labels(), ["AsyncTask #3", "Error dump: sys", "Async #3"]);
        assert_eq!(
            (batch.volume, reader.volumes()),
            (vec![0, 0, 1], &["dm-1".to_owned(), "dm-2".into()][..])
        );
        assert_eq!((batch.content.len(), batch.content_end), (1, vec![0, 0, 1]));
    }

    #[test]
    fn nanoseconds_have_no_leading_zeros() {
        assert_eq!(stamp(b"1484803049.47999856"), Some(1_484_803_049_047_999_856));
        assert_eq!(stamp(b"3.999999999"), Some(3_999_999_999));
        assert_eq!(stamp(b"3"), Some(3_000_000_000));
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "1.1000000000",
            "-1.0",
            "1.-5",
            "99999999999999999.0",
            "1e3.0",
        ] {
            assert_eq!(stamp(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn more_requests_than_may_wait_are_given_out_in_order() {
        let text: String = (0..100)
            .map(|i| format!("{i}.1\tR\t{}\t8192\tx\tdm-0\t{MD5}\n", i * 16))
            .collect();
        let (_, batch) = read_rows(&text);
        assert_eq!(batch.len(), 100);
        assert!(batch.time_ns.is_sorted());
    }

    #[test]
    fn odd_lines_are_bad_lines() {
        let good = format!("1.1\tR\t8\t4096\tx\tdm-0\t{MD5}\n");
        for bad in [
            "1.1\tR\t8\t4096\n",
            "1.1\tR\t8\t4096\tx\n\t",
            "1.1\tX\t8\t4096\tx\tdm-0\t8686b0d3553eb6f980fbbe2c927be5e9\n",
            "1.1\tR\t-8\t4096\tx\tdm-0\t8686b0d3553eb6f980fbbe2c927be5e9\n",
            "1.1\tR\t8\t4294967296\tx\tdm-0\t8686b0d3553eb6f980fbbe2c927be5e9\n",
            "1.1\tR\t99999999999999999999\t4096\tx\tdm-0\t8686b0d3553eb6f980fbbe2c927be5e9\n",
            "1.1\0\tR\t8\t4096\tx\tdm-0\t8686b0d3553eb6f980fbbe2c927be5e9\n",
            "1.1\tR\t8\t4096\t8686b0d3553eb6f980fbbe2c927be5e9\n",
        ] {
            let text = format!("{good}{bad}{good}");
            let (reader, batch) = read_rows(&text);
            let bad_lines: u64 = reader.progress().skipped.iter().map(|s| s.count).sum();
            // A row whose last columns are lost is still a request, of a process that its rest names.
            assert_eq!(batch.len() as u64 + bad_lines, 3, "{bad}");
        }
    }
}
