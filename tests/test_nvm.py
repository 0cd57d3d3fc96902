"""`ftlab nvm`: memories and samples through the real command line."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from ftlab import nvm
from ftlab.errors import InputError


def figures(ftlab: Command, *arguments: object) -> Any:
    done = ftlab("nvm", *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_run_prints_a_table_and_its_figures(ftlab: Command) -> None:
    done = ftlab("nvm", "run", "sequential:requests=1e4")
    assert done.code == 0
    assert "hits_first" in done.out
    assert "p99.9" in done.out
    assert "busy banks over time" in done.out
    found = figures(ftlab, "run", "sequential:requests=1e4")
    assert found["measured"]["requests"] == 10_000
    rows = found["measured"]["rows"]
    assert rows["hits"] + rows["misses"] + rows["conflicts"] == 10_000


def test_isolated_requests_have_the_latencies_of_the_table(ftlab: Command, tmp_path: Path) -> None:
    """A miss 150 + 15 + 4, a hit 15 + 4, and a conflict as a miss, since PCM restores nothing when a row is closed."""
    trace = tmp_path / "three.trace"
    trace.write_text("0x0 READ 0\n0x40 READ 1000\n0x40000 READ 2000\n")
    found = figures(ftlab, "run", trace)
    assert found["memory"]["unloaded_ns"] == {"hit": 19.0, "miss": 169.0, "conflict": 169.0, "dirty_conflict": 169.0}
    reads = found["measured"]["reads"]
    assert reads["mean_ns"] == pytest.approx((169 + 19 + 169) / 3)
    slower = figures(ftlab, "run", trace, "--set", "timing.t_rp=20ns")
    assert slower["measured"]["reads"]["mean_ns"] == pytest.approx((169 + 19 + 189) / 3)


@pytest.mark.parametrize("form", ["dramsim3", "nvmain", "gem5", "ramulator", "ramulator2"])
def test_traces_go_out_and_come_back(ftlab: Command, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out.trace"
    generator = "random:requests=500,gap=100ns,read=0.7"
    done = ftlab("nvm", "convert", generator, "--to", form, "--out", out)
    assert done.code == 0, done.err
    again = ftlab("nvm", "convert", generator, "--to", form, "--out", out)
    assert again.code == 2
    assert "--force" in again.err
    back = figures(ftlab, "run", out)
    assert back["workload"]["format"] == form
    assert back["measured"]["requests"] == 500
    if form in ("dramsim3", "nvmain", "gem5"):
        assert back["measured"] == figures(ftlab, "run", generator)["measured"]


def test_a_run_gives_the_same_twice() -> None:
    first, second = (nvm.run("random:requests=2e4,read=0.6", seed=5) for _ in range(2))
    assert first["measured"] == second["measured"]


def test_writes_that_are_posted_are_drained_after_the_run(ftlab: Command, tmp_path: Path) -> None:
    """All 30 writes are in the buffer at time 0; each is of another row, and pcm closes a row in more than 100 ns."""
    trace = tmp_path / "writes.trace"
    trace.write_text("".join(f"{n * 8192:#x} WRITE 0\n" for n in range(30)))
    measured = figures(ftlab, "run", trace, "--memory", "pcm")["measured"]
    assert measured["finished_ns"] == 0
    assert measured["drained_ns"] > 1000
    assert 0 < measured["bus_busy"] < 1
    assert all(0 <= bank["busy"] <= 1 for bank in measured["banks"])
    assert measured["bytes_per_s"] == pytest.approx(30 * measured_line(ftlab) / measured["drained_ns"] * 1e9)
    assert "time      0 ns, drained after" in ftlab("nvm", "run", trace, "--memory", "pcm").out


def measured_line(ftlab: Command) -> int:
    found = {memory["name"]: memory for memory in json.loads(ftlab("nvm", "list", "--json").out)}
    return int(found["pcm"]["line_bytes"])


def test_a_long_pause_under_refresh_takes_no_time(ftlab: Command, tmp_path: Path) -> None:
    """5 hours, with a refresh each 3.9 us."""
    trace = tmp_path / "pause.trace"
    trace.write_text("0x0 READ 9000000000\n0x0 READ 18000000000000\n")
    measured = figures(ftlab, "run", trace, "--memory", "ddr5")["measured"]
    assert measured["refreshes"] > 4e9
    assert measured["reads"]["count"] == 2


def test_packets_of_gem5_with_other_commands(ftlab: Command, tmp_path: Path) -> None:
    trace = tmp_path / "gem5.csv"
    trace.write_text("\ufeff0,u,0,64,1,5\n1,r,64,64,1,1000\n2,w,128,64,2000\n", encoding="utf-8")
    done = ftlab("nvm", "run", trace, "--json")
    found = json.loads(done.out)
    assert (found["measured"]["requests"], found["workload"]["skipped"]) == (2, 1)
    assert done.err == "ftlab: 1 lines with command `u` (gem5: neither ReadReq nor WriteReq) were left out\n"


def test_cycles_of_a_generator_are_those_asked_for(ftlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "out.trace"
    arguments = ("convert", "sequential:requests=3,gap=3ns", "--to", "dramsim3", "--out", out)
    done = ftlab("nvm", *arguments, "--cycle", "0.75ns")
    assert [line.split()[2] for line in out.read_text().splitlines()] == ["4", "8", "12"]
    assert "rounded" not in done.err
    done = ftlab("nvm", *arguments, "--cycle", "2ns", "--force")
    assert [line.split()[2] for line in out.read_text().splitlines()] == ["1", "3", "4"]
    assert "2 times are no whole cycles of 2ns and were rounded down" in done.err


def test_a_memory_is_changed_by_a_mapping() -> None:
    """As the other verbs take it; bank functions take the place of the preset's interleaving."""
    of_texts = nvm.run("random:requests=100", set=["geometry.banks=2", "controller.look_ahead=false"])
    of_keys = nvm.run("random:requests=100", set={"geometry.banks": 2, "controller.look_ahead": False})
    assert of_texts["measured"] == of_keys["measured"]
    found = nvm.run("random:requests=100", set={"geometry.banks": 2, "geometry.bank_functions": ["0x6000"]})
    assert found["memory"]["bank_functions"] == ["0x6000"]
    with pytest.raises(InputError, match="expected a mapping"):
        nvm.run("random:requests=100", set="geometry.banks=2")


