"""`ftlab reproduce`: figures and tables of a source document, measured again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ftlab.cli import options as o

if TYPE_CHECKING:
    from ftlab.reproduction import Reproduction
    from ftlab.reproduction.journal import Journal
    from ftlab.reproduction.schema import Experiment

Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="FIGURE", help="Only this figure or table. Repeatable.")
]


@o.takes("reproduce")
def reproduce(
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="Its name, or a folder with an experiment.toml.")
    ] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the experiments, or the figures of this one.")] = False,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Every experiment, into one folder with an index (--out); continues a stopped one."),
    ] = False,
    only: Only = None,
    drive: Annotated[
        list[str] | None, typer.Option("--drive", "-d", metavar="NAME", help="Only this of its drives. Repeatable.")
    ] = None,
    stand_in: Annotated[
        list[str] | None,
        typer.Option("--stand-in", metavar="KIND", help="Only this kind of stand-in for its workloads. Repeatable."),
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option("--traces", metavar="DIR", help="Folder with the original traces."),
    ] = None,
    disks: Annotated[
        list[Path] | None,
        typer.Option("--disks", metavar="DIR", help="A folder on a disk, to run there what is modelled. Repeatable."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Short traces and few samples on the first drive: a look, no result.")
    ] = False,
    *,
    options: dict[str, Any],
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Measure the figures and tables of a source document again, and judge each by a rule.

    Example: ftlab reproduce cpftl --only fig-3.7a --quick
    Example: ftlab reproduce cpftl --out cpftl-report
    Example: ftlab reproduce --all --out gallery
    """
    import contextlib

    from ftlab import reproduction, store
    from ftlab.cli import INTERRUPTED, WRONG_INPUT, reproduction_text, stopping, text
    from ftlab.errors import InputError, Interrupted
    from ftlab.reproduction import files

    if list_:
        given: dict[str, object] = {"--only": only, "--drive": drive, "--stand-in": stand_in, "--traces": traces}
        given |= {"--disks": disks, "--out": out}
        if wrong := [name for name, value in given.items() if value]:
            raise InputError(f"--list: measures nothing and lists every figure; expected no {wrong[0]}")
        rows = reproduction_text.experiments() if not experiment else reproduction_text.figures(files.load(experiment))
        text.put_json(rows) if json else text.put(text.value_text(rows))
        return 0
    if all_:
        given = {"EXPERIMENT": experiment, "--only": only, "--drive": drive, "--stand-in": stand_in}
        given |= {"--traces": traces, "--disks": disks, "--json": json}
        if wrong := [name for name, value in given.items() if value]:
            raise InputError(f"--all: every experiment is measured whole; expected no {wrong[0]}")
        if out is None:
            raise InputError("--all: expected a folder for the gallery (--out)")
        return _all(out, quick=quick, force=force, options=options)
    if not experiment:
        raise InputError(f"nothing to reproduce: expected an experiment (known: {', '.join(files.names())})")
    watch = reproduction_text.Watch()
    interrupted = False
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        try:
            with stopping.announced():
                made = reproduction.execute(
                    files.load(experiment),
                    only=only or [],
                    drive=drive or [],
                    stand_in=stand_in or [],
                    traces=traces,
                    disks=disks or [],
                    quick=quick,
                    watch=watch,
                    options=options,
                )
        except Interrupted as stop:
            interrupted = True
            made = cast("Reproduction", stop.result)
        finally:
            watch.clear()
        if folder:
            from ftlab.reproduction import page

            page.save(made, folder)
    if json:
        text.put_json(made.summary())
    else:
        text.put(reproduction_text.page(made))
    for sentence in made.missing:
        text.note(f"{sentence}; another stand-in is taken")
    for sentence in made.failures:
        text.note(f"failed: {sentence}")
    if out:
        text.note(f"wrote {out / 'report.html'}")
    if interrupted:
        text.note("interrupted; what was finished is kept")
        return INTERRUPTED
    return WRONG_INPUT if made.failures else 0


def _all(out: Path, *, quick: bool, force: bool, options: dict[str, Any]) -> int:
    """The gallery."""
    from ftlab import reproduction
    from ftlab.cli import INTERRUPTED, WRONG_INPUT, reproduction_text, stopping, text
    from ftlab.errors import Interrupted
    from ftlab.reproduction import gallery

    watch = reproduction_text.Watch()

    def measure(experiment: Experiment, journal: Journal) -> Reproduction:
        try:
            return reproduction.execute(
                experiment,
                only=[],
                drive=[],
                stand_in=[],
                traces=None,
                quick=quick,
                watch=watch,
                options=options,
                journal=journal,
            )
        finally:
            watch.clear()

    def told(entry: gallery.Entry) -> None:
        text.note(f"{entry.experiment.name}: {entry.says}")

    interrupted = False
    failed: list[str] = []
    try:
        with stopping.announced():
            entries = gallery.build(out, measure, quick=quick, force=force, told=told, failed=failed.append)
    except Interrupted as stop:
        interrupted, entries = True, cast("tuple[gallery.Entry, ...]", stop.result)
    text.put(reproduction_text.gallery(entries))
    text.note(f"wrote {out / gallery.INDEX}")
    if interrupted:
        text.note(f"interrupted; not measured: {gallery.missing(entries)}; the same command goes on with that")
    failed += [failure for entry in entries for failure in entry.summary["failures"]]
    for sentence in failed:
        text.note(f"failed: {sentence}")
    if interrupted:
        return INTERRUPTED
    return WRONG_INPUT if failed else 0
