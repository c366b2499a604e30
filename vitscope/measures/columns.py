"""Columns that the tables of several measures have."""

from vitscope.claims.intervals import KEPT, RESAMPLED
from vitscope.files.tables import Columns
from vitscope.networks.finding.cut_points import CUT_POINT

# The first columns of a table that holds means over images, with a row for each cut point.
AT_CUT_POINT: Columns = {**CUT_POINT, "images": ("int64", "number of images")}
# The first columns of a part that has a row for each cut point and image.
OF_IMAGE: Columns = {
    "index": ("int32", "position of the cut point, 0 for the stem"),
    "image": ("int64", "row of the image in its split"),
}


def interval_columns(of: str = "over images", name: str = "ci") -> Columns:
    """Return the columns of a bootstrap interval, `{name}_low` and `{name}_high`.

    `of` ends the columns' descriptions: it says what the interval is of, and what is resampled.
    """
    return {
        f"{name}_low": ("float64", f"lower end of the 95 % bootstrap interval {of}"),
        f"{name}_high": ("float64", f"upper end of the 95 % bootstrap interval {of}"),
    }


def resampled_column(column: str) -> Columns:
    """Return the column that holds the values of `column` in the stored resamples of images."""
    return {f"{column}{RESAMPLED}": ("list of float32", f"{column} in each of {KEPT} resamples")}


CHANGE: Columns = {
    "clean_accuracy": ("float64", "share of the images whose class is found, undisturbed"),
    "accuracy": ("float64", "share of the images whose class is found, disturbed"),
    "change": ("float64", "accuracy minus clean_accuracy, in percentage points"),
    **interval_columns("of the change over images"),
    **resampled_column("change"),
}

SCORES: Columns = {
    "accuracy": ("float64", "share of the images whose class is found"),
    "accuracy_90": ("float64", "the same among confident predictions; null if none is"),
    "nll": ("float64", "negative log-likelihood, mean over images"),
    "unconfidence_90": ("float64", "share of unconfident among wrong predictions"),
    "iou": ("float64", "intersection over union, mean over classes"),
    "iou_90": ("float64", "the same among confident predictions"),
    "frequency_90": ("float64", "share of predictions that are confident"),
    "top5": ("float64", "share of images whose class is among the five most probable"),
    "brier": ("float64", "Brier score, summed over classes, mean over images"),
    "ece": ("float64", "expected calibration error, in ten bins of equal width"),
    "signed_ece": ("float64", "the same with its sign: positive where overconfident"),
}


def mean_columns(column: str, meaning: str) -> Columns:
    """Return the columns of a table with a mean over images, and its interval, per cut point."""
    return {
        **AT_CUT_POINT,
        column: ("float64", meaning),
        **interval_columns(),
        **resampled_column(column),
    }


def per_image_columns(column: str, meaning: str) -> Columns:
    """Return the columns of a part with one value for each cut point and image."""
    return {**OF_IMAGE, column: ("float64", meaning)}
