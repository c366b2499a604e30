"""The columns that say which cut point a row is of, in every table of cut points."""

import pyarrow as pa

from vitscope.files.tables import Columns

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
