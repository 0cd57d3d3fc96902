//! Policies that use the powers of the seams.
