"""Fit: the error on test images, and the loss on training images that are augmented alike.

The table `fit`: two rows per model.

The error is measured on `analysis.classification.images` images of `analysis.split`. The NLL is the
mean cross entropy with the mixed and smoothed targets of `analysis.fit.images` augmented images, in
evaluation mode and in float32; at best it is the entropy of these targets.
[`fit`](figures/how-networks-train.md#fit) says which images these are.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.classification.measure import Settings as Classification
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import Case, FigureKind, Measure, Work, bootstrap
from vitscope.settings.section import setting

TABLE = Table(
    "fit",
    {
        "model": ("string", "model, as the study names it"),
        "metric": ("string", "error_percent on test images, or nll_train on augmented ones"),
        "images": ("int64", "number of images"),
        "value": ("float64", "share of wrong predictions, in percent; or the mean NLL"),
        **interval_columns("over images; null for nll_train"),
        **resampled_column("value"),
    },
)


@dataclass(frozen=True)
class Settings:
    """The loss on training images with the same augmentation for all models."""

    images: int = setting(
        2000,
        "How many images are drawn and augmented by the study's recipe; many, since whole "
        "batches are mixed or not mixed.",
        minimum=1,
    )


PUBLISHED = frozenset({"metric", "value", "images"})


def count_passes(case: Case) -> Work:
    """Count a pass of each augmented image."""
    return Work(case.settings.images, case.batch_size)


MEASURE = Measure(
    needs="model",
    question="How networks train",
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
