"""How much of a sum is the shortcut, and how much its branch: the ratio of their norms.

The table `skip_ratio`: one row per model, cut point behind a residual branch, and kind of token.

A sum adds a branch to the stream. Of an image, the ratio is the root of the sum of the squares of
the stream over that of the branch, over all channels of the tokens of a kind: those of positions,
or the first token that is no position (the class token), where a network has one. What a layer
scale does to the branch counts. The mean over images is of logarithms: it is a geometric mean.
Where a branch is zero for an image, there is no ratio, and the value is null.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import (
    FigureKind,
    Measure,
    Multiples,
    bootstrap,
    images_to_show,
    named,
    passes_of,
)
from vitscope.networks.finding.cut_points import CUT_POINT
from vitscope.settings.section import setting

TABLE = Table(
    "skip_ratio",
    {
        **CUT_POINT,
        "tokens": ("string", "positions, or class_token: the first token that is no position"),
        "images": ("int64", "number of images"),
        "ratio": ("float64", "norm of the shortcut over that of the branch, geometric mean"),
        **interval_columns(),
        **resampled_column("ratio"),
    },
)


@dataclass(frozen=True)
class Settings:
    """The norm of the shortcut over that of the branch."""

    images: int = setting(
        200, "How many images are used, the first of those that are measured.", minimum=1
    )


SKIP_RATIO = Measure(
    needs="model",
    table=TABLE,
    question="How networks are built",
    figures={"skip_ratio": FigureKind(beside=("blocks",), options=Multiples)},
    settings=Settings,
    arguments=named(chosen=images_to_show, bootstrap=bootstrap),
    takes=passes_of(),
    about_features=True,
    by_label=False,
)
