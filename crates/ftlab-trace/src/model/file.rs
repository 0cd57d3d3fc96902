//! Model files: TOML that a person can read and change.
//!
//! Distributions are texts of `value*weight` (see [`Weights`](super::Weights)); what each key is stands in the file that is
//! written. Where a distribution is left out there is nothing to draw from it: no strides means runs of neighbouring
//! requests, no births means births spread evenly, no clusters means pages that lie apart.

mod read;
mod write;

/// Version of the files written; others are refused.
const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use ftlab_core::{Batch, OpKind, Result, Source};

    use crate::model::{FitOptions, Model, fit};

    /// Four requests: page 10 is written, read two requests later, and page 11 written behind it, as a run of two.
    fn small() -> Model {
        struct Once(Option<Batch>);
        impl Source for Once {
            fn next_batch(&mut self, batch: &mut Batch) -> Result<()> {
                *batch = self.0.take().unwrap_or_default();
                Ok(())
            }
        }
        let mut batch = Batch::default();
        batch.push(0, OpKind::Write, 40_960, 4096, 0, 2);
        batch.push(1000, OpKind::Write, 45_056, 4096, 0, 2);
        batch.push(2000, OpKind::Read, 40_960, 4096, 0, 0);
        batch.push(5000, OpKind::Trim, 40_960, 8192, 0, 0);
        batch.push(5000, OpKind::Flush, 0, 0, 0, 0);
        fit(&mut Once(Some(batch)), &FitOptions::default()).unwrap().model
    }

    #[test]
    fn a_small_trace_gives_the_model_derived_by_hand() {
        let model = small();
        assert_eq!(
            (model.requests, model.pages, model.span, model.flush),
            (4, 2, 8192, 0.5)
        );
        assert_eq!(model.clusters.write(), "2");
        assert_eq!(model.stride.write(), "1");
        // One object, page 10: W, then R after 2, then T after 1 more; the write begins a run of 2.
        let [class] = model.classes.as_slice() else {
            panic!("{:?}", model.classes)
        };
        assert_eq!(
            (class.objects, class.references, class.start),
            (1, 3.0, [0.0, 1.0, 0.0])
        );
        assert_eq!(
            (class.next[1][0].write(), class.next[0][2].write()),
            ("2".to_owned(), "1".to_owned())
        );
        assert_eq!(class.first[1].write(), "4KiB:2");
        // Gaps of 1000, 1000 and 3000 ns.
        assert_eq!(model.gaps.as_ref().unwrap().mean_ns, 5000.0 / 3.0);
        assert_eq!(model.flags[1].write(), "2*2");
    }

    #[test]
    fn a_model_is_read_as_it_was_written() {
        let text = small().to_toml();
        let again = Model::from_toml(&text).unwrap();
        assert_eq!(again.to_toml(), text);
        assert_eq!(again.classes, small().classes);
    }

    #[test]
    fn wrong_files_say_what_was_expected() {
        let text = small().to_toml();
        for (from, to, words) in [
            ("version = 1", "version = 7", "version 7: this program reads version 1"),
            (
                "objects = 1",
                "objects = 0",
                "class 1, objects = 0: expected at least one",
            ),
            ("references = 3", "references = 0.5", "a mean of at least 1"),
            ("\"4KiB:2\"", "\"4KiB:2*x\"", "expected values with weights above 0"),
            ("next.wr", "next.wq", "pairs of r, w and t"),
            ("pages = 2", "pages = 0", "trace.pages = 0: expected 1"),
            ("[trace]", "[trace", "line 8"),
            ("[trace]", "[tracks]", "unknown field `tracks`"),
            (
                "pages = 2",
                "pages = -1",
                "model, trace.pages = `-1`: expected a whole number of at least 0",
            ),
            ("pages = 2", "", "model, trace: `pages` is missing"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Model::from_toml(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(words) && !error.contains('\n'), "{to}: {error}");
        }
    }
}
