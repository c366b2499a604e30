"""The error on corrupted images by corruption, from the parts of `robustness`.

The table `corruption_error`: one row per model and corruption, and one for their mean.

The row `mean` has the mean corruption error: the mean of `error` over corruptions, each a mean over
the severities that were measured. Intervals are over images: a resample has an image with all of
its views.

The mean corruption error of ImageNet-C (mCE; Hendrycks & Dietterich, 2019) divides each error by
that of an AlexNet: `alexnet_ratio` in the row `mean`. The errors of the AlexNets are those that the
authors publish, of CIFAR-10-C, CIFAR-100-C and ImageNet-C. They are means over all five severities,
so that the columns are null where fewer are measured, and for other data.
"""

from typing import get_args

from vitscope.files.tables import Table
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    Merge,
    bootstrap,
    together,
)
from vitscope.measures.robustness.measure import Settings, WithAlexNet

TABLE = Table(
    "corruption_error",
    {
        "model": ("string", "model, as the study names it"),
        "corruption": ("string", "name of the corruption; mean for the mean of all"),
        "images": ("int64", "number of images"),
        "clean_error": ("float64", "share of wrong predictions on images as they are"),
        "error": ("float64", "share of wrong predictions, mean over severities"),
        **interval_columns("of error over images"),
        "relative_error": ("float64", "error minus clean_error"),
        "alexnet_error": ("float64", "error of AlexNet; null if unknown"),
        "alexnet_ratio": ("float64", "error over alexnet_error; in the row mean, mean of ratios"),
        **resampled_column("clean_error"),
        **resampled_column("error"),
    },
)


def choose_alexnet(case: Case) -> Given:
    """Depend on the data set whose errors of AlexNet are divided by, if there are any."""
    said, source = case.settings.alexnet, case.study.dataset_of(case.model).source
    name = source["kind"] if said == "source" else said
    return {"alexnet": name if name in get_args(WithAlexNet) else None}


CORRUPTION_ERROR = Measure(
    needs="parts",
    table=TABLE,
    parts_of="robustness",
    question="How networks classify",
    figures={"robustness_by_accuracy": FigureKind(published=frozenset({"accuracy", "robustness"}))},
    settings_of=("robustness", Settings),
    merge=Merge(together(choose_alexnet, bootstrap)),
)
