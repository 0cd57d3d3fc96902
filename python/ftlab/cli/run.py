"""`ftlab run`: one workload on one drive."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from ftlab.cli import options as o


@o.takes("run")
def run(
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="WORKLOAD...",
            help="Trace (several files: one trace), generator (uniform:requests=1e6), or - for stdin.",
        ),
    ],
    drive: o.Drive = "tiny",
    *,
    options: dict[str, Any],
    plugin: o.Plugin = None,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Run a workload on a drive and print write amplification, latency and wear."""
    import contextlib

    from ftlab import members, store
    from ftlab.cli import INTERRUPTED, progress, text
    from ftlab.errors import FtlabIOError, InputError, Interrupted, UnwrittenError
    from ftlab.runs import Run, execute
    from ftlab.spec import run_spec

    save_state = options.pop("save_state", False)
    if save_state and out is None:
        raise InputError("--save-state writes DIR/state: it needs --out DIR")
    if options.get("film") and out is None:
        raise InputError("--film is played by DIR/report.html: it needs --out DIR")
    members.load(plugin or [])
    spec = run_spec(workload, drive, options)
    line = progress.line(1)
    interrupted = False
    unwritten: UnwrittenError | None = None
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        if folder and (save_state or spec["break_at"]):
            spec["save_state"] = str(folder / "state")
        try:
            result = execute(workload, spec, line)
        except Interrupted as stop:
            interrupted = True
            result = cast(Run, stop.result)
        except UnwrittenError as refusal:
            unwritten = refusal
            result = cast(Run, refusal.result)
        finally:
            progress.clear(line)
        # The figures first: a folder that cannot be written takes none of them away.
        if json:
            text.put_json(result.summary)
        else:
            text.put(text.run_text(result))
        if unwritten:
            named = str(unwritten)
            raise FtlabIOError(named.replace(str(folder), str(out)) if folder else named)
        if folder and out:
            if spec["save_state"]:
                spec["save_state"] = str(out / "state")
            store.save_run(result, folder)
    if out:
        text.note(f"wrote {out / 'report.html'}")
    if interrupted:
        text.note("interrupted; these are the figures until then")
        return INTERRUPTED
    return 0
