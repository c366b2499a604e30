"""Receptive fields: which pixels the centre of a feature map depends on, and how much."""

from dataclasses import dataclass

from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    bootstrap,
    named,
    passes_of,
    together,
    whole_settings,
)
from vitscope.measures.receptive_field.table import TABLE
from vitscope.settings.section import setting

# Of each image: a pass up to the last cut point, and one back from each, which takes two of those
# that lie before it.
VIEWS = 6


@dataclass(frozen=True)
class Settings:
    """The effective receptive field."""

    images: int = setting(50, "How many images at most its gradients are averaged over.", minimum=1)
    cut_points: list[str] = setting(
        [],
        "Names of the cut points that it is measured at; with `*` or `?`, all that a name fits "
        "and none in networks that have no such name. If empty, the last of each stage; in a "
        "network of one stage, the stem, the last and three between.",
        items={"minLength": 1},
        uniqueItems=True,
    )
    batch_size: int = setting(16, "Images whose gradients are in memory at once.", minimum=1)


def choose_images(case: Case) -> Given:
    """Depend on which images are chosen."""
    return {"seed": case.study.analysis.seed}


RECEPTIVE_FIELD = Measure(
    needs="model",
    table=TABLE,
    question="Where networks look",
    figures={"receptive_field": FigureKind()},
    settings=Settings,
    arguments=together(whole_settings, choose_images, named(bootstrap=bootstrap)),
    takes=passes_of(VIEWS, keeps="gradient"),
    about_features=True,
)
