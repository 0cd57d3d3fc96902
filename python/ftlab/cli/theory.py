"""`ftlab theory`: what a drive must measure."""

from __future__ import annotations

from ftlab.cli import options as o


def theory(drive: o.Drive = "tiny", set_: o.Set = None, json: o.Json = False) -> int:
    """Print what theory says of a drive: effective spare, and write amplification by victim policy."""
    from ftlab import catalogue
    from ftlab.cli import text

    result = catalogue.theory(drive, set=set_ or ())
    # The answer first, then what it rests on.
    ordered = {key: result[key] for key in ("drive", "effective", "waf") if key in result}
    text.put_json(result) if json else text.put(text.value_text(ordered | result))
    return 0
