"""`ftlab fit`: a trace boiled down to a generator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ftlab.cli import options as o


@o.takes("requests", without=("span", "seed"))
def fit(
    workload: Annotated[list[str], typer.Argument(metavar="TRACE...", help="A trace: all its files, or - for stdin.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL.toml", help="Model file to write.")],
    options: dict[str, Any],
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Name of the workload. [the trace's]")
    ] = None,
    source: Annotated[str, typer.Option("--source", metavar="TEXT", help="Where the trace comes from.")] = "",
    check: Annotated[
        bool, typer.Option("--check", help="Inspect trace and model, and print the error of each figure.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="S", parser=o.a_count, help="With --check: seed of the model's requests. [1]"),
    ] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> int:
    """Fit a model to a trace: a small file that `run`, `inspect` and `generate` take as a generator.

    Example: ftlab fit hm_0.csv.gz -o hm_0.toml --check
    Example: ftlab run hm_0.toml --drive small
    """
    from ftlab import fitting, inspection, show, traces
    from ftlab.cli import progress, text
    from ftlab.errors import InputError
    from ftlab.headline import reading_facts

    if out.suffix != ".toml":
        raise InputError(f"output {out}: expected a name that ends in .toml, the mark of a generator")
    if check and "-" in workload:
        raise InputError("--check reads the trace a second time: expected a file instead of standard input")
    fitting.refuse_existing(out, force=force)
    line = progress.line(1)
    try:
        model = fitting.execute(workload, options, line, title=title, source=source)
        pair = None
        if check:
            original = inspection.execute(workload, traces.requests_spec(workload, options), line)
            pair = (original, model.inspect(seed=seed))
        model.save(out, force=force)
    finally:
        progress.clear(line)
    report = dict(model.report)
    if json:
        if pair:
            report["check"] = {"original": pair[0].figures, "fitted": pair[1].figures}
        text.put_json(report)
        return 0
    facts = reading_facts(report["trace"]) if report["trace"] else []
    size = show.size(len(model.text.encode()))
    facts.append(
        ("written", f"{out}: {size}; {report['requests']:,} requests over {show.size(report['pages'] * 4096)}")
    )
    facts += fitting.agreement_facts(report["agreement"], report["candidates"])
    text.put(text.fact_lines(facts))
    if pair:
        rows = fitting.differences(*pair)
        for section in dict.fromkeys(row.section for row, _, _ in rows):
            body = [
                [
                    f"{row.title}, {inspection.HEADS.get(row.of, row.of)}" if row.of else row.title,
                    row.text,
                    "–" if other is None else other.text,
                    apart,
                ]
                for row, other, apart in rows
                if row.section == section
            ]
            text.put("\n" + show.text_table([section, "trace", "model", "apart"], body))
    return 0
