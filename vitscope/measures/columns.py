"""Columns that the tables of several measures have."""

import pyarrow as pa

from vitscope.files.tables import Columns

CHANGE: Columns = {
    "clean_accuracy": (pa.float64(), "share of the images whose class is found, undisturbed"),
    "accuracy": (pa.float64(), "share of the images whose class is found, disturbed"),
    "change": (pa.float64(), "accuracy minus clean_accuracy, in percentage points"),
    "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the change over images"),
    "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the change over images"),
}
