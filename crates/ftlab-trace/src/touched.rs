//! The set of units that a trace touches, with ranks: what `compact` fitting needs.

/// A set of unit numbers with a rank structure.
#[derive(Clone, Debug, Default)]
pub struct Touched {}
