//! Tables as Arrow streams: the PyCapsule interface, which polars, pyarrow and duckdb read without copying.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::ArrowError;
use ftlab_run::{Column, Table};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A named table of columns. Hand it to `polars.DataFrame(table)`; it can be read more than once.
#[pyclass(name = "Table", frozen, module = "ftlab._ftlab")]
pub struct ArrowTable {
    name: String,
    batch: RecordBatch,
}

impl ArrowTable {
    pub fn new(table: Table) -> PyResult<Self> {
        let columns = table.columns.into_iter().map(|(name, column)| (name, to_arrow(column)));
        Ok(ArrowTable {
            name: table.name,
            batch: RecordBatch::try_from_iter(columns).map_err(arrow_error)?,
        })
    }
}

impl ArrowTable {
    /// A table that is in Arrow's form already.
    pub fn of(name: &str, batch: RecordBatch) -> Self {
        ArrowTable {
            name: name.to_owned(),
            batch,
        }
    }
}

fn to_arrow(column: Column) -> ArrayRef {
    match column {
        Column::F64(values) => Arc::new(Float64Array::from(values)),
        Column::U64(values) => Arc::new(UInt64Array::from(values)),
        Column::Text(values) => Arc::new(StringArray::from_iter_values(values)),
    }
}

fn arrow_error(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl ArrowTable {
    #[getter]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.batch.schema();
        schema.fields().iter().map(|f| f.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Table {}: {} rows of {}>",
            self.name,
            self.batch.num_rows(),
            self.columns().join(", ")
        )
    }

    /// The Arrow C stream. The requested schema is ignored, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
