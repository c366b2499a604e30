"""The table `shape_texture`: one row per model and class, and one for all classes.

Images whose shape and texture are of one class are left out. An image is told by its shape if the
shape's class is predicted. The interval resamples images, and so both shares alike; resamples
without a decision for either cue are left out. It is null for a single image. A class has a row if
it is the shape of an image.
"""

import pyarrow as pa

from vitscope.files.tables import Table

TABLE = Table(
    "shape_texture",
    {
        "model": (pa.string(), "model, as the study names it"),
        "class_name": (pa.string(), "class of the shape; all for all images"),
        "images": (pa.int64(), "number of images whose cues are of two classes"),
        "shape_accuracy": (pa.float64(), "share of the images that are told by their shape"),
        "texture_accuracy": (pa.float64(), "share of the images that are told by their texture"),
        "shape_bias": (pa.float64(), "share of shape in decisions for either; null if none is"),
        "ci_low": (pa.float64(), "lower end of the 95 % bootstrap interval of the shape bias"),
        "ci_high": (pa.float64(), "upper end of the 95 % bootstrap interval of the shape bias"),
    },
)
