"""The order of names in which numbers count by value: fig2 before fig10."""

import re


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """Return a key for `sorted`; numbers come before letters."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
