"""Trajectories: where the weights were in training, seen from where they ended."""

from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.schema import listed

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# Besides the end: the first weights, and some between.
LEAST_SNAPSHOTS = 2


class Trajectory(Measure):
    """The way of the weights in training, in polar coordinates around its end."""

    needs = "weights"

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"trajectory": self.kind()}

    def splits(self, study: "Study") -> list[str]:
        """Return none: it is made from weights alone."""
        return []

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return when the warm-up ended, and what the weights are of if they are read."""
        entry = study.models[model]
        if entry.history is None:
            network = study.network(model)
            return {"names": entry.moments(), "warmup": "warmup", "network": network}
        known = study.training is not None
        return {"warmup": str(study.recipe(model).warmup_epochs) if known else None}

    def check(self, study: "Study") -> None:
        """Refuse a model of which nothing is known between its first and its last weights."""
        for name in study.models_of("trajectory"):
            model = study.models[name]
            if model.history is None and len(model.snapshots) < LEAST_SNAPSHOTS:
                raise VitscopeError(
                    f"{study.path}: models.{name}.snapshots: found {listed(model.snapshots)}, "
                    f"allowed: {LEAST_SNAPSHOTS} or more, or a `history`: a figure of the kind "
                    f"'trajectory' shows the model."
                )


MEASURE = Trajectory()
