"""One measured number beside its bound."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A measurement; `bound` is the most it may be, None where it is only told."""

    what: str
    value: float
    unit: str
    bound: float | None = None
    detail: str = ""

    @property
    def met(self) -> bool:
        """Tell whether the measurement keeps its bound."""
        return self.bound is None or self.value <= self.bound


def as_table(rows: Iterable[Row]) -> list[str]:
    """Return a Markdown table."""
    lines = ["| what | measured | at most | met | detail |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        bound = "–" if row.bound is None else f"{row.bound:g} {row.unit}".strip()
        met = "–" if row.bound is None else "yes" if row.met else "**no**"
        value = f"{row.value:.3g} {row.unit}".strip()
        lines.append(f"| {row.what} | {value} | {bound} | {met} | {row.detail} |")
    return lines
