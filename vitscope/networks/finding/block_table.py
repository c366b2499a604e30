"""The block table: its columns, and what follows its last row."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from vitscope.files.tables import read_metadata
from vitscope.networks.finding.cut_points import CutPoint, read_points


class Part(NamedTuple):
    """What lies between a cut point and the one before, or behind the last: its costs."""

    parameters: int
    operations: int
    activations: int
    peak: int


def head_of(metadata: Mapping[str, str]) -> Part:
    """Return the part behind the last cut point from the metadata of a block table."""
    return Part(*(int(metadata[f"head_{cost}"]) for cost in Part._fields))


def read_cut_points(path: Path | str) -> list[CutPoint]:
    """Return the cut points that the metadata of a block table describe."""
    return read_points(read_metadata(path)["cut_points"])
