//! Writes the hash-carrying Android rows; the columns are described with the [reader](crate::formats::android).
//!
//! A request of n units of 4 KiB takes n rows that differ in their digest only, which begins with the content id and goes on
//! with zeros. Requests without content ids are left out. Times are counted from the start of 2017; the label stands in the
//! column of the process, and `unknown` where there is none.

use ftlab_core::Result;

use super::rows::rows;
use super::text::{digest, fixed, number};
use super::{Content, Form, Holds, Keys, LabelNames, VolumeNames};

pub const ENDINGS: &[&str] = &["android", "tsv"];

/// 1 January 2017 in ns since 1970.
const START: u64 = 1_483_228_800_000_000_000;

pub fn new(_: &mut Keys) -> Result<(Box<dyn Form>, Holds)> {
    let holds = Holds {
        volumes: VolumeNames::Words,
        label: LabelNames::Names,
        content: Content::Needed,
        latest_ns: u64::MAX - START,
        address_unit: 512,
        ..Holds::reads_and_writes()
    };
    let mut common = Vec::new();
    let form = rows(b"", move |row, out| {
        common.clear();
        fixed(&mut common, START + row.time_ns(), 9);
        common.extend_from_slice(row.read_or_not(b"\tR\t", b"\tW\t"));
        number(&mut common, row.offset() / 512);
        common.push(b'\t');
        number(&mut common, row.length());
        common.push(b'\t');
        common.extend_from_slice(row.label("unknown"));
        common.push(b'\t');
        common.extend_from_slice(row.volume());
        common.push(b'\t');
        let units = row.length().div_ceil(4096) as usize;
        for &id in row.content().iter().take(units) {
            out.extend_from_slice(&common);
            digest(out, id);
            out.push(b'\n');
        }
    });
    Ok((form, holds))
}
