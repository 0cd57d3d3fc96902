//! Scans of traces that several runs of one call have in common: each is made once.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ftlab_core::Result;
use ftlab_trace::Scan;
use rustc_hash::FxHashMap;

use crate::spec::TraceSpec;

type Made = Arc<OnceLock<Result<Arc<Scan>>>>;

/// By how the trace is read, and the bytes of a unit.
#[derive(Default)]
pub(crate) struct Scans(Mutex<FxHashMap<(String, u32), Made>>);

impl Scans {
    /// What one pass over the trace finds. Who asks for one that is being made waits for it.
    pub fn of(&self, trace: &TraceSpec, unit_bytes: u32) -> Result<Arc<Scan>> {
        let options = trace.read_options(unit_bytes)?;
        let made = {
            let mut scans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (format!("{trace:?}"), unit_bytes);
            scans.entry(key).or_default().clone()
        };
        let scan = || Ok(Arc::new(ftlab_trace::scan(&trace.paths, &options)?));
        made.get_or_init(scan).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_scanned_once_for_each_way_to_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "time_us,op,offset,length\n1,write,0,4096\n2,write,8192,4096\n").unwrap();
        let trace = TraceSpec {
            paths: vec![path.clone()],
            ..TraceSpec::default()
        };
        let scans = Scans::default();
        let first = scans.of(&trace, 4096).unwrap();
        let of_8_kib = scans.of(&trace, 8192).unwrap();
        // The second time nothing is read.
        std::fs::remove_file(&path).unwrap();
        assert!(Arc::ptr_eq(&first, &scans.of(&trace, 4096).unwrap()));
        assert!(!Arc::ptr_eq(&first, &of_8_kib));
        assert_eq!(
            (first.report.records, first.touched.units(), of_8_kib.touched.units()),
            (2, 2, 2)
        );
        let merged = TraceSpec {
            volumes: Some("merge".into()),
            ..trace
        };
        assert!(scans.of(&merged, 4096).is_err());
    }
}
