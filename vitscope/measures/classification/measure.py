"""Accuracy and calibration of the predictions of a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import Given, Measure
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """Accuracy and calibration."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


class Classification(Measure):
    """Accuracy and calibration."""

    needs = "predictions"
    settings = Settings

    def predicted(self, study: "Study") -> int | None:
        """Return how many images are classified."""
        return study.section("classification", Settings).images

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return the number of classes."""
        return {"classes": study.dataset_of(model).classes}


MEASURE = Classification()
