"""The table `trajectory`: one row per model and moment of its training.

Distances and angles are of all parameters of a model as one vector, without buffers. The first
moment has the radius 1 and the angle 0. At the last one both are 0: the way from the last weights
to themselves has no direction. Recorded trajectories have a moment for the first weights, 0, and
one for every epoch. Snapshots of half precision change radius and angle of the small models by less
than 1e-6.

`ends_warmup` is true at the epoch `warmup_epochs` of the model's recipe, where the trajectory was
recorded, and at a snapshot of the name `warmup`, else.
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
