"""Trainings: loss, accuracy and learning rate by epoch, and the trajectory of the weights.

The table `learning_curves`: one row per model and epoch of its training, from epoch 0.

The table is the record of the training, `training_history`, with the snapshots that the study
names. Epoch 0 is before training, where nothing was measured. Training images are augmented and
their labels smoothed, test images are not: comparing the two losses or accuracies does not show how
much a model overfits.

The table `trajectory`: one row per model and moment of its training.

For distances and angles, all parameters of a model, without buffers, are one vector. The first
moment has the radius 1 and the angle 0. The last moment has 0 for both, since a distance of 0 has
no direction. A recorded trajectory has the moment 0 for the first weights, and a moment for every
epoch. Snapshots in half precision change radius and angle of the small models by less than 1e-6.

In a recorded trajectory, `ends_warmup` is true at the epoch `warmup_epochs` of the model's recipe;
in a trajectory through snapshots, it is true at the snapshot with the name `warmup`.
"""

from vitscope.errors import VitscopeError, listed
from vitscope.files.tables import Table
from vitscope.measures.measure import Case, FigureKind, Given, Measure, Multiples
from vitscope.settings.snapshots import epoch_of_snapshot
from vitscope.training.history import HISTORY

RECORDED = ("loss", "training_accuracy", "learning_rate", "test_loss", "test_accuracy")

LEARNING_CURVES_TABLE = Table(
    "learning_curves",
    {
        "model": ("string", "model, as the study names it"),
        "epoch": ("int32", "epochs done"),
        **{name: HISTORY.columns[name] for name in RECORDED},
        "snapshots": ("string", "names of the snapshots taken then, with commas; null if none"),
    },
)


def find_learning_curve_snapshots(case: Case) -> Given:
    """Return after which epoch each snapshot was taken; leave out snapshots of unknown epochs."""
    study, model = case.study, case.model
    warmup = study.recipe(model).warmup_epochs if study.training is not None else None
    named = {name: epoch_of_snapshot(name, warmup) for name in study.models[model].snapshots}
    return {"snapshots": {name: epoch for name, epoch in named.items() if epoch is not None}}


def refuse_curves_without_history(case: Case) -> None:
    if case.study.models[case.model].history is None:
        raise VitscopeError(
            f"{case.study.path}: models.{case.model}.history: found none, allowed: the table that "
            f"train_model wrote: a figure of the kind 'training' shows the model."
        )


LEARNING_CURVES = Measure(
    needs="weights",
    measure="compute:measure_learning_curves",
    table=LEARNING_CURVES_TABLE,
    question="How networks train",
    figures={
        "training": FigureKind("show:plot_training", "claims:CLAIMS_TRAINING", options=Multiples)
    },
    arguments=find_learning_curve_snapshots,
    refuse=refuse_curves_without_history,
)

TRAJECTORY_TABLE = Table(
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

# The minimum number of snapshots before the last weights: the first weights, and one in between.
LEAST_SNAPSHOTS = 2


def find_trajectory_warmup(case: Case) -> Given:
    """Return the moment that ends the warm-up; without a history, also snapshots and network."""
    study, model = case.study, case.model
    entry = study.models[model]
    if entry.history is None:
        return {"names": entry.moments(), "warmup": "warmup", "network": study.network(model)}
    known = study.training is not None
    return {"warmup": str(study.recipe(model).warmup_epochs) if known else None}


def refuse_short_trajectory(case: Case) -> None:
    model = case.study.models[case.model]
    if model.history is None and len(model.snapshots) < LEAST_SNAPSHOTS:
        raise VitscopeError(
            f"{case.study.path}: models.{case.model}.snapshots: found {listed(model.snapshots)}, "
            f"allowed: {LEAST_SNAPSHOTS} or more, or a `history`: a figure of the kind "
            f"'trajectory' shows the model."
        )


TRAJECTORY = Measure(
    needs="weights",
    measure="compute:measure_trajectory",
    table=TRAJECTORY_TABLE,
    question="How networks train",
    figures={"trajectory": FigureKind("show:plot_trajectory")},
    arguments=find_trajectory_warmup,
    refuse=refuse_short_trajectory,
)
