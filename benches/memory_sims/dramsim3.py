"""DRAMsim3 (umd-memsys/DRAMsim3), built with `cmake -B build && make -C build dramsim3`.

Its program ends after a fixed number of cycles, so a small driver of ours is linked with its library. Times are those
of the ArchSampler chapter, 8 banks, cycles of 1 ns; what our model does not have (tRRD, tFAW, refresh) is out of the
way.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from memory_sims import Figures, Request

DRIVER = r"""
#include <cstdio>
#include <deque>
#include <fstream>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
#include "memory_system.h"
struct Ask { unsigned long address, at; bool write; };
int main(int, char** argv) {
  std::vector<Ask> trace;
  std::ifstream in(argv[3]);
  for (std::string line, address, op, at; std::getline(in, line);) {
    std::istringstream(line) >> address >> op >> at;
    trace.push_back({std::stoul(address, nullptr, 16), std::stoul(at), op == "WRITE"});
  }
  unsigned long clock = 0, last = 0, done = 0, next = 0, reads = 0;
  double latency = 0;
  std::unordered_map<unsigned long, std::deque<unsigned long>> added;
  auto read = [&](uint64_t address) {
    auto& of = added[address];
    latency += clock - of.front();
    of.pop_front();
    reads++; done++; last = clock;
  };
  auto write = [&](uint64_t) { done++; last = clock; };
  auto* memory = dramsim3::GetMemorySystem(argv[1], argv[2], read, write);
  while (done < trace.size()) {
    while (next < trace.size() && trace[next].at <= clock &&
           memory->WillAcceptTransaction(trace[next].address, trace[next].write)) {
      if (!trace[next].write) added[trace[next].address].push_back(clock);
      memory->AddTransaction(trace[next].address, trace[next].write);
      next++;
    }
    memory->ClockTick();
    clock++;
    if (clock > last + 1000000 && (next == trace.size() || trace[next].at + 1000000 < clock)) {
      fprintf(stderr, "nothing is done for a million cycles\n");
      return 1;
    }
  }
  memory->PrintStats();
  printf("%lu %lu %f\n", last, reads, reads ? latency / reads : 0);
}
"""

CONFIG = """
[dram_structure]
protocol = DDR3
bankgroups = 1
banks_per_group = 8
rows = 32768
columns = 1024
device_width = 8
BL = 8
[timing]
tCK = 1.0
CL = 15
CWL = 15
tRCD = 150
tRP = 1
tRAS = 155
tRFC = 2
tREFI = 1000000000
tRRD_S = 1
tRRD_L = 1
tWTR_S = 6
tWTR_L = 6
tFAW = 1
tWR = 500
tRTP = 5
tCCD_S = 4
tCCD_L = 4
tRTRS = 2
[system]
channel_size = 2048
channels = 1
bus_width = 64
address_mapping = rochrababgco
queue_structure = PER_BANK
row_buf_policy = OPEN_PAGE
cmd_queue_size = 8
trans_queue_size = 32
[other]
epoch_period = 1000000000
output_level = 0
"""


class Dramsim3:
    """A checkout of it."""

    name = "DRAMsim3"
    cycle = 1.0
    latency_of = "reads"
    offers = False
    times = [  # noqa: RUF012
        "geometry.banks=8",
        "geometry.capacity=2GiB",
        "timing.t_rp=1ns",
        "write.cost=recovery",
        "write.at_once=0",
        "controller.queue=32",
        "controller.scheduler=hits_first",
        "write.buffer=0",
    ]
    as_it_schedules = {  # noqa: RUF012
        "bank_queue": (["controller.bank_queue=8"], "a queue of 8 commands for each bank behind the shared ones"),
        "buffer": (
            ["write.buffer=32", "write.high=1.0", "write.low=0.0"],
            "writes are done when they are in a buffer of 32, which is drained when it is full or nothing else waits",
        ),
        "turning": (
            ["timing.t_wtr=6ns", "timing.t_rtw=2ns"],
            "tWTR between the data of a write and the next read command, tRTRS from reads to writes",
        ),
    }

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.folder = folder
        library = checkout.resolve()
        (folder / "driver.cc").write_text(DRIVER)
        (folder / "pcm.ini").write_text(CONFIG)
        includes = [f"-I{library / part}" for part in ("src", "ext/headers", "ext/fmt/include")]
        link = [f"-L{library}", "-ldramsim3", f"-Wl,-rpath,{library}"]
        self.driver = folder / "driver"
        command = ["g++", "-O2", "-std=c++17", *includes, str(folder / "driver.cc"), "-o", str(self.driver), *link]
        subprocess.run(command, check=True)

    def run(self, trace: list[Request], folder: Path) -> Figures:
        """Its own counters of row hits; end and latency from the driver."""
        path = folder / "dramsim3.trace"
        path.write_text("".join(f"{r.address:#x} {'WRITE' if r.writes else 'READ'} {r.at:.0f}\n" for r in trace))
        command = [str(self.driver), str(self.folder / "pcm.ini"), str(folder), str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        last, reads, latency = done.stdout.split()[-3:]
        counted = json.loads((folder / "dramsim3.json").read_text())["0"]
        commands = counted["num_read_cmds"] + counted["num_write_cmds"]
        hits = (counted["num_read_row_hits"] + counted["num_write_row_hits"]) / max(commands, 1)
        return Figures(float(last), float(latency) if int(reads) else None, hits)
