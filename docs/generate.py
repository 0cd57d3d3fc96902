"""Writes the generated pages (policies, drives, formats, ...) and the types of options from their sources.

python docs/generate.py            # as `make docs`
python docs/generate.py --check    # 1 if a page is missing, stale or left over (what the tests run)
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import ftlab
from ftlab import _ftlab, options, show
from ftlab.catalogue import entries
from ftlab.cli import app
from ftlab.options import Option
from ftlab.plots import beside
from ftlab.reproduction import answers, files, metrics, verdict, written
from ftlab.reproduction.schema import Experiment, Figure

HERE = Path(__file__).parent
ROOT = HERE.parent
SOURCES = ROOT / "crates" / "ftlab-trace" / "src"
# Of a format's sample so much is shown.
SAMPLE_LINES, SAMPLE_WIDTH = 6, 160
FOLDERS = ("policies", "drives", "formats", "workloads", "filters", "experiments")
SINGLE = (Path("drive-files.md"), Path("options.md"))
TYPES = Path("..") / "python" / "ftlab" / "option_types.py"
# Where a role stands in a drive file, if not in [ftl].
KEYS = {"schedule": "schedule.policy", "buffer": "buffer.policy"}
# Roles of the workload `transactions`, and its key.
OF_TRANSACTIONS = {"mix": "mix", "pool": "policy"}
# What policies need that the default drive lacks, for commands that run as they are printed: options and the reason.
ROOM = {
    **dict.fromkeys(("cdftl", "leaftl", "sftl"), ("--set ftl.map_cache=32KiB", "a larger map cache")),
    **dict.fromkeys(
        (
            *("autostream_mq", "autostream_sfr", "dac", "fadac", "fdp", "fstream", "manual", "midas", "multilog"),
            *("pcstream", "sepbit", "sfs", "vstream"),
        ),
        ("--set ftl.op_ratio=0.28", "more spare"),
    ),
    "tpcc": ("--drive small", "a larger drive"),
}
NOTE = "<!-- Made by `make docs`; change the source instead. -->\n"

Row = dict[str, Any]


def pages() -> Iterator[tuple[Path, str]]:
    """Every generated page: where it goes and its text."""
    policies = entries("policies")
    for members in grouped(policies):
        yield Path("policies") / members[0]["role"] / f"{page_name(members)}.md", policy_page(members)
    yield Path("policies") / "README.md", policy_index(policies)
    for drive in entries("drives"):
        yield Path("drives") / f"{drive['name']}.md", drive_page(drive["name"])
    yield Path("drives") / "README.md", drive_index(entries("drives"))
    for folder, rows, intro in (
        ("formats", entries("formats"), FORMATS),
        ("workloads", entries("workloads"), WORKLOADS + docstring("synth/mod.rs").split("\n\n", 1)[1]),
        ("filters", entries("filters"), FILTERS + docstring("filters/mod.rs").split("\n\n", 1)[1]),
    ):
        for row in rows:
            yield Path(folder) / f"{row['name']}.md", member_page(folder, row)
        yield Path(folder) / "README.md", index(intro, rows)
    experiments = [files.load(name) for name in files.names()]
    for experiment in experiments:
        yield Path("experiments") / f"{experiment.name}.md", experiment_page(experiment)
    yield Path("experiments") / "README.md", experiment_index(experiments)
    yield Path("options.md"), options_page()
    yield TYPES, option_types()
    yield Path("drive-files.md"), drive_file_reference((ROOT / "drives" / "reference.toml").read_text(encoding="utf-8"))


# ---- policies


def grouped(policies: list[Row]) -> list[list[Row]]:
    """Members of one role that share their documentation share a page, such as the 24 static orders."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for policy in policies:
        groups.setdefault((policy["role"], policy["documentation"]), []).append(policy)
    return list(groups.values())


def page_name(members: list[Row]) -> str:
    """The name of a page: its policy's, or `static` for the orders, which are its only joint page."""
    return members[0]["name"] if len(members) == 1 else "static"


