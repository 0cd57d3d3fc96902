//! Tables from Python as a stream of requests: how Parquet and Arrow files, and tables in memory, become traces.
//!
//! Python gives an iterator of objects with `__arrow_c_stream__` whose columns it has named and cast (`tables.py`):
//! `time_ns`, `op` (0 read, 1 write, 2 trim, 3 flush), `volume`, `offset`, `length`, and perhaps `flags`, `stream`, `pc`,
//! `pid`, `label`, `content`, `chunk`. Times that go backwards are taken as the time of the request before, and counted.

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::types::{ArrowPrimitiveType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, LargeListArray, PrimitiveArray, RecordBatch};
use ftlab_core::request::{CHUNKS_EACH, CONTENT_BYTES, paired};
use ftlab_core::{Batch, Error, OpKind, Result, Source};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// What ids of unknown contents are made of.
const NULL: u64 = 0x6e6f_2069_6420_6865;

/// Requests from an iterator of tables.
pub struct FrameSource {
    frames: Py<PyAny>,
    /// Of the table at hand.
    stream: Option<ArrowArrayStreamReader>,
    /// What is left of the record batch at hand.
    rows: Option<(RecordBatch, usize)>,
    volumes: Vec<String>,
    labels: Vec<String>,
    time_ns: u64,
    /// Ids of contents that were null so far: each is like no other.
    nulls: u64,
    /// Requests whose time lay before their predecessor's.
    pub out_of_order: u64,
}

impl FrameSource {
    pub fn new(frames: Py<PyAny>, volumes: Vec<String>, labels: Vec<String>) -> Self {
        FrameSource {
            frames,
            stream: None,
            rows: None,
            volumes,
            labels,
            time_ns: 0,
            nulls: 0,
            out_of_order: 0,
        }
    }

    /// The next record batch with rows, across the tables.
    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(stream) = &mut self.stream {
                match stream.next() {
                    Some(Ok(rows)) if rows.num_rows() == 0 => continue,
                    Some(Ok(rows)) => return Ok(Some(rows)),
                    Some(Err(error)) => return Err(Error::input(format!("reading the table: {error}"))),
                    None => self.stream = None,
                }
            }
            let next = Python::attach(|py| next_stream(self.frames.bind(py))).map_err(from_py)?;
            match next {
                Some(stream) => self.stream = Some(stream),
                None => return Ok(None),
            }
        }
    }

    fn push(&mut self, rows: &RecordBatch, from: usize, to: usize, batch: &mut Batch) -> Result<()> {
        let time = needed::<UInt64Type>(rows, "time_ns")?;
        let op = needed::<UInt8Type>(rows, "op")?;
        let volume = needed::<UInt16Type>(rows, "volume")?;
        let offset = needed::<UInt64Type>(rows, "offset")?;
        let length = needed::<UInt32Type>(rows, "length")?;
        let flags = column::<UInt8Type>(rows, "flags")?;
        for i in from..to {
            let kind = OpKind::from_code(op.value(i)).ok_or_else(|| odd("op", &op.value(i)))?;
            let at = time.value(i);
            self.out_of_order += u64::from(at < self.time_ns);
            self.time_ns = self.time_ns.max(at);
            let bits = flags.map_or(0, |flags| flags.value(i));
            batch.push(
                self.time_ns,
                kind,
                offset.value(i),
                length.value(i),
                volume.value(i),
                bits,
            );
        }
        extend::<UInt16Type>(&mut batch.stream, rows, "stream", from..to)?;
        extend::<UInt64Type>(&mut batch.pc, rows, "pc", from..to)?;
        extend::<UInt32Type>(&mut batch.pid, rows, "pid", from..to)?;
        extend::<UInt16Type>(&mut batch.label, rows, "label", from..to)?;
        if let Some(content) = rows.column_by_name("content") {
            let contents = lists(content, "content")?;
            let chunks = rows.column_by_name("chunk");
            let chunks = chunks.map(|chunk| lists(chunk, "chunk")).transpose()?;
            for i in from..to {
                let (mut ids, mut pieces) = (Vec::new(), Vec::new());
                append_ids(&mut ids, contents, i, "content", || {
                    self.nulls += 1;
                    paired(NULL, self.nulls)
                })?;
                if let Some(chunks) = chunks {
                    append_ids(&mut pieces, chunks, i, "chunk", || 0)?;
                }
                let most = u64::from(length.value(i)).div_ceil(u64::from(CONTENT_BYTES));
                if ids.len() as u64 > most {
                    return Err(Error::input(format!(
                        "column content of the table: {} ids of a request of {} bytes, expected one for each 4 KiB",
                        ids.len(),
                        length.value(i)
                    )));
                }
                // A request may have ids of its content and none of its chunks.
                let fits = pieces.is_empty() || CHUNKS_EACH.map(|each| each * ids.len()).contains(&pieces.len());
                if !fits {
                    return Err(Error::input(
                        "column chunk of the table: expected 4, 8 or 16 ids for each id of content",
                    ));
                }
                batch.append_ids(&ids, &pieces);
                batch.content_end.push(batch.content.len() as u32);
            }
        }
        Ok(())
    }
}