def test_caches_leave_what_misses(ftlab: Command) -> None:
    """Data of 1 MiB fit into the third level: each line is read from memory once."""
    found = figures(ftlab, "run", "random:requests=2e5,span=1MiB,cores=1", "--caches")
    assert found["caches"]["accesses"] == 200_000
    assert found["measured"]["reads"]["count"] <= 2**20 // 64
    assert sum(found["caches"]["hits"]) + found["measured"]["reads"]["count"] == 200_000


def test_the_order_of_the_schemes() -> None:
    """As the chapter has it, by ready first: contention-free, balanced, random, all threads in one bank at a time."""
    times = {
        scheme: nvm.sample(
            "synthetic:16MiB", ratio="8%", scheme=scheme, set=["geometry.banks=8", "controller.scheduler=ready_first"]
        )["measured"]["finished_ns"]
        for scheme in nvm.SCHEMES
    }
    assert times["contention_free"] < times["balanced"] < times["random"] < times["worst"]


def test_threads_that_share_banks_lose_to_threads_that_do_not() -> None:
    def time(threads: int) -> float:
        found = nvm.sample("synthetic:16MiB", ratio="16%", threads=threads, set=["geometry.banks=8"], think="50ns")
        return float(found["measured"]["latency_sum_ns"])

    assert time(8) < time(32)