def policy_page(members: list[Row]) -> str:
    """Synopsis, defaults and the docstring."""
    first = members[0]
    names = ", ".join(f"`{member['name']}`" for member in members)
    says = "The parameters are shown with their defaults." if first["parameters"] else "It has no parameters."
    if first["name"] in ROOM:
        room, needed = ROOM[first["name"]]
        says += f" It needs {needed} than the default: `{room}`."
    synopsis = f"```\n{synopsis_of(first)}\n```\n\n{says}\n"
    return f"{NOTE}# {names} ({first['role']})\n\n{synopsis}\n{deeper(first['documentation'])}"


def synopsis_of(policy: Row) -> str:
    """A command that runs a policy with its defaults; on the default drive, or on one with the room that it needs."""
    defaults = ",".join(f"{name}={json.dumps(value).strip(chr(34))}" for name, value in policy["parameters"].items())
    example = policy["name"] + (f":{defaults}" if defaults else "")
    room = f" {ROOM[policy['name']][0]}" if policy["name"] in ROOM else ""
    if own := OF_TRANSACTIONS.get(policy["role"]):
        return f"ftlab run transactions:{own}={example.split(',')[0]}{room}"
    key = KEYS.get(policy["role"], f"ftl.{policy['role']}")
    return f"ftlab run WORKLOAD{room} --set {key}={example}"


def policy_index(policies: list[Row]) -> str:
    """All policies by role."""
    text = f"{NOTE}# Policies\n"
    for role in dict.fromkeys(policy["role"] for policy in policies):
        key = KEYS.get(role, f"ftl.{role}")
        own = OF_TRANSACTIONS.get(role)
        of_workload = f"Key `{own}` of the workload [transactions](../workloads/transactions.md)"
        where = of_workload if own else f"Key `{key}` of a drive file"
        text += f"\n## {role}\n\n{where}.\n\n"
        for members in grouped([policy for policy in policies if policy["role"] == role]):
            names = ", ".join(member["name"] for member in members)
            text += f"* [{names}]({role}/{page_name(members)}.md): {members[0]['summary']}\n"
    return text


# ---- drives

FACTS = (
    ("raw size", "raw_bytes"),
    ("logical size", "logical_bytes"),
    ("op_ratio, (raw − logical) / logical", "op_ratio"),
    ("spare factor, (raw − logical) / raw", "spare_factor"),
    ("effective spare factor", "effective_spare_factor"),
    ("channels", "channels"),
    ("dies", "dies"),
    ("planes", "planes"),
    ("mapping unit", "unit_bytes"),
    ("flash page", "page_bytes"),
    ("block", "block_bytes"),
    ("reclaim unit", "reclaim_unit_bytes"),
    ("reclaim units", "reclaim_units"),
    ("lanes", "lanes"),
    ("whole map in memory", "map_bytes"),
    ("write buffer", "buffer_bytes"),
)


def drive_page(name: str) -> str:
    """What the drive is, its sizes, what theory says, its policies, and its file with the sources of the numbers."""
    facts = json.loads(_ftlab.resolve_drive(json.dumps({"name": name}))[0])
    rows = "".join(f"| {title} | {show.named(key, facts[key])} |\n" for title, key in FACTS)
    gc = facts["gc"]
    rows += f"| collection | at {gc['hard']} of {gc['units_per_pool']} free units; {gc['pools']} x {gc['pool']} |\n"
    theory = ", ".join(f"{law} {waf:.3f}" for law, waf in facts["theory_waf"].items() if waf)
    policies = ", ".join(f"{role} `{policy}`" for role, policy in facts["policies"].items())
    written = (ROOT / "drives" / f"{name}.toml").read_text(encoding="utf-8")
    return (
        f"{NOTE}# `{name}`\n\n{facts['description']}.\n\nSource: {facts['source']}.\n\n"
        f"| | |\n| --- | --- |\n{rows}\n"
        f"Write amplification under uniform random writes, by theory: {theory or 'no spare left to collect'}.\n\n"
        f"Policies: {policies}.\n\n## The drive file\n\n```toml\n{written.strip()}\n```\n"
    )


def drive_index(drives: list[Row]) -> str:
    """All presets."""
    text = (
        f"{NOTE}# Drives\n\nThe drive files that come with ftlab. Use: `--drive NAME --set table.key=value`.\n"
        "[Every key](../drive-files.md) of a drive file is explained on a page of its own.\n\n"
    )
    return text + "".join(f"* [{drive['name']}]({drive['name']}.md): {drive['description']}\n" for drive in drives)


