"""Writes a manual page for each verb, from what the command line declares.

python docs/man.py [FOLDER]            # as `make man`: out/man; then `MANPATH=out/man man ftlab-run`
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from ftlab import __version__
from ftlab.cli import app

OUT = Path(__file__).parents[1] / "out" / "man"
EXIT_CODES = (
    ("0", "done"),
    ("1", "a check failed"),
    ("2", "wrong input, or a system that refuses"),
    ("130", "interrupted"),
)


def pages() -> Iterator[tuple[str, str]]:
    """Every page: the name of its file and its text."""
    for words, command in commands(["ftlab"], typer.main.get_command(app())):
        yield f"{'-'.join(words)}.1", page(words, command)


def commands(words: list[str], command: Any) -> Iterator[tuple[list[str], Any]]:
    """A command and those below it, with the words that call each."""
    yield words, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands([*words, name], below)


def page(words: list[str], command: Any) -> str:
    """One page in the macros of man(7)."""
    context = type(command).context_class(command, info_name=" ".join(words), **command.context_settings)
    summary, _, details = (command.help or "").partition("\n\n")
    first = re.split(r"(?<=[.?]) ", " ".join(summary.split()))[0].rstrip(".")
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.get_params(context) if p.param_type_name == "option" and not p.hidden]
    below = getattr(command, "commands", {})
    usage = " ".join([*([] if below else ["[OPTION]..."]), *(argument.metavar for argument in arguments)])
    text = f'.TH "{"-".join(words).upper()}" 1 "" "ftlab {__version__}" "ftlab"\n'
    text += section("Name", f"{plain('-'.join(words))} \\- {plain(first)}\n")
    text += section("Synopsis", f".B {plain(' '.join(words))}\n{plain(usage or 'COMMAND ...')}\n")
    text += section(
        "Description", "\n.PP\n".join(prose(part) for part in (summary, *details.split("\n\n")) if part) + "\n"
    )
    text += section("Arguments", "".join(item(a.metavar, a.help or "") for a in arguments))
    text += section("Options", "".join(item(*option.get_help_record(context)) for option in options))
    text += section(
        "Commands", "".join(item("-".join([*words, name]) + "(1)", first_line(below[name])) for name in below)
    )
    text += section("Exit status", "".join(item(code, meaning) for code, meaning in EXIT_CODES))
    return text + ("" if words == ["ftlab"] else section("See also", f".BR {plain('-'.join(words[:-1]))} (1)\n"))


def first_line(command: Any) -> str:
    return (command.help or "").split("\n\n")[0]


def section(title: str, text: str) -> str:
    """A section, if there is something in it."""
    return f".SH {title.upper()}\n{text}" if text else ""


def item(term: str, meaning: str) -> str:
    return f".TP\n.B {plain(term)}\n{prose(meaning)}\n"


def prose(text: str) -> str:
    """Running text, an example on a line of its own."""
    parts = re.split(r"\s+(?=Example: )", text.replace("\b", "").strip())
    return "\n.br\n".join(plain(" ".join(part.split())) for part in parts)


def plain(text: str) -> str:
    """Text in which nothing is a command of roff, and what is typed can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return re.sub(r"^\.", r"\\&.", escaped, flags=re.MULTILINE)


def main() -> None:
    folder = (Path(sys.argv[1]) if len(sys.argv) > 1 else OUT) / "man1"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
