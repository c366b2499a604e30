"""Learning curves: loss, accuracy and learning rate of a training, epoch by epoch.

The table `learning_curves`: one row per model and epoch of its training, the first before it.

It is the record of the training, the table `training_history`, with the snapshots that the study
names. Nothing was measured before the first epoch. Training images are augmented and their labels
smoothed, test images are not: comparing the two losses or accuracies does not show how much a model
overfits.
"""

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.measures.measure import Case, FigureKind, Given, Measure
from vitscope.settings.snapshots import epoch_of
from vitscope.training.history import HISTORY

RECORDED = ("loss", "training_accuracy", "learning_rate", "test_loss", "test_accuracy")

TABLE = Table(
    "learning_curves",
    {
        "model": ("string", "model, as the study names it"),
        "epoch": ("int32", "epochs done"),
        **{name: HISTORY.columns[name] for name in RECORDED},
        "snapshots": ("string", "names of the snapshots taken then, with commas; null if none"),
    },
)


def find_snapshots(case: Case) -> Given:
    """Depend on after which epochs the snapshots were taken, where that is known."""
    study, model = case.study, case.model
    warmup = study.recipe(model).warmup_epochs if study.training is not None else None
    named = {name: epoch_of(name, warmup) for name in study.models[model].snapshots}
    return {"snapshots": {name: epoch for name, epoch in named.items() if epoch is not None}}


def refuse_unrecorded(case: Case) -> None:
    """Refuse a model of whose training there is no record."""
    if case.study.models[case.model].history is None:
        raise VitscopeError(
            f"{case.study.path}: models.{case.model}.history: found none, allowed: the table that "
            f"train_model wrote: a figure of the kind 'training' shows the model."
        )


LEARNING_CURVES = Measure(
    needs="weights",
    table=TABLE,
    question="How networks train",
    figures={"training": FigureKind()},
    arguments=find_snapshots,
    refuse=refuse_unrecorded,
)