def test_an_average_with_its_error_bar(ftlab: Command, tmp_path: Path) -> None:
    lines = [f"u{n},i{n % 50},{1 + n * 7 % 5},{n}" for n in range(60_000)]
    lines[100] = "rubbish"
    lines[40_000] = "u,i,many,1"
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("\n".join(lines) + "\n")
    whole = figures(ftlab, "sample", ratings, "--ratio", "100%", "--query", "average:3", "--untimed")["estimate"]
    true = sum(1 + n * 7 % 5 for n in range(60_000) if n not in (100, 40_000)) / 59_998
    assert whole["value"] == pytest.approx(true)
    assert (whole["half_width"], whole["rubbish_lines"], whole["records"]) == (0, 2, 59_998)
    for scheme in ("contention_free", "random"):
        found = figures(
            ftlab,
            "sample",
            ratings,
            "--ratio",
            "40%",
            "--query",
            "average:3",
            "--scheme",
            scheme,
            "--set",
            "geometry.banks=8",
        )["estimate"]
        assert abs(found["value"] - true) < 4 * found["standard_error"]
        assert found["bootstrap"]["low"] < found["value"] < found["bootstrap"]["high"]
    page = ftlab("nvm", "sample", ratings, "--ratio", "40%", "--query", "top:2,3", "--scheme", "all")
    assert "not bank-aware, stratified statistics only" in page.out
    assert "top items" in page.out


def test_rows_that_all_say_the_same_have_no_reliable_error_bar(ftlab: Command, tmp_path: Path) -> None:
    """25 rows of 8 KiB, the last one a part: each line is one word, and rows that are whole have as many."""
    words = tmp_path / "words.txt"
    words.write_text("good word 12345\n" * (24 * 512 + 100))
    arguments = (words, "--query", "count:good", "--set", "geometry.banks=4", "--untimed")
    found = figures(ftlab, "sample", *arguments, "--ratio", "50%", "--seed", "1")["estimate"]
    assert (found["half_width"], found["is_reliable"]) == (0, False)
    assert found["value"] > 24 * 512 + 100
    page = ftlab("nvm", "sample", *arguments, "--ratio", "50%", "--seed", "1").out
    assert "the error bar says nothing where all rows that were drawn say the same" in page
    whole = figures(ftlab, "sample", *arguments, "--ratio", "100%")["estimate"]
    assert (whole["value"], whole["half_width"], whole["is_reliable"]) == (24 * 512 + 100, 0, True)
    assert whole["ten_resamples"] is None
    assert "called 80 %, holds 64 %" in page


def test_numbers_in_quotes_are_read(ftlab: Command, tmp_path: Path) -> None:
    """Each line is 8 bytes: 1024 in a row, two rows of each of two banks."""
    ratings = tmp_path / "ratings.csv"
    ratings.write_text('a,"4.5"\n' * 4096)
    arguments = (ratings, "--ratio", "100%", "--query", "average:2", "--set", "geometry.banks=2", "--untimed")
    found = figures(ftlab, "sample", *arguments)["estimate"]
    assert (found["value"], found["records"], found["rubbish_lines"]) == (4.5, 4096, 0)


def test_a_refresh_writes_dirty_rows(ftlab: Command) -> None:
    """By the row and in one bank each write is charged: refreshes close rows and can save none of that time."""
    writes = ("random:requests=2000,read=0", "--memory", "stt-mram", "--set", "timing.t_wr=2us")
    writes += ("--set", "geometry.banks=1")
    plain = figures(ftlab, "run", *writes)["measured"]
    refreshes = ("--set", "refresh.t_refi=2us", "--set", "refresh.t_rfc=100ns")
    refreshed = figures(ftlab, "run", *writes, *refreshes)["measured"]
    assert refreshed["refreshes"] > 1000
    assert refreshed["finished_ns"] > plain["finished_ns"]


