"""The memory model beside DRAMsim3, on traces of our own: `python benches/memory_peers.py --dramsim3 CHECKOUT`.

CHECKOUT is umd-memsys/DRAMsim3, built (`cmake -B build && make -C build dramsim3`). Its program ends after a fixed
number of cycles, so a small driver of ours is linked with its library. Both have the times of the ArchSampler chapter,
8 banks and a cycle of 1 ns. Without a checkout the comparison is skipped by name.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ftlab import nvm

ROW, LINE, BANKS = 8192, 64, 8
LINES = ROW // LINE
# DRAMsim3 has a queue of 8 for each bank: what its scheduler chooses among when all requests are for one bank.
BANK_QUEUE = 8

DRIVER = r"""
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
#include "memory_system.h"
int main(int, char** argv) {
  std::vector<std::pair<unsigned long, bool>> trace;
  std::ifstream in(argv[3]);
  for (std::string line, address, op; std::getline(in, line);) {
    std::istringstream(line) >> address >> op;
    trace.push_back({std::stoul(address, nullptr, 16), op == "WRITE"});
  }
  unsigned long clock = 0, last = 0, done = 0, next = 0;
  auto count = [&](uint64_t) { done++; last = clock; };
  auto* memory = dramsim3::GetMemorySystem(argv[1], argv[2], count, count);
  while (done < trace.size()) {
    while (next < trace.size() && memory->WillAcceptTransaction(trace[next].first, trace[next].second)) {
      memory->AddTransaction(trace[next].first, trace[next].second);
      next++;
    }
    memory->ClockTick();
    clock++;
  }
  printf("%lu\n", last);
}
"""

# What table 2.1 says; the rest does not bind. Refresh is out of the way.
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
tWTR_S = 1
tWTR_L = 1
tFAW = 1
tWR = 500
tRTP = 5
tCCD_S = 4
tCCD_L = 4
tRTRS = 0
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

OURS = [
    "geometry.banks=8",
    "geometry.capacity=2GiB",
    "timing.t_rp=1ns",
    "write.cost=recovery",
    "write.at_once=0",
    "write.buffer=0",
]


def traces() -> Iterator[tuple[str, list[int], str]]:
    """Name, addresses, and whether they are read or written."""
    draw = random.Random(1)
    yield "sequential reads", [n * LINE for n in range(20_000)], "READ"
    yield "sequential writes", [n * LINE for n in range(20_000)], "WRITE"
    yield "random lines", [draw.randrange(2**30) // LINE * LINE for _ in range(20_000)], "READ"
    rows = [draw.randrange(2**17) for _ in range(160)]
    yield "random rows", [row * ROW + k * LINE for row in rows for k in range(LINES)], "READ"
    yield "a chain of conflicts", [n * BANKS * ROW for n in range(2_000)], "READ"
    places = [(r, k, t) for r in range(20) for k in range(LINES) for t in range(8)]
    yield "eight threads, banks of their own", [(t + BANKS * r) * ROW + k * LINE for r, k, t in places], "READ"
    yield "eight threads in one bank", [(t + 8 * r) * BANKS * ROW + k * LINE for r, k, t in places], "READ"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--dramsim3", type=Path, metavar="CHECKOUT")
    checkout = options.parse_args().dramsim3
    if checkout is None:
        sys.stderr.write("DRAMsim3: skipped, no checkout is named (--dramsim3 CHECKOUT)\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "driver.cc").write_text(DRIVER)
        (place / "pcm.ini").write_text(CONFIG)
        library = checkout.resolve()
        includes = [f"-I{library / part}" for part in ("src", "ext/headers", "ext/fmt/include")]
        link = [f"-L{library}", "-ldramsim3", f"-Wl,-rpath,{library}"]
        driver = str(place / "driver")
        subprocess.run(
            ["g++", "-O2", "-std=c++17", *includes, str(place / "driver.cc"), "-o", driver, *link], check=True
        )
        _say("| trace | DRAMsim3, cycles of 1 ns | ready_first | hits_first | hits_first, queue of 8 |")
        _say("| --- | --- | --- | --- | --- |")
        for name, addresses, op in traces():
            trace = place / "trace"
            trace.write_text("".join(f"{address:#x} {op} 0\n" for address in addresses))
            done = subprocess.run([driver, str(place / "pcm.ini"), folder, str(trace)], check=True, capture_output=True)
            ours = [
                nvm.run(trace, set=[*OURS, f"controller.scheduler={scheduler}", f"controller.queue={queue}"])
                for scheduler, queue in (("ready_first", 64), ("hits_first", 64), ("hits_first", BANK_QUEUE))
            ]
            times = " | ".join(f"{found['measured']['finished_ns']:.0f}" for found in ours)
            _say(f"| {name} | {int(done.stdout)} | {times} |")


if __name__ == "__main__":
    main()
