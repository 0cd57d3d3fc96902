//! What one drive of an array with parity gets: RAID-5 or, with uneven `shares`, differential RAID.
//!
//! # Model
//! The array has as many drives as `shares` has numbers. Each stripe has a chunk of data on all drives but one, and there
//! the chunk of parity. Stripe `s` lies at `s` chunks on every drive. Which drive has a stripe's parity goes by `shares`,
//! as evenly as possible, in a pattern that repeats after as many stripes as the shares add up to; equal shares are
//! RAID-5, a single one is RAID-4. Data begins behind the parity's drive and goes round.
//!
//! A read goes to the drives that have the data. A write of a whole stripe writes its data and its parity. Any other
//! write reads the old data and the old parity of the same bytes, then writes both. Trims reach the drives for whole
//! stripes only, since parity would have to follow. Flushes go to all. Of all this, `member` is what one drive gets, at
//! the time of the host's request.
//! # Parameters
//! | key | meaning | range | default |
//! | --- | --- | --- | --- |
//! | `member` | which drive, from 0 | below the number of drives | required |
//! | `shares` | parity of each drive, in parts | 2 to 32 whole numbers from 0 to 1000 with `/` between them | `1/1/1/1/1` |
//! | `chunk` | data of a stripe on one drive | whole 4 KiB, up to 16 MiB | `64KiB` |
//! # Not modelled
//! A controller's cache, which would gather writes of a stripe. Parity made from the rest of a stripe, where that is less to
//! read than the old data. Waiting: the writes are not held back until the reads are done, and the host's request does
//! not wait for the slowest drive. Contents of parity: its pages have no content ids. Failed drives.
//! # Source
//! Balakrishnan et al., Differential RAID: rethinking RAID for SSD reliability, EuroSys 2010, the array that Dynamic page
//! replication is compared with. Under random writes of less than a stripe, drive `i` of `n` with the share `p` of the parity
//! gets `p (n - 1) + (1 - p)` of the writes that a drive without parity gets. The order of chunks is that of Linux's
//! right-symmetric RAID-5.

use std::ops::Range;

use ftlab_core::{Batch, OpKind, Result, units};

use super::frame::{Rewrite, Stage, rewriting};
use super::{Context, Keys};
use crate::rows;

const MOST_DRIVES: usize = 32;
const MOST_PARTS: u64 = 1000;

pub fn new(keys: &mut Keys, _: &Context) -> Result<Stage> {
    let shares = shares(keys)?;
    let chunk = keys.bytes_within("chunk", 64 << 10, 4096..=16 << 20)?;
    if chunk % 4096 != 0 {
        return Err(keys.wrong("chunk", &units::show_bytes(chunk), "a multiple of 4 KiB"));
    }
    let drives = shares.len() as u64;
    let expected = format!("0 to {}, a drive of the array", drives - 1);
    let member = match keys.count("member")? {
        Some(member) if member < drives => member,
        Some(member) => return Err(keys.wrong("member", &member.to_string(), &expected)),
        None => return Err(keys.wrong("member", "none", &expected)),
    };
    Ok(rewriting(Raid {
        drives,
        member,
        chunk,
        parity: pattern(&shares),
    }))
}

fn shares(keys: &mut Keys) -> Result<Vec<u64>> {
    let Some(text) = keys.text("shares") else {
        return Ok(vec![1; 5]);
    };
    let part = |text: &str| text.trim().parse().ok().filter(|part| *part <= MOST_PARTS);
    let parts: Option<Vec<u64>> = text.split('/').map(part).collect();
    match parts {
        Some(parts) if (2..=MOST_DRIVES).contains(&parts.len()) && parts.iter().any(|&part| part > 0) => Ok(parts),
        _ => {
            let expected =
                "2 to 32 whole numbers from 0 to 1000 with `/` between them, not all 0, such as 60/10/10/10/10";
            Err(keys.wrong("shares", &text, expected))
        }
    }
}

