"""`ftlab theory`: what a drive must measure."""

from __future__ import annotations

from ftlab.cli import options as o


def theory(drive: o.Drive = "tiny", set_: o.Set = None, json: o.Json = False) -> int:
    """Print what theory says of a drive: effective spare, and write amplification by victim policy."""
    from ftlab import catalogue
    from ftlab.cli import text

    result = catalogue.theory(drive, set=set_ or ())
    text.put_json(result) if json else text.put(text.value_text(result))
    return 0
