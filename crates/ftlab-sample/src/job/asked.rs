//! What is asked of which files, before anything is drawn.

use std::thread;

use ftlab_core::{Error, Result};

use super::joined::Joined;
use super::progress::Progress;
use super::spec::SampleSpec;
use super::{GoOn, WATCH};
use crate::expression::Expression;
use crate::layout::{self, Cut, Dataset};
use crate::record::{Explode, Form};
use crate::sql::{self, Aggregate, Fields, Files, Kind, Plan};
use crate::stop::Stop;
use crate::store::Store;

/// Bytes of the stack on which a query is read: each operator of a chain is a level of recursion, in the parser's tree as well.
const STACK: usize = 256 << 20;

pub(super) struct Asked {
    pub(super) files: String,
    pub(super) explode: Option<Explode>,
    pub(super) joined: Option<Joined>,
    pub(super) dataset: Dataset,
    pub(super) plan: Plan,
}

impl Asked {
    /// `go_on` is called now and then, and may refuse: some files are read whole before anything is drawn.
    pub(super) fn open(spec: &SampleSpec, go_on: GoOn<'_>) -> Result<Asked> {
        let (stop, asking) = (Stop::default(), thread::current());
        thread::scope(|scope| {
            let reading = thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, || {
                    let read = Asked::read(spec, &stop);
                    asking.unpark();
                    read
                })
                .map_err(|e| Error::input(format!("query: no thread to read it: {e}")))?;
            while !reading.is_finished() {
                thread::park_timeout(WATCH);
                if let Err(error) = go_on(&|| Progress::before(0)) {
                    stop.ask();
                    let _ = reading.join();
                    return Err(error);
                }
            }
            reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn read(spec: &SampleSpec, stop: &Stop) -> Result<Asked> {
        let question = sql::parse(&spec.query)?;
        let form = match (&spec.format, &spec.delimiter) {
            (Some(name), delimiter) => Some(Form::parse(name, delimiter.as_deref())?),
            (None, _) => None,
        };
        let cut = Cut {
            disks: spec.disks.clone(),
            partition_bytes: spec.partition_bytes()?,
            form,
            delimiter: spec.delimiter.clone(),
            header: spec.header,
            no_quoted_newlines: spec.no_quoted_newlines,
            direct: spec.direct,
            stop: stop.clone(),
        };
        let joined = question
            .join
            .as_ref()
            .map(|join| Joined::open(&join.file, spec.join_keys.is_some(), stop))
            .transpose()?;
        let dataset = match &question.files {
            Files::Pattern(pattern) => layout::open(pattern, &cut)?,
            Files::Stored(name) => {
                spec.refuse_cuts(name)?;
                Store::open(name.as_ref())?.dataset()?
            }
        };
        if let Some(output) = &spec.output {
            let joined = joined.iter().flat_map(Joined::paths);
            layout::refuse_read(output.as_ref(), joined.chain(dataset.paths()))?;
        }
        let (own_refused, their_refused) = (dataset.refused(), joined.as_ref().map(Joined::refused));
        let own = Fields {
            form: &dataset.form,
            columns: &dataset.columns,
            refused: &own_refused,
        };
        let theirs = joined.as_ref().map(|joined| Fields {
            form: &joined.form,
            columns: &joined.columns,
            refused: their_refused.as_deref().unwrap_or_default(),
        });
        let mut plan = sql::bind(&question, own, theirs)?;
        dataset.check(&plan.picks)?;
        let is_single = |group: &Expression| match group {
            Expression::Slot(slot) => plan.picks.get(*slot).is_some_and(|pick| dataset.is_single(pick)),
            _ => false,
        };
        let groups = plan.groups.iter().enumerate();
        plan.singles = groups.filter(|(_, group)| is_single(group)).map(|(at, _)| at).collect();
        spec.check_keys(&plan)?;
        let counts_rows = |of: &Aggregate| of.kind == Kind::Count && of.of.is_none();
        if spec.join_keys.is_some() && !plan.aggregates.iter().any(counts_rows) {
            // Rows of each key tell whether one outweighs the others, whatever is asked for.
            plan.aggregates.push(Aggregate {
                kind: Kind::Count,
                of: None,
            });
        }
        Ok(Asked {
            // The tree of the query is dropped here, on this stack.
            files: question.files.to_string(),
            explode: question.explode,
            joined,
            dataset,
            plan,
        })
    }
}
