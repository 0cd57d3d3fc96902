//! What a host (and fate) may do to a drive, from a random stream or from arbitrary bytes.

use ftlab_core::Stream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write {
        first: u32,
        units: u32,
        head: bool,
        tail: bool,
        fua: bool,
        stream: u16,
        /// Which of a few contents the units get.
        content: u8,
    },
    Read {
        first: u32,
        units: u32,
        head: bool,
        tail: bool,
    },
    Trim {
        first: u32,
        units: u32,
        head: bool,
        tail: bool,
    },
    Flush,
    /// So many operations of the flash complete.
    Run(u32),
    /// Everything under way completes.
    Settle,
    PowerCut,
}

/// How often each kind comes, and where on the drive: drawn anew for each run, so that runs differ in kind.
#[derive(Clone, Debug)]
pub struct Mix {
    logical_units: u32,
    weights: [u64; 7],
    longest: u32,
    /// Share of the drive, in percent, that takes nine of ten accesses; 100: none.
    hot: u32,
    partial: u64,
    fua: u64,
}

impl Mix {
    pub fn draw(logical_units: u32, cuts: bool, random: &mut Stream) -> Self {
        let mut weight = |most: u64| random.below(most + 1);
        let weights = [
            20 + weight(40),
            weight(30),
            weight(10),
            weight(4),
            weight(20),
            weight(2),
            if cuts { 1 + weight(3) } else { 0 },
        ];
        Mix {
            logical_units,
            weights,
            longest: [1, 2, 6, 24][random.below(4) as usize].min(logical_units),
            hot: [5, 20, 100][random.below(3) as usize],
            partial: random.below(50),
            fua: random.below(20),
        }
    }

    /// Two reads for each other operation, all over the drive: what is kept for reads lives long enough to be read.
    pub fn mostly_reads(mut self) -> Self {
        self.weights[1] += 2 * self.weights.iter().sum::<u64>();
        self.hot = 100;
        self
    }

    pub fn next(&self, random: &mut Stream) -> Operation {
        let mut draw = random.below(self.weights.iter().sum());
        let mut kind = 0;
        while draw >= self.weights[kind] {
            draw -= self.weights[kind];
            kind += 1;
        }
        let units = 1 + random.below(u64::from(self.longest)) as u32;
        let span = if self.hot < 100 && random.below(10) < 9 {
            (self.logical_units * self.hot / 100).max(1)
        } else {
            self.logical_units
        };
        let first = (random.below(u64::from(span)) as u32).min(self.logical_units - units);
        let head = random.below(100) < self.partial;
        let tail = random.below(100) < self.partial;
        match kind {
            0 => Operation::Write {
                first,
                units,
                head,
                tail,
                fua: random.below(100) < self.fua,
                stream: random.below(4) as u16,
                content: random.below(12) as u8,
            },
            1 => Operation::Read {
                first,
                units,
                head,
                tail,
            },
            2 => Operation::Trim {
                first,
                units,
                head,
                tail,
            },
            3 => Operation::Flush,
            4 => Operation::Run(1 + random.below(40) as u32),
            5 => Operation::Settle,
            _ => Operation::PowerCut,
        }
    }
}

/// Operations from arbitrary bytes, five each; every byte string means something.
pub fn decode(bytes: &[u8], logical_units: u32) -> impl Iterator<Item = Operation> + '_ {
    bytes.chunks(5).map(move |chunk| {
        let byte = |i: usize| chunk.get(i).copied().unwrap_or(0);
        let units = (1 + u32::from(byte(3) % 16)).min(logical_units);
        let first = u32::from(u16::from_le_bytes([byte(1), byte(2)])) % (logical_units - units + 1);
        let (head, tail) = (byte(4) & 1 != 0, byte(4) & 2 != 0);
        match byte(0) % 16 {
            0..=7 => Operation::Write {
                first,
                units,
                head,
                tail,
                fua: byte(4) & 4 != 0,
                stream: u16::from(byte(4) >> 3 & 3),
                content: byte(4) >> 5,
            },
            8 | 9 => Operation::Read {
                first,
                units,
                head,
                tail,
            },
            10 | 11 => Operation::Trim {
                first,
                units,
                head,
                tail,
            },
            12 => Operation::Flush,
            13 => Operation::Run(u32::from(byte(1))),
            14 => Operation::Settle,
            _ => Operation::PowerCut,
        }
    })
}
