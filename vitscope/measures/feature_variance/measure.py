"""Feature map variance: over space, then its mean over channels and images."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from vitscope.measures.measure import BY_DEPTH, FigureKind, Given, Measure

if TYPE_CHECKING:
    from vitscope.settings.study import Study


class FeatureVariance(Measure):
    """The variance of feature maps at every cut point."""

    needs = "latents"
    in_parts = True
    seconds_per_gb = 0.4
    merges_blocks = True

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {
            "feature_variance": self.kind(published=BY_DEPTH | {"variance"}),
            "variance_by_epoch": self.kind("by_epoch", tables=("fourier",), by_epoch=True),
        }

    def merging(self, study: "Study", model: str) -> Given:
        """Return how intervals are made."""
        return asdict(study.analysis.bootstrap)


MEASURE = FeatureVariance()
