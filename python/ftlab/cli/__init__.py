"""The `ftlab` command: one module per verb. Of a verb that is named only its own module is imported, and only its own
options are made; heavy imports happen inside the verbs, so that `--help` is quick."""

from __future__ import annotations

import functools
import importlib
import inspect as inspect_
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from ftlab.cli import remarks
from ftlab.cli.once import Once

# Exit codes: 0 done, 1 a check failed, 2 wrong input or a refusing system, 130 interrupted.
WRONG_INPUT = 2
INTERRUPTED = 130


def _stoppable(verb: Callable[..., int]) -> Callable[..., int]:
    """A verb that says so when Ctrl-C ends it."""

    @functools.wraps(verb)
    def command(*arguments: Any, **options: Any) -> int:
        try:
            return verb(*arguments, **options)
        except KeyboardInterrupt:
            remarks.say("interrupted")
            return INTERRUPTED

    return command


_VERSION = "--version"
# Verbs in the order of the help, each with its module and the function in it.
_VERBS = {
    "demo": "demo.demo",
    "run": "run.run",
    "compare": "compare.compare",
    "sweep": "sweep.sweep",
    "report": "report.report",
    "record": "record.record",
    "contexts": "contexts.contexts",
    "inspect": "inspect.inspect",
    "convert": "convert.convert",
    "generate": "generate.generate",
    "fit": "fit.fit",
    "mine": "mine.mine",
    "mrc": "mrc.mrc",
    "dedup": "dedup.dedup",
    "correlations": "correlations.correlations",
    "placement": "placement.placement",
    "reproduce": "reproduce.reproduce",
    "sample": "sample.sample",
    "merge": "merge.merge",
    "serve": "serve.serve",
    "ctl": "serve.ctl",
    "top": "top.top",
    "check": "check.check",
    "theory": "theory.theory",
    "list": "list_.list_",
}
# Verbs that have verbs: what they are for, and those.
_GROUPS = {
    "ldd": (
        "Datasets that are kept as logs on several disks, for samples of them.",
        {"load": "ldd.load", "info": "ldd.info"},
    ),
    "nvm": (
        "Banked byte-addressable memory, and samples of data that lie in it.",
        {
            "run": "nvm.run",
            "sample": "nvm.sample",
            "measure": "nvm.measure",
            "reviews": "nvm.reviews",
            "convert": "nvm.convert",
            "probe": "nvm.probe",
            "list": "nvm.list_",
        },
    ),
    "replicate": (
        "Pages with copies in other ranges of a real disk, against late accesses; and whether that pays.",
        {"calibrate": "replicate.calibrate", "vfs": "replicate.vfs", "report": "replicate.report"},
    ),
}
# What follows the recorded program's name is the program's.
_SETTINGS = {"record": {"context_settings": {"allow_interspersed_args": False}}}

# What keeps the lines of a paragraph of help as they are.
_AS_WRITTEN = "\b\n"


def _add(to: typer.Typer, name: str, place: str) -> None:
    """Enters a verb. Lists of verbs have its first sentence whole, and its examples stand each on a line."""
    module, _, function = place.partition(".")
    verb = getattr(importlib.import_module(f"ftlab.cli.{module}"), function)
    paragraphs = inspect_.cleandoc(verb.__doc__ or "").split("\n\n")
    shown = [_AS_WRITTEN + part if part.startswith("Example: ") else part for part in paragraphs]
    first = re.split(r"(?<=[.?]) ", " ".join(paragraphs[0].split()))[0]
    settings: Any = _SETTINGS.get(name, {})
    to.command(name, cls=Once, help="\n\n".join(shown), short_help=first, **settings)(_stoppable(verb))


def app(only: str | None = None) -> typer.Typer:
    """The command line; with `only`, as far as that verb needs it."""
    made = typer.Typer(
        name="ftlab",
        help="A laboratory for flash storage: simulate drives, compare the policies inside them on real work.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    made.callback(invoke_without_command=True)(_root)
    for name, place in _VERBS.items():
        if only in (None, name):
            _add(made, name, place)
    for name, (purpose, verbs) in _GROUPS.items():
        if only in (None, name):
            group = typer.Typer(help=purpose, no_args_is_help=True, rich_markup_mode=None)
            for verb, place in verbs.items():
                _add(group, verb, place)
            made.add_typer(group, name=name, short_help=purpose)
    return made


def _root(version: bool = typer.Option(False, _VERSION, help="Print the version and exit.")) -> None:
    if version:
        from ftlab import __version__

        typer.echo(f"ftlab {__version__}")
        raise typer.Exit


def asked() -> str | None:
    """The verb that the command line begins with, or `--version` where that is all; None where all verbs are needed:
    help, completion, a misspelled verb."""
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    completes = any(name.endswith("_COMPLETE") for name in os.environ)
    known = first in {*_VERBS, *_GROUPS} or sys.argv[1:] == [_VERSION]
    return first if known and not completes else None


def main(made: typer.Typer | None = None) -> None:
    """Runs the command line, which may be `made` already; every foreseen error is one sentence on stderr."""
    from ftlab import show
    from ftlab.errors import FtlabError

    if sys.stderr is None:
        # Whoever closed it wants to hear of nothing.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        # What is opened next would have its number, and be written into.
        _fail("standard output is closed, expected it open (`> /dev/null` throws away what is printed)")
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # As Ctrl-C: in order, and with nothing left behind.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = (made or app(asked()))(standalone_mode=False)
    except FtlabError as error:
        # Names of files and texts of records may hold anything.
        _fail(show.escaped(str(error)))
    except typer.TyperException as error:
        _fail(show.escaped(getattr(error, "format_message", error.__str__)(), keep="\n"))
    except (KeyboardInterrupt, typer.Abort):
        remarks.say("interrupted")
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing left to say, and the interpreter must not flush into the pipe.
        sys.stdout = None
        sys.exit(0)
    except OSError as error:
        # What is still in the buffer of a full standard output must not be tried again at exit.
        sys.stdout = None
        _fail(show.escaped(f"{error.filename or 'standard output'}: {error.strerror or error}"))
    except Exception as error:
        if not (sentence := _of_policy(error)):
            raise
        _fail(sentence)
    sys.exit(code if isinstance(code, int) else 0)


def _of_policy(error: Exception) -> str | None:
    """An exception that a policy in Python has raised, in one sentence with its place; None of any other."""
    policy = next((note for note in getattr(error, "__notes__", []) if note.startswith("in the ")), None)
    if policy is None:
        return None
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" ({Path(frame.filename).name}, line {frame.lineno})" for frame in place)
    return f"{policy.removeprefix('in the ')}: {type(error).__name__}: {error}{where}"


def _fail(sentence: str) -> None:
    remarks.say(sentence)
    sys.exit(WRONG_INPUT)
