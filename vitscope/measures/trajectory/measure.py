"""Trajectories: where the weights were in training, seen from where they ended.

The table `trajectory`: one row per model and moment of its training.

Distances and angles treat all parameters of a model, without buffers, as one vector. The first
moment has the radius 1 and the angle 0. The last one has 0 for both: the difference of the last
weights to themselves has no direction. Recorded trajectories have a moment for the first weights,
0, and one for every epoch. Snapshots in half precision change radius and angle of the small models
by less than 1e-6.

In a recorded trajectory, `ends_warmup` is true at the epoch `warmup_epochs` of the model's recipe,
otherwise at a snapshot with the name `warmup`.
"""

from vitscope.errors import VitscopeError, listed
from vitscope.files.tables import Table
from vitscope.measures.measure import Case, FigureKind, Given, Measure

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


# Besides the end: the first weights, and some between.
LEAST_SNAPSHOTS = 2


def find_warmup(case: Case) -> Given:
    """Depend on when the warm-up ended, and what the weights are of if they are read."""
    study, model = case.study, case.model
    entry = study.models[model]
    if entry.history is None:
        return {"names": entry.moments(), "warmup": "warmup", "network": study.network(model)}
    known = study.training is not None
    return {"warmup": str(study.recipe(model).warmup_epochs) if known else None}


def refuse_unrecorded(case: Case) -> None:
    """Refuse a model of which nothing is known between its first and its last weights."""
    model = case.study.models[case.model]
    if model.history is None and len(model.snapshots) < LEAST_SNAPSHOTS:
        raise VitscopeError(
            f"{case.study.path}: models.{case.model}.snapshots: found {listed(model.snapshots)}, "
            f"allowed: {LEAST_SNAPSHOTS} or more, or a `history`: a figure of the kind "
            f"'trajectory' shows the model."
        )


TRAJECTORY = Measure(
    needs="weights",
    table=TABLE,
    question="How networks train",
    figures={"trajectory": FigureKind()},
    arguments=find_warmup,
    refuse=refuse_unrecorded,
)
