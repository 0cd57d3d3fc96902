"""Arrays with parity: what one drive gets through the command, and how the drives of an array age."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[1] / "recipes" / "differential_raid.py"


def recipe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RECIPE), *arguments], capture_output=True, text=True, check=False)


def test_drives_wear_by_the_formula_and_are_replaced_one_after_the_other() -> None:
    done = recipe("uniform:size=4KiB,requests=3e5", "--drive", "tiny", "--json")
    assert done.returncode == 0, done.stderr
    even, uneven = json.loads(done.stdout)
    for found in (even, uneven):
        for drive in found["drives"]:
            assert drive["wear_over_last"] == pytest.approx(drive["formula"], rel=0.05)
    # Of the five, one is written 2.4 + 0.4 times a drive without parity, the others 0.4 + 0.9 times.
    assert uneven["drives"][0]["formula"] == pytest.approx(2.8 / 1.3)
    # Equal drives are at their end together; of the others none is near it.
    assert min(even["replacements"][0]["ages"]) > 0.95
    assert max(uneven["replacements"][0]["ages"]) < 0.55
    for found in (even, uneven):
        after = [each["host_bytes"] for each in found["replacements"]]
        assert len(after) == 10
        assert after == sorted(after)


def test_the_oldest_has_the_largest_share_after_a_replacement() -> None:
    """By hand: two drives' worth of wear a byte against one, and cycles so many that rebuilding counts for nothing."""
    done = recipe("uniform:size=4KiB,requests=2e5", "--shares", "1/0", "--shares", "3/1", "--json", "--cycles", "1e9")
    assert done.returncode == 0, done.stderr
    mirror, _ = json.loads(done.stdout)
    # Of two drives each has everything, data or copy: both wear alike, whatever the shares.
    assert [drive["written"] for drive in mirror["drives"]] == [1.0, 1.0]
    done = recipe("uniform:size=4KiB,requests=3e5", "--shares", "1/0/0", "--json", "--cycles", "1e9")
    first, second, third = json.loads(done.stdout)[0]["replacements"][:3]
    # Drive 0 has the parity and wears twice as fast; then the older of the other two has it, from half of its life on.
    assert first["drive"] == 0
    assert first["ages"] == pytest.approx((0.5, 0.5), abs=0.03)
    assert second["drive"] != 0
    # A quarter of a life later the third drive is at 0.75, the new one at 0.25.
    assert second["ages"] == pytest.approx((0.75, 0.25), abs=0.03)
    assert third["ages"] == pytest.approx((0.375, 0.125), abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--shares", "1/x"], "expected whole numbers"),
        (["--shares", "5"], "2 to 32 whole numbers"),
        (["--shares", "0/0/0"], "not all 0"),
        (["--chunk", "5KiB"], "a multiple of 4 KiB"),
        (["--drive", "none"], "unknown drive `none`"),
    ],
)
def test_odd_input_is_refused_with_a_sentence(arguments: list[str], words: str) -> None:
    done = recipe("uniform:requests=1000", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_reads_alone_wear_nothing() -> None:
    done = recipe("uniform:requests=1000,read=1")
    assert done.returncode == 2
    assert "writes nothing" in done.stderr
