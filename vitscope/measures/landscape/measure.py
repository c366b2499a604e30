"""Landscapes: the loss on a plane of weights."""

from dataclasses import dataclass
from typing import Literal

from vitscope.measures.landscape.grid import claimed
from vitscope.measures.landscape.table import TABLE
from vitscope.measures.measure import Case, FigureKind, Given, Measure, Work, whole_settings
from vitscope.settings.section import setting

# What a pass in bfloat16 takes, of one in float32; measured are 0.34 to 0.67.
SHARE_OF_BFLOAT16 = 0.4
# Where the weights were, and two directions to move them in.
VECTORS = 3


@dataclass(frozen=True)
class Settings:
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


def choose_rows(case: Case) -> Given:
    """Depend on the settings and the rows of the grid; a weight decay of 0 leaves L2 out."""
    decay = case.study.weight_decay(case.model) if case.settings.l2 else 0
    rows = [case.steps.start, case.steps.stop]
    return {**whole_settings(case), "rows": rows, "weight_decay": decay}


def count_passes(case: Case) -> Work:
    """Count a pass of each augmented image at each point of the rows."""
    settings: Settings = case.settings
    of_claims = len(claimed(settings.points, settings.radius, case.steps))
    points = len(case.steps) * settings.points + of_claims * (settings.directions - 1)
    share = 1 if settings.precision == "float32" else SHARE_OF_BFLOAT16
    count = points * case.study.analysis.augmented.images * share
    return Work(count, settings.batch_size, vectors=VECTORS)


LANDSCAPE = Measure(
    needs="loss",
    table=TABLE,
    question="How networks train",
    figures={
        "landscape": FigureKind(published=frozenset({"measure", "value"}), for_claims=True),
        "landscape_contour": FigureKind(),
        "landscape_slices": FigureKind(),
    },
    settings=Settings,
    arguments=choose_rows,
    takes=count_passes,
    shares=("points", "rows_per_job"),
)
