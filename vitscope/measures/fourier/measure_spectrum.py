"""The variance of feature maps in bands of frequency, from the parts of `fourier`.

The table `spectrum`: one row per model, cut point and band.

The frequency of a component is the length of its vector, in units of pi: 1 at the end of an axis,
up to √2 in the corners. A component on the edge between two bands belongs to the lower one;
frequency 0 belongs to none. By Parseval's theorem the variances of the three bands add up to the
variance of `feature_variance`: each is the sum of |F|² over the components of the band, over P (P -
1) for maps with P pixels. Maps with one pixel have no variance: null.

`share` is null for a band without components, whose variance is 0, for a band that has all
components of the map, and if the map has no variance. Its interval comes from the same share of the
means over resampled images.
"""

from dataclasses import dataclass

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, interval_columns
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Measure,
    Merge,
    bootstrap,
    own_settings,
    together,
)
from vitscope.settings.section import setting

TABLE = Table(
    "spectrum",
    {
        **AT_CUT_POINT,
        "band": ("string", "low, middle or high"),
        "above": ("float64", "frequency above which the band begins, in units of pi"),
        "up_to": ("float64", "highest frequency of the band; the root of 2 is in the corners"),
        "components": ("int32", "Fourier components of a map that lie in the band"),
        "variance": ("float64", "variance over space in the band, mean over channels, images"),
        "share": ("float64", "share of the variance of all bands; null where it is undefined"),
        **interval_columns("of the share"),
    },
)


@dataclass(frozen=True)
class Settings:
    """The variance of feature maps in three bands of frequency."""

    edges: list[float] = setting(
        [0.25, 0.5],
        "Where the middle band begins and ends, in units of pi.",
        items={"exclusiveMinimum": 0, "exclusiveMaximum": 1},
        minItems=2,
        maxItems=2,
    )


def refuse_edges(case: Case) -> None:
    """Refuse a middle band that ends before it begins."""
    begin, end = case.settings.edges
    if begin >= end:
        raise VitscopeError(
            f"{case.study.path}: analysis.spectrum.edges: found [{begin}, {end}], allowed: two "
            f"numbers of which the second is larger."
        )


SPECTRUM = Measure(
    needs="parts",
    table=TABLE,
    question="What blocks do to feature maps",
    figures={"spectrum": FigureKind()},
    settings=Settings,
    merge=Merge(together(own_settings, bootstrap), at_cut_points=True),
    parts_of="fourier",
    refuse_settings=refuse_edges,
)
