"""The table `trajectory`: learning trajectories."""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "trajectory",
    {
        "model": (pa.string(), "model, as the study names it"),
        "moment": (pa.string(), "epoch of training, or name of the snapshot"),
        "order": (pa.int32(), "position among the moments, from 0"),
        "radius": (pa.float64(), "distance to the last weights, over that of the first ones"),
        "angle": (pa.float64(), "between the ways from the last weights to these and to the first"),
        "ends_warmup": (pa.bool_(), "whether the warm-up is known to end here"),
        "source": (pa.string(), "history: recorded in training; snapshots: from their weights"),
    },
)
