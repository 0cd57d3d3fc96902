"""Policies written in Python, on the real core."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ftlab
from conftest import Command
from ftlab import members
from ftlab.errors import InputError
from ftlab.members import Closed

WORK = "uniform:size=4KiB,bytes=2x"


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Policies entered by a test are gone after it."""
    before = dict(members._registered)
    yield
    members._registered.clear()
    members._registered.update(before)


def counted(victim: str, **options: object) -> ftlab.Run:
    changes = [f"ftl.victim={victim}", *options.pop("set", [])]
    return ftlab.run(WORK, drive="tiny", backend="counting", precondition="fill", set=changes, **options)


def test_greedy_in_python_chooses_as_greedy_does() -> None:
    @ftlab.policy("victim", "my_greedy")
    class MyGreedy:
        """The fewest valid; ties by erases, then by number."""

        def choose(self, closed: Closed, tick: int) -> int | None:
            return min(zip(closed.valid, closed.erases, closed.units, strict=True))[2] if closed.units else None

    ours, theirs = counted("my_greedy"), counted("greedy")
    assert ours.summary["counts"] == theirs.summary["counts"]
    assert "my_greedy" in ftlab.policies("victim")["name"].to_list()


def test_parameters_arrive_as_keywords_and_errors_come_out() -> None:
    @ftlab.policy("victim", "picky")
    class Picky:
        def __init__(self, limit: int) -> None:
            self.limit = limit

        def choose(self, closed: Closed, tick: int) -> int | None:
            if self.limit == 0:
                raise ValueError("no limit")
            return closed.units[0] if closed.units else None

    assert counted("picky:limit=3").summary["counts"]["erases"] > 0
    with pytest.raises(ValueError, match="no limit"):
        counted("picky:limit=0")
    with pytest.raises(InputError, match="cannot be made"):
        counted("picky")


def test_a_choice_that_is_not_closed_is_refused() -> None:
    @ftlab.policy("victim", "wild")
    class Wild:
        def choose(self, closed: Closed, tick: int) -> int | None:
            return 10**6

    with pytest.raises(InputError, match="victim policy `wild`: `choose` answered 1000000; expected one of"):
        counted("wild")


def test_placement_in_python_separates_as_manual_streams_do() -> None:
    @ftlab.policy("placement", "by_stream")
    class ByStream:
        frontiers = 3

        def host(self, lpn: int, stream: int, pc: int, tick: int) -> int:
            return min(stream, 2)

    changes = ["gc.survivors=stream", "ftl.victim=cost_benefit", "ftl.op_ratio=0.5"]

    def hot_cold(placement: str) -> ftlab.Run:
        return ftlab.run(
            "hotcold:size=4KiB,bytes=4x,hot=0.1/0.9",
            drive="tiny",
            backend="counting",
            precondition="fill",
            set=[f"ftl.placement={placement}", *changes],
        )

    ours, theirs = hot_cold("by_stream"), hot_cold("manual:streams=2")
    assert ours.summary["counts"] == theirs.summary["counts"]


def test_a_plugin_file_enters_its_policies(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    command: Command = request.getfixturevalue("ftlab")
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import ftlab\n"
        '@ftlab.policy("victim", "first")\n'
        "class First:\n"
        "    def choose(self, closed, tick):\n"
        "        return min(closed.units, default=None)\n"
    )
    options = ["--drive", "tiny", "--backend", "counting", "--set", "ftl.victim=first", "--plugin", plugin, "--json"]
    done = command("run", "uniform:size=4KiB,bytes=1x", *options)
    assert done.code == 0, done.err
    assert '"erases"' in done.out


