"""The `ftlab` command: one module per verb. Heavy imports happen inside the verbs, so that `--help` is quick."""

from __future__ import annotations

import functools
import inspect as inspect_
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from ftlab.cli import (
    check,
    compare,
    contexts,
    convert,
    correlations,
    dedup,
    demo,
    fit,
    generate,
    inspect,
    ldd,
    list_,
    merge,
    mine,
    mrc,
    nvm,
    placement,
    record,
    replicate,
    report,
    reproduce,
    run,
    sample,
    serve,
    sweep,
    theory,
    top,
)
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
            sys.stderr.write("ftlab: interrupted\n")
            return INTERRUPTED

    return command


# What keeps the lines of a paragraph of help as they are.
_AS_WRITTEN = "\b\n"


def _add(to: typer.Typer, name: str, verb: Callable[..., int], **settings: Any) -> None:
    """Enters a verb. Lists of verbs have its first sentence whole, and its examples stand each on a line."""
    paragraphs = inspect_.cleandoc(verb.__doc__ or "").split("\n\n")
    shown = [_AS_WRITTEN + part if part.startswith("Example: ") else part for part in paragraphs]
    first = re.split(r"(?<=[.?]) ", " ".join(paragraphs[0].split()))[0]
    to.command(name, cls=Once, help="\n\n".join(shown), short_help=first, **settings)(_stoppable(verb))


app = typer.Typer(
    name="ftlab",
    help="A laboratory for flash storage: simulate drives, compare the policies inside them on real work.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
_add(app, "demo", demo.demo)
_add(app, "run", run.run)
_add(app, "compare", compare.compare)
_add(app, "sweep", sweep.sweep)
_add(app, "report", report.report)
_add(app, "record", record.record, context_settings={"allow_interspersed_args": False})
_add(app, "contexts", contexts.contexts)
_add(app, "inspect", inspect.inspect)
_add(app, "convert", convert.convert)
_add(app, "generate", generate.generate)
_add(app, "fit", fit.fit)
_add(app, "mine", mine.mine)
_add(app, "mrc", mrc.mrc)
_add(app, "dedup", dedup.dedup)
_add(app, "correlations", correlations.correlations)
_add(app, "placement", placement.placement)
_add(app, "reproduce", reproduce.reproduce)
_add(app, "sample", sample.sample)
stored = typer.Typer(
    help="Datasets that are kept as logs on several disks, for samples of them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_add(stored, "load", ldd.load)
_add(stored, "info", ldd.info)
app.add_typer(stored, name="ldd", short_help="Datasets that are kept as logs on several disks, for samples of them.")
_add(app, "merge", merge.merge)
_add(app, "serve", serve.serve)
_add(app, "ctl", serve.ctl)
_add(app, "top", top.top)
_add(app, "check", check.check)
_add(app, "theory", theory.theory)
memory = typer.Typer(
    help="Banked byte-addressable memory, and samples of data that lie in it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_add(memory, "run", nvm.run)
_add(memory, "sample", nvm.sample)
_add(memory, "measure", nvm.measure)
_add(memory, "reviews", nvm.reviews)
_add(memory, "convert", nvm.convert)
_add(memory, "probe", nvm.probe)
_add(memory, "list", nvm.list_)
app.add_typer(memory, name="nvm", short_help="Banked byte-addressable memory, and samples of data that lie in it.")
replication = typer.Typer(
    help="Pages with copies in other ranges of a real disk, against late accesses; and whether that pays.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_add(replication, "calibrate", replicate.calibrate)
_add(replication, "vfs", replicate.vfs)
_add(replication, "report", replicate.report)
app.add_typer(
    replication,
    name="replicate",
    short_help="Pages with copies in other ranges of a real disk, against late accesses; and whether that pays.",
)
_add(app, "list", list_.list_)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from ftlab import __version__

        typer.echo(f"ftlab {__version__}")
        raise typer.Exit


def main() -> None:
    """Runs the command line; every foreseen error is one sentence on stderr."""
    from ftlab import show
    from ftlab.errors import FtlabError

    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # As Ctrl-C: in order, and with nothing left behind.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = app(standalone_mode=False)
    except FtlabError as error:
        # Names of files and texts of records may hold anything.
        _fail(show.escaped(str(error)))
    except typer.TyperException as error:
        _fail(show.escaped(getattr(error, "format_message", error.__str__)(), keep="\n"))
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("ftlab: interrupted\n")
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
    sys.stderr.write(f"ftlab: {sentence}\n")
    sys.exit(WRONG_INPUT)
