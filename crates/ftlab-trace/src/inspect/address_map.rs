//! Which addresses are read and written when: a coarse map of the trace.
//!
//! # Model
//! Columns are equal times (of a trace without times equal numbers of requests), rows equal regions of the address space; a cell
//! counts the pages that reads and writes touch there. Both grow by doubling as the trace does, so that a map has at most
//! [`COLUMNS`] by [`ROWS`] cells however long the trace and however large its space. Volumes lie over one another.
//! # Memory
//! 240 KiB.

use ftlab_core::{Batch, OpKind};

use super::AddressMap;
use super::pages::{PAGE_SHIFT, Pages};

const COLUMNS: usize = 160;
/// A power of two, because a row's cells lie at its number modulo this.
const ROWS: usize = 128;
/// A page's number without its volume.
const IN_VOLUME: u64 = (1 << 48) - 1;

/// Pages read, and written.
type Cell = [u64; 2];

pub struct Map {
    cells: Vec<Cell>,
    /// Rows that are in use, by number.
    rows: Option<(u64, u64)>,
    row_shift: u32,
    column_shift: u32,
    start_ns: Option<u64>,
    /// Since the start.
    last_ns: u64,
    requests: u64,
}

impl Default for Map {
    fn default() -> Self {
        Map {
            cells: vec![[0; 2]; COLUMNS * ROWS],
            rows: None,
            row_shift: 0,
            column_shift: 0,
            start_ns: None,
            last_ns: 0,
            requests: 0,
        }
    }
}

impl Map {
    pub fn add(&mut self, batch: &Batch, pages: &Pages) {
        for i in 0..batch.len() {
            let column = self.column(batch.time_ns[i]);
            let (op, count) = (batch.op[i], u64::from(pages.count[i]));
            if matches!(op, OpKind::Read | OpKind::Write) && count > 0 {
                let first = pages.first[i] & IN_VOLUME;
                self.touch(column, op as usize, first, first + count - 1);
            }
        }
    }

    /// The column of the next request: by time as soon as two stamps differ, before that by number.
    fn column(&mut self, stamp_ns: u64) -> usize {
        let start = *self.start_ns.get_or_insert(stamp_ns);
        let since = stamp_ns.saturating_sub(start);
        if since > 0 && self.last_ns == 0 {
            // All that came so far came at the start.
            self.gather();
        }
        self.last_ns = self.last_ns.max(since);
        let at = if self.last_ns > 0 { self.last_ns } else { self.requests };
        self.requests += 1;
        while at >> self.column_shift >= COLUMNS as u64 {
            self.widen();
        }
        (at >> self.column_shift) as usize
    }

    /// One column for everything.
    fn gather(&mut self) {
        for row in self.cells.chunks_mut(COLUMNS) {
            row[0] = row
                .iter()
                .fold([0; 2], |sum, cell| [sum[0] + cell[0], sum[1] + cell[1]]);
            row[1..].fill([0; 2]);
        }
        self.column_shift = 0;
    }

    /// Columns twice as long.
    fn widen(&mut self) {
        for row in self.cells.chunks_mut(COLUMNS) {
            for to in 0..COLUMNS / 2 {
                let (a, b) = (row[2 * to], row[2 * to + 1]);
                row[to] = [a[0] + b[0], a[1] + b[1]];
            }
            row[COLUMNS / 2..].fill([0; 2]);
        }
        self.column_shift += 1;
    }

    fn touch(&mut self, column: usize, op: usize, first: u64, last: u64) {
        loop {
            let (low, high) = (first >> self.row_shift, last >> self.row_shift);
            let rows = self.rows.map_or((low, high), |(a, b)| (a.min(low), b.max(high)));
            if rows.1 - rows.0 < ROWS as u64 {
                self.rows = Some(rows);
                break;
            }
            self.coarsen();
        }
        let mut page = first;
        while page <= last {
            let row = page >> self.row_shift;
            let end = last.min(((row + 1) << self.row_shift) - 1);
            self.cells[place(row, column)][op] += end - page + 1;
            page = end + 1;
        }
    }

