"""Merge the parts that were measured of a model, or of the two of a pair, to a table."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from vitscope.files.tables import Table, read_metadata
from vitscope.measures.given import Parts
from vitscope.networks.finding.cut_point_columns import BLOCKS, CUT_POINT


class Measured(NamedTuple):
    """What was measured of a model: the files of its parts, in order, and its block table."""

    model: str
    parts: Sequence[Path | str]
    blocks: Path | str | None = None


def merge_parts(
    measured: Mapping[str, Measured],
    part: Table,
    settings: Mapping[str, Any],
    module: str | None = None,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a table, and the facts about its origin.

    `part` is the table of the parts, and `module` merges them; without it they are put below each
    other. `measured` is of a model, or of two, by what comes before the names of their facts.
    """
    measured_of: list[Parts] = []
    origin: dict[str, str] = {}
    for prefix, of_model in measured.items():
        tables = map(part.read, of_model.parts)
        measured_of.append(Parts(of_model.model, tables, _cut_points(of_model)))
        # Parts may be of several snapshots, and each says of which.
        facts = [fact for path in of_model.parts for fact in read_metadata(path).items()]
        origin |= {f"{prefix}{key}": value for key, value in facts}
    if module:
        table = import_module(module).merge(*measured_of, **settings)
    else:
        (parts,) = measured_of
        table = pd.concat(parts.tables, ignore_index=True)
    return table, origin


def _cut_points(measured: Measured) -> pd.DataFrame:
    """Return the cut points of a model, a row each, where its parts are merged at these."""
    if measured.blocks is None:
        return pd.DataFrame()
    return BLOCKS.read(measured.blocks)[[*CUT_POINT]]