def test_what_is_probed_can_be_sampled_in(ftlab: Command, tmp_path: Path) -> None:
    """Bank functions and row of a simulated memory, found by timing pairs, as a memory file."""
    out = tmp_path / "found.toml"
    done = ftlab("nvm", "probe", "--memory", "optane-like", "--out", out)
    assert (done.code, done.err) == (0, f"ftlab: wrote {out}\n")
    assert "functions 0x100 0x200 0x400 0x800" in done.out
    asked = figures(ftlab, "sample", "synthetic:1MiB", "--ratio", "8%", "--memory", out)
    of_preset = figures(ftlab, "sample", "synthetic:1MiB", "--ratio", "8%", "--memory", "optane-like")
    for key in ("banks", "row_bytes", "capacity_bytes", "bank_functions"):
        assert asked["memory"][key] == of_preset["memory"][key]
    assert asked["sample"]["by_bank"] == of_preset["sample"]["by_bank"]
    again = ftlab("nvm", "probe", "--memory", "optane-like", "--out", out)
    assert again.code == 2
    assert "--force" in again.err


def test_a_probe_says_why_it_finds_nothing(ftlab: Command, tmp_path: Path) -> None:
    out = tmp_path / "found.toml"
    done = ftlab("nvm", "probe", "--memory", "pcm", "--set", "timing.t_rcd=0ns", "--out", out)
    assert done.code == 1
    assert "cannot be found by timing: times of 2000 pairs do not fall into two groups" in done.out
    assert not out.exists()


def test_this_machine_is_probed_or_says_why_not(ftlab: Command) -> None:
    """Whatever it is: functions that foretell its times, or a reason, or a system that gives no huge pages."""
    done = ftlab("nvm", "probe", "--size", "32MiB", "--json")
    if done.code == 2:
        assert "pages of 2 MiB" in done.err or "x86-64" in done.err
        return
    found = json.loads(done.out)
    assert done.code == (0 if found["found"] else 1)
    if found["found"]:
        assert found["found"]["right"] * 10 >= found["found"]["tried"] * 9
    else:
        assert found["why_not"]


def test_rows_are_sampled_in_the_machines_own_memory(ftlab: Command) -> None:
    """The same rows, whoever reads them: sums of their words agree; every run has a time."""
    found = figures(ftlab, "measure", "synthetic:8MiB", "--ratio", "10%", "--repeats", "3", "--threads", "3")
    schemes = {one["scheme"]: one for one in found["schemes"]}
    assert list(schemes) == list(nvm.MEASURED)
    # 1024 rows of 8 KiB: three of 32 of each of 32 strata.
    assert {one["sample"]["rows"] for one in schemes.values()} == {96}
    sums = {name: one["checksum"] for name, one in schemes.items()}
    assert sums["contention_free"] == sums["balanced"] == sums["worst"] != sums["random"]
    for one in schemes.values():
        assert len(one["wall_ns"]["each"]) == 3
        assert min(one["wall_ns"]["each"]) > 0
    assert schemes["contention_free"]["over_first"]["median"] == 1
    assert found["banks"]["known"] == "nothing"
    page = ftlab("nvm", "measure", "synthetic:8MiB", "--ratio", "10%", "--repeats", "1", "--threads", "3").out
    assert "not bank-aware, stratified statistics only" in page
    assert "row hits are not counted" in page
    assert all(
        (count["median"] is None) == bool(count.get("why_not"))
        for one in schemes.values()
        for count in one["counts"].values()
    )