def drive_file_reference(text: str) -> str:
    """The keys of `reference.toml`, a table for each of its tables; its comments are the explanations."""
    head, _, body = text.partition("\n\n")
    page = f"{NOTE}# Drive files\n\n{' '.join(comment(line) for line in head.splitlines())}\n"
    said: list[str] = []
    for line in body.splitlines():
        if line.startswith("#"):
            said.append(comment(line))
        elif line.startswith("["):
            page += f"\n## `{line}`\n\n| key | value here | meaning |\n| --- | --- | --- |\n"
            said = []
        elif line:
            key, _, value = line.partition(" = ")
            page += f"| `{key}` | `{value}` | {' '.join(said)} |\n"
            said = []
    return page


def comment(line: str) -> str:
    """The text of a comment, fit for a cell of a table."""
    return line.lstrip("#").strip().replace("|", "\\|")


# ---- formats, workloads and filters

FORMATS = """# Trace formats

The format of a trace is detected from its content. `--as NAME` forces a format, and further options set what the
content leaves open ([traces](../guide/traces.md)). Files may be compressed with gzip, bzip2, xz or zstd. `-` reads
standard input, and several files are merged by time. Times become nanoseconds since the first request, addresses become
bytes. Several devices in one trace lie side by side, unless `--volumes merge` or `--volumes only:NAME` is given. Most
formats can be written as well (`ftlab convert`).
"""
WORKLOADS = """# Generated workloads

A generator is a workload that needs no file: `ftlab run uniform:read=0.7,requests=1e6`. Named workloads, at the end of
the list below, are models of published figures: `ftlab inspect financial1`.

"""


FILTERS = """# Filters

A filter changes requests on their way from a trace or a generator:
`ftlab run TRACE --filter lru:share=0.05 --filter compact`.

"""


def member_page(folder: str, row: Row) -> str:
    """A page made of a member's docstring; a named workload and what Python adds bring their own text."""
    name = row["name"]
    source = {"formats": "formats", "workloads": "synth", "filters": "filters"}[folder] + f"/{name}.rs"
    text = docstring(source) if (SOURCES / source).is_file() else row["documentation"]
    return f"{NOTE}# `{name}`\n\n{deeper(text)}{format_sections(row) if folder == 'formats' else ''}"


def format_sections(row: Row) -> str:
    """What a format leaves open, how it is written, and what it looks like."""
    text = ""
    if row["open"]:
        options = ", ".join(f"`--{name.replace('_', '-')}`" for name in row["open"])
        text += f"\n## What it leaves open\n\nGuessed from the content, and reported; {options} set it.\n"
    if row.get("writing"):
        text += f"\n## Writing\n\n{deeper(row['writing'].replace(chr(10) + '# ', chr(10) + '## '))}"
    if row.get("sample"):
        lines = [line[:SAMPLE_WIDTH] for line in row["sample"].splitlines()[:SAMPLE_LINES]]
        text += f"\n## Sample\n\n```\n{chr(10).join(lines)}\n```\n"
    return text


def index(intro: str, rows: list[Row]) -> str:
    """The intro, then a line for each member."""
    return f"{NOTE}{intro}\n" + "".join(f"* [{row['name']}]({row['name']}.md): {row['description']}\n" for row in rows)


# ---- experiments

EXPERIMENTS = """# Experiments

What others have measured, as data: `ftlab reproduce NAME` measures it again and judges each figure by a rule
([reproducing](../guide/reproducing.md)).

"""


MEANS = (
    "`reproduced`: every number within its tolerance, every order held; `shape`: orders as in the source, every "
    "number within a factor of two; `differs`: else ([the rule](../guide/reproducing.md#verdicts)). A cell has the "
    "quantity that is furthest from the source; all numbers of the source are in the sections below, all of ours in "
    "the report of a run (`--out`)."
)
ABLATIONS = (
    "Measurements of ours that change a thing or two. Each is run again by `ftlab reproduce {name} --only NAME`."
)