impl Source for FrameSource {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
        batch.clear();
        let (rows, from) = match self.rows.take() {
            Some(left) => left,
            None => match self.advance()? {
                Some(rows) => (rows, 0),
                None => return Ok(()),
            },
        };
        let to = rows.num_rows().min(from + Batch::TARGET);
        self.push(&rows, from, to, batch)?;
        if to < rows.num_rows() {
            self.rows = Some((rows, to));
        }
        Ok(())
    }

    fn volume_names(&self) -> Vec<String> {
        self.volumes.clone()
    }

    fn label_names(&self) -> Vec<String> {
        self.labels.clone()
    }
}

/// The stream of the iterator's next table.
fn next_stream(frames: &Bound<'_, PyAny>) -> PyResult<Option<ArrowArrayStreamReader>> {
    let Some(table) = frames.try_iter()?.next().transpose()? else {
        return Ok(None);
    };
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule
        .pointer_checked(Some(c"arrow_array_stream"))?
        .as_ptr()
        .cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds a valid `ArrowArrayStream`, as the PyCapsule interface of Arrow requires; the
    // name was checked. `from_raw` moves the structure out and leaves a released one behind, which is what a consumer must
    // do, and the capsule outlives the call.
    #[expect(unsafe_code, reason = "the Arrow C stream interface passes a pointer")]
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream) };
    let reader = ArrowArrayStreamReader::try_new(stream);
    reader
        .map(Some)
        .map_err(|e| crate::error::to_py(Error::input(e.to_string())))
}

fn from_py(error: PyErr) -> Error {
    Python::attach(|py| {
        if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
            return Error::Interrupted;
        }
        let text = error.value(py).to_string();
        let sentence = text.lines().next().unwrap_or("a table could not be read").to_owned();
        match error.is_instance_of::<pyo3::exceptions::PyOSError>(py) {
            true => Error::Io(sentence),
            false => Error::Input(sentence),
        }
    })
}

fn odd(name: &str, found: &dyn std::fmt::Debug) -> Error {
    Error::input(format!(
        "column {name} of the table: {found:?} is not what it should hold"
    ))
}

/// A column without nulls, if it is there.
fn column<'a, T: ArrowPrimitiveType>(rows: &'a RecordBatch, name: &str) -> Result<Option<&'a PrimitiveArray<T>>> {
    let Some(array) = rows.column_by_name(name) else {
        return Ok(None);
    };
    let values = array.as_any().downcast_ref::<PrimitiveArray<T>>();
    let values = values.ok_or_else(|| odd(name, array.data_type()))?;
    match values.null_count() {
        0 => Ok(Some(values)),
        _ => Err(odd(name, &"null")),
    }
}

fn needed<'a, T: ArrowPrimitiveType>(rows: &'a RecordBatch, name: &str) -> Result<&'a PrimitiveArray<T>> {
    column(rows, name)?.ok_or_else(|| Error::input(format!("the table has no column {name}")))
}

fn lists<'a>(column: &'a ArrayRef, name: &str) -> Result<&'a LargeListArray> {
    let lists = column.as_any().downcast_ref::<LargeListArray>();
    lists.ok_or_else(|| odd(name, column.data_type()))
}

/// The ids in row `i` of a column of lists; none where it is null, and `unknown` for each that is.
fn append_ids(
    into: &mut Vec<u64>,
    lists: &LargeListArray,
    i: usize,
    name: &str,
    mut unknown: impl FnMut() -> u64,
) -> Result<()> {
    if lists.is_valid(i) {
        let ids = lists.value(i);
        let numbers = ids.as_any().downcast_ref::<PrimitiveArray<UInt64Type>>();
        let numbers = numbers.ok_or_else(|| odd(name, ids.data_type()))?;
        match numbers.null_count() {
            0 => into.extend_from_slice(numbers.values()),
            _ => into.extend(numbers.iter().map(|id| id.unwrap_or_else(&mut unknown))),
        }
    }
    Ok(())
}

fn extend<T: ArrowPrimitiveType>(
    into: &mut Vec<T::Native>,
    rows: &RecordBatch,
    name: &str,
    range: std::ops::Range<usize>,
) -> Result<()> {
    if let Some(values) = column::<T>(rows, name)? {
        into.extend_from_slice(&values.values()[range]);
    }
    Ok(())
}
