"""From words and paths to a checked spec. Checks and defaults are those of the core itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import ftlab
from ftlab.errors import FtlabIOError, InputError
from ftlab.spec import drive_spec, run_spec

pytestmark = pytest.mark.usefixtures("fake")


def test_the_core_fills_the_defaults() -> None:
    spec = run_spec("uniform:requests=1e5", "tiny", {})
    assert spec["workload"] == {"generator": {"spec": "uniform:requests=1e5"}}
    assert (spec["backend"], spec["precondition"], spec["fit"], spec["seed"]) == ("timed", "auto", "error", 1)


def test_a_file_is_a_trace_and_a_toml_file_is_a_generator(tmp_path: Path) -> None:
    trace, toml = tmp_path / "uniform", tmp_path / "w.toml"
    trace.write_text("0,w,0,4096,0\n")
    toml.write_text('kind = "uniform"\n')
    assert run_spec(trace, "tiny", {"format": "msr"})["workload"]["trace"]["format"] == "msr"
    assert run_spec(toml, "tiny", {})["workload"]["generator"]["spec"] == 'kind = "uniform"\n'


def test_changes_as_a_mapping_or_as_texts() -> None:
    assert drive_spec("tiny", {"ftl.victim": "fifo", "gc.background": True})["set"] == [
        "ftl.victim=fifo",
        "gc.background=true",
    ]
    assert drive_spec("tiny", ["a=b"])["set"] == ["a=b"]


def test_a_drive_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[ftl]\n")
    assert drive_spec(file)["toml"] == "[ftl]\n"
    with pytest.raises(FtlabIOError, match=r"drive file no\.toml: No such file"):
        drive_spec("no.toml")


@pytest.mark.parametrize(
    ("workload", "options", "message"),
    [
        ("unifrom", {}, "no such file, and no generator of that name"),
        ("uniform", {"bakend": "timed"}, "unknown option `bakend`"),
        ("uniform", {"backend": "fast"}, "unknown backend `fast`"),
        ("uniform", {"fit": "compat"}, "did you mean `compact`"),
        ("uniform", {"warmup": "4"}, "warmup `4`"),
        ("uniform", {"qd": 8, "arrivals": "open"}, "qd belongs to closed arrivals"),
        ("uniform", {"qd": -1}, "-1"),
        ("uniform", {"speedup": 2.0}, "speedup: no effect here"),
        ("uniform:rate=1e3", {"speedup": 2.0, "qd": 8}, "speedup: no effect here"),
        ("uniform", {"backend": "counting", "qd": 8}, "qd: no effect here: the counting backend"),
        ("uniform", {"backend": "counting", "requests": True}, "requests: no effect here"),
        ("uniform", {"backend": "counting", "arrivals": "closed"}, "arrivals: no effect here"),
        ("uniform", {"volumes": "0"}, "volumes: no effect here"),
        ("uniform", {"trace_events_limit": 10}, "it limits the timeline"),
    ],
)
def test_wrong_words_are_one_sentence(workload: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        run_spec(workload, "tiny", options)
    assert "\n" not in str(caught.value)


def test_options_with_an_effect_are_taken(tmp_path: Path) -> None:
    trace = tmp_path / "a.csv"
    trace.write_text("time_us,op,offset,length\n0,write,0,4096\n")
    assert run_spec(trace, "tiny", {"speedup": 2.0})["speedup"] == 2
    assert run_spec("uniform:read=0.5,rate=1e3", "tiny", {"speedup": 2.0})["speedup"] == 2
    assert run_spec("uniform", "tiny", {"speedup": 1, "qd": 2, "requests": False})["qd"] == 2
    assert run_spec("uniform", "tiny", {"power_cuts": (10, 20)})["power_cuts"] == [10, 20]


def test_everything_exported_is_there() -> None:
    for name in ftlab.__all__:
        assert getattr(ftlab, name) is not None
    with pytest.raises(AttributeError):
        _ = ftlab.nothing  # type: ignore[attr-defined]
