"""The block table: its columns, those that measures have of it, and what follows its last row."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from vitscope.files.tables import Columns, Table

CUT_POINT: Columns = {
    "model": (pa.string(), "model, as the study names it"),
    "index": (pa.int32(), "position of the cut point, 0 for the stem"),
    "name": (pa.string(), "name of the cut point in the model"),
    "kind": (pa.string(), "stem, conv, msa, mlp, pool or head"),
    "stage": (pa.int32(), "stage of the model, 0 for the stem"),
    "depth": (pa.float64(), "normalized depth: index over the largest index"),
    "channels": (pa.int32(), "channels of the feature map"),
    "height": (pa.int32(), "height of the feature map"),
    "width": (pa.int32(), "width of the feature map"),
}

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
