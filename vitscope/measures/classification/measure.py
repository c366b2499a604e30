"""Accuracy and calibration of the predictions of a model."""

from dataclasses import dataclass

from vitscope.measures.measure import Case, Given, Measure
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """Accuracy and calibration."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


def count_classes(case: Case) -> Given:
    """Depend on the number of classes."""
    return {"classes": case.study.dataset_of(case.model).classes}


MEASURE = Measure(needs="predictions", settings=Settings, arguments=count_classes)
