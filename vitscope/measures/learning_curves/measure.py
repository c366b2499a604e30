"""Learning curves: loss, accuracy and learning rate of a training, epoch by epoch."""

from vitscope.errors import VitscopeError
from vitscope.measures.learning_curves.table import TABLE
from vitscope.measures.measure import Case, FigureKind, Given, Measure
from vitscope.settings.snapshots import epoch_of


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
