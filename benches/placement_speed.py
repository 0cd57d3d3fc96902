"""Speed of placement policies: flash programs in a second of processor time, over those of the first policy named.

python benches/placement_speed.py WORKLOAD DRIVE PRECONDITION BACKEND none sepbit midas

Each turn runs all policies one after the other in this process; the least of three turns counts. The drive's set-up is
part of each run, and is shown.
"""

import sys
import time

import ftlab

TURNS = 3


def run(workload: str, drive: str, precondition: str, backend: str, policy: str) -> tuple[float, dict]:
    before = time.process_time()
    result = ftlab.run(
        workload,
        drive,
        precondition=precondition,
        backend=backend,
        warmup="0%",
        set={"ftl.placement": policy},
    )
    return time.process_time() - before, result.summary


def main() -> None:
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    workload, drive, precondition, backend, *policies = sys.argv[1:]
    seconds: dict[str, float] = {}
    programs: dict[str, int] = {}
    for _ in range(TURNS):
        for policy in policies:
            took, summary = run(workload, drive, precondition, backend, policy)
            seconds[policy] = min(took, seconds.get(policy, took))
            programs[policy] = summary["counts"]["page_programs"]
    empty = min(run("uniform:requests=10", drive, precondition, backend, policies[0])[0] for _ in range(TURNS))
    base = programs[policies[0]] / seconds[policies[0]]
    for policy in policies:
        rate = programs[policy] / seconds[policy]
        sys.stdout.write(f"{policy:16} {programs[policy]:12,} programs {seconds[policy]:7.2f} s {rate / base:6.2f}\n")
    sys.stdout.write(f"set-up {empty:.2f} s of each\n")


if __name__ == "__main__":
    main()