    /// Rows twice as high.
    fn coarsen(&mut self) {
        self.row_shift += 1;
        let Some((low, high)) = self.rows else { return };
        let before = std::mem::replace(&mut self.cells, vec![[0; 2]; COLUMNS * ROWS]);
        for row in low..=high {
            for column in 0..COLUMNS {
                let from = before[place(row, column)];
                let to = &mut self.cells[place(row >> 1, column)];
                *to = [to[0] + from[0], to[1] + from[1]];
            }
        }
        self.rows = Some((low >> 1, high >> 1));
    }

    pub fn finish(&self) -> AddressMap {
        let mut map = AddressMap::default();
        let Some((low, high)) = self.rows else { return map };
        match self.last_ns {
            0 => map.column_requests = Some(1 << self.column_shift),
            _ => map.column_s = Some((1u64 << self.column_shift) as f64 / 1e9),
        }
        map.first_byte = low << (self.row_shift + PAGE_SHIFT);
        map.row_bytes = 1 << (self.row_shift + PAGE_SHIFT);
        for row in low..=high {
            for column in 0..COLUMNS {
                let [read, written] = self.cells[place(row, column)];
                if read + written > 0 {
                    map.column.push(column as u64);
                    map.row.push(row - low);
                    map.pages_read.push(read);
                    map.pages_written.push(written);
                }
            }
        }
        map
    }
}

fn place(row: u64, column: usize) -> usize {
    row as usize % ROWS * COLUMNS + column
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(requests: impl IntoIterator<Item = (u64, OpKind, u64, u32)>) -> AddressMap {
        let (mut map, mut batch, mut pages) = (Map::default(), Batch::default(), Pages::default());
        for (time, op, page, count) in requests {
            batch.push(time, op, page * 4096, count * 4096, 0, 0);
        }
        pages.set(&batch, false);
        map.add(&batch, &pages);
        map.finish()
    }

    #[test]
    fn cells_count_the_pages_of_a_time_and_a_region() {
        use OpKind::{Flush, Read, Trim, Write};
        let found = map([
            (100, Write, 1000, 2),
            (100, Read, 1001, 1),
            (103, Write, 1000, 1),
            (104, Trim, 0, 8),
            (110, Flush, 0, 0),
        ]);
        assert_eq!((found.first_byte, found.row_bytes), (1000 * 4096, 4096));
        assert_eq!((found.column_s, found.column_requests), (Some(1e-9), None));
        let cells: Vec<_> = (0..found.row.len())
            .map(|i| {
                (
                    found.column[i],
                    found.row[i],
                    found.pages_read[i],
                    found.pages_written[i],
                )
            })
            .collect();
        assert_eq!(cells, [(0, 0, 0, 1), (3, 0, 0, 1), (0, 1, 1, 1)]);
    }

    /// A page a nanosecond over a thousand pages: 125 rows of eight pages by 125 columns of eight nanoseconds, all on the diagonal.
    #[test]
    fn a_map_grows_with_its_trace_and_loses_nothing() {
        let found = map((0..1000).map(|i| (i, OpKind::Write, 5000 + i, 1)));
        assert_eq!((found.row_bytes, found.column_s), (8 * 4096, Some(8e-9)));
        assert_eq!(found.row, found.column);
        assert_eq!(found.pages_written, vec![8; 125]);
        // The same downwards, and by number where there are no times.
        let found = map((0..1000).map(|i| (7, OpKind::Read, 5999 - i, 1)));
        assert_eq!((found.row_bytes, found.column_requests), (8 * 4096, Some(8)));
        assert_eq!(found.pages_read.iter().sum::<u64>(), 1000);
        assert!(
            found
                .row
                .iter()
                .zip(&found.column)
                .all(|(row, column)| row + column == 124)
        );
    }

    #[test]
    fn requests_of_any_size_anywhere_end() {
        let found = map([
            (0, OpKind::Read, 0, 1 << 19),
            (u64::MAX, OpKind::Write, (1 << 47) - 5, 1 << 19),
        ]);
        assert_eq!(found.pages_read.iter().sum::<u64>(), 1 << 19);
        assert_eq!(found.pages_written.iter().sum::<u64>(), 1 << 19);
        assert!(map([]).row.is_empty());
    }
}