/// The drives that have the parity of one stripe after the other: each time the one that is furthest behind its share.
fn pattern(shares: &[u64]) -> Vec<u8> {
    let all: i64 = shares.iter().sum::<u64>().cast_signed();
    let mut behind = vec![0i64; shares.len()];
    let next = |_| {
        for (behind, &share) in behind.iter_mut().zip(shares) {
            *behind += share.cast_signed();
        }
        let most = behind.iter().max().copied().unwrap_or(0);
        let drive = behind.iter().position(|&one| one == most).unwrap_or(0);
        behind[drive] -= all;
        drive as u8
    };
    (0..all).map(next).collect()
}

struct Raid {
    drives: u64,
    member: u64,
    chunk: u64,
    parity: Vec<u8>,
}

/// What of a request lies in one stripe, in bytes of the stripe's data.
struct Part {
    stripe: u64,
    bytes: Range<u64>,
}

impl Raid {
    /// Bytes of data in a stripe.
    fn width(&self) -> u64 {
        self.chunk * (self.drives - 1)
    }

    /// Which chunk of the stripe's data lies on this drive; `None`: its parity.
    fn chunk_of(&self, stripe: u64) -> Option<u64> {
        let parity = u64::from(self.parity[(stripe % self.parity.len() as u64) as usize]);
        Some((self.member + self.drives - parity - 1) % self.drives).filter(|&at| at + 1 < self.drives)
    }

    fn parts(&self, start: u64, end: u64) -> impl Iterator<Item = Part> + use<> {
        let width = self.width();
        (start / width..end.div_ceil(width)).map(move |stripe| {
            let first = stripe * width;
            Part {
                stripe,
                bytes: start.max(first) - first..end.min(first + width) - first,
            }
        })
    }

    /// The bytes of `part` within this drive's chunk of data number `at`.
    fn within(&self, part: &Part, at: u64) -> Option<Range<u64>> {
        let first = at * self.chunk;
        let (start, end) = (part.bytes.start.max(first), part.bytes.end.min(first + self.chunk));
        (start < end).then(|| start - first..end - first)
    }

    /// The bytes of a chunk of parity that change with `part`: of a write over one border of chunks those in front of it and
    /// those behind it, as far as they are apart.
    fn parity_of(&self, part: &Part) -> impl Iterator<Item = Range<u64>> + Clone + use<> {
        let (start, end) = (part.bytes.start % self.chunk, (part.bytes.end - 1) % self.chunk + 1);
        let parts = match (part.bytes.end - 1) / self.chunk - part.bytes.start / self.chunk {
            0 => [0..0, start..end],
            1 if end < start => [0..end, start..self.chunk],
            _ => [0..0, 0..self.chunk],
        };
        parts.into_iter().filter(|bytes| !bytes.is_empty())
    }

    /// A request that the array makes itself.
    fn made(&self, input: &Batch, i: usize, op: OpKind, stripe: u64, bytes: &Range<u64>, output: &mut Batch) {
        let content: Option<&[u64]> = (!input.content_end.is_empty()).then_some(&[]);
        let (offset, length) = (stripe * self.chunk + bytes.start, (bytes.end - bytes.start) as u32);
        rows::append_write(
            output,
            input.time_ns[i],
            offset,
            length,
            &rows::context(input, i),
            content,
        );
        if let Some(last) = output.op.last_mut() {
            *last = op;
        }
    }

    fn write(&self, input: &Batch, i: usize, part: &Part, output: &mut Batch) {
        let is_whole = part.bytes == (0..self.width());
        let Some(at) = self.chunk_of(part.stripe) else {
            let parity = self.parity_of(part);
            for bytes in parity.clone().filter(|_| !is_whole) {
                self.made(input, i, OpKind::Read, part.stripe, &bytes, output);
            }
            for bytes in parity {
                self.made(input, i, OpKind::Write, part.stripe, &bytes, output);
            }
            return;
        };
        if let Some(bytes) = self.within(part, at) {
            if !is_whole {
                self.made(input, i, OpKind::Read, part.stripe, &bytes, output);
            }
            self.data(input, i, part.stripe, at, &bytes, output);
        }
    }

