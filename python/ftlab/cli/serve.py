"""`ftlab serve` and `ftlab ctl`: a live drive, and what an operator does to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("serve")
def serve(
    drive: o.Drive = "tiny",
    *,
    options: dict[str, Any],
    plugin: o.Plugin = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="HOST:PORT",
            help="Answer Prometheus there: figures of the drive at /metrics. Port 0 takes one that is free.",
        ),
    ] = None,
    tls: Annotated[
        str | None,
        typer.Option(
            "--tls",
            metavar="HOST:PORT",
            help="Take encrypted connections there; without --listen no others. Port 0 takes one that is free.",
        ),
    ] = None,
    tls_certificates: Annotated[
        Path | None,
        typer.Option(
            "--tls-certificates",
            metavar="DIR",
            help="Folder with server-cert.pem and server-key.pem, as qemu and nbdkit take them; of --tls.",
        ),
    ] = None,
    tls_verify_peer: Annotated[
        bool,
        typer.Option(
            "--tls-verify-peer", help="Refuse clients without a certificate that ca-cert.pem of that folder has signed."
        ),
    ] = False,
    out: o.Out = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Serve a drive over NBD: a block device that behaves like the simulated SSD, and fails on demand.

    Ctrl-C or SIGTERM ends it, and prints what a run prints.

    Example: ftlab serve --drive desk --listen nbd+unix:///tmp/d.sock --control /tmp/ctl --fault eio@lba=4096-4103
    """
    import contextlib
    import tempfile

    from ftlab import members, serving, store, watching
    from ftlab import tls as encryption
    from ftlab.cli import stopping, text
    from ftlab.errors import InputError

    members.load(plugin or [])
    with contextlib.ExitStack() as stack:
        if metrics is not None and not options.get("control"):
            own = stack.enter_context(tempfile.TemporaryDirectory(prefix="ftlab-"))
            options["control"] = str(Path(own, "control"))
        secure = None
        if tls is not None:
            if tls_certificates is None:
                raise InputError("--tls: expected --tls-certificates DIR as well")
            secure = encryption.context(tls_certificates, verify_peer=tls_verify_peer)
            behind = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ftlab-")), "drive.sock")
            options["listen"] = [*(options.get("listen") or []), str(behind)]
        elif tls_certificates is not None or tls_verify_peer:
            raise InputError("--tls-certificates and --tls-verify-peer are of --tls HOST:PORT, which is missing")
        spec = serving.serve_spec(drive, options)
        if spec.get("record") and not out:
            raise InputError("--record: expected --out DIR as well, where the requests are written")
        folder = stack.enter_context(store.new_folder(out, force=force)) if out else None
        announced = []
        if metrics is not None:
            announced.append(f"metrics: {stack.enter_context(watching.exporter(spec['control'], metrics))}")
        if tls is not None and secure is not None:
            announced.append(f"TLS: {stack.enter_context(encryption.front(behind, tls, secure))}")

        def say(line: str) -> None:
            # A drive that cannot be served says its one sentence only.
            while announced:
                text.note(announced.pop())
            # Whoever comes by TLS need not know what is behind it.
            if secure is None or str(behind) not in line:
                text.note(line)

        result = serving.execute(spec, say, None)
        stack.enter_context(stopping.postponed())
        if json:
            text.put_json(result.summary)
        else:
            text.put(f"{text.run_text(result)}\n\n{text.fact_lines(serving.rows(result.summary))}")
        if folder:
            store.save_run(result, folder)
    if out:
        text.note(f"wrote {out / 'report.html'}")
    return 0


def ctl(
    place: Annotated[Path, typer.Argument(metavar="SOCKET", help="The one that `ftlab serve --control` made.")],
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...",
            help="snapshot, reset, fault SPEC, faults, clear [NUMBER], power-cut, stop.",
        ),
    ],
) -> int:
    """Control a live drive: show its figures, inject faults, cut its power, end it; prints JSON.

    Example: ftlab ctl /tmp/ctl fault stall=50ms@p=0.01
    Example: ftlab ctl /tmp/ctl power-cut
    """
    from ftlab import serving
    from ftlab.cli import text

    text.put_json(serving.control(place)(" ".join(command)))
    return 0
