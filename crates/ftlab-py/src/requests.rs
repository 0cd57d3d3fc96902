//! Requests as Arrow tables, one row each: any trace or generator for polars, pyarrow and DuckDB, and any such table for us.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, RecordBatchReader, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use ftlab_core::{Batch, Result, Source};
use ftlab_run::traces::{Layout, Reading, Requests, RequestsSpec};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::to_py;
use crate::table::ArrowTable;

/// Rows of one record batch of a stream.
const ROWS: usize = 1 << 16;

/// Opens `spec` (JSON of `RequestsSpec`) as a table; read it with `polars.DataFrame(table)`, again as often as wanted.
///
/// Columns: `time_ns`, `op`, `volume`, `offset`, `length`, `flags`, and `stream`, `pc`, `pid`, `label`, `content`, `chunk`,
/// which are null where the trace has none of them. Iterating gives tables of `rows` rows.
#[pyclass(name = "Requests", frozen, module = "ftlab._ftlab")]
pub struct PyRequests {
    spec: RequestsSpec,
    rows: usize,
    /// Of the last stream that was opened.
    reading: Mutex<Option<Reading>>,
}

impl PyRequests {
    fn frames(&self, rows: usize) -> Result<Frames> {
        let requests = self.spec.open(Layout::InPlace)?;
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = Some(requests.reading.clone());
        Ok(Frames::new(requests, rows))
    }
}

#[pymethods]
impl PyRequests {
    #[new]
    #[pyo3(signature = (spec, rows = ROWS))]
    fn open(py: Python<'_>, spec: &str, rows: usize) -> PyResult<Self> {
        let table = PyRequests {
            spec: RequestsSpec::parse(spec).map_err(to_py)?,
            rows: rows.max(1),
            reading: Mutex::new(None),
        };
        // What cannot be read is said here, where an exception still carries its own sentence.
        if !table.spec.reads_stdin() {
            py.detach(|| table.frames(1)).map_err(to_py)?;
        }
        Ok(table)
    }

    /// What reading found out so far, as JSON; `null` for a generator.
    fn report(&self) -> PyResult<String> {
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let report = reading.as_ref().and_then(Reading::report);
        serde_json::to_string(&report).map_err(|e| to_py(ftlab_core::Error::input(e.to_string())))
    }

    /// Whether addresses are those of one range in which the volumes lie side by side; of standard input once it is read.
    #[getter]
    fn laid_out(&self) -> bool {
        let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.spec.lays_volumes_out() || reading.as_ref().is_some_and(Reading::laid_out)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<PyFrames> {
        let frames = py.detach(|| self.frames(self.rows)).map_err(to_py)?;
        Ok(PyFrames(Mutex::new(frames)))
    }

    /// The Arrow C stream. The requested schema is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let frames = py.detach(|| self.frames(self.rows)).map_err(to_py)?;
        let stream = FFI_ArrowArrayStream::new(Box::new(frames));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The tables of an open trace, one after the other.
#[pyclass(name = "RequestFrames", frozen, module = "ftlab._ftlab")]
pub struct PyFrames(Mutex<Frames>);

#[pymethods]
impl PyFrames {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<ArrowTable>> {
        py.check_signals()?;
        let batch = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).read());
        Ok(batch.map_err(to_py)?.map(|batch| ArrowTable::of("requests", batch)))
    }
}

/// Batches of requests joined into record batches of about `rows` rows.
struct Frames {
    requests: Requests,
    rows: usize,
    schema: SchemaRef,
    batch: Batch,
}

impl Frames {
    fn new(requests: Requests, rows: usize) -> Self {
        Frames {
            requests,
            rows,
            schema: schema(),
            batch: Batch::default(),
        }
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let mut columns = Columns::default();
        while columns.len() < self.rows {
            self.requests.source.next_batch(&mut self.batch)?;
            if self.batch.is_empty() {
                break;
            }
            let names = (self.requests.source.volume_names(), self.requests.source.label_names());
            columns.push(&self.batch, &names.0, &names.1);
        }
        if columns.len() == 0 {
            return Ok(None);
        }
        let batch = RecordBatch::try_new(self.schema.clone(), columns.finish());
        batch.map(Some).map_err(|e| ftlab_core::Error::input(e.to_string()))
    }
}

