"""Sparsity: the share of small values in feature maps.

The table `sparsity`: one row per model and cut point. A value is small if it is less, in absolute
value, than `threshold` times the root mean square of all values of the feature map of its image.

A part has one row per cut point and image of a shard.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import mean_columns, per_image_columns
from vitscope.measures.measure import ByDepth, FigureKind, Measure, mean_over_images, own_settings
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The share of small values."""

    threshold: float = setting(
        0.1,
        "A value is small below this many times the root mean square of its feature map.",
        exclusiveMinimum=0,
    )


SPARSITY = Measure(
    needs="latents",
    measure="compute:measure_sparsity",
    table=Table("sparsity", mean_columns("share", "share of small values, mean over images")),
    part=Table("sparsity_per_image", per_image_columns("share", "share of small values")),
    question="What becomes of tokens",
    figures={"sparsity": FigureKind("show:plot_sparsity", options=ByDepth)},
    settings=Settings,
    arguments=own_settings,
    merge=mean_over_images("share"),
    seconds_per_gb=0.6,
)
