//! Virtual page numbers: units that several LPNs share, units with several copies, and units in four chunks.
//!
//! A VPN is reference-counted. Its body is a list of copies (slots), a pack of four chunks in one slot, or a vector of
//! four chunks that lie in packs. A drive without deduplication and replication has none and pays nothing.

use ftlab_core::Slot;

/// Most copies of one unit.
pub const MAX_COPIES: usize = 4;
/// Chunks of a unit.
pub const CHUNKS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    pub pack: u32,
    pub index: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Copies(Vec<Slot>),
    /// `slot` is `None` while the pack is being filled in the controller. References are counted per chunk.
    Pack {
        slot: Option<Slot>,
        filled: u8,
        references: [u32; CHUNKS],
    },
    Vector([Chunk; CHUNKS]),
    Unused,
}

#[derive(Clone, Debug)]
pub struct Virtual {
    /// LPNs that point here (for a pack: chunk references).
    pub references: u32,
    pub body: Body,
}

#[derive(Clone, Debug, Default)]
pub struct Indirection {
    pages: Vec<Virtual>,
    unused: Vec<u32>,
    /// The pack that takes the next new chunk.
    pub filling: Option<u32>,
}

/// What a release has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Released {
    pub slots: Vec<Slot>,
    pub dead: Vec<u32>,
    pub dead_chunks: Vec<Chunk>,
}

impl Indirection {
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub fn create(&mut self, body: Body, references: u32) -> u32 {
        let page = Virtual { references, body };
        match self.unused.pop() {
            Some(vpn) => {
                self.pages[vpn as usize] = page;
                vpn
            }
            None => {
                self.pages.push(page);
                self.pages.len() as u32 - 1
            }
        }
    }

    pub fn get(&self, vpn: u32) -> &Virtual {
        &self.pages[vpn as usize]
    }

    pub fn body_mut(&mut self, vpn: u32) -> &mut Body {
        &mut self.pages[vpn as usize].body
    }

    pub fn acquire(&mut self, vpn: u32) {
        assert!(self.pages[vpn as usize].body != Body::Unused, "VPN {vpn} is not in use");
        self.pages[vpn as usize].references += 1;
    }

    /// One more reference to a chunk.
    pub fn acquire_chunk(&mut self, chunk: Chunk) {
        let page = &mut self.pages[chunk.pack as usize];
        page.references += 1;
        match &mut page.body {
            Body::Pack { references, .. } => references[chunk.index as usize] += 1,
            other => panic!("VPN {} is no pack: {other:?}", chunk.pack),
        }
    }

    /// One reference less; what that ends is added to `released`.
    pub fn release(&mut self, vpn: u32, released: &mut Released) {
        let page = &mut self.pages[vpn as usize];
        page.references -= 1;
        if page.references > 0 {
            return;
        }
        match std::mem::replace(&mut page.body, Body::Unused) {
            Body::Copies(slots) => released.slots.extend(slots),
            Body::Pack { slot, .. } => {
                released.slots.extend(slot);
                if self.filling == Some(vpn) {
                    self.filling = None;
                }
            }
            Body::Vector(chunks) => chunks.into_iter().for_each(|chunk| self.release_chunk(chunk, released)),
            Body::Unused => panic!("VPN {vpn} released twice"),
        }
        released.dead.push(vpn);
        self.unused.push(vpn);
    }

    fn release_chunk(&mut self, chunk: Chunk, released: &mut Released) {
        if let Body::Pack { references, .. } = &mut self.pages[chunk.pack as usize].body {
            references[chunk.index as usize] -= 1;
            if references[chunk.index as usize] == 0 {
                released.dead_chunks.push(chunk);
            }
        }
        self.release(chunk.pack, released);
    }

