"""How alike the tokens of an image are: the mean cosine similarity of all pairs."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure

if TYPE_CHECKING:
    from vitscope.settings.study import Study


class TokenSimilarity(Measure):
    """The similarity of the tokens of an image, at every cut point."""

    needs = "latents"
    in_parts = True
    merges_blocks = True
    seconds_per_gb = 0.6

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"token_similarity": self.kind()}

    def merging(self, study: "Study", model: str) -> Given:
        """Return how intervals are made."""
        return asdict(study.analysis.bootstrap)


MEASURE = TokenSimilarity()
