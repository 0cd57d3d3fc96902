//! What a filter is made of, and the sources around it.
//!
//! Most filters work on a batch in place ([`Edit`]); those that cut, join or hold back requests go request by request
//! ([`Rewrite`]); one that reads its input more than once makes a source of its own. The frames see to it that an empty
//! batch means the end and nothing else.

use std::sync::Arc;

use ftlab_core::{Batch, Error, Result, Source};

use super::{Again, Context, apply, survey};
use crate::Scan;

/// A filter whose keys are read, ready to be put behind a stream.
pub type Stage = Box<dyn FnOnce(&mut Upstream<'_>) -> Result<Box<dyn Source>> + Send>;

/// Changes or drops requests of a batch, each on its own or by what came before.
pub trait Edit: Send + 'static {
    /// Changes `batch` in place; `from` knows the names of its volumes and labels.
    fn edit(&mut self, batch: &mut Batch, from: &dyn Source) -> Result<()>;

    /// True when nothing that may still come would pass.
    fn ended(&self) -> bool {
        false
    }

    /// Called once, at the end of the input.
    fn finish(&mut self, _from: &dyn Source) -> Result<()> {
        Ok(())
    }

    /// Requests that will pass of `coming` ones, where that is certain.
    fn remaining(&self, _coming: u64) -> Option<u64> {
        None
    }
}

/// Makes any number of requests of one, or one of many.
pub trait Rewrite: Send + 'static {
    /// Deals with request `i` of `input`: appends to `output` what goes on.
    fn request(&mut self, input: &Batch, i: usize, output: &mut Batch) -> Result<()>;

    /// At the end of the input: appends some of what was held back. Called until it appends nothing.
    fn finish(&mut self, _output: &mut Batch) -> Result<()> {
        Ok(())
    }
}

/// The stream in front of a filter.
pub struct Upstream<'a> {
    source: Option<Box<dyn Source>>,
    filter: &'static str,
    before: &'a [String],
    context: &'a Context,
    pub(super) notes: Vec<String>,
}

impl<'a> Upstream<'a> {
    pub(super) fn new(
        source: Box<dyn Source>,
        filter: &'static str,
        before: &'a [String],
        context: &'a Context,
    ) -> Self {
        Upstream {
            source: Some(source),
            filter,
            before,
            context,
            notes: Vec::new(),
        }
    }

    /// Puts `edit` behind the stream.
    pub fn edited(&mut self, edit: impl Edit) -> Result<Box<dyn Source>> {
        Ok(Box::new(Edited {
            inner: self.source()?,
            edit,
            over: false,
        }))
    }

    /// Puts `rewrite` behind the stream.
    pub fn rewritten(&mut self, rewrite: impl Rewrite) -> Result<Box<dyn Source>> {
        Ok(Box::new(Rewritten {
            inner: self.source()?,
            rewrite,
            input: Batch::default(),
            at: 0,
            over: false,
        }))
    }

    /// The stream itself; there is one.
    pub fn source(&mut self) -> Result<Box<dyn Source>> {
        let taken = || Error::input(format!("filter `{}` took its input twice", self.filter));
        self.source.take().ok_or_else(taken)
    }

    /// Opens the stream once more from its start, the filters in front included.
    pub fn again(&self) -> Result<Again> {
        let Some(unfiltered) = self.context.again.clone() else {
            return Err(Error::input(format!(
                "filter `{}` must read the trace more than once: expected files, not standard input",
                self.filter
            )));
        };
        if self.before.is_empty() {
            return Ok(unfiltered);
        }
        let (before, context) = (self.before.to_vec(), self.context.clone());
        Ok(Arc::new(move || Ok(Box::new(apply(&before, unfiltered()?, &context)?))))
    }

    /// One pass over the stream: what it reaches, and the units of `unit_bytes` that it touches.
    pub fn survey(&self, unit_bytes: u32) -> Result<Arc<Scan>> {
        let key = format!("{unit_bytes} {}", self.before.join("\n"));
        let kept = self.context.surveys.lock().ok().and_then(|all| all.get(&key).cloned());
        if let Some(found) = kept {
            return Ok(found);
        }
        let found = Arc::new(survey(&mut *self.again()?()?, unit_bytes)?);
        if let Ok(mut all) = self.context.surveys.lock() {
            all.insert(key, found.clone());
        }
        Ok(found)
    }

    /// Says what a key came to for this stream.
    pub fn note(&mut self, sentence: String) {
        self.notes.push(sentence);
    }
}

/// A stage that puts an edit behind whatever comes.
pub(super) fn editing(edit: impl Edit) -> Stage {
    Box::new(|upstream| upstream.edited(edit))
}

/// A stage that puts a rewrite behind whatever comes.
pub(super) fn rewriting(rewrite: impl Rewrite) -> Stage {
    Box::new(|upstream| upstream.rewritten(rewrite))
}

struct Edited<E> {
    inner: Box<dyn Source>,
    edit: E,
    over: bool,
}

impl<E: Edit> Source for Edited<E> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        loop {
            batch.clear();
            if self.over {
                return Ok(());
            }
            if self.edit.ended() {
                self.over = true;
                return Ok(());
            }
            self.inner.next_batch(batch)?;
            if batch.is_empty() {
                self.over = true;
                return self.edit.finish(&*self.inner);
            }
            if let Err(error) = self.edit.edit(batch, &*self.inner) {
                batch.clear();
                return Err(error);
            }
            if !batch.is_empty() {
                return Ok(());
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        self.inner.remaining().and_then(|coming| self.edit.remaining(coming))
    }

    fn volume_names(&self) -> Vec<String> {
        self.inner.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.inner.label_names()
    }
}

struct Rewritten<R> {
    inner: Box<dyn Source>,
    rewrite: R,
    input: Batch,
    /// The next request of `input`.
    at: usize,
    over: bool,
}

impl<R: Rewrite> Source for Rewritten<R> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        loop {
            while self.at < self.input.len() {
                self.at += 1;
                if let Err(error) = self.rewrite.request(&self.input, self.at - 1, batch) {
                    batch.clear();
                    return Err(error);
                }
                if batch.len() >= Batch::TARGET {
                    return Ok(());
                }
            }
            if !self.over {
                self.at = 0;
                self.inner.next_batch(&mut self.input)?;
                self.over = self.input.is_empty();
            }
            if self.over {
                let before = batch.len();
                self.rewrite.finish(batch)?;
                if batch.len() == before || batch.len() >= Batch::TARGET {
                    return Ok(());
                }
            }
        }
    }

    fn volume_names(&self) -> Vec<String> {
        self.inner.volume_names()
    }

    fn label_names(&self) -> Vec<String> {
        self.inner.label_names()
    }
}
