"""Trajectories: where the weights were in training, seen from where they ended."""

from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError, listed
from vitscope.measures.measure import Case, FigureKind, Given, Measure

if TYPE_CHECKING:
    from vitscope.settings.study import Study


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


def refuse_unrecorded(measure: Measure, study: "Study") -> None:
    """Refuse a model of which nothing is known between its first and its last weights."""
    for name in study.models_of(measure.name):
        model = study.models[name]
        if model.history is None and len(model.snapshots) < LEAST_SNAPSHOTS:
            raise VitscopeError(
                f"{study.path}: models.{name}.snapshots: found {listed(model.snapshots)}, "
                f"allowed: {LEAST_SNAPSHOTS} or more, or a `history`: a figure of the kind "
                f"'trajectory' shows the model."
            )


MEASURE = Measure(
    needs="weights",
    figures={"trajectory": FigureKind()},
    arguments=find_warmup,
    refuse=refuse_unrecorded,
)
