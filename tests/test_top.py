"""What a live drive shows of itself: `ftlab top` and the figures for Prometheus."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ftlab.watching import pace, programmed
from nbd_client import FTLAB, NbdError, Service, served

FAST = ("--pace", "none")


def snapshot(**figures: Any) -> dict[str, Any]:
    """Ten seconds of a drive of two dies: 100 writes of 4 KiB, 50 reads."""
    return {
        "device_s": 10.0,
        "requests": 150,
        "bytes": 614_400,
        "written_bytes": 409_600,
        "latency": {"read": {"count": 50}, "write": {"count": 100}},
        "waf": {
            "total": 1.5,
            "host": 1.0,
            "gc": 0.5,
            "map": 0,
            "wear": 0,
            "replication": 0,
            "metadata": 0,
            "padding": 0,
        },
        "host_writes": 100,
        "erases": 4,
        "collections": 4,
        "dies": 2,
        "die_busy_s": {"host_write": 4.0, "gc": 2.0},
        "map_cache": {"lookups": 100, "hits": 60},
        **figures,
    }


def later() -> dict[str, Any]:
    """Four seconds later: 20 writes, which cost 50 programs, and no reads."""
    waf = {"total": 200 / 120, "host": 1.0, "gc": 80 / 120}
    return snapshot(
        device_s=14.0,
        requests=170,
        bytes=696_320,
        written_bytes=491_520,
        latency={"read": {"count": 50}, "write": {"count": 120}},
        waf={**snapshot()["waf"], **waf},
        host_writes=120,
        erases=12,
        collections=6,
        die_busy_s={"host_write": 6.0, "gc": 6.0},
        map_cache={"lookups": 120, "hits": 75},
    )


def test_the_pace_is_what_came_between_two_snapshots() -> None:
    now = pace(snapshot(), later())
    assert now.seconds == 4
    assert now.iops == {"read": 0, "write": 5}
    assert (now.bytes_per_s, now.written_bytes_per_s) == (20_480, 20_480)
    assert now.waf == pytest.approx(50 / 20)
    assert (now.collections_per_s, now.erases_per_s) == (0.5, 2)
    assert now.busy == {"host_write": 0.25, "gc": 0.5}
    assert now.hit_ratio == 0.75


def test_after_a_reset_the_pace_is_of_what_came_since() -> None:
    reset = snapshot(device_s=2.0, requests=3, latency={"write": {"count": 3}}, host_writes=0)
    now = pace(later(), reset)
    assert (now.seconds, now.iops, now.waf) == (2, {"write": 1.5}, None)


def test_between_two_equal_snapshots_nothing_happened() -> None:
    nothing = pace(snapshot(), snapshot())
    assert (nothing.seconds, nothing.iops, nothing.waf) == (0, {"read": 0, "write": 0}, None)
    assert (nothing.bytes_per_s, nothing.collections_per_s, nothing.hit_ratio) == (0, 0, None)


def metrics(service: Service) -> dict[tuple[str, ...], float]:
    """What Prometheus' own parser reads: values by name and labels."""
    place = next(line for line in service.said if line.startswith("metrics: ")).removeprefix("metrics: ")
    with urllib.request.urlopen(place, timeout=30) as answer:
        text = answer.read().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(one.name, *(one.labels[name] for name in sorted(one.labels))): one.value for one in samples}


