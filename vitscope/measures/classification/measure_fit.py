"""Fit: the error on test images, and the loss on training images that are augmented alike."""

from dataclasses import dataclass

from vitscope.measures.classification.measure import Settings as Classification
from vitscope.measures.measure import Case, FigureKind, Measure, Work, bootstrap
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The loss on training images with the same augmentation for all models."""

    images: int = setting(
        2000,
        (
            "How many images are drawn and augmented by the study's recipe; many, since whole "
            "batches are mixed or not mixed."
        ),
        minimum=1,
    )


PUBLISHED = frozenset({"metric", "value"})


def count_passes(case: Case) -> Work:
    """Count a pass of each augmented image."""
    return Work(case.settings.images, case.batch_size)


MEASURE = Measure(
    needs="model",
    figures={
        "fit": FigureKind(published=PUBLISHED),
        "fit_by_window": FigureKind("by_window", published=PUBLISHED),
    },
    settings=Settings,
    predictions_of=("classification", Classification),
    arguments=bootstrap,
    takes=count_passes,
    reads=("predictions", "alike"),
)
