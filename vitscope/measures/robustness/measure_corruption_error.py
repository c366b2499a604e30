"""The error on corrupted images by corruption, from the parts of `robustness`."""

from vitscope.measures.measure import Measure

MEASURE = Measure(needs="parts", parts_of="robustness")