def test_banks_of_the_machine_follow_from_an_architecture_file(ftlab: Command, tmp_path: Path) -> None:
    """By frames (root) every function tells banks apart; else those within pages of 2 MiB; of small pages none."""
    out = tmp_path / "here.toml"
    assert ftlab("nvm", "probe", "--memory", "archsampler", "--set", "geometry.banks=8", "--out", out).code == 0
    arguments = ("measure", "synthetic:8MiB", "--ratio", "10%", "--repeats", "1", "--memory", out)
    found = figures(ftlab, *arguments)
    banks, rows = found["banks"], found["data"]["rows"]
    assert banks["functions"] == ["0x2000", "0x4000", "0x8000"]
    assert (banks["known"], banks["count"]) in (("physical", 8), ("within_pages", 8), ("nothing", 8))
    if banks["known"] != "nothing":
        assert found["machine"]["page_bytes"] >= 4096
        assert banks["pairs"]["one_bank_ns"] > 0
    by_bank = found["schemes"][0]["sample"]["by_bank"]
    # A page of 2 MiB has as many rows of each bank.
    assert len(set(by_bank)) == 1 or found["machine"]["page_bytes"] == 4096
    assert sum(by_bank) == found["schemes"][0]["sample"]["rows"] <= rows


def test_a_file_is_asked_in_memory_as_in_the_model(ftlab: Command, tmp_path: Path) -> None:
    """Rows are drawn by the same seed, where both have rows of 8 KiB in 32 strata by number; so the estimates agree."""
    made = tmp_path / "reviews.csv"
    done = ftlab("nvm", "reviews", "--count", "30000", "--window", "0.1", "--words", "5", "--out", made)
    assert done.err == f"ftlab: wrote {made}: 30000 reviews\n"
    again = ftlab("nvm", "reviews", "--count", "30000", "--out", made)
    assert again.code == 2
    assert "--force" in again.err
    for query in ("average:3", "count:great", "top:2,3"):
        options = (made, "--ratio", "20%", "--query", query, "--scheme", "contention_free,random")
        here = figures(ftlab, "measure", *options, "--repeats", "1")
        model = figures(ftlab, "sample", *options, "--untimed")
        for mine, other in zip(here["schemes"], model, strict=True):
            assert mine["estimate"] == other["estimate"]


def test_a_file_in_memory_is_mapped_in_place(ftlab: Command) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or not os.access(shared, os.W_OK):
        pytest.skip("no /dev/shm")
    with tempfile.NamedTemporaryFile("w", dir=shared, suffix=".csv") as file:
        file.write("a,b,5\n" * 200_000)
        file.flush()
        found = figures(ftlab, "measure", file.name, "--ratio", "100%", "--query", "average:3", "--repeats", "1")
    assert (found["data"]["in_place"], found["machine"]["pages"]) == ("tmpfs", "file")
    assert {one["estimate"]["value"] for one in found["schemes"]} == {5}
    assert {one["estimate"]["records"] for one in found["schemes"]} == {200_000}


def test_reviews_follow_their_window() -> None:
    """Items lie together where the window is narrow; the same seed writes the same; words say what ratings do."""
    from ftlab import reviews

    narrow, wide = (
        [line.split(",") for line in reviews.lines(4000, window=window, words=8, seed=3)] for window in (0.01, 1.0)
    )
    assert narrow == [line.split(",") for line in reviews.lines(4000, window=0.01, words=8, seed=3)]

    def spread(lines: list[list[str]]) -> int:
        places = [at for at, line in enumerate(lines) if line[1] == "i0"]
        return max(places) - min(places)

    assert spread(narrow) < 700 < 3000 < spread(wide)
    assert all(int(line[2]) in range(1, 6) and len(line) == 5 for line in wide)
    said = [word for line in wide if line[2] == "5" for word in line[4].split() if word in reviews.VERDICTS]
    assert set(said) == {"great"}
    times = [int(line[3]) for line in narrow]
    assert times == sorted(times)


