"""Lesions: the accuracy without one residual branch."""

from dataclasses import dataclass

from vitscope.measures.measure import Case, FigureKind, Given, Measure, bootstrap, passes_of
from vitscope.settings.section import setting

# What a pass without one unit takes, of a whole one, since what lies before the unit is not
# computed again; measured are 0.2 to 0.6.
SHARE_OF_LESION = 0.25


@dataclass(frozen=True)
class Settings:
    """The accuracy without one residual branch."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


def choose_images(case: Case) -> Given:
    """Depend on which images are classified, and how intervals are made."""
    chosen = {"images": case.settings.images, "seed": case.study.analysis.seed}
    return {"chosen": chosen, "bootstrap": bootstrap(case)}


def count_views(case: Case) -> float:
    """Count a pass of the whole model, and a share of one without each unit."""
    return 1 + SHARE_OF_LESION * case.cut_points


MEASURE = Measure(
    needs="model",
    figures={
        "lesion": FigureKind(
            beside=("blocks",),
            published=frozenset({"index", "normalized_depth", "kind", "change"}),
        )
    },
    settings=Settings,
    arguments=choose_images,
    takes=passes_of(count_views, keeps="units"),
)