    /// Garbage collection has moved a copy or a pack.
    pub fn moved(&mut self, vpn: u32, old: Slot, new: Slot) {
        match &mut self.pages[vpn as usize].body {
            Body::Copies(slots) => {
                let slot = slots.iter_mut().find(|slot| **slot == old);
                *slot.unwrap_or_else(|| panic!("VPN {vpn} has no copy at {old:?}")) = new;
            }
            Body::Pack { slot, .. } => {
                assert!(*slot == Some(old), "pack {vpn} is not at {old:?} but at {slot:?}");
                *slot = Some(new);
            }
            other => panic!("VPN {vpn} owns {old:?} but is {other:?}"),
        }
    }

    /// The first place of the data, if it is in flash.
    pub fn first_slot(&self, vpn: u32) -> Option<Slot> {
        match &self.pages[vpn as usize].body {
            Body::Copies(slots) => slots.first().copied(),
            Body::Pack { slot, .. } => *slot,
            Body::Vector(chunks) => self.first_slot(chunks[0].pack),
            Body::Unused => None,
        }
    }

    /// Whether `slot` is one of the places of `vpn`.
    pub fn lies_at(&self, vpn: u32, slot: Slot) -> bool {
        match self.pages.get(vpn as usize).map(|page| &page.body) {
            Some(Body::Copies(slots)) => slots.contains(&slot),
            Some(Body::Pack { slot: at, .. }) => *at == Some(slot),
            _ => false,
        }
    }

    /// The slots that hold the data of `vpn`.
    pub fn slots_of(&self, vpn: u32) -> Vec<Slot> {
        match &self.pages[vpn as usize].body {
            Body::Copies(slots) => slots.clone(),
            Body::Pack { slot, .. } => slot.iter().copied().collect(),
            Body::Vector(chunks) => chunks.iter().filter_map(|chunk| self.first_slot(chunk.pack)).collect(),
            Body::Unused => Vec::new(),
        }
    }

    /// All slots that hold data of VPNs.
    pub fn slots(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        for (_, page) in self.in_use() {
            match &page.body {
                Body::Copies(copies) => slots.extend(copies),
                Body::Pack { slot, .. } => slots.extend(slot),
                Body::Vector(_) | Body::Unused => {}
            }
        }
        slots
    }

    /// Numbers and bodies of all VPNs in use.
    pub fn in_use(&self) -> impl Iterator<Item = (u32, &Virtual)> {
        self.pages
            .iter()
            .enumerate()
            .filter(|(_, page)| page.body != Body::Unused)
            .map(|(vpn, page)| (vpn as u32, page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reference_frees_every_copy() {
        let mut all = Indirection::default();
        let vpn = all.create(Body::Copies(vec![Slot(1), Slot(9)]), 1);
        all.acquire(vpn);
        let mut released = Released::default();
        all.release(vpn, &mut released);
        assert_eq!(released, Released::default());
        all.moved(vpn, Slot(9), Slot(4));
        all.release(vpn, &mut released);
        assert_eq!((released.slots, released.dead), (vec![Slot(1), Slot(4)], vec![vpn]));
    }

    #[test]
    fn a_pack_dies_with_the_last_vector_that_uses_it() {
        let mut all = Indirection::default();
        let pack = all.create(
            Body::Pack {
                slot: Some(Slot(3)),
                filled: 4,
                references: [0; 4],
            },
            0,
        );
        let chunk = |index| Chunk { pack, index };
        let vectors: Vec<u32> = [[0, 1, 2, 3], [0, 0, 1, 1]]
            .into_iter()
            .map(|indices: [u8; 4]| {
                indices.iter().for_each(|&i| all.acquire_chunk(chunk(i)));
                all.create(Body::Vector(indices.map(chunk)), 1)
            })
            .collect();
        let mut released = Released::default();
        all.release(vectors[0], &mut released);
        assert_eq!(released.slots, []);
        assert_eq!(released.dead_chunks, [chunk(2), chunk(3)]);
        all.release(vectors[1], &mut released);
        assert_eq!(released.slots, [Slot(3)]);
        assert_eq!(released.dead, [vectors[0], pack, vectors[1]]);
    }
}
