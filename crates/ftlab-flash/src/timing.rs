//! The timing table of a flash part: what a datasheet says, as a table.

/// Times of one flash part, in whole nanoseconds (bus transfers in picoseconds per byte, so that 533 MT/s is exact).
///
/// # Not modelled
/// Temperature, retention and read-retry: `t_r` is what a healthy page takes. The page types of a block repeat in the
/// order of the table (page 0 is type 0, page 1 type 1, ...), not in a vendor's shared-page order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// `t_r` by page type (one entry for SLC; LSB, MSB for MLC; LSB, CSB, MSB for TLC; four for QLC).
    pub read_ns: Vec<u64>,
    /// `t_prog` by page type; as many entries as `read_ns`.
    pub program_ns: Vec<u64>,
    /// `t_bers`.
    pub erase_ns: u64,
    /// Channel time of a read command with its address, before `t_r`.
    pub read_command_ns: u64,
    /// Channel time of a program command with its address, before the data goes in.
    pub program_command_ns: u64,
    /// Channel time of an erase command with its address.
    pub erase_command_ns: u64,
    /// Channel time per byte, picoseconds.
    pub byte_ps: u64,
    /// Decoding time per read, between the transfer and the use of the data; does not occupy die or channel.
    pub ecc_ns: u64,
    /// Several planes of a die may read, program or erase together when the page number is the same.
    pub multi_plane: bool,
    /// A read may suspend a program or an erase that is under way on its die.
    pub suspend_program: bool,
    pub suspend_erase: bool,
    /// From the suspend command until the die accepts the read.
    pub suspend_ns: u64,
    /// From the resume command until the suspended work goes on.
    pub resume_ns: u64,
    /// Times that one program or erase may be suspended.
    pub max_suspends: u32,
}

impl Timing {
    /// Channel time of `bytes`, rounded up to a nanosecond.
    #[inline]
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        (bytes * self.byte_ps).div_ceil(1000)
    }

    /// `t_r` of page number `page` of a block.
    #[inline]
    pub fn read_of(&self, page: u32) -> u64 {
        self.read_ns[page as usize % self.read_ns.len()]
    }

    /// `t_prog` of page number `page` of a block.
    #[inline]
    pub fn program_of(&self, page: u32) -> u64 {
        self.program_ns[page as usize % self.program_ns.len()]
    }
}
