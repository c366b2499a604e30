"""Robustness: accuracy and calibration on corrupted images.

The table `robustness`: one row per model, corruption and severity.

The images are the same in all rows of a data set, and the scores are those of
[`classification`](#classification). In the figure, the score at a severity is the mean over
corruptions. `results/{study}/robustness/{model}/{part}.parquet` has the corruptions that one job
measured, and for each image whether its class is found. [data.md](data.md#corrupted-images)
describes the corruptions.

The table `corruption_error`: one row per model and corruption, and one for their mean.

The row `mean` has the mean corruption error: the mean of `error` over corruptions, where each
`error` is a mean over the measured severities. Intervals are over images: a resample takes an image
with all its corruptions and severities.

The mean corruption error of ImageNet-C (mCE; Hendrycks & Dietterich, 2019) divides each error by
that of an AlexNet: it is `alexnet_ratio` in the row `mean`. The errors of AlexNet are those that
the authors publish for CIFAR-10-C, CIFAR-100-C and ImageNet-C. These are means over all five
severities, so that the columns are null if fewer severities are measured, and for other data sets.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from vitscope.corruptions import CORRUPTIONS, SEVERITIES
from vitscope.files.tables import Table
from vitscope.measures.columns import SCORES, interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    Merge,
    bootstrap,
    passes_of_measure,
    together,
)
from vitscope.settings.section import setting

ROBUSTNESS_TABLE = Table(
    "robustness",
    {
        "model": ("string", "model, as the study names it"),
        "corruption": ("string", "name of the corruption; none for images as they are"),
        "severity": ("int32", "1 to 5; 0 for images as they are"),
        "images": ("int64", "number of images"),
        **SCORES,
    },
)
ROBUSTNESS_PART = Table(
    "robustness_per_image",
    {
        **ROBUSTNESS_TABLE.columns,
        "right": ("list of bool", "whether the class is found, of each image"),
    },
)

WithAlexNet = Literal["cifar10", "cifar100", "imagenet"]


@dataclass(frozen=True)
class RobustnessSettings:
    """Accuracy and calibration on corrupted images."""

    images: int | None = setting(
        None, "How many images of the split are corrupted; null for all.", minimum=1
    )
    corruptions: list[str] = setting(
        [*CORRUPTIONS],
        "The corruptions.",
        items={"enum": [*CORRUPTIONS]},
        minItems=1,
        uniqueItems=True,
    )
    severities: list[int] = setting(
        [*SEVERITIES],
        "Their severities.",
        items={"minimum": 1, "maximum": 5},
        minItems=1,
        uniqueItems=True,
    )
    corruptions_per_job: int = setting(
        1,
        "How many corruptions a job makes or measures; results do not depend on it. One per job "
        "runs them in parallel on a cluster, but with small models most of a job is its start.",
        minimum=1,
    )
    alexnet: Literal["source", WithAlexNet] = setting(
        "source",
        "The data set whose published errors of AlexNet those of models are divided by; `source` "
        "is the source of their images, if it is one of these.",
    )


def choose_robustness_corruptions(case: Case) -> Given:
    """Return the corruptions that a part measures, and whether it measures clean images too.

    Only the first part measures clean images.
    """
    corruptions = [case.settings.corruptions[step] for step in case.steps]
    return {"corruptions": corruptions, "clean": case.part == 0}


def count_views(case: Case) -> int:
    """Count the views of each image in a part: one per corruption and severity, and a clean one.

    Only the first part has the clean one.
    """
    return len(case.steps) * len(case.settings.severities) + (case.part == 0)


ROBUSTNESS = Measure(
    needs="model",
    measure="compute:measure_robustness",
    table=ROBUSTNESS_TABLE,
    part=ROBUSTNESS_PART,
    question="How networks classify",
    figures={
        "robustness": FigureKind(
            "show:plot_robustness", "claims:CLAIMS_ROBUSTNESS", beside=("corruption_error",)
        )
    },
    merge=Merge("scores:merge_robustness"),
    settings=RobustnessSettings,
    arguments=choose_robustness_corruptions,
    takes=passes_of_measure(count_views),
    shares=("corruptions", "corruptions_per_job"),
    reads=("corrupted",),
)

CORRUPTION_ERROR_TABLE = Table(
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
    """Return the data set whose AlexNet errors are the divisors; None if none are published."""
    said, source = case.settings.alexnet, case.study.dataset_of(case.model).source
    name = source["kind"] if said == "source" else said
    return {"alexnet": name if name in get_args(WithAlexNet) else None}


CORRUPTION_ERROR = Measure(
    needs="parts",
    table=CORRUPTION_ERROR_TABLE,
    parts_of="robustness",
    question="How networks classify",
    figures={
        "robustness_by_accuracy": FigureKind(
            "show:plot_robustness_by_accuracy",
            "claims:CLAIMS_ROBUSTNESS_BY_ACCURACY",
            sketch="vitscope.measures.sketches:sketch_robustness_by_accuracy",
            published=frozenset({"accuracy", "robustness"}),
        )
    },
    settings_of=("robustness", RobustnessSettings),
    merge=Merge("scores:merge_corruption_error", together(choose_alexnet, bootstrap)),
)
