//! Newtypes for every index, so that one kind cannot be passed for another.

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The index as an array index.
            #[inline(always)]
            pub fn at(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            #[inline(always)]
            fn from(index: usize) -> Self {
                debug_assert!(index <= u32::MAX as usize, "index {index} does not fit 32 bits");
                $name(index as u32)
            }
        }
    };
}

index! {
    /// Logical page number: the number of a mapping unit as the host sees it.
    Lpn
}
index! {
    /// One mapping unit's place in flash, numbered in fill order within its reclaim unit (see [`crate::Layout`]).
    Slot
}
index! {
    /// A reclaim unit: what is erased and collected as a whole (a block of one plane, or a superblock).
    RuId
}
index! {
    /// A lane: the set of planes over which one reclaim unit lies; a write frontier has one open unit per lane.
    LaneId
}
