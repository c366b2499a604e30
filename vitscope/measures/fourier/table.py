"""The table `fourier`: one row per model, cut point, measure and frequency.

The measure `diagonal` is the authors', F(k, k) from frequency 0 on; its frequencies are their
labels, evenly from 0 to 1, [figures.md](figures.md#fourier_curves) says of what. The high-frequency
component of a cut point is the row with frequency 1. A map of one or two pixels a side has
frequency 0 alone. One that is not square has no diagonal: one row of frequency 0, its values null.

The measure `radial` is the mean over rings of the whole transform: log(|F| + 10⁻⁶) over all
components whose distance from frequency 0 rounds to the same whole number, halves down, from 0 to
half of the size, mean over channels and images. Its frequencies are those of the rings, 1 where an
axis ends; where the size is odd the last is a little below. Corners beyond are left out. Where a
map is not square, distances are relative to the end of each axis and counted in steps of the longer
one.

The logarithm of an amplitude of 0 is that of 10⁻⁶, -13.8: a map that is the same everywhere has it
at every frequency but 0. Feature maps with values that are not finite are an error.

A part has one row per cut point, image, quantity and frequency.
"""

from vitscope.files.tables import Table
from vitscope.networks.finding.cut_point_columns import CUT_POINT

TABLE = Table(
    "fourier",
    {
        **CUT_POINT,
        "images": ("int64", "number of images"),
        "measure": ("string", "diagonal: along the half-diagonal; radial: azimuthal mean"),
        "frequency": ("float64", "frequency, in units of pi"),
        "log_amplitude": ("float64", "log amplitude, mean over channels and images"),
        "delta_log_amplitude": ("float64", "log amplitude minus that at frequency 0"),
        "ci_low": ("float64", "lower end of the 95 % bootstrap interval of the difference"),
        "ci_high": ("float64", "upper end of the 95 % bootstrap interval of the difference"),
    },
)

PART = Table(
    "fourier_per_image",
    {
        "index": ("int32", "position of the cut point, 0 for the stem"),
        "image": ("int64", "position of the image among those that are measured"),
        "quantity": ("string", "diagonal or radial: a log amplitude; low, middle or high: a band"),
        "step": ("int32", "frequency, in steps from 0 to the highest; 0 of a band"),
        "value": ("float64", "log amplitude, or variance over space; mean over channels"),
    },
)
