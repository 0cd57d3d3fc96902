"""Flash programs per CPU second of MQSim (CMU-SAFARI/MQSim) and of ours under the same work.

The work: random 4 KiB overwrites at queue depth 32 of the drive `bench-16g`. MQSim's drive and workload files are
written here from our drive file. A figure is the difference of a long and a short run in programs, over that in CPU
time, which takes preconditioning, start and end off; ours is taken in the same way.

Not alike: MQSim starts at 90 % occupancy (its preconditioning has no more) and collects from another threshold, so that
its write amplification is lower and still rising; hence programs are compared, not requests.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

HERE = Path(__file__).parent
DRIVE = "bench-16g"
OURS = "timed: random overwrites in steady collection, qd 32"
MARK = "timed 0 4"
SHORT, LONG = 20_000, 320_000


class MqsimError(Exception):
    """The checkout cannot be used; the text says why."""


@dataclass(frozen=True)
class Work:
    """What a run did: flash programs, and CPU seconds of its process from start to end."""

    programs: float
    cpu_s: float

    def rate_beyond(self, short: Work) -> float:
        """Programs per CPU second of what this run did beyond a shorter one."""
        return (self.programs - short.programs) / (self.cpu_s - short.cpu_s)


def programs_per_cpu_s(checkout: Path) -> float:
    """MQSim's figure. Raises `MqsimError`."""
    with tempfile.TemporaryDirectory() as folder:
        short, long = (_run(_program(checkout), Path(folder), requests) for requests in (SHORT, LONG))
    return long.rate_beyond(short)


def our_programs_per_cpu_s() -> float:
    """Ours, from the bench scenario and its tiny form."""
    command = [sys.executable, str(HERE / "scenario.py"), OURS]
    (short, short_s), (long, long_s) = (_timed([*command, *more]) for more in (["--tiny"], []))
    return Work(json.loads(long)["programs"], long_s).rate_beyond(Work(json.loads(short)["programs"], short_s))


def commit(checkout: Path) -> str:
    """The short id of the checkout's commit; empty if it is not one."""
    done = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True
    )
    return done.stdout.strip()


def _program(checkout: Path) -> Path:
    program = checkout.resolve() / "MQSim"
    if not program.is_file():
        raise MqsimError(f"{checkout}: no program MQSim; build it with `make -C {checkout}`")
    return program


def _run(program: Path, folder: Path, requests: int) -> Work:
    """One run of so many overwrites."""
    drive, workload, results = folder / "drive.xml", folder / "work.xml", folder / "work_scenario_1.xml"
    results.unlink(missing_ok=True)
    drive_file = tomllib.loads((HERE.parent / "drives" / f"{DRIVE}.toml").read_text(encoding="utf-8"))
    _write(drive, "Execution_Parameter_Set", drive_parameters(drive_file))
    _write(workload, "MQSim_IO_Scenarios", workload_parameters(drive_file, requests))
    _, cpu_s = _timed([str(program), "-i", str(drive), "-w", str(workload)], folder)
    if not results.is_file():
        raise MqsimError(f"{program} wrote no results")
    return Work(programs(results), cpu_s)


def programs(results: Path) -> float:
    """Pages programmed, from MQSim's file of results: commands for one plane; the drive has no others."""
    for element in ElementTree.parse(results).iter():
        if "Issued_Flash_Program_CMD" in element.attrib:
            return float(element.attrib["Issued_Flash_Program_CMD"])
    raise MqsimError(f"{results.name}: no Issued_Flash_Program_CMD")