def experiment_index(experiments: list[Experiment]) -> str:
    """All experiments, and the verdicts of all their figures at a glance."""
    lines = [f"* [{e.name}]({e.name}.md): {e.title} ({e.source})\n" for e in experiments]
    text = f"{NOTE}{EXPERIMENTS}{''.join(lines)}\n{''.join(at_a_glance(experiments))}"
    for experiment in experiments:
        found = recorded(experiment)
        if found:
            verdicts = answers.verdicts(experiment, found["figures"])
            if verdicts is None:
                continue
            text += f"\n## {experiment.name}\n\n"
            text += f"![The source's numbers and ours](recorded/{experiment.name}.svg)\n\n" if drawn(experiment) else ""
            text += f"Reproduced or in shape: {answers.tally(experiment, found['figures'])}.\n\n"
            text += "\n".join(answers.lines(verdicts)) + "\n"
    return text


def at_a_glance(experiments: list[Experiment]) -> Iterator[str]:
    """How many verdicts of each kind every experiment has, on its first drive and with the stand-in that does best."""
    yield "| experiment | figures | " + " | ".join(verdict.SOURCE) + " | measured | with |\n"
    yield "| --- " * (4 + len(verdict.SOURCE)) + "|\n"
    for experiment in experiments:
        found = recorded(experiment)
        if found:
            kind, counts = answers.counts(experiment, found["figures"])
            cells = " | ".join(str(counts[name]) for name in verdict.SOURCE)
            name = f"[{experiment.name}]({experiment.name}.md)"
            yield f"| {name} | {sum(counts.values())} | {cells} | {found['date']} | {kind} |\n"


def drawn(experiment: Experiment) -> bool:
    """Whether there is a picture of what was recorded."""
    return (HERE / "experiments" / "recorded" / f"{experiment.name}.svg").is_file()


def recorded(experiment: Experiment) -> Any:
    """What `docs/record.py` has kept of the last measurement, if it has."""
    path = HERE / "experiments" / "recorded" / f"{experiment.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def experiment_answers(experiment: Experiment, figures: Any) -> str:
    """What came of it when it was last measured: the page's first table, and the picture."""
    text = f"\n{answers.standing(experiment, figures)}\n"
    text += "".join(f"\n{paragraph}\n" for paragraph in experiment.in_short[:1])
    text += "\n" + "\n".join(answers.lines(answers.table(experiment, figures))) + "\n"
    if drawn(experiment):
        text += f"\n## {beside.TITLE}\n\n![{beside.TITLE}](recorded/{experiment.name}.svg)\n\n{beside.CAPTION}\n"
    return text


def experiment_causes(experiment: Experiment, figures: Any) -> str:
    """The ablations and the other drives."""
    text = ""
    causes = answers.causes(experiment, figures)
    if causes is not None:
        text += f"\n## What makes the difference\n\n{ABLATIONS.format(name=experiment.name)}\n\n"
        text += "\n".join(answers.lines(causes)) + "\n"
    drives = answers.verdicts(experiment, figures, others=True)
    if drives is not None:
        text += "\n## On other drives\n\n" + "\n".join(answers.lines(drives)) + "\n"
    return text


def experiment_readings(experiment: Experiment, found: Any) -> str:
    """How the table is to be read, and where the source cannot hold."""
    told = experiment.in_short[1:] if found else experiment.in_short
    text = "".join(f"\n{paragraph}\n" for paragraph in told)
    if found:
        text = f"\n## Readings\n\nMeasured by version {found['version']} on {found['date']}. {MEANS}\n{text}"
    if experiment.contradictions:
        text += "\n## Where the source contradicts itself\n\n"
        for one in experiment.contradictions:
            sums = "; ".join(f"`{line}`" for line in one.sums)
            text += f"* {one.says}{f': {sums}' if sums else ''}\n"
    return text


