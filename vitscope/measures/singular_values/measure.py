"""Singular values: how many directions the tokens of an image, and whole images, spread along."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The singular values of tokens and of pooled images."""

    tokens: int = setting(
        256,
        (
            "Where a map has more positions than so many, and more channels, so many of its "
            "positions are drawn, the same in every image."
        ),
        minimum=2,
    )
    seed: int = setting(0, "Seed of the choice of these positions.", minimum=0)


class SingularValues(Measure):
    """The spectrum of tokens and of pooled images, at every cut point."""

    needs = "latents"
    in_parts = True
    merges_blocks = True
    # Of a ViT-Ti on images of CIFAR; what takes the time are eigenvalues, not bytes.
    seconds_per_gb = 9.0
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"singular_values": self.kind(), "effective_rank": self.kind("rank")}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which positions of large maps are drawn."""
        return asdict(study.section("singular_values", Settings))

    def merging(self, study: "Study", model: str) -> Given:
        """Return how intervals are made."""
        return asdict(study.analysis.bootstrap)


MEASURE = SingularValues()
