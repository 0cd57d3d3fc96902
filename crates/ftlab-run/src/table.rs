//! What a run hands back: a summary and tables of plain columns. Everything that is drawn or saved comes from here.

use std::borrow::Cow;

use serde_json::Value;

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The headline figures; its keys are those of the page "summary.json".
    pub summary: Value,
    pub tables: Vec<Table>,
}

impl Outcome {
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }
}

/// A named table. A run makes:
///
/// | table | a row for | columns |
/// |---|---|---|
/// | `series` | an interval | `tick_units`, `time_ns`, `waf`, `host`, `gc`, `map`, `wear`, `replication`, `metadata`, `padding`, `iops`, `bytes_per_s`, `free_units`, `read_ns`, `write_ns`, `read_iops`, `write_iops` |
/// | `latency` | a bucket | `op`, `upper_ns`, `count` |
/// | `blocks` | a reclaim unit | `ru`, `erases`, `valid_units` |
/// | `dies` | a die | `die`, then the share of time it is busy by class of work |
/// | `channels` | a channel | `channel`, `busy` |
/// | `requests` | a request (if asked for) | `time_ns`, `op`, `offset`, `length`, `latency_ns`, `queue_ns`, `map_ns`, `flash_ns`, `transfer_ns`, `gc_wait_ns` |
/// | `film_frames` | a frame (if asked for) | `frame`, `requests`, `tick_units`, `time_ns`, `waf`, `free_units`, `collections` |
/// | `film` | a tile of a frame (likewise) | `frame`, `ru`, `free`, `open`, `closed`, `collecting`, `bad`, `valid_units`, `frontier`, `age_units`, `erases` |
/// | `film_frontiers` | a frontier (likewise) | `frontier`, `name` |
/// | `streams` | a stream, a frontier of host writes (if asked for) | `stream`, `written`, `died`, `alive` units |
/// | `stream_lifetimes` | a bucket of one (likewise) | `stream`, `upper_units`, `count` |
/// | `stream_contexts` | a program context of one (likewise) | `stream`, `pc`, `written` units |
/// | `stream_collections` | a step of a frontier (likewise) | `frontier`, `valid_percent` (where the step begins), `count` of collected reclaim units |
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<(String, Column)>,
}

/// The values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    F64(Vec<f64>),
    U64(Vec<u64>),
    /// Mostly words of ours, one of a few in each row.
    Text(Vec<Cow<'static, str>>),
}

impl Column {
    pub fn len(&self) -> usize {
        match self {
            Column::F64(values) => values.len(),
            Column::U64(values) => values.len(),
            Column::Text(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Table {
    pub fn new(name: &str) -> Self {
        Table {
            name: name.to_owned(),
            columns: Vec::new(),
        }
    }

    /// Adds a column; all columns of a table have the same length.
    pub fn with(mut self, name: &str, column: Column) -> Self {
        if let Some((first, other)) = self.columns.first() {
            assert_eq!(
                other.len(),
                column.len(),
                "columns `{first}` and `{name}` of `{}` differ in length",
                self.name
            );
        }
        self.columns.push((name.to_owned(), column));
        self
    }

    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, c)| c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_counts_the_rows_of_its_columns() {
        let table = Table::new("channels")
            .with("channel", Column::U64(vec![0, 1]))
            .with("busy", Column::F64(vec![0.5, 0.25]));
        assert_eq!(table.rows(), 2);
        assert_eq!(table.column("busy"), Some(&Column::F64(vec![0.5, 0.25])));
    }

    #[test]
    #[should_panic(expected = "columns `channel` and `busy` of `channels` differ in length")]
    fn columns_of_different_length_are_a_bug() {
        let _ = Table::new("channels")
            .with("channel", Column::U64(vec![0, 1]))
            .with("busy", Column::F64(vec![0.5]));
    }
}
