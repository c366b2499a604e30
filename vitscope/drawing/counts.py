"""On how many images and batches each panel was measured: counted from the rows that it draws."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# The columns by which images and batches are counted.
_COUNTED = ["model", "other_model", "images", "batch", "batches", "bin"]
# The rows of each panel, by what they are the value of, if a panel shows several.
_ROWS: WeakKeyDictionary[Axes, dict[str, list[pd.DataFrame]]] = WeakKeyDictionary()


def count_rows(rows: pd.DataFrame, *panels: Axes, of: str = "") -> None:
    """Count rows of a table as drawn in some panels, for the note on how many images they show."""
    kept = rows[[name for name in _COUNTED if name in rows]]
    for axes in panels:
        _ROWS.setdefault(axes, {}).setdefault(of, []).append(kept)


def say_count(rows: pd.DataFrame) -> str:
    """Return how many batches and images rows were measured on, as text; empty if unknown."""
    said = []
    if "batch" in rows:
        # Batches of several sizes are counted by size.
        of_size = rows.groupby([each for each in ("model", "images") if each in rows])
        said.append(_with_unit(of_size["batch"].nunique(), "batch", "batches"))
    elif "batches" in rows:
        said.append(_with_unit(rows["batches"], "batch", "batches"))
    if "images" in rows:
        each = "batch" in rows
        # Each bin of confidence counts its own images only.
        counts = rows.groupby("model")["images"].sum() if "bin" in rows else rows["images"]
        said.append(_with_unit(counts, "image", "images", " each" if each else ""))
    return ", ".join(filter(None, said))


def _with_unit(counts: pd.Series, one: str, many: str, after: str = "") -> str:
    known = counts.dropna().astype(int)
    if known.empty:
        return ""
    low, high = known.min(), known.max()
    number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{number} {one if high == 1 else many}{after}"


def count_of_panel(axes: Axes) -> str:
    """Return on how many batches and images a panel was measured; empty if that is unknown."""
    said = {of: say_count(pd.concat(rows)) for of, rows in _ROWS.get(axes, {}).items()}
    if len({*said.values()}) < 2:
        return next(iter(said.values()), "")
    return ", ".join(f"{of}: {count}" for of, count in said.items())


def counts_of_panels(figure: Figure) -> dict[Axes, str]:
    """Return the counts of a figure's panels, of those that are known."""
    found = {axes: count_of_panel(axes) for axes in figure.axes}
    return {axes: said for axes, said in found.items() if said}


def say_counts(figure: Figure) -> str:
    """Return on how many batches and images a figure was measured, by panel if they differ."""
    by_count: dict[str, list[Axes]] = {}
    for axes, said in counts_of_panels(figure).items():
        by_count.setdefault(said, []).append(axes)
    if len(by_count) < 2:
        return "".join(by_count)
    return ", ".join(f"{_name_panels(panels)}: {said}" for said, panels in by_count.items())


def _name_panels(panels: Sequence[Axes]) -> str:
    """Name panels by their titles or, without any, by what they show."""
    titles = [axes.get_title().partition("\n")[0] for axes in panels]
    labels = [axes.get_ylabel() or axes.get_xlabel() for axes in panels]
    names = titles if any(titles) else labels
    return " and ".join(" ".join(name.split()) for name in dict.fromkeys(names) if name)
