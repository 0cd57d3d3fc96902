"""Ramulator 1 (CMU-SAFARI/ramulator), built with `make CXX=g++`, as it comes: PCM, scheduler FRFCFS_Cap.

Cycles of 2.5 ns and the times of its table (Lee et al., ISCA 2009), which our model takes over. A trace has no times:
it is offered a request in each cycle.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from memory_sims import Figures, Request

CONFIG = """
standard = PCM
channels = 1
ranks = 1
speed = PCM_800D
org = PCM_2Gb_x8
record_cmd_trace = off
print_cmd_trace = off
"""


class Ramulator:
    """A checkout of it."""

    name = "Ramulator"
    cycle = 2.5
    latency_of = "reads"
    offers = True
    times = [  # noqa: RUF012
        "geometry.banks=8",
        "geometry.capacity=2GiB",
        "timing.t_rcd=55ns",
        "timing.t_cl=12.5ns",
        "timing.t_cwl=12.5ns",
        "timing.t_rp=150ns",
        "timing.t_rtp=7.5ns",
        "timing.t_ccd=10ns",
        "timing.t_burst=10ns",
        "timing.t_wr=15ns",
        "write.cost=recovery",
        "write.at_once=0",
        "write.buffer=0",
        "controller.queue=32",
        "controller.scheduler=hits_first",
    ]
    as_it_schedules = {  # noqa: RUF012
        "scheduler": (["controller.scheduler=first_ready:run=16", "controller.command_cycle=2.5ns"], "FRFCFS_Cap"),
        "buffer": (
            ["write.buffer=32", "write.high=0.8", "write.low=0.2"],
            "a queue of 32 for writes, served from 80 % to 20 % full or while no read waits",
        ),
        "turning": (["timing.t_wtr=7.5ns", "timing.t_rtw=5ns"], "tWTR, and two cycles from reads to writes"),
        "scheduler, spacing": (
            ["timing.t_rrd=5ns", "timing.t_faw=40ns", "timing.t_ppd=5ns"],
            "nRRDact between activations and between precharges, nFAW",
        ),
        "place": (["controller.place_until=bank"], "a request that has opened a row has left the queue"),
        "refresh": (
            ["refresh.t_refi=9750ns", "refresh.t_rfc=0ns"],
            "refresh, which takes no time but for closing the rows of all banks",
        ),
    }

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.program = checkout.resolve() / "ramulator"
        self.config = folder / "ramulator.cfg"
        self.config.write_text(CONFIG)

    def run(self, trace: list[Request], folder: Path) -> Figures:
        """What its statistics say."""
        path, stats = folder / "ramulator.trace", folder / "ramulator.stats"
        path.write_text("".join(f"{r.address:#x} {'W' if r.writes else 'R'}\n" for r in trace))
        command = [str(self.program), str(self.config), "--mode=dram", "--stats", str(stats), str(path)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        counted: dict[str, float] = {}
        for line in stats.read_text().splitlines():
            words = line.split()
            if len(words) >= 2 and words[0].startswith("ramulator."):
                counted[words[0].removeprefix("ramulator.")] = float(words[1])
        found = [counted[f"row_{kind}_channel_0_core"] for kind in ("hits", "misses", "conflicts")]
        latency = counted["read_latency_avg_0"] * self.cycle if any(not r.writes for r in trace) else None
        return Figures(counted["dram_cycles"] * self.cycle, latency, found[0] / sum(found))
