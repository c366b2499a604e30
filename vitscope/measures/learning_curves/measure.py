"""Learning curves: loss, accuracy and learning rate of a training, epoch by epoch."""

from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.measure import Case, FigureKind, Given, Measure
from vitscope.settings.snapshots import epoch_of

if TYPE_CHECKING:
    from vitscope.settings.study import Study


def find_snapshots(case: Case) -> Given:
    """Depend on after which epochs the snapshots were taken, where that is known."""
    study, model = case.study, case.model
    warmup = study.recipe(model).warmup_epochs if study.training is not None else None
    named = {name: epoch_of(name, warmup) for name in study.models[model].snapshots}
    return {"snapshots": {name: epoch for name, epoch in named.items() if epoch is not None}}


def refuse_unrecorded(measure: Measure, study: "Study") -> None:
    """Refuse a model of whose training there is no record."""
    for name in study.models_of(measure.name):
        if study.models[name].history is None:
            raise VitscopeError(
                f"{study.path}: models.{name}.history: found none, allowed: the table that "
                f"train_model wrote: a figure of the kind 'training' shows the model."
            )


MEASURE = Measure(
    needs="weights",
    question="How networks train",
    figures={"training": FigureKind()},
    arguments=find_snapshots,
    refuse=refuse_unrecorded,
)
