"""Learning curves: loss, accuracy and learning rate of a training, epoch by epoch."""

from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.training.snapshots import epoch_of

if TYPE_CHECKING:
    from vitscope.settings.study import Study


class LearningCurves(Measure):
    """What was recorded of a training after each epoch."""

    needs = "weights"

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"training": self.kind()}

    def splits(self, study: "Study") -> list[str]:
        """Return none: it is made from what was recorded."""
        return []

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return after which epochs the snapshots of the model were taken, where that is known."""
        warmup = study.recipe(model).warmup_epochs if study.training is not None else None
        named = {name: epoch_of(name, warmup) for name in study.models[model].snapshots}
        return {"snapshots": {name: epoch for name, epoch in named.items() if epoch is not None}}

    def check(self, study: "Study") -> None:
        """Refuse a model of whose training there is no record."""
        for name in study.models_of(self.name):
            if study.models[name].history is None:
                raise VitscopeError(
                    f"{study.path}: models.{name}.history: found none, allowed: the table that "
                    f"train_model wrote: a figure of the kind 'training' shows the model."
                )


MEASURE = LearningCurves()
