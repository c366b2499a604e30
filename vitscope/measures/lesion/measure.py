"""Lesions: the accuracy without one residual branch.

The table `lesion`: one row per model and unit that can be removed.

A unit is a cut point with a residual branch, whose output is replaced by zeros; cut points without
one (stem, pools) have no row. The interval is for the difference on the same images, and null for a
single image.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, CHANGE
from vitscope.measures.measure import (
    FigureKind,
    Measure,
    Multiples,
    bootstrap,
    images_to_classify,
    named,
    passes_of,
)
from vitscope.settings.section import setting

TABLE = Table("lesion", {**AT_CUT_POINT, **CHANGE})

# The cost of a pass without one unit, relative to a whole pass; 0.2 to 0.6 were measured.
SHARE_OF_LESION = 0.25


@dataclass(frozen=True)
class Settings:
    """The accuracy without one residual branch."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


LESION = Measure(
    needs="model",
    table=TABLE,
    question="How networks are built",
    figures={
        "lesion": FigureKind(
            beside=("blocks",),
            published=frozenset({"index", "normalized_depth", "kind", "change"}),
            overview=True,
            options=Multiples,
        )
    },
    settings=Settings,
    arguments=named(chosen=images_to_classify, bootstrap=bootstrap),
    takes=passes_of(lambda case: 1 + SHARE_OF_LESION * case.cut_points, keeps="units"),
)
