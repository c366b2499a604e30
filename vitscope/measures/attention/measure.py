"""What attention looks at, in numbers: how far, how evenly, and whether queries differ."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure, Work, passes

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# What a pass takes in which attention is read, of one in which it is not.
READING = 1.5


class Attention(Measure):
    """Distance, entropy and mutual information of attention, of every head."""

    needs = "model"
    in_parts = True
    reads_attention = True
    merges_blocks = True

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {
            "attention_distance": self.kind(
                "distance", published=frozenset({"block", "attention_distance_px"})
            ),
            "attention_entropy": self.kind("entropy"),
            "attention_nmi": self.kind("nmi", published=frozenset({"block", "attention_nmi"})),
        }

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which images are shown, those of a shard."""
        return {"shard": part, "selection": study.selection(model)}

    def merging(self, study: "Study", model: str) -> Given:
        """Return how intervals are made."""
        return asdict(study.analysis.bootstrap)

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass of the images of a shard."""
        size = min(study.analysis.shard_size, study.images(model))
        return passes(READING, size, images, study.analysis.batch_size)


MEASURE = Attention()
