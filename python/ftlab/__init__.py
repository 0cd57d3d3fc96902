"""A laboratory for flash storage.

>>> import ftlab
>>> ftlab.run("uniform:requests=1e5", drive="tiny").table()  # doctest: +SKIP

Everything is imported when it is first used, so that `import ftlab` and `ftlab --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ftlab._ftlab import __version__

if TYPE_CHECKING:
    from ftlab.catalogue import check, drives, formats, policies, theory, workloads
    from ftlab.comparison import Comparison, compare
    from ftlab.errors import FtlabError, FtlabIOError, InputError, Interrupted
    from ftlab.grid import sweep
    from ftlab.members import policy
    from ftlab.runs import Run, run

_HOME = {
    "Comparison": "comparison",
    "FtlabError": "errors",
    "FtlabIOError": "errors",
    "InputError": "errors",
    "Interrupted": "errors",
    "Run": "runs",
    "check": "catalogue",
    "compare": "comparison",
    "drives": "catalogue",
    "formats": "catalogue",
    "policies": "catalogue",
    "policy": "members",
    "run": "runs",
    "sweep": "grid",
    "theory": "catalogue",
    "workloads": "catalogue",
}

__all__ = [
    "Comparison",
    "FtlabError",
    "FtlabIOError",
    "InputError",
    "Interrupted",
    "Run",
    "__version__",
    "check",
    "compare",
    "drives",
    "formats",
    "policies",
    "policy",
    "run",
    "sweep",
    "theory",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ftlab' has no attribute '{name}'")
    value = getattr(import_module(f"ftlab.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
