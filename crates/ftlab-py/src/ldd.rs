//! LDDs: stores by their names, and what Python's chains need of the core.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use ftlab_core::Error;
use ftlab_sample::chain::{self, ChainSums, Part, PartStream, Plan, Rows, Source};
use ftlab_sample::read;
use ftlab_sample::store::{self, CreateSpec, LoadSpec, Store, Writer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use serde_json::{Value as Json, json};

use crate::error::to_py;
use crate::table::ArrowTable;

/// Ctrl-C, asked for a few times a second.
fn go_on() -> ftlab_core::Result<()> {
    Python::attach(|py| py.check_signals()).map_err(|_| Error::Interrupted)
}

/// Loads files into a store; what it has then, as JSON. `spec` is the JSON of `ftlab_sample::store::LoadSpec`.
#[pyfunction]
pub fn ldd_load(py: Python<'_>, spec: &str) -> PyResult<String> {
    let spec = LoadSpec::parse(spec).map_err(to_py)?;
    Ok(py.detach(|| store::load(&spec, &mut go_on)).map_err(to_py)?.to_string())
}

/// What a store has, as JSON; with `check`, every partition is read and held against its check.
#[pyfunction]
pub fn ldd_info(py: Python<'_>, name: PathBuf, check: bool) -> PyResult<String> {
    let info = py.detach(|| {
        let store = Store::open(&name)?;
        if check {
            store.check(&mut go_on)?;
        }
        store.info()
    });
    Ok(info.map_err(to_py)?.to_string())
}

/// Files in place or a stored LDD. `spec` is the JSON of `ftlab_sample::chain::SourceSpec`.
#[pyclass(name = "LddSource", frozen, module = "ftlab._ftlab")]
pub struct LddSource(Arc<Source>);

#[pymethods]
impl LddSource {
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let source = py.detach(|| Source::open(spec)).map_err(to_py)?;
        Ok(LddSource(Arc::new(source)))
    }

    /// Format, fields, disks and their partitions, as JSON.
    fn describe(&self) -> String {
        self.0.describe().to_string()
    }

    /// Partitions that are drawn, by disk.
    fn draw(&self, ratio: f64, seed: u64) -> Vec<Vec<u64>> {
        self.0.draw(ratio, seed)
    }

    /// One partition through a plan, in this thread.
    fn read(&self, py: Python<'_>, disk: usize, partition: u64, plan: &str) -> PyResult<LddPart> {
        let plan = Plan::parse(plan).map_err(to_py)?;
        let dataset = &self.0.dataset;
        let part = py.detach(|| {
            self.expect(disk, partition)?;
            let mut buffer = Vec::new();
            let loaded = read::load(dataset.place(disk, partition), &[], &mut buffer)?;
            plan.run(dataset, disk, partition, &buffer, &loaded)
        });
        Ok(LddPart::new(part.map_err(to_py)?, &self.0))
    }

    /// Partitions (disk and number) through a plan, by `threads` threads and `depth` readers of each disk, in order.
    fn stream(&self, order: Vec<(usize, u64)>, plan: &str, threads: usize, depth: usize) -> PyResult<LddStream> {
        let plan = Plan::parse(plan).map_err(to_py)?;
        if !(1..=1024).contains(&threads) || !(1..=256).contains(&depth) {
            return Err(to_py(Error::input(format!(
                "threads {threads}, depth {depth}: expected 1 to 1024, and 1 to 256"
            ))));
        }
        for &(disk, partition) in &order {
            self.expect(disk, partition).map_err(to_py)?;
        }
        Ok(LddStream {
            parts: PartStream::start(&self.0, plan, order, threads, depth),
            source: self.0.clone(),
        })
    }
}

impl LddSource {
    fn expect(&self, disk: usize, partition: u64) -> ftlab_core::Result<()> {
        let disks = &self.0.dataset.disks;
        match disks.get(disk).is_some_and(|disk| partition < disk.partitions) {
            true => Ok(()),
            false => Err(Error::input(format!(
                "partition {partition} of disk {disk}: there is none"
            ))),
        }
    }
}

/// Partitions as they come out of a plan.
#[pyclass(name = "LddStream", frozen, module = "ftlab._ftlab")]
pub struct LddStream {
    parts: PartStream,
    source: Arc<Source>,
}

#[pymethods]
impl LddStream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<LddPart>> {
        let part = py.detach(|| self.parts.next(&mut go_on)).map_err(to_py)?;
        Ok(part.map(|part| LddPart::new(part, &self.source)))
    }
}

