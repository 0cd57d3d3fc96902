"""What has one value is given once: the last of several would hold, and nothing would say so."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption

from ftlab.errors import InputError


class Once(TyperCommand):
    """A verb that refuses a second value of an option which takes one, and of a key that is `--set`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, _, given = self.make_parser(ctx).parse_args(args=list(args))
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
        return super().parse_args(ctx, args)
