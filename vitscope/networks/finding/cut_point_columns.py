"""The columns that say which cut point a row is of, in every table of cut points."""

from vitscope.files.tables import Columns, Table

CUT_POINT: Columns = {
    "model": ("string", "model, as the study names it"),
    "index": ("int32", "position of the cut point, 0 for the stem"),
    "name": ("string", "name of the cut point in the model"),
    "kind": ("string", "stem, conv, msa, mlp, parallel, ssm, pool or head"),
    "stage": ("int32", "stage of the model, 0 for the stem"),
    "depth": ("float64", "normalized depth: index over the largest index"),
    "channels": ("int32", "channels of the feature map"),
    "height": ("int32", "height of the feature map"),
    "width": ("int32", "width of the feature map"),
}

# The costs of the part between a cut point and the one before, in the order of `Part`.
COSTS: Columns = {
    "parameters": ("int64", "parameters between this cut point and the one before"),
    "operations": (
        "int64",
        "multiply-adds of one image there, in convolutions and products of matrices",
    ),
    "activations": (
        "int64",
        "bytes of all that one image makes there, as a backward pass keeps them at most",
    ),
    "peak": ("int64", "most bytes of one image in memory at once there, without gradients"),
}

NORM = "norm"
_SIDE: Columns = {
    NORM: (
        "string",
        "after or before: the side of the norm of a sum on which the cut point lies; null where "
        "the sum has none",
    )
}

BLOCKS = Table("blocks", {**CUT_POINT, **_SIDE, **COSTS})
