"""Norms of tokens: how they are distributed, and the few that stand out.

The table `token_norms`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. Its norm is the root of the sum of squares over channels. The quantiles
are computed for the tokens of an image and averaged over images.

An outlier is a token whose norm is more than `threshold` times the median norm of its image.
Published thresholds are absolute numbers, such as 150 for DINOv2 (Darcet et al. 2024): they depend
on the scale of one network, and do not carry over to others.

A part has one row per cut point and image of a shard.
"""

from dataclasses import dataclass

from vitscope.files.tables import Columns, Table
from vitscope.measures.columns import AT_CUT_POINT, OF_IMAGE, interval_columns
from vitscope.measures.measure import (
    FigureKind,
    Measure,
    Merge,
    Multiples,
    bootstrap,
    own_settings,
    together,
)
from vitscope.settings.section import setting

QUANTILES = {"lowest": 0.0, "quartile": 0.25, "median": 0.5, "third_quartile": 0.75, "highest": 1.0}
_MEANINGS = {
    "lowest": "lowest norm of an image",
    "quartile": "norm that a quarter of the tokens of an image are below",
    "median": "median norm of an image",
    "third_quartile": "norm that three quarters of the tokens of an image are below",
    "highest": "highest norm of an image",
}
_MEANS: Columns = {
    name: ("float64", f"{meaning}, mean over images") for name, meaning in _MEANINGS.items()
}

TABLE = Table(
    "token_norms",
    {
        **AT_CUT_POINT,
        **_MEANS,
        "threshold": ("float64", "times the median norm that an outlier is above"),
        "outliers": ("float64", "share of the tokens that are outliers"),
        **interval_columns(),
        "positions": (
            "list of float64",
            "share of the images whose token is an outlier, for each position, row by row",
        ),
    },
)

PART = Table(
    "token_norms_per_image",
    {
        **OF_IMAGE,
        **{name: ("float64", meaning) for name, meaning in _MEANINGS.items()},
        "positions": ("list of int32", "positions of its outliers, counted row by row"),
    },
)


@dataclass(frozen=True)
class Settings:
    """The norms of tokens."""

    threshold: float = setting(
        3.0,
        "A token is an outlier if its norm is more than this many times the median norm of "
        "the tokens of its image.",
        exclusiveMinimum=1,
    )


TOKEN_NORMS = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="What becomes of tokens",
    figures={"token_norms": FigureKind(options=Multiples), "token_outliers": FigureKind()},
    settings=Settings,
    arguments=own_settings,
    merge=Merge(together(own_settings, bootstrap), at_cut_points=True),
    seconds_per_gb=0.6,
)
