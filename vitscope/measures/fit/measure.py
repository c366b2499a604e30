"""Fit: the error on test images, and the loss on training images that are augmented alike."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.augmented import check_augmented
from vitscope.measures.classification.measure import Settings as Classification
from vitscope.measures.measure import FigureKind, Given, Measure, Work
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The loss on training images that are augmented alike for all models."""

    images: int = setting(
        2000,
        (
            "How many images are drawn and augmented by the study's recipe; many, since whole "
            "batches are mixed or not."
        ),
        minimum=1,
    )


class Fit(Measure):
    """Error on test images, and loss on training images that are augmented alike for all models."""

    needs = "model"
    reads = ("predictions", "alike")
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        published = frozenset({"metric", "value"})
        return {
            "fit": self.kind(published=published),
            "fit_by_window": self.kind("by_window", published=published),
        }

    def splits(self, study: "Study") -> list[str]:
        """Return the splits of test images and of training images."""
        return [study.analysis.split, study.analysis.augmented.split]

    def predicted(self, study: "Study") -> int | None:
        """Return how many images are classified."""
        return study.section("classification", Classification).images

    def drawn_alike(self, study: "Study") -> int:
        """Return how many images are augmented alike for all models."""
        return study.section("fit", Settings).images

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return how intervals are made."""
        return asdict(study.analysis.bootstrap)

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Count a pass of each augmented image."""
        return Work(study.section("fit", Settings).images, study.analysis.batch_size)

    def check(self, study: "Study") -> None:
        """Refuse a loss of no known training, or without images to augment."""
        check_augmented(study, "fit", study.section("fit", Settings).images)


MEASURE = Fit()
