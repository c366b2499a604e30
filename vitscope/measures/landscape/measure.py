"""Landscapes: the loss on a plane of weights."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from vitscope.measures.augmented import OfLoss
from vitscope.measures.measure import FigureKind, Given, Work
from vitscope.settings.section import setting
from vitscope.training.snapshots import END

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# What a pass in bfloat16 takes, of one in float32; measured are 0.34 to 0.67.
SHARE_OF_BFLOAT16 = 0.4
# Where the weights were, and two directions to move them in.
VECTORS = 3


@dataclass(frozen=True)
class Settings:
    """The loss on a plane through the trained weights."""

    points: int = setting(
        21,
        "Points along each axis of the grid.",
        minimum=3,
        not_={"multipleOf": 2},
        title="an odd whole number from 3, so that the trained weights are a point",
    )
    radius: float = setting(
        1.0, "How far the grid reaches along each direction, both ways.", exclusiveMinimum=0
    )
    seed: int = setting(0, "Seed of the two directions.", minimum=0)
    rows_per_job: int = setting(
        3, "How many rows of the grid one job measures; results do not depend on it.", minimum=1
    )
    l2: bool = setting(
        True,
        "Add the weight decay term to the loss; without it the landscape is not that of training.",
    )
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto",
        (
            "Precision of the forward passes; `auto` takes bfloat16 where the processor multiplies "
            "it faster."
        ),
    )
    batch_size: int = setting(
        32,
        (
            "Images per forward pass. On a processor few are faster than many, since what is "
            "between layers then stays in its cache; on a GPU it is the other way round."
        ),
        minimum=1,
    )


class Landscape(OfLoss):
    """The loss on a plane through the trained weights, some rows of the grid for each job."""

    settings = Settings
    batch_setting = "analysis.landscape.batch_size"

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {
            "landscape": self.kind(published=frozenset({"measure", "value"})),
            "landscape_contour": self.kind("contour"),
            "landscape_slices": self.kind("slices"),
        }

    def snapshots(self, study: "Study", model: str) -> list[str]:
        """Return the end of training alone."""
        return [END]

    def steps(self, study: "Study") -> tuple[int, int]:
        """Return how many rows the grid has, and how many of them one job measures."""
        settings = study.section("landscape", Settings)
        return settings.points, settings.rows_per_job

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return the grid and the rows of it that are measured; 0 weight decay leaves L2 out."""
        settings = study.section("landscape", Settings)
        rows = self.steps_of(study, part)
        return {
            "points": settings.points,
            "radius": settings.radius,
            "rows": [rows.start, rows.stop],
            "seed": settings.seed,
            "precision": settings.precision,
            "batch_size": settings.batch_size,
            "weight_decay": study.weight_decay(model) if settings.l2 else 0,
        }

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass of each augmented image at each point of the rows."""
        settings = study.section("landscape", Settings)
        points = len(self.steps_of(study, part)) * settings.points
        share = 1 if settings.precision == "float32" else SHARE_OF_BFLOAT16
        count = points * study.analysis.augmented.images * share
        return Work(count, settings.batch_size, vectors=VECTORS)


MEASURE = Landscape()
