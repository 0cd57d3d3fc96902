//! One direction of the host link: a first-come, first-served reservation.

use crate::config::HostLink;

/// A link that carries one transfer at a time.
#[derive(Clone, Debug)]
pub struct Link {
    /// `None`: transfers take no time.
    bytes_per_second: Option<u64>,
    payload_bytes: u64,
    overhead_bytes: u64,
    free_ns: u64,
    busy_ns: u64,
    /// Bytes of the last transfer, and its time: most are of one size, and two divisions are slower than the rest of a reservation.
    last: (u64, u64),
}

impl Link {
    pub fn new(host: &HostLink) -> Self {
        Link {
            bytes_per_second: host.bytes_per_second,
            payload_bytes: u64::from(host.packet_payload_bytes),
            overhead_bytes: u64::from(host.packet_overhead_bytes),
            free_ns: 0,
            busy_ns: 0,
            last: (0, 0),
        }
    }

    /// A link that costs nothing.
    pub fn free() -> Self {
        Link {
            bytes_per_second: None,
            payload_bytes: 0,
            overhead_bytes: 0,
            free_ns: 0,
            busy_ns: 0,
            last: (0, 0),
        }
    }

    #[inline(always)]
    pub fn takes_time(&self) -> bool {
        self.bytes_per_second.is_some()
    }

    /// Time that `bytes` take: whole packets, each with its overhead; rounded up to a nanosecond.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        let Some(rate) = self.bytes_per_second else { return 0 };
        let overhead = match self.payload_bytes {
            0 => 0,
            payload => bytes.div_ceil(payload) * self.overhead_bytes,
        };
        // 18e9 bytes in one transfer would overflow 64 bits; requests are shorter than 4 GiB.
        ((bytes + overhead) * 1_000_000_000).div_ceil(rate)
    }

    /// Reserves the link for `bytes` at `now` or when it is free. Returns the end and the time of the transfer itself.
    #[inline]
    pub fn reserve(&mut self, now: u64, bytes: u64) -> (u64, u64) {
        if bytes != self.last.0 {
            self.last = (bytes, self.transfer_ns(bytes));
        }
        let duration = self.last.1;
        let end = self.free_ns.max(now) + duration;
        self.free_ns = end;
        self.busy_ns += duration;
        (end, duration)
    }

    pub fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    pub fn clear(&mut self) {
        self.free_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_carry_overhead_and_transfers_follow_each_other() {
        // 4 KiB in 32 packets of 128 + 28 bytes over 4 GB/s: 4992 bytes, 1248 ns.
        let host = HostLink {
            bytes_per_second: Some(4_000_000_000),
            packet_payload_bytes: 128,
            packet_overhead_bytes: 28,
            read_setup_ns: 0,
            write_setup_ns: 0,
            command_ns: 0,
        };
        let mut link = Link::new(&host);
        assert_eq!(link.reserve(100, 4096), (1348, 1248));
        assert_eq!(link.reserve(200, 4096), (2596, 1248));
        // 129 bytes need two packets: 185 bytes, 46.25 ns.
        assert_eq!(link.transfer_ns(129), 47);
        assert_eq!(Link::free().reserve(7, 1 << 20), (7, 0));
    }
}
