"""`ftlab theory`: what a drive must measure."""

from __future__ import annotations

from typing import Any

from ftlab.cli import options as o


@o.takes("theory")
def theory(drive: o.Drive = "tiny", *, options: dict[str, Any], json: o.Json = False) -> int:
    """Print what theory says of a drive: effective spare, and write amplification by victim policy."""
    from ftlab import catalogue
    from ftlab.cli import text

    result = catalogue.theory(drive, **options)
    # The answer first, then what it rests on.
    ordered = {key: result[key] for key in ("drive", "effective", "waf") if key in result}
    text.put_json(result) if json else text.put(text.value_text(ordered | result))
    return 0
