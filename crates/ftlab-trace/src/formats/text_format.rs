//! What a format of lines of text says of itself; the rest follows from it.

use ftlab_core::Result;

use super::{Claim, Reader, Sample, Strength};
use crate::input::Input;
use crate::lines::{LineParser, TextReader};
use crate::settings::{Setting, Settings};

/// A format whose lines are requests, each by itself.
pub trait TextFormat: LineParser + Sized + 'static {
    /// What its content may leave open.
    const SETTINGS: &'static [Setting] = &[];
    /// The values taken for these.
    const DEFAULTS: Settings = Settings::NONE;
    /// Words, in lower case, one of which a first line holds that is a header and no request.
    const HEADER: &'static [&'static str] = &[];
    const ALWAYS_HAS_HEADER: bool = false;
    /// How surely a file without a header is of this format if its lines parse.
    const STRENGTH: Strength = Strength::Fits;
    /// By what it is told.
    const REASON: &'static str;
    /// A small file.
    const SAMPLE: &'static [u8];

    /// The parser; `settings` have a value for each of [`SETTINGS`](Self::SETTINGS).
    fn new(settings: &Settings) -> Result<Self>;

    fn detect(sample: &Sample<'_>) -> Option<Claim> {
        claim::<Self>(sample)
    }

    fn open(input: Input, settings: &Settings) -> Result<Box<dyn Reader>> {
        let parser = Self::new(&settings.or(&Self::DEFAULTS))?;
        Ok(Box::new(TextReader::with_header(parser, input, Self::HEADER)?))
    }

    fn sample() -> Vec<u8> {
        Self::SAMPLE.to_vec()
    }
}

/// The claim of a format whose lines parse.
pub fn claim<P: TextFormat>(sample: &Sample<'_>) -> Option<Claim> {
    let (lines, header) = sample.body(P::HEADER);
    let parses = Sample::fits(lines, &mut P::new(&P::DEFAULTS).ok()?);
    let fits = match P::ALWAYS_HAS_HEADER {
        true => header && (lines.is_empty() || parses),
        false => parses,
    };
    fits.then(|| Claim {
        strength: if header { Strength::Sure } else { P::STRENGTH },
        reason: P::REASON.to_owned(),
        guess: P::DEFAULTS,
    })
}
