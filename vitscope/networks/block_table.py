"""The block table: its columns, and what follows its last row."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from vitscope.files.tables import Columns, Table
from vitscope.networks.cut_point_columns import CUT_POINT

# The costs of what lies between a cut point and the one before, in the order of `Part`.
COSTS: Columns = {
    "parameters": (pa.int64(), "parameters between this cut point and the one before"),
    "operations": (
        pa.int64(),
        "multiply-adds of one image there, in convolutions and products of matrices",
    ),
    "activations": (
        pa.int64(),
        "bytes of all that one image makes there, as a backward pass keeps them at most",
    ),
    "peak": (pa.int64(), "most bytes of one image in memory at once there, without gradients"),
}

BLOCKS = Table("blocks", {**CUT_POINT, **COSTS})


class Part(NamedTuple):
    """What lies between a cut point and the one before, or behind the last: its costs."""

    parameters: int
    operations: int
    activations: int
    peak: int


def head_metadata(head: Part) -> dict[str, str]:
    """Return what the metadata of a block table say of the part behind its last cut point."""
    return {f"head_{cost}": str(value) for cost, value in head._asdict().items()}


def head_of(metadata: Mapping[str, str]) -> Part:
    """Return the part behind the last cut point from the metadata of a block table."""
    return Part(*(int(metadata[f"head_{cost}"]) for cost in Part._fields))