def test_prometheus_reads_what_clients_did(tmp_path: Path) -> None:
    cached = ("--set", "ftl.mapping=dftl", "--set", "ftl.map_cache=64KiB")
    with served(tmp_path, *FAST, *cached, "--metrics", "127.0.0.1:0", "--fault", "eio@op=read,count=1") as service:
        client = service.client()
        for page in range(64):
            client.write(page * 4096, bytes([page]) * 4096)
        client.flush()
        with pytest.raises(NbdError):
            client.read(0, 4096)
        for page in range(32):
            client.read(page * 4096, 4096)
        found = metrics(service)
        assert found["ftlab_up",] == 1
        assert found["ftlab_requests_total", "write"] == 64
        assert found["ftlab_requests_total", "read"] == 32
        assert found["ftlab_host_units_total",] == 64
        assert found["ftlab_written_bytes_total",] == 64 * 4096
        assert found["ftlab_programmed_units_total", "host"] == 64
        assert found["ftlab_errors_total", "EIO"] == 1
        assert found["ftlab_faults_struck_total", "eio@op=read,count=1"] == 1
        assert found["ftlab_map_cache_lookups_total",] >= 96
        assert 0 < found["ftlab_free_reclaim_units",] < found["ftlab_reclaim_units",]
        assert (
            found["ftlab_latency_seconds", "asked", "write", "0.99"]
            >= found["ftlab_latency_seconds", "asked", "write", "0.5"]
        )
        told = service.command("snapshot")
        assert found["ftlab_die_busy_seconds_total", "host_write"] == told["die_busy_s"]["host_write"] > 0
        assert sum(programmed(told).values()) == round(told["waf"]["total"] * 64)
        service.command("reset")
        anew = metrics(service)
        assert anew["ftlab_host_units_total",] == 0
        assert anew["ftlab_die_busy_seconds_total", "host_write"] == 0
        summary = service.end()
    assert summary["counts"]["host_writes"] == 0


def test_a_drive_that_is_gone_is_down() -> None:
    from ftlab.watching import families

    (up,) = families("/nowhere/ctl")
    assert [sample.value for sample in up.samples] == [0]


@pytest.mark.parametrize(
    "address", ["9464", "127.0.0.1:", "127.0.0.1:http", ":9464", "127.0.0.1:70000", "no.such.host.:1"]
)
def test_an_address_that_is_none_is_one_sentence(address: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [*FTLAB, "serve", "--listen", str(tmp_path / "s"), "--metrics", address, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("ftlab: metrics")
    assert done.stderr.count("\n") == 1
    assert not out.exists()


def test_a_drive_that_cannot_be_served_says_so_only(tmp_path: Path) -> None:
    command = [*FTLAB, "serve", "--listen", str(tmp_path / "s"), "--metrics", "127.0.0.1:0", "--set", "ftl.mapping=x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "metrics" not in done.stderr


def top(service: Service, *options: str, **how: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([*FTLAB, "top", str(service.ctl), *options], text=True, stderr=subprocess.PIPE, **how)


def test_top_says_a_line_for_each_look_and_ends_with_the_drive(tmp_path: Path) -> None:
    with served(tmp_path, *FAST) as service:
        client = service.client()
        client.write(0, b"a" * 65536)
        looks = top(service, "--every", "0.1", "--count", "2", stdout=subprocess.PIPE)
        said, _ = looks.communicate(timeout=60)
        assert looks.returncode == 0
        header, *lines = said.splitlines()
        assert header.split()[:3] == ["time", "reads/s", "writes/s"]
        assert len(lines) == 2
        assert not any("nan" in line for line in lines)
        endless = top(service, "--every", "0.1", stdout=subprocess.PIPE)
        assert endless.stdout
        for _ in range(3):
            endless.stdout.readline()
        service.end()
        _, error = endless.communicate(timeout=60)
    assert (endless.returncode, error) == (0, "ftlab: the service has ended\n")


def test_top_is_a_page_on_a_terminal_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    with served(tmp_path, *FAST, "--fault", "eio@op=trim") as service:
        service.client().write(0, b"a" * 65536)
        reader, writer = pty.openpty()
        page = top(service, "--every", "0.1", stdout=writer, env={**os.environ, "COLUMNS": "100", "TERM": "xterm"})
        os.close(writer)
        watchdog = threading.Timer(60, page.kill)
        watchdog.start()
        seen = ""
        while "host write" not in seen or "eio@op=trim" not in seen:
            seen += os.read(reader, 65536).decode(errors="replace")
        page.send_signal(signal.SIGINT)
        _, error = page.communicate(timeout=60)
        watchdog.cancel()
        os.close(reader)
        assert (page.returncode, error) == (0, "")
        assert "tiny" in seen
        assert "writes" in seen
        assert "reclaim units free" in seen


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--every", "0"), "--every 0.0: expected 0.05 to 3600 seconds"),
        (("--every", "nan"), "expected 0.05 to 3600 seconds"),
        (("--count", "-1"), "--count -1: expected a whole number"),
        ((), "No such file"),
    ],
)
def test_what_cannot_be_watched_is_one_sentence(options: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = subprocess.run([*FTLAB, "top", str(tmp_path / "none"), *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