def experiment_page(experiment: Experiment) -> str:
    """The answers first, then each figure, then what is run on what and what stands for what."""
    text = f"{NOTE}# `{experiment.name}`\n\n{experiment.title}.\n\nSource: {experiment.source}.\n\n"
    text += f"```\nftlab reproduce {experiment.name}\n```\n"
    found = recorded(experiment)
    text += experiment_answers(experiment, found["figures"]) if found else ""
    text += experiment_readings(experiment, found)
    of_source = [figure for figure in experiment.figures.values() if not figure.ablation]
    text += "".join(figure_section(experiment, figure) for figure in of_source)
    text += experiment_causes(experiment, found["figures"]) if found else ""
    text += "".join(figure_section(experiment, figure) for figure in experiment.figures.values() if figure.ablation)
    text += "\n## What is not as in the source\n\n"
    text += "".join(f"* {sentence}\n" for sentence in experiment.differs)
    text += "\n## Workloads\n\n| workload | the source's | stand-in | |\n| --- | --- | --- | --- |\n"
    for workload in experiment.workloads.values():
        for kind, candidates in workload.candidates.items():
            for candidate in candidates:
                patterns = ", ".join(f"`{pattern}`" for pattern in candidate.files)
                says = f"{patterns}: {candidate.says}" if patterns else candidate.says
                text += f"| {workload.title} | {workload.says} | {kind} | {says} |\n"
    text += "\n" + "".join(f"* **{kind}**: {says}\n" for kind, says in experiment.kinds.items())
    if experiment.drives:
        text += "\n## Drives and members\n\n| drive | preset | |\n| --- | --- | --- |\n"
        text += "".join(
            f"| {d.title} | [{d.preset}](../drives/{d.preset}.md) | {d.says} |\n" for d in experiment.drives.values()
        )
        text += "\n| member | drive keys | |\n| --- | --- | --- |\n"
    else:
        text += "\n## Members\n\n| member | what writes it | |\n| --- | --- | --- |\n"
    for member in experiment.members.values():
        changes = ", ".join(f"`{key} = {value}`" for key, value in member.set.items())
        changes = changes or ", ".join(f"`{item}`" for item in (member.activity, *member.by) if item)
        beside = [f"set mined by `{member.miner}`"] if member.miner else []
        beside += [f"filter `{name}`" for name in member.filters]
        text += f"| {member.title} | {changes} | {', '.join(beside)} |\n"
    return text


def figure_section(experiment: Experiment, figure: Figure) -> str:
    """A figure: its source, what is measured, what is expected and how near it must come."""
    runs = experiment.runs[figure.runs]
    text = f"\n## {figure.name}: {figure.title}\n\nSource: {figure.source}.\n"
    text += f"\n{figure.says}\n" if figure.says else ""
    measured = ", ".join(metrics.BY_NAME[name].title for name in figure.metrics)
    text += f"\nMeasured: {measured}"
    text += f", over {written.member_title(experiment, figure.against)}" if figure.against else ""
    text += f"; `{runs.key}` of {', '.join(f'{x:g}' for x in runs.values)}" if runs.values else ""
    text += f". Tolerance {figure.tolerance.text}.\n"
    text += "".join(expected_lines(experiment, figure))
    text += "\n" + "".join(dict.fromkeys(f"* {written.claim(experiment, c)}: {c.at}\n" for c in figure.claims))
    if figure.cause and (recorded(experiment) is None or len(figure.shown_by) > 1):
        text += f"\nWhat makes the difference: {written.cause(figure)}.\n"
    return text + (f"\nWhere ours differs: {figure.reason}\n" if figure.reason else "")


def expected_lines(experiment: Experiment, figure: Figure) -> Iterator[str]:
    """The source's numbers, each once, with the ways of reading it."""
    if figure.expected:
        yield "\n| | source | where | read as |\n| --- | --- | --- | --- |\n"
    readings: dict[tuple[str, str, str], list[str]] = {}
    for item in figure.expected:
        near = "" if item.tolerance == figure.tolerance else f" (tolerance {item.tolerance.text})"
        row = written.what(experiment, figure, item), written.source(item) + near, item.at
        readings.setdefault(row, []).append(item.reading)
    for (what, source, at), read in readings.items():
        told = "" if set(read) == set(figure.readings) else "; ".join(read)
        yield f"| {what} | {source} | {at} | {told} |\n"


# ---- options

