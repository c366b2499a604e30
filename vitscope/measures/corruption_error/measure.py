"""The error on corrupted images by corruption, from the parts of `robustness`."""

from vitscope.measures.measure import Measure


class CorruptionError(Measure):
    """The error by corruption, mean over severities."""

    needs = "parts"
    in_parts = True
    parts_of = "robustness"


MEASURE = CorruptionError()
