"""The table `fourier`: log amplitudes of the Fourier-transformed feature maps."""

import pyarrow as pa

from vitscope.files.tables import Table
from vitscope.networks.block_table import CUT_POINT

TABLE = Table(
    "fourier",
    {
        **CUT_POINT,
        "images": (pa.int64(), "number of images"),
        "measure": (pa.string(), "diagonal: along the half-diagonal; radial: azimuthal mean"),
        "frequency": (pa.float64(), "frequency, in units of pi"),
        "log_amplitude": (pa.float64(), "log amplitude, mean over channels and images"),
        "delta_log_amplitude": (pa.float64(), "log amplitude minus that at frequency 0"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the difference"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the difference"),
    },
)

PART = Table(
    "fourier_per_image",
    {
        "index": (pa.int32(), "position of the cut point, 0 for the stem"),
        "image": (pa.int64(), "position of the image among those that are measured"),
        "quantity": (
            pa.string(),
            "diagonal or radial: a log amplitude; low, middle or high: a band",
        ),
        "step": (pa.int32(), "frequency, in steps from 0 to the highest; 0 of a band"),
        "value": (pa.float64(), "log amplitude, or variance over space; mean over channels"),
    },
)
