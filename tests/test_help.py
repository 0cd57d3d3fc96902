"""What `--help` prints: whole sentences, an example a line, and a description of every option."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import Any

import pytest
import typer

import man
from conftest import Command
from ftlab.cli import app

COMMANDS = [
    (words, command)
    for words, command in man.commands(["ftlab"], typer.main.get_command(app()))
    if not getattr(command, "commands", {})
]


@pytest.mark.parametrize("group", [(), ("nvm",)])
def test_lists_of_verbs_have_whole_sentences(group: tuple[str, ...], ftlab: Command) -> None:
    shown = ftlab(*group, "-h").out
    # The command line's own usage has dots, and nothing else.
    assert shown.count("...") == shown.count("[ARGS]...") == 1
    rows = " ".join(shown.split("Commands:")[1].split())
    for words, command in COMMANDS:
        if tuple(words[1:-1]) == group:
            sentence = re.split(r"(?<=[.?]) ", " ".join(command.help.split()))[0]
            assert f"{words[-1]} {sentence}" in rows


@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[" ".join(words[1:]) for words, _ in COMMANDS])
def test_an_example_is_a_line_and_every_option_says_what_it_does(
    words: list[str], command: Any, ftlab: Command
) -> None:
    shown = ftlab(*words[1:], "--help").out
    usage = shown.splitlines()[0]
    assert not re.search(r"[{}]|\.\.\..*\.\.\.", usage), usage
    examples = [line.strip() for line in shown.splitlines() if "Example: " in line]
    assert examples == re.findall(r"^Example: .*", command.help, re.MULTILINE)
    for example in examples:
        assert re.fullmatch(r"Example: ftlab [^ ].*", example)
        assert example.count("ftlab ") == 1
    # Types of Python are no words of a command line.
    assert re.findall(r"<(?:str|path|file|int|float|list|Path)\b", shown) == []
    silent = [parameter.opts for parameter in command.params if not parameter.help]
    assert silent == []


def test_a_verb_brings_only_its_own_module_along() -> None:
    run = "import sys\nsys.argv = ['ftlab', 'list', 'drives']\nfrom ftlab import cli\n"
    shown = "print(sorted(name for name in sys.modules if name.startswith(('ftlab.cli.', 'polars'))))"
    done = subprocess.run(
        [sys.executable, "-c", f"{run}try:\n    cli.main()\nexcept SystemExit:\n    {shown}"],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = ast.literal_eval(done.stdout.splitlines()[-1])
    assert "ftlab.cli.list_" in modules
    assert not {"polars", "ftlab.cli.run", "ftlab.cli.serve"} & set(modules)
