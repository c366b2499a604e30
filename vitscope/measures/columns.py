"""Columns that the tables of several measures have."""

from vitscope.files.tables import Columns

CHANGE: Columns = {
    "clean_accuracy": ("float64", "share of the images whose class is found, undisturbed"),
    "accuracy": ("float64", "share of the images whose class is found, disturbed"),
    "change": ("float64", "accuracy minus clean_accuracy, in percentage points"),
    "ci_low": ("float64", "lower end of the 95 % bootstrap interval of the change over images"),
    "ci_high": ("float64", "upper end of the 95 % bootstrap interval of the change over images"),
}
