//! Fitting a trace's addresses to a drive.

use ftlab_core::{Batch, Error, OpKind, Result, Source, error, units};

use crate::rows;
use crate::{Opened, Scan, Touched};

/// What to do with addresses beyond the drive (`--fit`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FitRule {
    /// Refuse, naming the request and the drive's size.
    #[default]
    Error,
    /// Take addresses modulo the drive's size; a request over its end is cut there and continues at 0.
    Wrap,
    /// Renumber the touched units in address order; trims keep only what is touched.
    Compact,
    /// The drive is made as large as the trace needs (by the caller: `Scan::report.end_byte`); here as `Error`.
    Grow,
}

impl FitRule {
    /// Parses `error`, `wrap`, `compact` or `grow`.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text.trim() {
            "error" => FitRule::Error,
            "wrap" => FitRule::Wrap,
            "compact" => FitRule::Compact,
            "grow" => FitRule::Grow,
            other => return Err(error::unknown("fit", other, &["error", "wrap", "compact", "grow"])),
        })
    }
}

/// A source whose requests all lie on a drive of the given size.
pub struct Fit<S = Opened> {
    inner: S,
    rule: Rule,
    logical_bytes: u64,
    room: &'static str,
    more: &'static str,
    remedies: &'static str,
    passed: u64,
    place: fn(&S, usize) -> Option<String>,
}

enum Rule {
    Error,
    Wrap,
    Compact(Touched),
}

impl Fit<Opened> {
    /// Fits a trace; errors name file and line. `compact` needs the scan of the same trace, made with
    /// `ReadOptions::unit_bytes` = the drive's mapping unit.
    pub fn trace(inner: Opened, rule: FitRule, logical_bytes: u64, scan: Option<&Scan>) -> Result<Self> {
        let mut fit = Fit::new(inner, rule, logical_bytes, scan)?;
        fit.place = Opened::place;
        Ok(fit)
    }
}

impl<S: Source> Fit<S> {
    /// Fits any source; errors name the request by its number.
    pub fn new(inner: S, rule: FitRule, logical_bytes: u64, scan: Option<&Scan>) -> Result<Self> {
        if logical_bytes == 0 {
            return Err(Error::input("a drive of 0 bytes holds no trace: expected a capacity"));
        }
        // Whoever asked to grow has a source that cannot be looked through before.
        let remedies = match rule {
            FitRule::Grow => "--fit wrap (grow and compact read a trace twice, which takes files)",
            _ => "--fit compact, wrap or grow",
        };
        let rule = match (rule, scan) {
            (FitRule::Error | FitRule::Grow, _) => Rule::Error,
            (FitRule::Wrap, _) => Rule::Wrap,
            (FitRule::Compact, Some(scan)) => {
                let needed = scan.touched.units().saturating_mul(scan.touched.unit_bytes());
                if needed > logical_bytes {
                    return Err(Error::input(format!(
                        "the trace touches {}, and the drive has {}: expected a larger drive (or --fit wrap)",
                        units::show_bytes(needed),
                        units::show_bytes(logical_bytes)
                    )));
                }
                Rule::Compact(scan.touched.clone())
            }
            (FitRule::Compact, None) => {
                return Err(Error::input(
                    "--fit compact must read the trace twice: expected files, not standard input or a generator",
                ));
            }
        };
        Ok(Fit {
            inner,
            rule,
            logical_bytes,
            room: "the drive has",
            more: "a larger drive",
            remedies,
            passed: 0,
            place: |_, _| None,
        })
    }

    /// What the address space is in errors, and what would give more of it, where it is less than the drive: `the drive has`, and
    /// `a larger drive`, unless told.
    #[must_use]
    pub fn with_room(mut self, room: &'static str, more: &'static str) -> Self {
        (self.room, self.more) = (room, more);
        self
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The first request that reaches beyond the drive.
    fn beyond(&self, batch: &Batch) -> Option<usize> {
        let size = self.logical_bytes;
        let inside =
            |(&offset, &length): (&u64, &u32)| offset.checked_add(u64::from(length)).is_some_and(|end| end <= size);
        let all = batch.offset.iter().zip(&batch.length).all(inside);
        if all {
            None
        } else {
            batch.offset.iter().zip(&batch.length).position(|r| !inside(r))
        }
    }

    fn refuse(&self, batch: &Batch, i: usize) -> Error {
        let number = self.passed + i as u64 + 1;
        let place = (self.place)(&self.inner, i).map_or(String::new(), |place| format!("{place}: "));
        let end = batch.offset[i].saturating_add(u64::from(batch.length[i]));
        Error::input(format!(
            "{place}request {number}, a {} of {} bytes at offset {}, ends at byte {end} ({}), and {} {} bytes ({}): \
             expected {}, or {}",
            batch.op[i].name(),
            batch.length[i],
            batch.offset[i],
            units::show_bytes(end),
            self.room,
            self.logical_bytes,
            units::show_bytes(self.logical_bytes),
            self.more,
            self.remedies
        ))
    }
}

impl<S: Source> Source for Fit<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        loop {
            self.inner.next_batch(batch)?;
            let read = batch.len() as u64;
            match &self.rule {
                Rule::Error => {
                    if let Some(i) = self.beyond(batch) {
                        let error = self.refuse(batch, i);
                        batch.clear();
                        return Err(error);
                    }
                }
                Rule::Wrap => wrap(batch, self.logical_bytes),
                Rule::Compact(touched) => compact(batch, touched),
            }
            self.passed += read;
            // Trims of untouched ranges vanish; a batch of nothing else must not look like the end.
            if !batch.is_empty() || read == 0 {
                return Ok(());
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        self.inner.remaining()
    }

