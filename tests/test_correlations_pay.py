"""`ftlab correlations`: whether correlated pages would pay on a trace; the policy's defaults never lose much."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

import ftlab as lab
from conftest import Command
from ftlab import correlating
from ftlab.cli.correlations_text import answer_text, as_json, verdict
from ftlab.correlating import SCHEMES, Answer, Mined, Row
from ftlab.errors import InputError

TRACES = Path(os.environ.get("FTLAB_TRACES", "/nowhere"))
# Pairs that lie far apart, read one right behind the other and often.
PLANTED = "correlated:groups=300,read=1,requests=60000"


def mined(**changes: object) -> Mined:
    known = {
        "workload": "made up",
        "requests": 10,
        "split": 5,
        "pages": 1000,
        "pairs": 7,
        "seen": 0.5,
        "announced": 0.1,
        "lpns": 9,
        "written_first": 0.0,
        "read_again": 0.5,
        "set_file": "",
    }
    return Mined(**(known | changes))  # type: ignore[arg-type]


def answer(pairs: int = 7, spread: float = 0.0, answered: float = 50, **totals: float) -> Answer:
    """Totals by policy, `no_set` for the one without, all at 4 KiB."""
    schemes = {scheme.name.replace(" ", "_").removesuffix("_%"): scheme for scheme in SCHEMES}
    rows = tuple(
        Row(schemes[name], 4096, total - 10, 10, 0.5, spread, 0.5 if name.startswith("cpftl") else None, answered)
        for name, total in totals.items()
    )
    return Answer(mined(pairs=pairs), rows)


def test_what_needs_more_than_no_set_is_not_the_best_for_having_earned_it() -> None:
    # The default saves 1 % and earned nothing of it; a large directory costs 17 % more.
    made = answer(tpftl=200, no_set=100, cpftl=99, cpftl_25=117, answered=0)
    best = made.with_set(4096)
    assert best is not None
    assert best.scheme.name == "cpftl"
    assert made.change(4096, "no set") == pytest.approx(-0.01)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (answer(tpftl=200, no_set=100, cpftl=90), "Correlations pay. Reads and writes"),
        (answer(tpftl=80, no_set=100, cpftl=90), "Correlations save, but do not pay. "),
        (answer(tpftl=200, no_set=100, cpftl=99), "at no size do they save more than chance"),
        (answer(tpftl=200, no_set=100, cpftl=90, spread=0.2), "at no size do they save more than chance"),
        (
            answer(tpftl=200, no_set=100, cpftl=90, answered=9),
            "are not shown to pay: reads and writes against the same map",
        ),
        (
            answer(tpftl=200, no_set=100, cpftl=90, answered=9),
            "-10.0 % at 4 KiB, but correlated pages answered fewer look-ups than that",
        ),
        (answer(tpftl=200, no_set=100, cpftl=90, cpftl_70=60, answered=15), "-10.0 % at 4 KiB; no other map"),
        (answer(tpftl=200, no_set=100, cpftl=99, cpftl_70=85), "-15.0 % at 4 KiB with removal=off,directory=0.7; no"),
        (answer(tpftl=200, no_set=100, cpftl=85, cpftl_70=99), "-15.0 % at 4 KiB; no other map needs less"),
        (answer(pairs=0, tpftl=200, no_set=100), "no two pages are read together often enough"),
    ],
)
def test_the_verdict_is_what_the_figures_say(made: Answer, sentence: str) -> None:
    assert sentence in verdict(made)
    assert answer_text(made).endswith(verdict(made))


def test_chance_is_the_larger_spread_of_the_two_that_are_compared() -> None:
    made = answer(tpftl=200, no_set=100, cpftl=90)
    spreads = {"tpftl": 0.9, "no set": 0.03, "cpftl": 0.05}
    wider = Answer(made.mined, tuple(replace(row, spread=spreads[row.scheme.name]) for row in made.rows))
    assert wider.chance(4096) == 0.05
    assert wider.saves(4096)
    header, row = (line for line in answer_text(wider).splitlines() if "map cache" in line or "4 KiB" in line[:8])
    assert header.split()[-1] == "±"
    assert row.endswith("5.0 %")
    assert as_json([wider])["traces"][0]["caches"][0]["chance"] == 0.05


def test_without_pairs_cpftl_is_what_it_is_without_a_set() -> None:
    made = answer(pairs=0, tpftl=200, no_set=100)
    assert made.change(4096, "tpftl") == -0.5
    assert made.change(4096, "no set") == 0.0


def test_sizes_are_bytes_or_shares_of_the_map() -> None:
    # 8 bytes a page; nothing below 1 KiB.
    assert correlating.sizes(["16%", "64KiB", "1%", "0.1%"], 100_000) == [1024, 8000, 65_536, 128_000]
    for wrong in ("0%", "101%", "200%", "4 potatoes", ""):
        with pytest.raises(InputError, match="as in 64KiB, or a share of the map as in 4%, at most 100%"):
            correlating.sizes([wrong], 1000)


def test_what_becomes_of_the_pages_of_a_set_is_counted(tmp_path: Path) -> None:
    # Twice 0 and 9 in windows of two, then: 0 is read, 9 written and read again; 5 is no page of the set.
    trace = tmp_path / "t.csv"
    rows = ["R,0", "R,36864", "R,0", "R,36864", "R,0", "W,36864", "R,36864", "R,20480"]
    lines = (f"{at},{op},{offset},4096" for at, (op, offset) in enumerate(row.split(",") for row in rows))
    trace.write_text("time_ns,op,offset,length\n" + "\n".join(lines) + "\n")
    assert correlating._touched(str(trace), {}, 4, {0, 9, 77}) == (10, {"read": 1, "write": 1})


def test_a_default_that_loses_is_seen_beside_the_best_directory() -> None:
    made = answer(tpftl=200, no_set=100, cpftl=300, cpftl_25=90)
    header, row = (line for line in answer_text(made).splitlines() if "map cache" in line or "4 KiB" in line[:8])
    assert header.index("cpftl to tpftl") < header.index("best to tpftl") < header.index("best to no set")
    assert [word for word in row.split() if word[0] in "+-"] == ["+50.0", "-55.0", "-10.0"]
    (cache,) = as_json([made])["traces"][0]["caches"]
    assert cache["default_to_tpftl"] == 0.5
    assert cache["default_to_no_set"] == 2.0
    assert cache["to_tpftl"] == pytest.approx(-0.55)


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        ("uniform:requests=100", "no reads in the first half, so correlations between reads have nothing to do"),
        ("/dev/null", "mining a part and testing on the next takes two readings, which a stream does not allow"),
        (
            "-",
            "mining a part and testing on the next takes two readings, which a stream does not allow: expected a file",
        ),
    ],
)
def test_what_cannot_be_mined_is_called_what_was_asked_for(workload: str, sentence: str, ftlab: Command) -> None:
    done = ftlab("correlations", workload)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"ftlab: {workload}: {sentence}")


def test_planted_correlations_pay_where_no_map_is_in_order(ftlab: Command, tmp_path: Path) -> None:
    trace = tmp_path / "planted.csv"
    lab.generate(PLANTED, trace, span="64MiB")
    done = ftlab("correlations", trace, "--cache", "16%", "--precondition", "scatter", "--json")
    assert done.code == 0, done.err
    (told,) = json.loads(done.out)["traces"]
    (cache,) = told["caches"]
    assert told["pairs"] >= 200
    assert cache["pays"] is True
    assert cache["to_no_set"] < -0.02
    # On as long as it pays, and off behind that.
    assert 0.1 < cache["policies"]["cpftl"]["on"] < 0.75
    assert told["verdict"].startswith("Correlations pay.")


def test_what_one_load_brings_for_a_request_is_saved_once(ftlab: Command, tmp_path: Path) -> None:
    """Couples of pages are mined; then requests of 16 pages need what one load brings, or eight correlated pages."""
    pages = 16384
    reads = [(2 * (i * step % (pages // 2)) + j, 1) for step in (1, 1819) for i in range(pages // 2) for j in (0, 1)]
    reads += [(16 * (i * 619 % (pages // 16)), 16) for i in range(len(reads))]
    lines = (f"{i},read,{4096 * page},{4096 * count}\n" for i, (page, count) in enumerate(reads))
    trace = tmp_path / "couples.csv"
    trace.write_text("time_us,op,offset,length\n" + "".join(lines), encoding="utf-8")
    done = ftlab("correlations", trace, "--cache", "80%", "--json")
    assert done.code == 0, done.err
    (cache,) = json.loads(done.out)["traces"][0]["caches"]
    total = {name: row["reads"] + row["writes"] for name, row in cache["policies"].items() if row}
    assert total["tpftl"] == total["no set"] > 500
    assert total["tpftl"] < total["cpftl"] < 1.02 * total["tpftl"]


@pytest.mark.parametrize(("key", "why"), [("ftl.map_cache=4KiB", "--cache"), ("ftl.mapping=dftl", "are fixed")])
def test_what_every_run_sets_itself_cannot_be_set(ftlab: Command, key: str, why: str) -> None:
    done = ftlab("correlations", "zipf:read=0.5,requests=1000", "--set", key)
    assert done.code == 2
    assert f"set {key.partition('=')[0]}: " in done.err
    assert why in done.err
    assert len(done.err.strip().splitlines()) == 1
    with pytest.raises(InputError, match=why):
        lab.correlations("zipf:read=0.5,requests=1000", set={key.partition("=")[0]: key.partition("=")[2]})


@pytest.mark.parametrize(
    ("cache", "says"),
    [
        ("4", "cache 4: expected at least 1KiB, or a share of the map as in 4%"),
        ("1000B", "cache 1000B: expected at least 1KiB, or a share of the map as in 4%"),
        ("101%", "cache 101%: expected bytes as in 64KiB, or a share of the map as in 4%, at most 100%"),
        ("many", "cache many: expected bytes as in 64KiB, or a share of the map as in 4%, at most 100%"),
    ],
)
def test_a_size_that_cannot_be_is_refused(ftlab: Command, cache: str, says: str) -> None:
    done = ftlab("correlations", "zipf:read=0.5,requests=1000", "--cache", cache)
    assert (done.code, done.err) == (2, f"ftlab: {says}\n")


def test_help_says_what_holds_here_where_nothing_is_given(ftlab: Command) -> None:
    said = " ".join(ftlab("correlations", "--help").out.split())
    assert "(writes and wear only, faster). [counting]" in said
    assert "where the map is in flash. [fill]" in said
    assert "(writes and wear only, faster). [timed]" in " ".join(ftlab("compare", "--help").out.split())
    assert lab.correlations.__doc__ is not None
    assert "faster). [counting]" in lab.correlations.__doc__


def test_the_figures_are_those_of_the_runs(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    assert lab.correlations("zipf:read=0.5,requests=4000", caches=["8KiB"], filters="head:requests=4000").rows
    made = lab.correlations("zipf:read=0.5,requests=4000", caches=["8KiB"])
    (row,) = (row for row in made.rows if row.scheme.name == "dftl")
    assert made.comparison is not None
    (point,) = (point for point in made.comparison.points if point.vary["policy"] == "dftl")
    counts = point.runs[0].summary["counts"]
    assert row.reads == sum(counts["trans_reads"].values()) + counts["gc_trans_reads"]
    assert row.writes == sum(counts["trans_programs"].values()) + counts["gc_trans_programs"]
    assert set(made.table()["policy"]) >= {"dftl", "tpftl", "no set"}
    made.comparison.save(out)
    assert (out / "report.html").exists()


def test_a_trace_without_reads_is_refused(ftlab: Command) -> None:
    done = ftlab("correlations", "uniform:requests=1000")
    assert done.code == 2
    assert "no reads in the first half, so correlations between reads have nothing to do" in done.err
    assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["support", "confidence"])
def test_a_share_that_is_no_number_is_one_sentence(ftlab: Command, option: str) -> None:
    done = ftlab("correlations", "uniform:requests=1000,read=1", f"--{option}", "nan")
    assert done.code == 2
    assert f"{option} nan: expected a share from 0 to 1" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.skipif("FTLAB_TRACES" not in os.environ, reason="FTLAB_TRACES names no folder of traces")
@pytest.mark.parametrize(
    "name",
    [
        "msr/prxy_0_reads.trace.zst",
        "umass_spc/Financial1_first10k_asu.ascii.zst",
        "umass_spc/Financial1_first50k_noasu.trace.zst",
        "android_hash/android_music_5k.tsv.zst",
        "mobile_nexus5/log131_music.txt.zst",
    ],
)
def test_cpftl_never_needs_two_percent_more_than_tpftl(name: str) -> None:
    made = lab.correlations(TRACES / name)
    for cache in made.caches:
        change = made.change(cache, "tpftl", "cpftl")
        assert change is not None
        assert change < 0.02, (cache, change)


@pytest.mark.parametrize("cache", [3340, 3360, 3400])
@pytest.mark.parametrize(("groups", "others"), [(20, 8), (100, 3)])
def test_a_loop_that_just_fits_is_left_alone(cache: int, groups: int, others: int, tmp_path: Path) -> None:
    """Groups with entries of the loop and others that are never asked for once cost up to a fortieth of all loads."""
    loop = random.Random(3).sample(range(60_000), 400)
    pairs = "/".join(
        "-".join(map(str, [loop[group], *range(60_000 + others * group, 60_000 + others * (group + 1))]))
        for group in range(groups)
    )
    lines = [f"{1000 * at},R,{4096 * lpn},4096" for at, lpn in enumerate(loop * 6)]
    workload = tmp_path / "loop.csv"
    workload.write_text("\n".join(["time_ns,op,offset,length", *lines, ""]))

    def needs(mapping: str) -> int:
        settings = {"gc.hard": 3, "ftl.map_cache": f"{cache}B", "ftl.mapping": mapping}
        done = lab.run(workload, "small", backend="counting", precondition="fill", warmup="0%", set=settings)
        counts = done.summary["counts"]
        return sum(counts["trans_reads"].values()) + sum(counts["trans_programs"].values())

    assert needs(f"cpftl:pairs={pairs}") <= needs("tpftl") + 2


@pytest.mark.skipif("FTLAB_TRACES" not in os.environ, reason="FTLAB_TRACES names no folder of traces")
@pytest.mark.parametrize(
    ("name", "skipped", "share"),
    [
        ("arc_nt/P6.lis.zst", 40_000, 12),
        ("arc_nt/P6.lis.zst", 40_000, 14),
        ("arc_nt/P6.lis.zst", 0, 20),
        ("msr/prxy_0_reads.trace.zst", 10_000, 12),
        ("msr/prxy_0_reads.trace.zst", 15_000, 20),
    ],
)
def test_pages_that_cost_memory_in_a_loop_go(name: str, skipped: int, share: int) -> None:
    """Loops a little longer than the cache: up to 10 % more, where memory costs only what is seen to come back."""
    filters = [*([f"skip:requests={skipped}"] if skipped else []), "head:requests=10000"]
    made = lab.correlations(TRACES / name, filters=filters, caches=[f"{share}%"])
    (cache,) = made.caches
    change = made.change(cache, "tpftl", "cpftl")
    assert change is not None
    assert change < 0.02


def test_a_generator_is_answered_as_the_file_it_makes(tmp_path: Path) -> None:
    """By itself it would draw other addresses on the drive, which is as large as the pages touched, than for mining."""
    for spec in ("correlated:requests=20000,span=64MiB,groups=500,read=0.9,rate=1000", "zipf:requests=20000,read=0.9"):
        lab.convert(spec, tmp_path / "made.ftlab", force=True)
        found = [
            lab.correlations(given, caches=["4%"]).table().drop("trace") for given in (spec, tmp_path / "made.ftlab")
        ]
        assert found[0].equals(found[1]), spec


def test_what_of_a_trace_cannot_be_read_is_told(ftlab: Command, tmp_path: Path) -> None:
    rows = [f"0,{i * 37 % 4000 * 8},4096,{'R' if i % 3 else 'W'},{i / 100}" for i in range(2000)]
    rows[50] = "garbage"
    (tmp_path / "t.spc").write_text("\n".join(rows) + "\n")
    done = ftlab("correlations", tmp_path / "t.spc", "--cache", "4%")
    assert done.code == 0, done.err
    assert "skipped of the trace: 1 line: 1 × column 1: expected a whole number; the first: " in done.out
    assert "line 51: 'garbage'" in done.out
