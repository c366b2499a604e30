"""Receptive fields: which pixels the centre of a feature map depends on, and how much."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure, Work, passes
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# Of each image: a pass up to the last cut point, and one back from each, which takes two of those
# that lie before it.
VIEWS = 6


@dataclass(frozen=True)
class Settings:
    """The effective receptive field."""

    images: int = setting(50, "How many images at most its gradients are averaged over.", minimum=1)
    cut_points: list[str] = setting(
        [],
        (
            "Names of the cut points that it is measured at; with `*` or `?`, all that a name fits "
            "and none in networks that have no such name. If empty, the last of each stage; in a "
            "network of one stage, the stem, the last and three between."
        ),
        items={"minLength": 1},
        uniqueItems=True,
    )
    batch_size: int = setting(16, "Images whose gradients are in memory at once.", minimum=1)


class ReceptiveField(Measure):
    """The effective receptive field of the central position at some cut points."""

    needs = "model"
    settings = Settings
    batch_setting = "analysis.receptive_field.batch_size"

    @property
    def needs_classes(self) -> bool:
        """It is about features, whatever becomes of them."""
        return False

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"receptive_field": self.kind()}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which images and cut points are measured, and how intervals are made."""
        settings, bootstrap = study.section("receptive_field", Settings), study.analysis.bootstrap
        return {
            "cut_points": settings.cut_points,
            "images": settings.images,
            "batch_size": settings.batch_size,
            "seed": study.analysis.seed,
            "resamples": bootstrap.resamples,
            "bootstrap_seed": bootstrap.seed,
        }

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass of each image, and the passes back."""
        settings = study.section("receptive_field", Settings)
        return passes(VIEWS, settings.images, images, settings.batch_size, "gradient")


MEASURE = ReceptiveField()
