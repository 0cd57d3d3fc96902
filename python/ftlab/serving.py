"""A live drive: the drive of a run behind an NBD server, and its control socket."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Unpack

from ftlab import _ftlab, members
from ftlab.errors import FtlabIOError, InputError
from ftlab.option_types import ServeOptions
from ftlab.options import signed
from ftlab.reading import Source
from ftlab.runs import Progress, Run, from_outcome
from ftlab.signals import handled
from ftlab.spec import Spec, drive_spec, pairs, planned

if TYPE_CHECKING:
    from types import FrameType

# What the requests of a live drive come from, where a run has the name of its workload.
LABEL = "clients"


@signed("serve")
def serve(drive: Source = "tiny", *, say: Callable[[str], object] = print, **options: Unpack[ServeOptions]) -> Run:
    """Serves `drive` over NBD until Ctrl-C, SIGTERM or `control(...)("stop")` ends it, and gives what a run gives.

    `say` is called with each line that tells where the drive is and how to attach it; the last begins with `ready`.
    """
    return execute(serve_spec(drive, options), say, None)


def serve_spec(drive: Source, options: Mapping[str, Any]) -> Spec:
    """The spec of a service, with every default."""
    given = dict(options)
    if given.get("set") is not None:
        given["set"] = pairs(given["set"])
    return planned("serve", [{"drive": drive_spec(drive), "options": given}]).specs[0]


def execute(spec: Spec, say: Callable[[str], object], progress: Progress | None) -> Run:
    """Serves one finished spec."""
    with _asked_to_end() as asked:

        def look(*news: Any) -> None:
            if progress is not None:
                progress(*news)
            if asked():
                raise KeyboardInterrupt

        outcome = _ftlab.serve(json.dumps(spec), say, look, members.registered())
        kept = {"drive": spec["drive"], "seed": spec["seed"], "precondition": spec["precondition"]}
        served = {key: value for key, value in spec.items() if key not in kept}
        return from_outcome(LABEL, {**kept, "workload": {"live": served}}, outcome)


def control(place: Source) -> Callable[[str], Any]:
    """What sends commands to a live drive by its control socket: `control("ctl.sock")("snapshot")`.

    Commands: `snapshot`, `reset`, `fault SPEC`, `faults`, `clear [NUMBER]`, `power-cut`, `stop`. What is refused is an
    `InputError`.
    """

    def command(text: str) -> Any:
        if "\n" in text:
            raise InputError("command: expected one line")
        try:
            said = f"{text}\n".encode()
        except UnicodeEncodeError as error:
            raise InputError(f"command `{text[: error.start]}…`: expected UTF-8") from None
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(60)
                line.connect(str(place))
                line.sendall(said)
                answer = line.makefile(encoding="utf-8").readline()
        except OSError as error:
            raise FtlabIOError(f"control {place}: {error.strerror or error}") from None
        if not answer:
            raise FtlabIOError(f"control {place}: the service has ended")
        answered = json.loads(answer)
        if isinstance(answered, dict) and "error" in answered:
            raise InputError(str(answered["error"]))
        return answered

    return command


@contextmanager
def _asked_to_end() -> Iterator[Callable[[], bool]]:
    """Whether a Ctrl-C or SIGTERM has come: the service looks, and ends in order and with its figures.

    Raised where it comes, it would take these along when it is late. The second is raised.
    """
    come: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        come.append(number)
        if len(come) > 1:
            signal.default_int_handler(number, frame)

    with handled(end, own=True):
        yield lambda: bool(come)


def _struck(fault: Mapping[str, Any]) -> str:
    if "die" in fault:
        return f"die {fault['die']} failed, {fault['lost_units']:,} units were lost"
    return f"struck {fault['struck']:,} request{'' if fault['struck'] == 1 else 's'}"


def rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a service was like, beside what a run was: names, and what there is to say of them."""
    from ftlab import show

    served = summary["serve"]
    said = []
    for op, latency in served["latency"].items():
        asked, delivered = latency["asked"], latency["delivered"]
        said.append(
            (
                {"flush": "flushes"}.get(op, f"{op}s"),
                f"{asked['count']:,}; asked of the drive p50 {show.named('p50_ns', asked['p50_ns'])}, "
                f"p99 {show.named('p99_ns', asked['p99_ns'])}; "
                f"delivered p50 {show.named('p50_ns', delivered['p50_ns'])}, "
                f"p99 {show.named('p99_ns', delivered['p99_ns'])}",
            )
        )
    said.append(("clients", f"{served['connections']:,} connections, {served['refused_connections']:,} refused"))
    if served["errors"]:
        errors = ", ".join(f"{count:,} {name}" for name, count in served["errors"].items())
        said.append(("errors", errors))
    said += [("fault", f"{fault['fault']}: {_struck(fault)}") for fault in served["faults"]]
    said += [
        (
            "power cut",
            f"{cut['lost_requests']:,} requests lost, {cut['units_brought_back']:,} units as they were before, "
            f"back after {show.named('recovery_ns', cut['recovery_ns'])}",
        )
        for cut in served["power_cuts"]
    ]
    return said
