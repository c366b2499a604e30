"""Landscapes: the loss on a plane of weights.

The table `landscape`: one row per model, pair of directions and point of the grid, x fastest.

The trained weights are at 0, 0. The first pair of directions, 0, has the whole grid. Other pairs
have only the points that claims are about: the middle, its four neighbours, and the points at a
distance of about 0.5. For the scores after `l2_squared`, the label of an image is the most probable
class of its target, as the authors define it. If the logits of an image are not finite, the losses
and scores of the point are null.
"""

from dataclasses import dataclass
from math import hypot
from typing import Literal

from vitscope.errors import wrong
from vitscope.files.tables import Columns, Table
from vitscope.measures.columns import SCORES
from vitscope.measures.measure import Case, FigureKind, Given, Measure, whole_settings
from vitscope.measures.work import Work
from vitscope.settings.section import setting

Point = tuple[float, float]

# Claims compare landscapes at this distance from the trained weights.
RADIUS = 0.5
# Limits of distances are multiplied by this, so that points at a limit count despite rounding.
ROUNDING = 1 + 1e-6


def coordinates(points: int, radius: float) -> list[float]:
    """Return the positions along an axis; `points` is odd, so the middle one is exactly 0."""
    half = (points - 1) // 2
    return [radius * step / half for step in range(-half, half + 1)]


def grid(points: int, radius: float, rows: range | None = None) -> list[Point]:
    """Return the points of the grid, or only of some `rows`; x varies fastest."""
    steps = coordinates(points, radius)
    return [(x, steps[row]) for row in (rows or range(points)) for x in steps]


def landscape_points_for_claims(
    points: int, radius: float, rows: range | None = None
) -> list[Point]:
    """Return the grid points that claims need, of some `rows` if given; x varies fastest.

    They are the trained weights, their four neighbours, and the ring at `RADIUS`.
    """
    step = 2 * radius / (points - 1)
    return [
        point
        for point in grid(points, radius, rows)
        if hypot(*point) <= step * ROUNDING or about_radius(hypot(*point), step)
    ]


def about_radius(distance: float, step: float) -> bool:
    """Tell whether a point at this distance lies on the ring: at `RADIUS`, within half a step."""
    return abs(distance - RADIUS) <= step / 2 * ROUNDING


# Descriptions that replace the ones in SCORES, because targets are soft.
_BY_TARGET: Columns = {
    "accuracy": ("float64", "share of the images whose most probable target is predicted"),
    "top5": ("float64", "share of images whose target is among the five most probable"),
}

TABLE = Table(
    "landscape",
    {
        "model": ("string", "model, as the study names it"),
        "direction": ("int32", "pair of random directions, from 0; figures draw that"),
        "x": ("float64", "steps along the first direction"),
        "y": ("float64", "steps along the second direction"),
        "images": ("int64", "number of augmented images"),
        "clean": ("bool", "whether the images are not augmented"),
        "precision": ("string", "of the forward passes: float32 or bfloat16"),
        "weight_decay": ("float64", "weight of the L2 term; 0 if the loss has none"),
        "loss": ("float64", "nll + weight_decay x l2, as the paper draws it; null as nll"),
        "loss_squared": ("float64", "nll + weight_decay / 2 x l2_squared, whose slope decays"),
        "nll": ("float64", "negative log-likelihood of the targets; null where logits overflow"),
        "l2": ("float64", "sum of the 2-norms of all parameter tensors"),
        "l2_squared": ("float64", "sum of their squares"),
        **{name: _BY_TARGET.get(name, column) for name, column in SCORES.items() if name != "nll"},
    },
)

# The cost of a pass in bfloat16, relative to float32; 0.34 to 0.67 were measured.
SHARE_OF_BFLOAT16 = 0.4
# Copies of the weights in memory: the trained weights and two directions.
VECTORS = 3


@dataclass(frozen=True)
class LandscapeSettings:
    """The loss on a plane through the trained weights."""

    points: int = setting(
        21,
        "Points along each axis of the grid.",
        minimum=3,
        not_={"multipleOf": 2},
        title="an odd whole number from 3, so that the trained weights are a point",
    )
    radius: float = setting(
        1.0, "How far the grid reaches along each direction, both ways.", exclusiveMinimum=0
    )
    images: int | None = setting(
        None,
        "How many of the augmented images the loss is the mean of; null for all.",
        minimum=1,
    )
    directions: int = setting(
        5,
        "Pairs of random directions. The first one has the whole grid, the others the points that "
        "claims are about, which have an interval over two pairs or more.",
        minimum=1,
    )
    seed: int = setting(0, "Seed of the directions.", minimum=0)
    rows_per_job: int = setting(
        3,
        "How many rows of the grid one job measures; results do not depend on it.",
        result=False,
        minimum=1,
    )
    l2: bool = setting(
        True,
        "Add the weight decay term to the loss; without it the landscape is not the one that "
        "training sees.",
    )
    precision: Literal["auto", "float32", "bfloat16"] = setting(
        "auto",
        "Precision of the forward passes; `auto` takes bfloat16 if the processor has fast "
        "instructions for it.",
    )
    batch_size: int = setting(
        32,
        "Images per forward pass. On a CPU few are faster than many, since the values between "
        "layers stay in its cache; on a GPU it is the other way round.",
        minimum=1,
    )


def choose_rows_of_split(case: Case) -> Given:
    """Return the settings, the rows of the grid, and the weight decay: 0 to leave out L2."""
    decay = case.study.weight_decay(case.model) if case.settings.l2 else 0
    rows = [case.steps.start, case.steps.stop]
    return {**whole_settings(case), "rows": rows, "weight_decay": decay}


def count_passes_of_landscape(case: Case) -> Work:
    """Count a pass for each augmented image at each point in the rows of the part."""
    settings: LandscapeSettings = case.settings
    of_claims = len(landscape_points_for_claims(settings.points, settings.radius, case.steps))
    points = len(case.steps) * settings.points + of_claims * (settings.directions - 1)
    share = 1 if settings.precision == "float32" else SHARE_OF_BFLOAT16
    images = settings.images or case.study.analysis.augmented.images
    count = points * images * share
    return Work(count, settings.batch_size, vectors=VECTORS)


def refuse_more_images_than_drawn(case: Case) -> None:
    wanted, there = case.settings.images, case.study.analysis.augmented.images
    if wanted is not None and wanted > there:
        raise wrong(
            case.study.path,
            "analysis.landscape.images",
            wanted,
            f"at most {there}, which is analysis.augmented.images.",
        )


LANDSCAPE = Measure(
    needs="loss",
    measure="compute:measure_landscape",
    table=TABLE,
    question="How networks train",
    figures={
        "landscape": FigureKind(
            "show:plot_landscape",
            "claims:CLAIMS_LANDSCAPE",
            published=frozenset({"measure", "value"}),
            for_claims=True,
        ),
        "landscape_contour": FigureKind("show:plot_landscape_contour"),
        "landscape_slices": FigureKind("show:plot_landscape_slices"),
    },
    settings=LandscapeSettings,
    arguments=choose_rows_of_split,
    takes=count_passes_of_landscape,
    shares=("points", "rows_per_job"),
    refuse=refuse_more_images_than_drawn,
)