OPTIONS = """# Options

What `ftlab run` and the other verbs take, and the functions of the same names in Python; grid files (`ftlab sweep`)
have the names of Python. `ftlab VERB --help` has them in short. Drives have keys of their own
([drive files](drive-files.md)), which `--set` changes.
"""
SECTIONS = (
    ("Runs", "`run`, `compare` and `sweep`; and `mrc`, where it is named.", ("drive", "spec"), "run"),
    ("Comparisons", "Beside those of runs.", ("grid",), "compare"),
    (
        "Traces",
        "How traces are read: every verb that reads some. What is left out is detected from the content, and reported.",
        ("trace",),
        "run",
    ),
    (
        "Requests without a drive",
        "`inspect`, `convert`, `generate`, `fit`, `mine`, `dedup` and `ftlab.open_trace`.",
        ("spec",),
        "requests",
    ),
    (
        "Live drives",
        "`serve`. `--set KEY=VALUE` changes the drive, as everywhere.",
        ("spec",),
        "serve",
    ),
)
OF_COMMAND_LINE = """What these verbs take besides. In Python, `save(folder)` of what a function returns writes what
`--out` does; `ftlab.sweep` has `out` itself, and takes the `client` of a Dask cluster in place of `on`.
"""
# Of each verb, the class with the types of its keyword arguments.
CLASSES = {
    "run": "RunOptions",
    "compare": "CompareOptions",
    "sweep": "SweepOptions",
    "mrc": "MapOptions",
    "reproduce": "ReproduceOptions",
    "serve": "ServeOptions",
    "requests": "RequestOptions",
}


def options_page() -> str:
    """A table of options for each of their families."""
    page = f"{NOTE}{OPTIONS}"
    for title, intro, homes, verb in SECTIONS:
        page += f"\n## {title}\n\n{intro}\n\n"
        page += "| option | in Python | value | left out | meaning |\n| --- | --- | --- | --- | --- |\n"
        for option in options.of(verb).values():
            if option.home in homes:
                page += option_row(option, verb)
    return page + command_line_options()


def command_line_options() -> str:
    """What the verbs of this page take besides, which the command line declares."""
    declared = [(option.flag, option.help.replace("`", "")) for option in options.every()]
    found: dict[tuple[str, str, str], list[str]] = {}
    for verb, command in typer.main.get_command(app()).commands.items():  # type: ignore[attr-defined]
        own = [p for p in command.params if p.param_type_name == "option" and not p.hidden and p.help]
        theirs = [p for p in own if any(p.opts[0] == flag and p.help.startswith(says) for flag, says in declared)]
        for parameter in own if theirs else []:
            if parameter not in theirs:
                flag = ", ".join(reversed(parameter.opts)) + (f" {parameter.metavar}" if parameter.metavar else "")
                found.setdefault((flag, parameter.name, parameter.help), []).append(verb)
    text = f"\n## Of the command line\n\n{OF_COMMAND_LINE}\n"
    text += "| option | in Python | of | meaning |\n| --- | --- | --- | --- |\n"
    for (flag, name, says), verbs in found.items():
        takers = [verb for verb in verbs if name in _parameters(verb)]
        in_python = f"`{name}`" if takers else ""
        if takers and takers != verbs:
            in_python += f" ({', '.join(takers)})"
        of = ", ".join(f"`{verb}`" for verb in verbs)
        cells = [f"`{flag}`", in_python, of, says]
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def _parameters(verb: str) -> list[str]:
    """The arguments of the function of a verb's name, if there is one."""
    found = getattr(ftlab, verb, None)
    return [*inspect.signature(found).parameters] if inspect.isfunction(found) else []