impl Iterator for Frames {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read()
            .map_err(|e| ArrowError::ExternalError(Box::new(e)))
            .transpose()
    }
}

impl RecordBatchReader for Frames {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The columns of every trace, whatever it carries. Times are signed so that they can be subtracted, lengths wide enough to
/// be summed.
fn schema() -> SchemaRef {
    let ids = Arc::new(Field::new("item", DataType::UInt64, true));
    let fields = [
        ("time_ns", DataType::Int64, false),
        ("op", DataType::Utf8, false),
        ("volume", DataType::Utf8, false),
        ("offset", DataType::UInt64, false),
        ("length", DataType::UInt64, false),
        ("flags", DataType::UInt8, false),
        ("stream", DataType::UInt16, true),
        ("pc", DataType::UInt64, true),
        ("pid", DataType::UInt32, true),
        ("label", DataType::Utf8, true),
        ("content", DataType::List(ids.clone()), true),
        ("chunk", DataType::List(ids), true),
    ];
    let fields = fields.map(|(name, kind, nullable)| Field::new(name, kind, nullable));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Columns in the making.
#[derive(Default)]
struct Columns {
    time_ns: Vec<i64>,
    op: StringBuilder,
    volume: StringBuilder,
    offset: Vec<u64>,
    length: Vec<u64>,
    flags: Vec<u8>,
    stream: Vec<Option<u16>>,
    pc: Vec<Option<u64>>,
    pid: Vec<Option<u32>>,
    label: StringBuilder,
    content: ListBuilder<UInt64Builder>,
    chunk: ListBuilder<UInt64Builder>,
}

impl Columns {
    fn len(&self) -> usize {
        self.time_ns.len()
    }

    fn push(&mut self, batch: &Batch, volumes: &[String], labels: &[String]) {
        let signed = |&time: &u64| i64::try_from(time).unwrap_or(i64::MAX);
        self.time_ns.extend(batch.time_ns.iter().map(signed));
        self.offset.extend_from_slice(&batch.offset);
        self.length.extend(batch.length.iter().map(|&length| u64::from(length)));
        self.flags.extend_from_slice(&batch.flags);
        for &op in &batch.op {
            self.op.append_value(op.name());
        }
        for &volume in &batch.volume {
            match volumes.get(usize::from(volume)) {
                Some(name) => self.volume.append_value(name),
                None => self.volume.append_value(volume.to_string()),
            }
        }
        let n = batch.len();
        optional(&mut self.stream, &batch.stream, n);
        optional(&mut self.pc, &batch.pc, n);
        optional(&mut self.pid, &batch.pid, n);
        // No process has the number 0.
        let of_batch = self.pid.len() - n;
        for pid in &mut self.pid[of_batch..] {
            *pid = pid.filter(|&pid| pid != 0);
        }
        for i in 0..n {
            match batch.label.get(i).map(|&label| (label, labels.get(usize::from(label)))) {
                None => self.label.append_null(),
                Some((_, Some(name))) => self.label.append_value(name),
                Some((label, None)) => self.label.append_value(label.to_string()),
            }
        }
        for i in 0..n {
            if !batch.content_end.is_empty() {
                self.content.values().append_slice(batch.content_of(i));
            }
            self.content.append(!batch.content_end.is_empty());
            self.chunk.values().append_slice(batch.chunks_of(i));
            self.chunk.append(!batch.chunk.is_empty());
        }
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(Int64Array::from(self.time_ns)),
            Arc::new(self.op.finish()),
            Arc::new(self.volume.finish()),
            Arc::new(UInt64Array::from(self.offset)),
            Arc::new(UInt64Array::from(self.length)),
            Arc::new(UInt8Array::from(self.flags)),
            Arc::new(UInt16Array::from(self.stream)),
            Arc::new(UInt64Array::from(self.pc)),
            Arc::new(UInt32Array::from(self.pid)),
            Arc::new(self.label.finish()),
            Arc::new(self.content.finish()),
            Arc::new(self.chunk.finish()),
        ]
    }
}

/// A column that a batch may not have.
fn optional<T: Copy>(into: &mut Vec<Option<T>>, values: &[T], n: usize) {
    match values.is_empty() {
        true => into.resize(into.len() + n, None),
        false => into.extend(values.iter().copied().map(Some)),
    }
}
