"""Accuracy and calibration of the predictions of a model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import Given, Measure, Schema

if TYPE_CHECKING:
    from vitscope.settings.study import Study

SETTINGS: Schema = {
    "description": "Accuracy and calibration.",
    "type": "object",
    "additionalProperties": False,
    "default": {},
    "properties": {
        "images": {
            "type": ["integer", "null"],
            "minimum": 1,
            "default": None,
            "description": "How many images of the split are classified; null for all.",
        },
    },
}


@dataclass(frozen=True)
class Settings:
    """The section `classification` of a study's analysis."""

    images: int | None


class Classification(Measure):
    """Accuracy and calibration."""

    needs = "predictions"
    section = "classification"
    schema = SETTINGS

    def predicted(self, study: "Study") -> int | None:
        """Return how many images are classified."""
        return study.section("classification", Settings).images

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return the number of classes."""
        return {"classes": study.dataset_of(model).classes}


MEASURE = Classification()
