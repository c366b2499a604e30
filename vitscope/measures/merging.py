"""Merge the parts that were measured of a model, or of the two of a pair, to a table."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd

from vitscope.files.tables import Table, read_metadata
from vitscope.measures.given import Parts


class Measured(NamedTuple):
    """What was measured of a model: the files of its parts, in order, and its block table."""

    model: str
    parts: Sequence[Path | str]
    blocks: Path | str | None = None


def merged(
    modules: Mapping[str, str | None],
    measured: Mapping[str, Measured],
    settings: Mapping[str, Any],
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a table, and what is known of where it comes from.

    `modules` say the columns of parts and table, and how parts are merged; `measured` is of a
    model, or of two, by what comes before the names of their facts.
    """
    columns = part_columns(import_module(str(modules["part"])))
    measured_of: list[Parts] = []
    origin: dict[str, str] = {}
    for prefix, of_model in measured.items():
        tables = map(columns.read, of_model.parts)
        measured_of.append(Parts(of_model.model, tables, _cut_points(modules, of_model)))
        # Parts may be of several snapshots, and each says of which.
        facts = [fact for path in of_model.parts for fact in read_metadata(path).items()]
        origin |= {f"{prefix}{key}": value for key, value in facts}
    if modules["merge"]:
        table = import_module(modules["merge"]).merge(*measured_of, **settings)
    else:
        (parts,) = measured_of
        table = pd.concat(parts.tables, ignore_index=True)
    return table, origin


def part_columns(room: ModuleType) -> Table:
    """Return the columns of the parts of a measure: those of its table, unless it says others."""
    columns: Table = getattr(room, "PART", room.TABLE)
    return columns


def _cut_points(modules: Mapping[str, str | None], measured: Measured) -> pd.DataFrame:
    """Return the cut points of a model, a row each, where its parts are merged at these."""
    if not modules["blocks"]:
        return pd.DataFrame()
    listed = import_module(modules["blocks"])
    blocks: pd.DataFrame = listed.BLOCKS.read(measured.blocks)
    return blocks[[*listed.CUT_POINT]]
