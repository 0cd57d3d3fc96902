"""NVMain 2 (SEAL-UCSB/NVmain), built as `nvmain.fast`; its controller FRFCFS with its own defaults.

Times are those of the ArchSampler chapter, 8 banks, cycles of 1 ns, each written line in its cells for 500 ns. Its
build file is of Python 2: what was done to build it stands in docs/measured.md.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from memory_sims import Figures, Request

CONFIG = """
CLK 1000
CPUFreq 1000
RATE 2
BusWidth 64
DeviceWidth 8
BANKS 8
RANKS 1
CHANNELS 1
ROWS 32768
COLS 128
MATHeight 32768
RBSize 128
UseRefresh false
tBURST 4
tCMD 1
tRAS 0
tRCD 150
tWP 500
tRP 1
tCAS 15
tAL 0
tCCD 4
tCWD 15
tWTR 6
tWR 0
tRTRS 2
tRTP 5
tOST 0
tRRDR 1
tRRDW 1
RAW 4
tRAW 1
tPD 1
tXP 1
tRFC 100
tREFW 42666667
EnergyModel energy
Erd 0.08
Eopenrd 0.001
Ewr 1.6
Ewrpb 0.0002
Eleak 3120
Voltage 1.5
MEM_CTL FRFCFS
QueueSize 32
ClosePage 0
ScheduleScheme 2
AddressMappingScheme R:RK:BK:CH:C
INTERCONNECT OffChipBus
TraceReader NVMainTrace
EnduranceModel NullModel
InitPD false
IgnoreData true
PrintGraphs false
PrintPreTrace false
PeriodicStatsInterval 1000000000
WriteMode WriteThrough
"""


class Nvmain:
    """A checkout of it."""

    name = "NVMain"
    cycle = 1.0
    latency_of = "all"
    offers = False
    times = [  # noqa: RUF012
        "geometry.banks=8",
        "geometry.capacity=2GiB",
        "timing.t_rp=1ns",
        "write.cost=line",
        "write.at_once=0",
        "write.buffer=0",
        "controller.queue=32",
        "controller.scheduler=hits_first",
    ]
    as_it_schedules = {  # noqa: RUF012
        "run": (["controller.scheduler=hits_first:run=4"], "its starvation threshold of 4 hits"),
        "place": (["controller.place_until=bank"], "a request that has its bank has left the queue"),
        "look_ahead": (
            ["controller.look_ahead=true"],
            "the next request is bound to a bank when the last has had its command",
        ),
        "turning": (["timing.t_wtr=6ns", "timing.t_rtw=2ns"], "tWTR and tRTRS"),
        "link": (["timing.link=10ns"], "OffChipBus delays each answer by 10 cycles"),
    }

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.program = checkout.resolve() / "nvmain.fast"
        self.config = folder / "nvmain.config"
        self.config.write_text(CONFIG)

    def run(self, trace: list[Request], folder: Path) -> Figures:
        """What its statistics say."""
        path = folder / "nvmain.nvt"
        data = "0" * 128
        lines = (f"{r.at:.0f} {'W' if r.writes else 'R'} {r.address:#x} {data} 0\n" for r in trace)
        path.write_text("".join(lines))
        command = [str(self.program), str(self.config), str(path), "0"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        words = (
            line.split() for line in done.stdout.splitlines() if line.startswith("i0.defaultMemory.channel0.FRFCFS.")
        )
        told = {pair[0].rsplit(".", 1)[1]: pair[1] for pair in words if len(pair) == 2}
        wanted = ("rb_hits", "rb_miss", "simulation_cycles", "averageTotalLatency")
        counted = {key: float(told[key]) for key in wanted}
        hits = counted["rb_hits"] / (counted["rb_hits"] + counted["rb_miss"])
        return Figures(counted["simulation_cycles"], counted["averageTotalLatency"], hits)