    fn volume_names(&self) -> Vec<String> {
        self.inner.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.inner.label_names()
    }
}

/// Addresses modulo `size`. A request over the end goes on at 0, as often as it is longer than the drive.
fn wrap(batch: &mut Batch, size: u64) {
    batch.offset.iter_mut().for_each(|offset| *offset %= size);
    let over = |batch: &Batch, i: usize| batch.offset[i] + u64::from(batch.length[i]) > size;
    if !(0..batch.len()).any(|i| over(batch, i)) {
        return;
    }
    let mut parts = Batch::default();
    for i in 0..batch.len() {
        if !over(batch, i) {
            rows::append(&mut parts, batch, i);
            continue;
        }
        let mut left = u64::from(batch.length[i]);
        let mut offset = batch.offset[i];
        while left > 0 {
            let length = left.min(size - offset);
            let done = u64::from(batch.length[i]) - left;
            rows::append_part(&mut parts, batch, i, offset, length as u32, done);
            left -= length;
            offset = 0;
        }
    }
    *batch = parts;
}

/// Untouched units left out; of trims only what is touched stays.
pub(crate) fn compact(batch: &mut Batch, touched: &Touched) {
    let mut empty = false;
    for i in 0..batch.len() {
        if batch.op[i] == OpKind::Flush {
            continue;
        }
        let start = touched.compact(batch.offset[i]);
        if batch.op[i] == OpKind::Trim {
            let end = touched.compact(batch.offset[i].saturating_add(u64::from(batch.length[i])));
            batch.length[i] = (end - start) as u32;
            empty |= end == start;
        }
        batch.offset[i] = start;
    }
    if empty {
        rows::retain(batch, |batch, i| batch.op[i] != OpKind::Trim || batch.length[i] > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, open_bytes, scan_bytes};

    /// Reads `csv` (without its header) fitted to a drive of `size` bytes: operation, offset and length of each request.
    fn fitted(csv: &str, rule: FitRule, size: u64) -> Result<Vec<(&'static str, u64, u32)>> {
        let bytes = format!("time_ns,op,offset,length\n{csv}").into_bytes();
        let options = ReadOptions::default();
        let scan = scan_bytes("t", bytes.clone(), &options)?;
        let mut fit = Fit::trace(open_bytes("t", bytes, &options)?, rule, size, Some(&scan))?;
        let (mut batch, mut all) = (Batch::default(), Vec::new());
        loop {
            fit.next_batch(&mut batch)?;
            if batch.is_empty() {
                return Ok(all);
            }
            all.extend((0..batch.len()).map(|i| (batch.op[i].name(), batch.offset[i], batch.length[i])));
        }
    }

    #[test]
    fn compact_keeps_offsets_within_units_and_closes_the_gaps() {
        let csv = "0,write,40960,8192\n0,read,1000000,512\n0,read,45056,512\n0,flush,,\n";
        // Units 10, 11 and 244 are touched; byte 1000000 is byte 576 of unit 244.
        let expected = [
            ("write", 0, 8192),
            ("read", 8192 + 576, 512),
            ("read", 4096, 512),
            ("flush", 0, 0),
        ];
        assert_eq!(fitted(csv, FitRule::Compact, 3 * 4096).unwrap(), expected);
        let error = fitted(csv, FitRule::Compact, 2 * 4096).unwrap_err().to_string();
        assert!(
            error.contains("the trace touches 12 KiB, and the drive has 8 KiB"),
            "{error}"
        );
    }

    #[test]
    fn compact_keeps_of_a_trim_what_is_touched() {
        let csv = "0,write,40960,8192\n0,trim,0,45056\n0,trim,0,4096\n0,trim,45056,1000000\n0,trim,41472,512\n";
        let expected = [
            ("write", 0, 8192),
            ("trim", 0, 4096),
            ("trim", 4096, 4096),
            ("trim", 512, 512),
        ];
        assert_eq!(fitted(csv, FitRule::Compact, 1 << 20).unwrap(), expected);
    }

    #[test]
    fn wrap_cuts_requests_at_the_end() {
        let csv = "0,write,4096,4096\n0,write,12288,8192\n0,write,20480,40960\n0,flush,,\n";
        let expected = [
            ("write", 4096, 4096),
            ("write", 12288, 4096),
            ("write", 0, 4096),
            ("write", 4096, 12288),
            ("write", 0, 16384),
            ("write", 0, 12288),
            ("flush", 0, 0),
        ];
        assert_eq!(fitted(csv, FitRule::Wrap, 16384).unwrap(), expected);
    }

    #[test]
    fn a_request_up_to_the_last_byte_fits() {
        assert!(fitted("0,write,4096,4096\n", FitRule::Error, 8192).is_ok());
        assert!(fitted("0,write,4096,4097\n", FitRule::Error, 8192).is_err());
        assert!(fitted("0,trim,8192,1\n", FitRule::Grow, 8192).is_err());
        assert!(
            FitRule::parse("compct")
                .unwrap_err()
                .to_string()
                .contains("did you mean `compact`")
        );
    }
}
