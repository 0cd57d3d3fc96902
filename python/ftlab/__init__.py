"""A laboratory for flash storage.

>>> import ftlab
>>> ftlab.run("uniform:requests=1e5", drive="tiny").table()  # doctest: +SKIP

Everything is imported when it is first used, so that `import ftlab` and `ftlab --help` are quick.
"""

from __future__ import annotations

from importlib import import_module

# As type checkers know it; `typing` itself takes longer than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ftlab import ldd
    from ftlab._ftlab import __version__
    from ftlab.catalogue import check, drives, filters, formats, policies, theory, workloads
    from ftlab.comparison import Comparison, compare
    from ftlab.conversion import convert, generate
    from ftlab.correlating import correlations
    from ftlab.deduplication import Deduplication, dedup
    from ftlab.errors import FtlabError, FtlabIOError, InputError, Interrupted, StoppedError, UnwrittenError
    from ftlab.fitting import Model, fit
    from ftlab.grid import sweep
    from ftlab.inspection import Inspection, inspect
    from ftlab.map_memory import MissRatio, mrc
    from ftlab.members import policy
    from ftlab.merging import Statistics, merge_samples, sample_statistics
    from ftlab.mining import Mining, mine
    from ftlab.placing import placement
    from ftlab.recording import Contexts, Recording, contexts, record
    from ftlab.reproduction import Reproduction, reproduce
    from ftlab.runs import Run, run
    from ftlab.sample_study import Study, study_sample
    from ftlab.sampling import Sample, sample
    from ftlab.serving import control, serve
    from ftlab.traces import Trace, open_trace

_HOME = {
    "__version__": "_ftlab",
    "Comparison": "comparison",
    "Contexts": "recording",
    "Deduplication": "deduplication",
    "FtlabError": "errors",
    "FtlabIOError": "errors",
    "InputError": "errors",
    "Inspection": "inspection",
    "Interrupted": "errors",
    "StoppedError": "errors",
    "UnwrittenError": "errors",
    "Mining": "mining",
    "MissRatio": "map_memory",
    "Model": "fitting",
    "Recording": "recording",
    "Reproduction": "reproduction",
    "Run": "runs",
    "Sample": "sampling",
    "Statistics": "merging",
    "Study": "sample_study",
    "Trace": "traces",
    "check": "catalogue",
    "compare": "comparison",
    "contexts": "recording",
    "control": "serving",
    "convert": "conversion",
    "correlations": "correlating",
    "dedup": "deduplication",
    "drives": "catalogue",
    "filters": "catalogue",
    "fit": "fitting",
    "formats": "catalogue",
    "generate": "conversion",
    "inspect": "inspection",
    "merge_samples": "merging",
    "mine": "mining",
    "mrc": "map_memory",
    "open_trace": "traces",
    "placement": "placing",
    "policies": "catalogue",
    "policy": "members",
    "record": "recording",
    "reproduce": "reproduction",
    "run": "runs",
    "sample": "sampling",
    "sample_statistics": "merging",
    "serve": "serving",
    "study_sample": "sample_study",
    "sweep": "grid",
    "theory": "catalogue",
    "workloads": "catalogue",
}

__all__ = [
    "Comparison",
    "Contexts",
    "Deduplication",
    "FtlabError",
    "FtlabIOError",
    "InputError",
    "Inspection",
    "Interrupted",
    "Mining",
    "MissRatio",
    "Model",
    "Recording",
    "Reproduction",
    "Run",
    "Sample",
    "Statistics",
    "StoppedError",
    "Study",
    "Trace",
    "UnwrittenError",
    "__version__",
    "check",
    "compare",
    "contexts",
    "control",
    "convert",
    "correlations",
    "dedup",
    "drives",
    "filters",
    "fit",
    "formats",
    "generate",
    "inspect",
    "ldd",
    "merge_samples",
    "mine",
    "mrc",
    "open_trace",
    "placement",
    "policies",
    "policy",
    "record",
    "reproduce",
    "run",
    "sample",
    "sample_statistics",
    "serve",
    "study_sample",
    "sweep",
    "theory",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name == "ldd":
        # A part of the package, whose names are used with it.
        return import_module("ftlab.ldd")
    if name not in _HOME:
        raise AttributeError(f"module 'ftlab' has no attribute '{name}'")
    value = getattr(import_module(f"ftlab.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