    /// The host's own bytes of chunk `at` of a stripe.
    fn data(&self, input: &Batch, i: usize, stripe: u64, at: u64, bytes: &Range<u64>, output: &mut Batch) {
        let of_host = stripe * self.width() + at * self.chunk + bytes.start;
        let (offset, length) = (stripe * self.chunk + bytes.start, (bytes.end - bytes.start) as u32);
        rows::append_part(output, input, i, offset, length, of_host - input.offset[i]);
    }
}

impl Rewrite for Raid {
    fn request(&mut self, input: &Batch, i: usize, output: &mut Batch) -> Result<()> {
        let start = input.offset[i];
        for part in self.parts(start, start + u64::from(input.length[i])) {
            match input.op[i] {
                OpKind::Write => self.write(input, i, &part, output),
                OpKind::Trim if part.bytes == (0..self.width()) => {
                    self.made(input, i, OpKind::Trim, part.stripe, &(0..self.chunk), output);
                }
                OpKind::Read => {
                    if let Some(at) = self.chunk_of(part.stripe)
                        && let Some(bytes) = self.within(&part, at)
                    {
                        self.data(input, i, part.stripe, at, &bytes, output);
                    }
                }
                OpKind::Trim | OpKind::Flush => {}
            }
        }
        if input.op[i] == OpKind::Flush {
            rows::append(output, input, i);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ftlab_core::Stream;

    use super::super::testing::{Fixed, filtered, places, requests};
    use super::*;

    fn member(shares: &str, member: usize, all: &str) -> Batch {
        filtered(
            &[&format!("raid:shares={shares},member={member},chunk=4KiB")],
            requests(all),
        )
    }

    #[test]
    fn parity_goes_round_or_stays_by_the_shares() {
        assert_eq!(pattern(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(pattern(&[3, 0]), [0, 0, 0]);
        assert_eq!(pattern(&[2, 1, 1]), [0, 1, 2, 0]);
        let long = pattern(&[60, 10, 10, 10, 10]);
        let of = |drive| long.iter().filter(|&&one| one == drive).count();
        assert_eq!([0, 1, 2, 3, 4].map(of), [60, 10, 10, 10, 10]);
    }

    /// Three drives, 8 KiB of data a stripe. Stripe 0 has its parity on drive 0 and its data on 1 and 2; stripe 1 on drive 1,
    /// its data on 2 and 0.
    #[test]
    fn a_small_write_reads_and_writes_data_and_parity() {
        let all = "0,write,4096,4096\n1,write,8192,512\n";
        let of = |drive| {
            let batch = member("1/1/1", drive, all);
            let ops: Vec<OpKind> = batch.op.clone();
            (places(&batch), ops)
        };
        let both = [OpKind::Read, OpKind::Write];
        assert_eq!(of(0), (vec![(0, 4096), (0, 4096)], both.to_vec()));
        assert_eq!(of(1), (vec![(4096, 512), (4096, 512)], both.to_vec()));
        assert_eq!(
            of(2),
            (
                vec![(0, 4096), (0, 4096), (4096, 512), (4096, 512)],
                [both, both].concat()
            )
        );
    }

    #[test]
    fn a_whole_stripe_is_written_without_reading() {
        for drive in 0..3 {
            let batch = member("1/1/1", drive, "0,write,0,8192\n");
            assert_eq!(
                (places(&batch), batch.op),
                (vec![(0, 4096)], vec![OpKind::Write]),
                "{drive}"
            );
        }
    }

    #[test]
    fn reads_go_to_data_and_trims_to_whole_stripes() {
        let all = "0,read,2048,4096\n1,trim,4096,20480\n2,flush,,\n";
        let of = |drive| places(&member("1/0/0", drive, all));
        assert_eq!(of(0), [(4096, 4096), (8192, 4096), (0, 0)]);
        assert_eq!(of(1), [(2048, 2048), (4096, 4096), (8192, 4096), (0, 0)]);
        assert_eq!(of(2), [(0, 2048), (4096, 4096), (8192, 4096), (0, 0)]);
    }

    #[test]
    fn parity_covers_all_chunks_that_a_write_touches() {
        let batch = member("1/0/0", 0, "0,write,3072,2048\n1,write,1024,512\n2,write,1024,6000\n");
        let apart = [(0, 1024), (3072, 1024)];
        assert_eq!(places(&batch)[..4], [apart, apart].concat());
        assert_eq!(places(&batch)[4..], [(1024, 512), (1024, 512), (0, 4096), (0, 4096)]);
    }

    /// An array of bytes, kept by a list of what each drive holds: data is where the filter says, and parity is the XOR.
    #[test]
    fn data_and_parity_of_an_array_of_bytes_are_right() {
        const UNIT: u64 = 512;
        let (shares, chunk, drives) = ("3/1/2/1", 4096u64, 4usize);
        let (mut random, mut lines) = (Stream::new(7, "raid"), String::new());
        for time in 0..400 {
            let (offset, length) = (random.below(300) * UNIT, (1 + random.below(60)) * UNIT);
            lines += &format!("{time},write,{offset},{length}\n");
        }
        let all = requests(&lines).batch;
        // The number of the last request to write each sector, of the host's and of each drive's.
        let mut host = vec![0u64; 400];
        for i in 0..all.len() {
            let first = (all.offset[i] / UNIT) as usize;
            host[first..first + (u64::from(all.length[i]) / UNIT) as usize].fill(i as u64 + 1);
        }
        let mut held = vec![vec![0u64; 200]; drives];
        for (drive, held) in held.iter_mut().enumerate() {
            let spec = format!("raid:shares={shares},member={drive},chunk=4KiB");
            let batch = filtered(&[&spec], Fixed::new(all.clone()));
            for i in (0..batch.len()).filter(|&i| batch.op[i] == OpKind::Write) {
                let first = (batch.offset[i] / UNIT) as usize;
                let last = first + (u64::from(batch.length[i]) / UNIT) as usize;
                held[first..last].fill(batch.time_ns[i] + 1);
            }
        }
        let parity = pattern(&[3, 1, 2, 1]);
        for (sector, &written) in host.iter().enumerate() {
            let (byte, data) = (sector as u64 * UNIT, drives as u64 - 1);
            let (stripe, at) = (byte / (chunk * data), byte / chunk % data);
            let of_parity = u64::from(parity[stripe as usize % parity.len()]);
            let drive = ((of_parity + 1 + at) % drives as u64) as usize;
            let on_drive = ((stripe * chunk + byte % chunk) / UNIT) as usize;
            assert_eq!(held[drive][on_drive], written, "sector {sector}");
            // Parity is as new as the newest of its data, or newer where a write that covered all of its chunk did not need to be.
            assert!(held[of_parity as usize][on_drive] >= written, "sector {sector}");
        }
    }

    /// The formula of the source, over random writes of one page.
    #[test]
    fn drives_are_written_by_their_shares_of_the_parity() {
        let (mut random, mut lines) = (Stream::new(8, "raid"), String::new());
        let writes = 20_000;
        for time in 0..writes {
            lines += &format!("{time},write,{},4096\n", random.below(40_000) * 4096);
        }
        let shares = [40u64, 30, 20, 10];
        for (drive, share) in shares.into_iter().enumerate() {
            let batch = member("40/30/20/10", drive, &lines);
            let written = batch.op.iter().filter(|&&op| op == OpKind::Write).count() as f64;
            let (p, others) = (share as f64 / 100.0, shares.len() as f64 - 1.0);
            let expected = f64::from(writes) * (p + (1.0 - p) / others);
            assert!(
                (written / expected - 1.0).abs() < 0.03,
                "{drive}: {written}, {expected}"
            );
        }
    }
}
