//! What an observer of the executor is told: each use of a channel, each hold of a die, each completion.

use ftlab_core::Result;
use ftlab_ftl::{Cause, Class, FlashOpKind, OpId};

use crate::schedule::Phase;

/// The operation a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    pub id: OpId,
    pub kind: FlashOpKind,
    pub class: Class,
    pub cause: Cause,
    pub page: u32,
}

/// A span of simulated time, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start_ns: u64,
    pub end_ns: u64,
}

/// Looks on; cannot change anything. Without one, observing costs a branch per transfer and hold.
pub trait Observer: Send {
    /// `subject` uses the channel. Reported when the transfer starts; its end is certain.
    fn channel(&mut self, channel: u32, phase: Phase, subject: &Subject, span: Span);
    /// `subject` has held the die, together with others of the same kind if `planes` is more than 1 (it stands for all of
    /// them). A suspended operation is reported once for each piece.
    fn die(&mut self, die: u32, subject: &Subject, planes: u32, span: Span);
    /// `subject` has completed (a read after decoding).
    fn done(&mut self, _subject: &Subject, _now_ns: u64) {}
    /// Nothing more will come; reports what went wrong on the way.
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