/// What came of one partition.
#[pyclass(name = "LddPart", frozen, module = "ftlab._ftlab")]
pub struct LddPart {
    part: Part,
    columns: Vec<String>,
}

impl LddPart {
    fn new(part: Part, source: &Source) -> Self {
        let columns = match source.dataset.columns.len() == part.cells.width {
            true => source.dataset.columns.clone(),
            false => Vec::new(),
        };
        LddPart { part, columns }
    }

    fn text<'py>(&self, py: Python<'py>, row: usize, column: usize) -> PyResult<Bound<'py, PyAny>> {
        match self.part.cells.get(row, column) {
            None => Ok(py.None().into_bound(py)),
            Some(bytes) => text(py, bytes),
        }
    }
}

/// Text of Python; bytes that are no UTF-8 stay what they are when it is encoded again in the same way.
fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

#[pymethods]
impl LddPart {
    #[getter]
    fn disk(&self) -> usize {
        self.part.disk
    }

    #[getter]
    fn partition(&self) -> u64 {
        self.part.partition
    }

    /// Records where records were sampled.
    #[getter]
    fn records(&self) -> u64 {
        self.part.records
    }

    /// Those of them that were taken.
    #[getter]
    fn taken(&self) -> u64 {
        self.part.taken
    }

    fn __len__(&self) -> usize {
        self.part.cells.rows()
    }

    /// The first field of each record.
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = 0..self.part.cells.rows();
        let texts: Vec<Bound<'py, PyAny>> = rows.map(|row| self.text(py, row, 0)).collect::<PyResult<_>>()?;
        PyList::new(py, texts)
    }

    /// All fields of each record, by name.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let names: Vec<Bound<'py, PyString>> = self.columns.iter().map(|name| PyString::new(py, name)).collect();
        let record = |row: usize| {
            let record = PyDict::new(py);
            for (column, name) in names.iter().enumerate() {
                record.set_item(name, self.text(py, row, column)?)?;
            }
            Ok(record)
        };
        (0..self.part.cells.rows()).map(record).collect()
    }

    /// Of each row, which of the taken records it comes from; None where none were sampled.
    fn parents(&self) -> Option<Vec<u32>> {
        self.part.parents.clone()
    }

    /// Of each row, how often it was there; None where it was not counted.
    fn counts(&self) -> Option<Vec<u64>> {
        self.part.counts.clone()
    }

    /// All rows as a table of texts; columns of lines are `line`.
    fn table(&self) -> PyResult<ArrowTable> {
        let cells = &self.part.cells;
        let line = ["line".to_owned()];
        let names = if self.columns.is_empty() {
            &line[..]
        } else {
            &self.columns[..]
        };
        let columns = names.iter().enumerate().map(|(column, name)| {
            let texts = (0..cells.rows()).map(|row| cells.get(row, column).map(String::from_utf8_lossy));
            (name, Arc::new(texts.collect::<StringArray>()) as ArrayRef)
        });
        let batch = RecordBatch::try_from_iter(columns);
        let batch = batch.map_err(|e| to_py(Error::input(format!("ldd: {e}"))))?;
        Ok(ArrowTable::of("records", batch))
    }
}

/// Texts through a kernel: what comes of them, and from which each comes. `step` is the JSON of a plan's step.
#[pyfunction]
pub fn ldd_pieces<'py>(
    py: Python<'py>,
    step: &str,
    texts: Vec<Option<Bound<'py, PyString>>>,
) -> PyResult<(Vec<Bound<'py, PyAny>>, Vec<usize>)> {
    let plan = Plan::parse(&format!("{{\"steps\": [{step}]}}")).map_err(to_py)?;
    let (mut found, mut parents, mut room) = (Vec::new(), Vec::new(), Vec::new());
    let mut failed = Ok(());
    for (number, given) in texts.iter().enumerate() {
        let bytes = match given {
            None => None,
            // With halves of surrogates in it, it is what `text` has made of other bytes.
            Some(given) => Some(match given.to_str() {
                Ok(plain) => Cow::Borrowed(plain.as_bytes()),
                Err(_) => Cow::Owned(
                    given
                        .call_method1("encode", ("utf-8", "surrogateescape"))?
                        .extract::<Vec<u8>>()?,
                ),
            }),
        };
        for step in &plan.steps {
            step.kernel
                .apply(step.way, bytes.as_deref(), &mut room, &mut |piece| match piece
                    .map_or_else(|| Ok(py.None().into_bound(py)), |piece| text(py, piece))
                {
                    Ok(piece) => {
                        found.push(piece);
                        parents.push(number);
                    }
                    Err(error) => failed = Err(error),
                });
        }
    }
    failed?;
    Ok((found, parents))
}

