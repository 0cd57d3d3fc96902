"""What has one value is given once: the last of several would hold, and nothing would say so. A path has a name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer import TyperException
from typer.core import TyperArgument, TyperCommand, TyperOption

from ftlab.errors import InputError


class Once(TyperCommand):
    """A verb that refuses a second value of an option which takes one, and of a key that is `--set`, and a path of no
    letters, which Python takes for the folder that one is in."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                # Help has the name alone, where Typer adds `<list[str]>`.
                parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands behind the verb in its usage: `WORKLOAD...`, where Typer has `{WORKLOAD...}...`."""
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(.+)\}(?:\.\.\.)?$|^(\[.+\.\.\.\])\.\.\.$", r"\1\2", piece) for piece in pieces]

    def _tell_usage(self, ctx: Any, error: Any) -> None:
        """Adds to an option without its value how the verb is called with it: what else is missing is not looked at."""
        name = getattr(error, "option_name", "")
        option = next((one for one in self.params if name in one.opts), None)
        if option is not None and "requires an argument" in error.message:
            needed = [one for one in self.params if isinstance(one, TyperArgument) and one.required]
            named = [str(getattr(one, "metavar", None) or str(one.name).upper()) for one in (*needed, option)]
            words = [*named[:-1], name, named[-1]]
            while ctx.parent:
                words.insert(0, ctx.info_name)
                ctx = ctx.parent
            error.message += f" Expected: {' '.join(['ftlab', *words])}"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            values, _, given = self.make_parser(ctx).parse_args(args=list(args))
        except TyperException as error:
            self._tell_usage(ctx, error)
            raise
        # A shell that asks for completions gets them, whatever stands on the line.
        for option in [] if ctx.resilient_parsing else given:
            if not isinstance(option, TyperOption):
                continue
            if not (option.multiple or option.is_flag or option.count) and given.count(option) > 1:
                raise InputError(f"{max(option.opts, key=len)} is given twice")
            if "--set" in option.opts:
                keys = [change.partition("=")[0].strip() for change in values[str(option.name)]]
                if twice := [key for key in keys if keys.count(key) > 1]:
                    raise InputError(f"--set {twice[0]} is given twice")
        rest = super().parse_args(ctx, args)
        for parameter in [] if ctx.resilient_parsing else self.get_params(ctx):
            made, written = (_listed(of.get(str(parameter.name))) for of in (ctx.params, values))
            if "" in written and any(isinstance(one, Path) for one in made):
                is_option = isinstance(parameter, TyperOption)
                name = max(parameter.opts, key=len) if is_option else str(parameter.metavar).rstrip(".")
                raise InputError(f"{name} '': expected a path")
        return rest


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