def test_packets_with_a_program_counter_and_no_flags(ftlab: Command, tmp_path: Path) -> None:
    """In nanoseconds 1 and 2, not at the program counters."""
    trace = tmp_path / "gem5.csv"
    trace.write_text("r,0,64,1000,4198400\nr,64,64,2000,4198396\n")
    assert figures(ftlab, "run", trace)["measured"]["finished_ns"] < 1000
    trace.write_text("r,0,64,1000,4198400\nr,64,64,2000,4198404\n")
    done = ftlab("nvm", "run", trace)
    assert done.code == 2
    assert "can be flags and tick or tick and program counter" in done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "sequential:requests=1", "--memory", "pmc"], "unknown memory `pmc`; did you mean `pcm`?"),
        (["run", "sequential:requests=1", "--set", "geometry.banks=0"], "geometry.banks = 0: expected a power of two"),
        (["run", "sequentail:requests=1"], "no such trace, and no generator"),
        (["run", "sequential:requests=none"], "expected a whole number"),
        (["run", "empty.trace"], "no requests in it"),
        (["run", "far.trace"], "lies beyond the memory"),
        (["run", "other.trace"], "of no known format"),
        (["run", "random", "--memory", "dependent.toml"], "function 0x6000 follows from the ones before it"),
        (
            ["run", "random", "--set", "timing.t_faw=30ns"],
            'timing.t_faw: expected controller.scheduler = "first_ready"',
        ),
        (["run", "random", "--set", "controller.scheduler=first_ready"], 'expected write.cost = "recovery"'),
        (["run", "random", "--set", "controller.scheduler=hits_first:run=0"], "run = 0, expected a whole number"),
        (["run", "random", "--set", "controller.scheduler=hits_first:rum=4"], "did you mean `run`"),
        (["run", "random", "--set", "controller.place_until=row"], "unknown controller.place_until `row`"),
        (["run", "random", "--set", "controller.look_ahead=true"], "no write.pause_step and no write.at_once"),
        (["run", "random", "--set", "timing=5"], "`timing` is a section, expected one of its keys"),
        (["run", "random", "--set", "geometry.line=16KiB"], "geometry.line = 16KiB: expected at most a row"),
        (["run", "random", "--seed", "18446744073709551616"], "expected a whole number of at least 0"),
        (["run", "random:read=1,read=0"], "read is given twice"),
        (["run", "random:span=1e30"], "generator `random`: span: `1e30` is not a size such as"),
        (["run", "random:requests=1e4,gap=1e6s"], "the last request comes too late, expected times before 2^63 ps"),
        (["run", "random:requests=1e4,gap=1e6s,arrivals=poisson"], "expected times before 2^63 ps (106 days)"),
        (["run", "random:requests=1e4,think=1e6s"], "expected times before 2^63 ps (106 days)"),
        (["run", "late.trace"], "line 2: 9223372036854776 cycles of 1000 ps are too late"),
        (["run", "back.trace"], "the time goes back, from 5 to 4 cycles"),
        (["run", "vector.trace"], "which Ramulator 2 reads as ReadWriteTrace, expected `LD|ST ADDRESS`"),
        (["sample", "synthetic:1MiB", "--ratio", "4%", "--scheme", "random,random"], "random is given twice"),
        (["sample", "synthetic:1MiB", "--ratio", "4%", "--think", "1e9s"], "expected times before 2^63 ps"),
        (["convert", "random:gap=1us", "--to", "dramsim3", "--out", "/dev/full", "--force"], "is no regular file"),
        (["convert", "random:gap=1us", "--to", "dramsim3", "--out", "no/new.trace"], "its folder does not exist"),
        (["convert", "random:gap=1us", "--to", "gem5", "--out", "a", "--cycle", "1ns"], "no effect on a generator"),
        (["probe", "--memory", "pcm", "--out", "/dev/full", "--force"], "is no regular file"),
        (["probe", "--memory", "pcm", "--out", "text.txt"], "exists; --force replaces it"),
        (["probe", "--size", "1KiB"], "expected 4MiB to 1TiB"),
        (["probe", "--memory", "pcm", "--size", "64MiB"], "has no effect on a simulated memory"),
        (["probe", "--set", "timing.t_rp=1ns"], "expected --memory NAME"),
        (["sample", "empty.trace", "--ratio", "4%"], "an empty file"),
        (["sample", "synthetic:1MiB", "--ratio", "400%"], "expected more than 0 and at most 1"),
        (["sample", "synthetic:1MiB", "--ratio", "some"], "expected a share such as 4%"),
        (["sample", "synthetic:8KiB", "--ratio", "4%"], "expected at least two for each of 32 banks"),
        (["sample", "text.txt", "--ratio", "100%", "--query", "average:2"], "no record in the sampled rows"),
        (["convert", "random", "--to", "dramsim3", "--out", "new.trace"], "has no times"),
        (["measure", "empty.trace", "--ratio", "4%"], "an empty file"),
        (["measure", "no.csv", "--ratio", "4%"], "no.csv"),
        (["measure", "synthetic:900TB", "--ratio", "4%"], "do not fit into the memory that is free"),
        (["measure", "synthetic:1MiB", "--ratio", "4%", "--query", "count:a"], "synthetic data hold no records"),
        (["measure", "synthetic:1MiB", "--ratio", "4%", "--node", "99"], "expected a node with cores"),
        (["measure", "synthetic:1MiB", "--ratio", "4%", "--set", "geometry.banks=8"], "expected --memory FILE"),
        (["measure", "synthetic:1MiB", "--ratio", "4%", "--scheme", "worse"], "unknown scheme `worse`"),
        (["measure", "synthetic:1MiB", "--ratio", "50%", "--scheme", "one_bank"], "expected a lower --ratio"),
        (["reviews", "--count", "10", "--window", "2", "--out", "new.trace"], "expected a share of the time above 0"),
        (["reviews", "--count", "10", "--words", "100001", "--out", "new.trace"], "of 0 to 100000 words"),
        (["run", "random", "--set", "timing.t_ccd=0ns"], "timing.t_ccd = 0ns: expected at least 1ps"),
        (["run", "random", "--set", "timing.t_rcd=0.4ps"], 'timing.t_rcd = 0.4ps: expected a time such as "14.16ns"'),
        (
            ["run", "random", "--set", "geometry.capacity=1EiB"],
            "geometry.capacity = 1EiB: expected a size that is a power of two from",
        ),
        (["run", "octal.trace"], "octal.trace, line 2: `08 R`, expected `0xADDRESS R|W`"),
        (["run", "still.trace"], "the first of two fields after the size is always the same and is read as flags"),
        (["run", "."], "directory"),
        (["sample", ".", "--ratio", "4%"], ".: is a directory, expected a file"),
        (
            ["sample", "text.txt", "--ratio", "100%", "--query", "count:here", "--replicates", "1"],
            "--replicates 1: expected 0 (no bootstrap) or at least 40",
        ),
        (
            ["measure", "text.txt", "--ratio", "100%", "--query", "count:here", "--level", "0.9999"],
            "--replicates 1000: expected 0 (no bootstrap) or at least 20000",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    ftlab: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.trace").write_text("")
    Path("far.trace").write_text("0x40 R\n0x500000000 R\n")
    Path("other.trace").write_text("time,op\n")
    Path("late.trace").write_text("0x40 READ 1\n0x40 READ 9223372036854776\n")
    Path("back.trace").write_text("0x40 READ 5\n0x40 READ 4\n")
    Path("octal.trace").write_text("010 R\n08 R\n")
    Path("still.trace").write_text("r,0,64,1000,4198400\nr,64,64,1000,4198396\n")
    Path("vector.trace").write_text("R 0,0,1,2,34,5\n")
    memory = nvm.probe("optane-like")["file"].replace('"0x400"', '"0x6000"').replace('"0x200"', '"0x2000"')
    Path("dependent.toml").write_text(memory.replace('"0x100"', '"0x4000"'))
    Path("text.txt").write_text("no numbers here\n" * 40_000)
    done = ftlab("nvm", *arguments)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert not Path("new.trace").exists()