def test_a_plugin_that_fails_is_one_sentence(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    command: Command = request.getfixturevalue("ftlab")
    plugin = tmp_path / "broken.py"
    plugin.write_text("1 / 0\n")
    done = command("run", "uniform", "--plugin", plugin)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "ZeroDivisionError" in done.err
    assert command("run", "uniform", "--plugin", tmp_path / "absent.py").code == 2
    # A file that ends the program is not a run that was made.
    plugin.write_text("import sys\nsys.exit(0)\n")
    done = command("run", "uniform", "--plugin", plugin)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "broken.py: ends the program (SystemExit: 0)" in done.err
    # Nor is one in which a policy ends it.
    plugin.write_text(
        "import sys, ftlab\n@ftlab.policy('victim', 'ends')\nclass Ends:\n"
        "    def choose(self, closed, tick):\n        sys.exit(0)\n"
    )
    options = ("--drive", "tiny", "--backend", "counting", "--set", "ftl.victim=ends", "--plugin", plugin)
    done = command("run", "uniform:bytes=2x", *options)
    assert (done.code, done.out) == (2, "")
    assert "ends the program (SystemExit: 0)" in done.err


def refused(tmp_path: Path, request: pytest.FixtureRequest, role: str, body: str) -> str:
    """The one sentence with which the command refuses a policy in a file."""
    command: Command = request.getfixturevalue("ftlab")
    plugin = tmp_path / "mine.py"
    plugin.write_text(f'import ftlab\n@ftlab.policy("{role}", "mine")\nclass Mine:\n{body}')
    done = command(
        "run", WORK, "--drive", "tiny", "--backend", "counting", "--set", f"ftl.{role}=mine", "--plugin", plugin
    )
    assert (done.code, done.err.count("\n"), done.out) == (2, 1, ""), done.err
    return done.err


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    def choose(self, closed, tick):\n        return None\n", "`mine`: chose no unit when room was needed"),
        ("    def choose(self, closed, tick):\n        return -1\n", "`mine`: `choose` answered -1; expected one of"),
        ("    def choose(self, closed, tick):\n        return 'a'\n", "`mine`: `choose` answered 'a'; expected one of"),
        (
            "    def chose(self, closed, tick):\n        return 1\n",
            "`mine`: no method; expected `choose(closed, tick)`",
        ),
        ("    choose = 3\n", "`mine`: no method; expected `choose(closed, tick)`"),
        ("    def choose(self, closed, tick):\n        return 1 / 0\n", "`mine`: ZeroDivisionError: division by zero"),
        ("    def choose(self, closed):\n        return 1\n", "`mine`: TypeError"),
    ],
)
def test_a_victim_policy_that_fails_is_named(
    tmp_path: Path, request: pytest.FixtureRequest, body: str, words: str
) -> None:
    assert f"ftlab: victim policy {words}" in refused(tmp_path, request, "victim", body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    def host(self, *_):\n        return 0\n", "expected `frontiers`, a number from 1 to 4096"),
        ("    frontiers = 0\n    def host(self, *_):\n        return 0\n", "a number from 1 to 4096: 0"),
        (
            "    frontiers = 2\n    survivor_frontiers = 5000\n    def host(self, *_):\n        return 0\n",
            "expected `survivor_frontiers`, a number from 0 to 4096: 5000",
        ),
        ("    frontiers = 2\n", "no method; expected `host(lpn, stream, pc, tick)`"),
        (
            "    frontiers = 2\n    def host(self, *_):\n        return 2\n",
            "`host` answered 2; expected a frontier from 0 to 1",
        ),
        (
            "    frontiers = 2\n    def host(self, *_):\n        return None\n",
            "`host` answered None; expected a frontier",
        ),
        ("    frontiers = 2\n    def host(self, *_):\n        raise KeyError(3)\n", "KeyError: 3 (mine.py, line 6)"),
    ],
)
def test_a_placement_policy_that_fails_is_named(
    tmp_path: Path, request: pytest.FixtureRequest, body: str, words: str
) -> None:
    error = refused(tmp_path, request, "placement", body)
    assert error.startswith("ftlab: placement policy `mine`: ")
    assert words in error


def test_a_run_keeps_its_thread_state_from_call_to_call() -> None:
    """What a policy puts into `threading.local` is there at its next call, in a run alone and in each of several."""
    kept = threading.local()
    found: list[int] = []

    @ftlab.policy("placement", "remembers")
    class Remembers:
        frontiers = 1

        def host(self, lpn: int, stream: int, pc: int, tick: int) -> int:
            kept.calls = getattr(kept, "calls", 0) + 1
            found.append(kept.calls)
            return 0

    requests = "uniform:size=4KiB,requests=300"
    ftlab.run(requests, drive="tiny", backend="counting", precondition="none", set=["ftl.placement=remembers"])
    assert found == list(range(1, 301))
    found.clear()
    ftlab.compare(
        requests,
        drive="tiny",
        backend="counting",
        precondition="none",
        set=["ftl.placement=remembers"],
        vary={"ftl.victim": ["greedy", "fifo"]},
        threads=2,
    )
    assert sorted(found) == sorted(2 * list(range(1, 301)))


def test_the_drive_is_described_with_the_frontiers_of_the_policy() -> None:
    @ftlab.policy("placement", "by_stream")
    class ByStream:
        frontiers = 5

        def host(self, lpn: int, stream: int, pc: int, tick: int) -> int:
            return min(stream, 4)

    given = {"drive": "small", "backend": "counting"}
    room = ["ftl.op_ratio=0.28"]
    ours = ftlab.run("uniform:requests=1000", set=[*room, "ftl.placement=by_stream"], **given).summary["drive"]
    theirs = ftlab.run("uniform:requests=1000", set=[*room, "ftl.placement=manual:streams=4"], **given).summary["drive"]
    for figure in ("frontiers", "effective_op_ratio", "effective_spare_factor", "theory_waf"):
        assert ours[figure] == theirs[figure], figure


def test_an_exception_of_a_placement_ends_the_run() -> None:
    asked = 0

    @ftlab.policy("placement", "breaks")
    class Breaks:
        frontiers = 1

        def host(self, lpn: int, stream: int, pc: int, tick: int) -> int:
            nonlocal asked
            asked += 1
            if asked == 5:
                raise ValueError("enough")
            return 0

    with pytest.raises(ValueError, match="enough"):
        ftlab.run("uniform:requests=2e5", drive="tiny", backend="counting", set=["ftl.placement=breaks"])
    assert asked == 5, "and nobody is asked after it"


@pytest.mark.parametrize("name", ["x:y", "", "1", "Big"])
def test_a_name_that_no_drive_can_call_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="expected small letters"):
        ftlab.policy("victim", name)(object)


def test_a_name_of_the_catalogue_is_refused() -> None:
    with pytest.raises(InputError, match="victim policy `greedy`: the name is that of a policy of ftlab's own"):
        ftlab.policy("victim", "greedy")(object)