def _timed(command: list[str], folder: Path | None = None) -> tuple[str, float]:
    """Output and CPU seconds, user and system, of a process that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # MQSim waits for a key at its end: there is none.
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise MqsimError(f"{command[0]}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def drive_parameters(drive: dict[str, Any]) -> dict[str, Any]:
    """The drive in MQSim's terms: no cache, the whole map in memory, greedy collection from 2 % of free blocks."""
    geometry, timing = drive["geometry"], drive["timing"]
    read, program, erase = (_ns(timing[key]) for key in ("read", "program", "erase"))
    levels = ("LSB", "CSB", "MSB")
    return {
        "Host_Parameter_Set": {"PCIe_Lane_Bandwidth": 1.0, "PCIe_Lane_Count": 4, "Enable_ResponseTime_Logging": False},
        "Device_Parameter_Set": {
            "Seed": 321,
            "Enabled_Preconditioning": True,
            "Memory_Type": "FLASH",
            "HostInterface_Type": "NVME",
            "IO_Queue_Depth": 65535,
            "Queue_Fetch_Size": 512,
            "Caching_Mechanism": "SIMPLE",
            "Data_Cache_Sharing_Mode": "SHARED",
            "Data_Cache_Capacity": 268435456,
            "Data_Cache_DRAM_Row_Size": 8192,
            "Data_Cache_DRAM_Data_Rate": 800,
            "Data_Cache_DRAM_Data_Busrt_Size": 4,
            "Data_Cache_DRAM_tRCD": 13,
            "Data_Cache_DRAM_tCL": 13,
            "Data_Cache_DRAM_tRP": 13,
            "Address_Mapping": "PAGE_LEVEL",
            "Ideal_Mapping_Table": True,
            "CMT_Capacity": 2097152,
            "CMT_Sharing_Mode": "SHARED",
            "Plane_Allocation_Scheme": "CWDP",
            "Transaction_Scheduling_Policy": "PRIORITY_OUT_OF_ORDER",
            "Overprovisioning_Ratio": round(1 - 1 / (1 + drive["ftl"]["op_ratio"]), 4),
            "GC_Exec_Threshold": 0.02,
            "GC_Block_Selection_Policy": "GREEDY",
            "Use_Copyback_for_GC": False,
            "Preemptible_GC_Enabled": False,
            "GC_Hard_Threshold": 0.005,
            "Dynamic_Wearleveling_Enabled": False,
            "Static_Wearleveling_Enabled": False,
            "Static_Wearleveling_Threshold": 100,
            "Preferred_suspend_erase_time_for_read": 700000,
            "Preferred_suspend_erase_time_for_write": 700000,
            "Preferred_suspend_write_time_for_read": 100000,
            "Flash_Channel_Count": geometry["channels"],
            "Flash_Channel_Width": 1,
            "Channel_Transfer_Rate": 333,
            "Chip_No_Per_Channel": geometry["ways"],
            "Flash_Comm_Protocol": "NVDDR2",
            "Flash_Parameter_Set": {
                "Flash_Technology": timing["cell"],
                "CMD_Suspension_Support": "NONE",
                **{f"Page_Read_Latency_{level}": read for level in levels},
                **{f"Page_Program_Latency_{level}": program for level in levels},
                "Block_Erase_Latency": erase,
                "Block_PE_Cycles_Limit": 10000,
                "Suspend_Erase_Time": 700000,
                "Suspend_Program_Time": 100000,
                "Die_No_Per_Chip": geometry["dies"],
                "Plane_No_Per_Die": geometry["planes"],
                "Block_No_Per_Plane": geometry["blocks"],
                "Page_No_Per_Block": geometry["pages"],
                "Page_Capacity": 4096,
                "Page_Metadat_Capacity": 0,
            },
        },
    }


def workload_parameters(drive: dict[str, Any], requests: int) -> dict[str, Any]:
    """Uniform aligned writes of eight sectors, 32 under way, over the whole drive."""
    geometry = drive["geometry"]

    def ids(count: str) -> str:
        return ",".join(map(str, range(geometry[count])))

    flow = {
        "Priority_Class": "HIGH",
        "Device_Level_Data_Caching_Mode": "TURNED_OFF",
        "Channel_IDs": ids("channels"),
        "Chip_IDs": ids("ways"),
        "Die_IDs": ids("dies"),
        "Plane_IDs": ids("planes"),
        "Initial_Occupancy_Percentage": 90,
        "Working_Set_Percentage": 100,
        "Synthetic_Generator_Type": "QUEUE_DEPTH",
        "Read_Percentage": 0,
        "Address_Distribution": "RANDOM_UNIFORM",
        "Percentage_of_Hot_Region": 0,
        "Generated_Aligned_Addresses": True,
        "Address_Alignment_Unit": 8,
        "Request_Size_Distribution": "FIXED",
        "Average_Request_Size": 8,
        "Variance_Request_Size": 0,
        "Seed": 798,
        "Average_No_of_Reqs_in_Queue": 32,
        "Intensity": 32768,
        "Stop_Time": 0,
        "Total_Requests_To_Generate": requests,
    }
    return {"IO_Scenario": {"IO_Flow_Parameter_Set_Synthetic": flow}}


def _ns(duration: str) -> int:
    """Nanoseconds of a duration as the drive file has it."""
    number, unit = re.fullmatch(r"([0-9.]+)(ns|us|ms)", duration).groups()  # type: ignore[union-attr]
    return round(float(number) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit])


def _write(path: Path, root: str, parameters: dict[str, Any]) -> None:
    def element(name: str, value: Any) -> ElementTree.Element:
        made = ElementTree.Element(name)
        if isinstance(value, dict):
            made.extend(element(key, inner) for key, inner in value.items())
        else:
            made.text = str(value).lower() if isinstance(value, bool) else str(value)
        return made

    ElementTree.ElementTree(element(root, parameters)).write(path, encoding="us-ascii", xml_declaration=True)