/// Records of a partition that a sample within it takes.
#[pyfunction]
pub fn ldd_choose(seed: u64, disk: usize, partition: u64, records: u64, ratio: f64) -> Vec<u32> {
    chain::choose(seed, disk, partition, records, ratio)
}

/// Sums by partition, and the estimates that follow.
#[pyclass(name = "LddSums", module = "ftlab._ftlab")]
pub struct LddSums(ChainSums);

#[pymethods]
impl LddSums {
    #[new]
    fn new(kind: &str, partitions: Vec<u64>, within: bool) -> PyResult<Self> {
        ChainSums::new(kind, partitions, within).map(LddSums).map_err(to_py)
    }

    /// Adds what a partition gives: values by keys' numbers, what ratios are over, and the sampled records they come from.
    #[pyo3(signature = (disk, records, taken, t, keys = None, z = None, parents = None))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn add(
        &mut self,
        disk: usize,
        records: u64,
        taken: u64,
        t: Vec<f64>,
        keys: Option<Vec<u32>>,
        z: Option<Vec<f64>>,
        parents: Option<Vec<u32>>,
    ) -> PyResult<()> {
        let rows = Rows {
            keys: keys.as_deref(),
            t: &t,
            z: z.as_deref(),
            parents: parents.as_deref(),
        };
        self.0.add(disk, (records, taken), rows).map_err(to_py)
    }

    /// Estimates by keys' numbers, as JSON.
    fn estimates(&mut self, level: f64) -> String {
        let found = self.0.finish(level).into_iter().map(|found| {
            let estimate = found.estimate.map(|estimate| estimate.json());
            json!({
                "key": found.key, "estimate": estimate, "partitions_seen": found.partitions_seen,
                "is_reliable": found.is_reliable,
            })
        });
        found.collect::<Json>().to_string()
    }
}

/// The writer of a store.
#[pyclass(name = "LddWriter", module = "ftlab._ftlab")]
pub struct LddWriter {
    writer: Option<Writer>,
    notes: Vec<String>,
}

impl LddWriter {
    fn writer(&mut self) -> PyResult<&mut Writer> {
        let closed = || to_py(Error::input("ldd: the writer is closed, expected an open one"));
        self.writer.as_mut().ok_or_else(closed)
    }
}

#[pymethods]
impl LddWriter {
    /// A new store; `spec` is the JSON of `ftlab_sample::store::CreateSpec`.
    #[staticmethod]
    fn create(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let writer = py.detach(|| CreateSpec::parse(spec)?.create()).map_err(to_py)?;
        Ok(LddWriter {
            writer: Some(writer),
            notes: Vec::new(),
        })
    }

    /// A store that is there.
    #[staticmethod]
    fn append(py: Python<'_>, name: PathBuf) -> PyResult<Self> {
        let (writer, notes) = py.detach(|| Writer::append(&name)).map_err(to_py)?;
        Ok(LddWriter {
            writer: Some(writer),
            notes,
        })
    }

    /// What had to be cut off.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// Appends records, without their line ends.
    fn push(&mut self, py: Python<'_>, records: Vec<Vec<u8>>) -> PyResult<()> {
        let writer = self.writer()?;
        py.detach(|| {
            let is_broken = |record: &&Vec<u8>| record.contains(&b'\n') || record.ends_with(b"\r");
            if let Some(record) = records.iter().find(is_broken) {
                return Err(Error::input(format!(
                    "record {}: expected no line end in it",
                    String::from_utf8_lossy(record)
                )));
            }
            records.iter().try_for_each(|record| writer.push(record))
        })
        .map_err(to_py)
    }

    fn commit(&mut self, py: Python<'_>) -> PyResult<()> {
        let writer = self.writer()?;
        py.detach(|| writer.commit()).map_err(to_py)
    }

    /// Ends, and takes the store away, which is new.
    fn remove(&mut self, py: Python<'_>) {
        let writer = self.writer.take();
        py.detach(|| writer.map(Writer::remove));
    }

    /// Ends; what was not committed is dropped.
    fn close(&mut self, py: Python<'_>) {
        let writer = self.writer.take();
        py.detach(|| drop(writer));
    }
}
