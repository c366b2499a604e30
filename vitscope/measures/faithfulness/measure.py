"""Faithfulness of class maps: how a class goes while what a map names is deleted, or inserted.

The table `faithfulness`: one row per model, method, change, and share of the pixels.

Every image is explained as in `class_maps`, whose settings apply. A map is resized to the image
(bilinear), and its pixels are taken in the order of their values, the largest first, equal ones in
random order. `deleted` pixels become zero after normalization; `inserted` ones replace those of the
image blurred (Petsiuk et al. 2018). After every step the network is asked for the probability of
the class that was explained. The sooner it falls by deletion, and rises by insertion, the more
faithful is a map.

The method `random` is a map of random values at as many positions as that of `grad_cam`: what says
nothing of an image does as well as this.

`area` is the area below the curve of an image, by the trapezoidal rule, where all pixels are a
width of 1; its interval is of the mean over images.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.class_maps.measure import PASSES, explained
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Measure,
    bootstrap,
    images_to_show,
    named,
    only,
    passes_of,
)
from vitscope.settings.section import setting

TABLE = Table(
    "faithfulness",
    {
        "model": ("string", "model, as the study names it"),
        "method": ("string", "grad_cam, gradient_rollout, rollout or random"),
        "change": ("string", "what is done with pixels: deleted or inserted"),
        "share": ("float64", "how many have been changed, as a share of all pixels"),
        "images": ("int64", "number of images"),
        "probability": ("float64", "probability of the class that is explained, mean over images"),
        **interval_columns("of it over images"),
        "area": ("float64", "area below the curve, mean over images, in all rows of the curve"),
        **interval_columns("of it over images", name="area"),
        **resampled_column("area"),
    },
)
# At most so many methods there are, a random map with them, and so many changes.
_METHODS, _CHANGES = 4, 2


@dataclass(frozen=True)
class Settings:
    """How faithful class maps are, by deletion and insertion."""

    images: int = setting(
        50, "How many images are used, the first of those that are measured.", minimum=1
    )
    steps: int = setting(16, "In how many equal steps pixels are changed.", minimum=1)
    blur: float = setting(
        0.1,
        "Standard deviation of the blur of the image into which pixels are inserted, as a share of "
        "the shorter side.",
        exclusiveMinimum=0,
    )
    seed: int = setting(0, "Seed of the random maps, and of the order of equal pixels.", minimum=0)


def count_views(case: Case) -> int:
    """Count what an explanation takes, and a pass for every step of every curve."""
    settings: Settings = case.settings
    return PASSES + _METHODS * _CHANGES * (settings.steps + 1)


FAITHFULNESS = Measure(
    needs="model",
    table=TABLE,
    question="Where networks look",
    figures={"deletion": FigureKind(), "insertion": FigureKind()},
    settings=Settings,
    arguments=named(
        explained=explained,
        chosen=images_to_show,
        changed=only("steps", "blur", "seed"),
        bootstrap=bootstrap,
    ),
    takes=passes_of(count_views),
    by_label=False,
)