def option_row(option: Option, verb: str) -> str:
    """What an option is called, what it may be, what it means, and who takes it if not all of its family."""
    flag = f"{option.flag} {option.metavar}".strip() if not option.in_folder else option.flag
    values = ", ".join(f"`{word}`" for word in option.words) or option.expected.removeprefix("a ")
    if option.listed:
        values = f"[{option.listed}]({option.listed}/README.md)"
    said = [option.help, option.more, "Repeatable." if option.many else ""]
    if verb == "run" and option.home in ("drive", "spec"):
        also = [name for name in ("compare", "mrc") if name in option.verbs]
        said.append({"compare": "", "compare mrc": "Also of `mrc`.", "": "Only of `run`."}[" ".join(also)])
    cells = [f"`{flag}`", f"`{option.name}`", values, option.left_out, " ".join(" ".join(said).split())]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def option_types() -> str:
    """The keyword arguments of the functions that take options, for type checkers and editors."""
    text = '''"""Keyword arguments of functions that take options. Made by `make docs` from what the core declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from ftlab.reading import Changes, Source
'''
    # An option that several of them take alike is written once, in a base of theirs.
    takers: dict[str, list[str]] = {}
    for verb in CLASSES:
        for option in options.of(verb).values():
            takers.setdefault(typed(option), []).append(verb)
    families: dict[tuple[str, ...], str] = {}
    for key, verbs in takers.items():
        families[tuple(verbs)] = families.get(tuple(verbs), "") + key
    bases: dict[str, list[str]] = {verb: [] for verb in CLASSES}
    for verbs, keys in families.items():
        if len(verbs) > 1:
            base = "_" + "".join(CLASSES[verb].removesuffix("Options") for verb in verbs)
            text += typed_class(base, ["TypedDict"], f"Options of {', '.join(verbs)}.", keys)
            for verb in verbs:
                bases[verb].append(base)
    for verb, name in CLASSES.items():
        says = "What is left out gets the core's default, in brackets."
        text += typed_class(name, bases[verb] or ["TypedDict"], says, families.get((verb,), ""))
    return text


def typed(option: Option) -> str:
    """An option as a key of a `TypedDict`."""
    said = textwrap.fill(f'"""{option.says}"""', 116, subsequent_indent="    ", break_on_hyphens=False)
    return f"    {option.name}: {option.annotation}\n    {said}\n"


def typed_class(name: str, bases: list[str], says: str, keys: str) -> str:
    """A `TypedDict` with the keys of its bases and `keys`."""
    line = f"class {name}({', '.join(bases)}, total=False):"
    if len(line) > 120:
        line = f"class {name}(\n" + "".join(f"    {base},\n" for base in [*bases, "total=False"]) + "):"
    return f'\n\n{line}\n    """{says}"""\n' + (f"\n{keys}" if keys else "")


def docstring(source: str) -> str:
    """The `//!` head of a file of ftlab-trace."""
    lines = (SOURCES / source).read_text(encoding="utf-8").splitlines()
    head = [line for line in lines if line.startswith("//!")]
    return "".join(line[3:].removeprefix(" ") + "\n" for line in head)


def deeper(markdown: str) -> str:
    """A docstring below a page's heading: its own headings one level down, with an empty line around each."""
    text = ""
    # Links into the code lead nowhere on a page.
    for line in re.sub(r"\[([^\]]+)\]\(crate::[^)]*\)", r"\1", markdown).splitlines():
        text += f"\n#{line}\n\n" if line.startswith("#") else f"{line}\n"
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    # A table needs an empty line before it.
    lines = text.strip().split("\n")
    spaced = [
        f"\n{line}" if line.startswith("|") and before and not before.startswith("|") else line
        for before, line in zip(["", *lines], lines, strict=False)
    ]
    return "\n".join(spaced) + "\n"


def main() -> int:
    """Writes or checks every page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; tell which pages are not fresh")
    arguments = parser.parse_args()
    wanted = dict(pages())
    there = {path.relative_to(HERE) for folder in FOLDERS for path in (HERE / folder).rglob("*.md")}
    there |= {path for path in (*SINGLE, TYPES) if (HERE / path).is_file()}
    left_over = sorted(there - wanted.keys())
    stale = [p for p, text in wanted.items() if p not in there or (HERE / p).read_text(encoding="utf-8") != text]
    if arguments.check:
        for path in [*stale, *left_over]:
            sys.stderr.write(f"docs/{path} is not fresh: run `make docs`\n")
        return int(bool(stale or left_over))
    for path in left_over:
        (HERE / path).unlink()
    for path in stale:
        (HERE / path).parent.mkdir(parents=True, exist_ok=True)
        (HERE / path).write_text(wanted[path], encoding="utf-8")
    sys.stdout.write(f"{len(wanted)} pages, {len(stale)} written, {len(left_over)} removed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
