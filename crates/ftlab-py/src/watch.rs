//! Runs work without the interpreter lock while the calling thread reports progress and listens for Ctrl-C.
//!
//! Python delivers signals to the main thread only, so the work goes to another thread and the caller keeps watch.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use ftlab_run::{Observer, Progress};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// How often signals are looked for.
const WATCH: Duration = Duration::from_millis(50);

enum Message<T> {
    Progress(Progress),
    Done(T),
}

struct Reporter<'a, T> {
    stop: &'a AtomicBool,
    to_watcher: mpsc::Sender<Message<T>>,
}

impl<T> Observer for Reporter<'_, T> {
    fn progress(&mut self, progress: &Progress) -> bool {
        // A watcher that has gone away has also set `stop`.
        let _ = self.to_watcher.send(Message::Progress(progress.clone()));
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Runs `work`, calling `progress` as it reports. Returns its result and whether Ctrl-C stopped it; another exception in a
/// signal handler or in `progress` stops the work too, and is raised when it has ended.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut (dyn Observer + Send)) -> T + Send,
) -> PyResult<(T, bool)> {
    py.detach(|| {
        let stop = AtomicBool::new(false);
        let (to_watcher, messages) = mpsc::channel();
        thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                let mut reporter = Reporter {
                    stop,
                    to_watcher: to_watcher.clone(),
                };
                let result = work(&mut reporter);
                let _ = to_watcher.send(Message::Done(result));
            });
            let mut raised = None;
            loop {
                let message = messages.recv_timeout(WATCH);
                let news = match message {
                    Ok(Message::Done(result)) => return finish(result, raised),
                    Ok(Message::Progress(news)) => Some(news),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => panic!("the running thread panicked"),
                };
                let callback = progress.as_ref().filter(|_| raised.is_none());
                if let Err(error) = Python::attach(|py| look(py, callback, news.as_ref())) {
                    stop.store(true, Ordering::Relaxed);
                    raised.get_or_insert(error);
                }
            }
        })
    })
}

fn look(py: Python<'_>, callback: Option<&Py<PyAny>>, news: Option<&Progress>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(callback), Some(p)) = (callback, news) {
        let what = (&p.phase, p.done_requests, p.total_requests, p.done_bytes);
        let figures = (p.waf, p.sim_time_ns, p.wall_s);
        callback.call1(
            py,
            (p.run, what.0, what.1, what.2, what.3, figures.0, figures.1, figures.2),
        )?;
    }
    Ok(())
}

fn finish<T>(result: T, raised: Option<PyErr>) -> PyResult<(T, bool)> {
    match raised {
        None => Ok((result, false)),
        Some(error) => Python::attach(|py| {
            if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                Ok((result, true))
            } else {
                Err(error)
            }
        }),
    }
}
