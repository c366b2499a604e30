"""Reliability: how often a model is right, by how confident it is."""

from typing import TYPE_CHECKING

from vitscope.measures.classification.measure import Settings
from vitscope.measures.measure import FigureKind, Measure

if TYPE_CHECKING:
    from vitscope.settings.study import Study


class Reliability(Measure):
    """Accuracy by confidence."""

    needs = "predictions"

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"reliability": self.kind(tables=("classification",))}

    def predicted(self, study: "Study") -> int | None:
        """Return how many images are classified."""
        return study.section("classification", Settings).images


MEASURE = Reliability()
