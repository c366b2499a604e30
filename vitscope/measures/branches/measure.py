"""Residual branches: what removing one costs, and how large shortcuts are relative to branches.

The table `lesion`: one row per model and unit that can be removed.

A unit is a cut point with a residual branch. To remove it, the output of the branch is replaced by
zeros; cut points without a branch (stem, pools) have no row. The interval is for the difference of
the accuracies on the same images, and null for a single image.

The table `skip_ratio`: one row per model, cut point after a residual branch, and kind of token.

Before the cut point, a sum adds the branch to the stream. The ratio of an image is the norm of the
stream divided by the norm of the branch. A norm is the square root of the sum of squares, over all
channels of the tokens of one kind: `positions` or, if the network has it, `class_token`, the first
token that is not a position. The branch is read after its layer scale. `ratio` is the geometric
mean over images. It is null if the stream or the branch is zero for an image.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, CHANGE, interval_columns, resampled_column
from vitscope.measures.measure import (
    FigureKind,
    ImagesToClassify,
    Measure,
    Multiples,
    bootstrap,
    images_to_classify,
    images_to_show,
    named,
    passes_of_measure,
)
from vitscope.networks.finding.cut_points import CUT_POINT
from vitscope.settings.section import setting

# The cost of a pass without one unit, relative to a whole pass; 0.2 to 0.6 were measured.
SHARE_OF_LESION = 0.25


@dataclass(frozen=True)
class LesionSettings(ImagesToClassify):
    """The accuracy without one residual branch."""


LESION = Measure(
    needs="model",
    measure="lesion:measure_lesion",
    table=Table("lesion", {**AT_CUT_POINT, **CHANGE}),
    question="How networks are built",
    figures={
        "lesion": FigureKind(
            "show:plot_lesion",
            "claims:CLAIMS_LESION",
            sketch="vitscope.measures.sketches:sketch_lesion",
            beside=("blocks",),
            published=frozenset({"index", "normalized_depth", "kind", "change"}),
            options=Multiples,
        )
    },
    settings=LesionSettings,
    arguments=named(chosen=images_to_classify, bootstrap=bootstrap),
    takes=passes_of_measure(lambda case: 1 + SHARE_OF_LESION * case.cut_points, keeps="units"),
)

SKIP_RATIO_TABLE = Table(
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
class SkipRatioSettings:
    """The norm of the shortcut, divided by the norm of the branch."""

    images: int = setting(
        200, "How many images are used, the first of those that are measured.", minimum=1
    )


SKIP_RATIO = Measure(
    needs="model",
    measure="skip_ratio:measure_skip_ratio",
    table=SKIP_RATIO_TABLE,
    question="How networks are built",
    figures={
        "skip_ratio": FigureKind(
            "show:plot_skip_ratio",
            "claims:CLAIMS_SKIP_RATIO",
            beside=("blocks",),
            options=Multiples,
        )
    },
    settings=SkipRatioSettings,
    arguments=named(chosen=images_to_show, bootstrap=bootstrap),
    takes=passes_of_measure(),
    about_features=True,
    by_label=False,
)
