"""The table `shape_texture`: one row per model and class, and one for all classes.

Images whose shape and texture belong to one class are left out. An image is decided by its shape if
the class of the shape is predicted. The interval resamples images, and so both shares together;
resamples without a decision for either cue are left out. It is null for a single image. A class has
a row if it is the shape of an image.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "shape_texture",
    {
        "model": ("string", "model, as the study names it"),
        "class_name": ("string", "class of the shape; all for all images"),
        "images": ("int64", "number of images whose cues are of two classes"),
        "shape_accuracy": ("float64", "share of the images that are told by their shape"),
        "texture_accuracy": ("float64", "share of the images that are told by their texture"),
        "shape_bias": ("float64", "share of shape in decisions for either; null if none is"),
        "ci_low": ("float64", "lower end of the 95 % bootstrap interval of the shape bias"),
        "ci_high": ("float64", "upper end of the 95 % bootstrap interval of the shape bias"),
    },
)
