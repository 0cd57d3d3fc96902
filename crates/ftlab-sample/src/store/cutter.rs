//! Records become partitions: as many whole ones as fit.

/// Records of a partition, each with its line end.
pub(super) struct Sealed {
    pub(super) bytes: Vec<u8>,
    pub(super) records: u32,
}

pub(super) struct Cutter {
    partition_bytes: usize,
    open: Sealed,
}

impl Cutter {
    pub(super) fn new(partition_bytes: u64) -> Cutter {
        Cutter {
            partition_bytes: partition_bytes as usize,
            open: Sealed {
                bytes: Vec::new(),
                records: 0,
            },
        }
    }

    /// Takes a record; gives a partition that it found full. A record that is longer than a partition has one of its own.
    pub(super) fn push(&mut self, record: &[u8]) -> Option<Sealed> {
        let fits = self.open.bytes.len() + record.len() < self.partition_bytes;
        let full = if fits { None } else { self.seal() };
        if self.open.bytes.capacity() == 0 {
            self.open
                .bytes
                .reserve_exact(self.partition_bytes.max(record.len() + 1));
        }
        self.open.bytes.extend_from_slice(record);
        self.open.bytes.push(b'\n');
        self.open.records += 1;
        full
    }

    /// What is left, if anything.
    pub(super) fn seal(&mut self) -> Option<Sealed> {
        let empty = Sealed {
            bytes: Vec::new(),
            records: 0,
        };
        let open = std::mem::replace(&mut self.open, empty);
        (open.records > 0).then_some(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Partitions of 8 bytes: `aaa` and `bbb` fill one, `c` and the long one do not fit together, nor does anything beside the long one.
    #[test]
    fn partitions_end_with_records() {
        let mut cutter = Cutter::new(8);
        let mut found = Vec::new();
        for record in ["aaa", "bbb", "c", "0123456789", "", "d"] {
            found.extend(cutter.push(record.as_bytes()));
        }
        found.extend(cutter.seal());
        assert!(cutter.seal().is_none());
        let shown: Vec<(&str, u32)> = found
            .iter()
            .map(|sealed| (std::str::from_utf8(&sealed.bytes).unwrap(), sealed.records))
            .collect();
        assert_eq!(
            shown,
            [("aaa\nbbb\n", 2), ("c\n", 1), ("0123456789\n", 1), ("\nd\n", 2)]
        );
    }
}
