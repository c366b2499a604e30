"""The table `trajectory`: one row per model and moment of its training.

Distances and angles treat all parameters of a model, without buffers, as one vector. The first
moment has the radius 1 and the angle 0. The last one has 0 for both: the difference of the last
weights to themselves has no direction. Recorded trajectories have a moment for the first weights,
0, and one for every epoch. Snapshots in half precision change radius and angle of the small models
by less than 1e-6.

In a recorded trajectory, `ends_warmup` is true at the epoch `warmup_epochs` of the model's recipe,
otherwise at a snapshot with the name `warmup`.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "trajectory",
    {
        "model": ("string", "model, as the study names it"),
        "moment": ("string", "epoch of training, or name of the snapshot"),
        "order": ("int32", "position among the moments, from 0"),
        "radius": ("float64", "distance to the last weights, over that of the first ones"),
        "angle": ("float64", "between the ways from the last weights to these and to the first"),
        "ends_warmup": ("bool", "whether the warm-up is known to end here"),
        "source": ("string", "history: recorded in training; snapshots: from their weights"),
    },
)
