//! What a slot belongs to: the reverse map's entry, and what a drive writes into the page's spare area.

use ftlab_core::Lpn;

use crate::indirection::Vpn;

/// The owner of a slot, packed in 32 bits in the reverse map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Host data, reached directly from the map.
    Lpn(Lpn),
    /// Host data behind an indirection (deduplicated or replicated).
    Vpn(Vpn),
    /// Translation page `tvpn` of mapping table `table` (0 to 3).
    Map { table: u8, tvpn: u32 },
    /// A page that a policy wrote for itself; the number is the policy's.
    Policy(u32),
    /// The metadata journal and checkpoints.
    Journal,
    /// Nothing: never written, or padding.
    None,
}

const LPN_LIMIT: u32 = 1 << 31;
const VPN_TAG: u32 = 0b10 << 30;
const MAP_TAG: u32 = 0b110 << 29;
const POLICY_TAG: u32 = 0b1110 << 28;
const JOURNAL: u32 = u32::MAX - 1;

/// An [`Owner`] in its packed form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Packed(pub u32);

impl Packed {
    pub const NONE: Packed = Packed(u32::MAX);

    #[inline(always)]
    pub fn lpn(lpn: Lpn) -> Self {
        debug_assert!(lpn.0 < LPN_LIMIT);
        Packed(lpn.0)
    }

    /// The LPN, if the owner is one (the hot case: one comparison).
    #[inline(always)]
    pub fn as_lpn(self) -> Option<Lpn> {
        (self.0 < LPN_LIMIT).then_some(Lpn(self.0))
    }
}

impl From<Owner> for Packed {
    #[inline]
    fn from(owner: Owner) -> Self {
        Packed(match owner {
            Owner::Lpn(lpn) => lpn.0,
            Owner::Vpn(vpn) => {
                debug_assert!(vpn.0 < 1 << 30);
                VPN_TAG | vpn.0
            }
            Owner::Map { table, tvpn } => {
                debug_assert!(table < 4 && tvpn < 1 << 27);
                MAP_TAG | u32::from(table) << 27 | tvpn
            }
            Owner::Policy(number) => {
                debug_assert!(number < 1 << 28);
                POLICY_TAG | number
            }
            Owner::Journal => JOURNAL,
            Owner::None => u32::MAX,
        })
    }
}

impl From<Packed> for Owner {
    #[inline]
    fn from(packed: Packed) -> Self {
        match packed.0 {
            lpn if lpn < LPN_LIMIT => Owner::Lpn(Lpn(lpn)),
            JOURNAL => Owner::Journal,
            u32::MAX => Owner::None,
            vpn if vpn >> 30 == 0b10 => Owner::Vpn(Vpn(vpn & ((1 << 30) - 1))),
            map if map >> 29 == 0b110 => Owner::Map {
                table: (map >> 27 & 3) as u8,
                tvpn: map & ((1 << 27) - 1),
            },
            policy => Owner::Policy(policy & ((1 << 28) - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_owner_survives_packing() {
        let owners = [
            Owner::Lpn(Lpn(0)),
            Owner::Lpn(Lpn(LPN_LIMIT - 1)),
            Owner::Vpn(Vpn(0)),
            Owner::Vpn(Vpn((1 << 30) - 1)),
            Owner::Map { table: 0, tvpn: 0 },
            Owner::Map {
                table: 3,
                tvpn: (1 << 27) - 1,
            },
            Owner::Policy(0),
            Owner::Policy((1 << 28) - 3),
            Owner::Journal,
            Owner::None,
        ];
        for owner in owners {
            assert_eq!(Owner::from(Packed::from(owner)), owner);
        }
    }
}
