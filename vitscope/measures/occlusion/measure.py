"""Occlusion and shuffling: accuracy while patches of images are dropped, or change their places.

The table `occlusion`: one row per model and disturbance, and one for images as they are.

Each image is cut into a grid of equal patches. Some of them become black, which is zero before
normalization; or all of them are put in a random order. What is drawn depends on a seed, on the
number of the draw and on the row of the image in its split, and on nothing else: all models whose
images are cut alike get the same. Of one draw, the patches of a larger share are those of a smaller
one and others. Of a share, patches are counted rounded down.

`mean_kept` tells how much of its accuracy a model keeps: the mean accuracy over all shares that are
dropped, or over all grids that are shuffled, divided by the accuracy on the images as they are. It
is null where that is 0, and its interval where that is 0 in a resample of the images.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Measure,
    bootstrap,
    images_to_classify,
    named,
    only,
    passes_of,
)
from vitscope.settings.section import setting

# Most vision transformers cut 224 pixels into 14 patches of 16.
FINEST = 14


def grid_of(grid: int | None, size: ImageSize) -> int:
    """Return the number of patches along a side; by default the largest that fits, up to 14."""
    return grids_of(None if grid is None else [grid], size)[-1]


def grids_of(grids: Sequence[int] | None, size: ImageSize) -> Sequence[int]:
    """Check that equal patches fill the images; by default return all grids that fit, up to 14."""
    height, width = height_and_width(size)
    side = gcd(height, width)
    fitting = [grid for grid in range(2, side + 1) if side % grid == 0]
    chosen = [grid for grid in fitting if grid <= FINEST] if grids is None else grids
    for grid in chosen or [FINEST]:
        if grid not in fitting:
            allowed = ", ".join(map(str, fitting)) or "none: give them another image_size"
            raise VitscopeError(
                f"analysis.occlusion: images of {height} x {width} pixels cannot be cut into a "
                f"grid of {grid} x {grid} equal patches; grids that fit are {allowed}."
            )
    return chosen


def count_dropped(share: float, grid: int) -> int:
    """Return how many patches a share is, rounded down; take the share as the exact decimal."""
    return int(Fraction(str(share)) * grid**2)


TABLE = Table(
    "occlusion",
    {
        "model": ("string", "model, as the study names it"),
        "change": ("string", "what is done with patches: none, dropped or shuffled"),
        "grid": ("int32", "how many patches lie along each side of an image"),
        "dropped": ("int32", "how many patches are dropped"),
        "share": ("float64", "how many these are, as a share of all patches"),
        "images": ("int64", "number of images"),
        "draws": ("int32", "number of draws for every image"),
        "chance": ("float64", "accuracy of guessing: one over the number of classes"),
        "accuracy": ("float64", "share of the images whose class is found, mean over draws"),
        **interval_columns("of it over images"),
        "mean_kept": ("float64", "share of its accuracy that is kept, in all rows of a change"),
        **interval_columns("of it over images", name="kept"),
        **resampled_column("mean_kept"),
    },
)


@dataclass(frozen=True)
class Settings:
    """Patches of images that are dropped or shuffled."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )
    grid: int | None = setting(
        None,
        "How many patches lie along each side where some are dropped; null for as many as fit, "
        "up to 14.",
        minimum=2,
    )
    shares: list[float] = setting(
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "Which shares of the patches are dropped.",
        items={"exclusiveMinimum": 0, "maximum": 1},
        minItems=1,
        uniqueItems=True,
    )
    shuffled_grids: list[int] | None = setting(
        None,
        "How many patches lie along each side where they are shuffled; null for all numbers "
        "that fit, up to 14.",
        items={"minimum": 2},
        minItems=1,
        uniqueItems=True,
    )
    draws: int = setting(5, "How often patches are drawn for every image.", minimum=1)
    seed: int = setting(0, "Seed of the draws.", minimum=0)


def count_views(case: Case) -> int:
    """Count passes of the images: one without changes, and one for each draw of each change."""
    settings: Settings = case.settings
    size = case.study.dataset_of(case.model).image_size
    grids = grids_of(settings.shuffled_grids, size)
    return 1 + (len(settings.shares) + len(grids)) * settings.draws


def refuse_grids(case: Case) -> None:
    size = case.study.dataset_of(case.model).image_size
    with case.naming():
        grid_of(case.settings.grid, size)
        grids_of(case.settings.shuffled_grids, size)


OCCLUSION = Measure(
    needs="model",
    table=TABLE,
    question="How networks classify",
    figures={
        "occlusion": FigureKind(published=frozenset({"share", "accuracy"}), others=True),
        "shuffling": FigureKind(),
    },
    settings=Settings,
    arguments=named(
        chosen=images_to_classify,
        cut=only("grid", "shares", "shuffled_grids"),
        drawn=only("draws", "seed"),
        bootstrap=bootstrap,
    ),
    takes=passes_of(count_views),
    refuse=refuse_grids,
)
