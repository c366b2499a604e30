"""The loss and the error between networks: on the line through two, on the plane through three.

The table `interpolation`: one row per pair of models and point of the line; two where running
statistics are reset.

At a `share` s of the way, each weight is (1 - s) times that of the first model and s times that of
the second, whose weights have the same names and shapes; running statistics are such weights, whole
numbers are those of the first. Images and scores are those of `predictions`: at the ends the rows
are the scores of the two models. `nll_excess` and `error_excess` are how much higher the value is
than on the straight line between the values at both ends of the same curve. The largest of them is
the barrier (Frankle et al. 2020, Entezari et al. 2022), which is 0 if no point is above that line.

In rows with `reset`, the running statistics of batch normalization are computed anew at each point
(Izmailov et al. 2018; Jordan et al. 2023): the mean over batches of `analysis.batch_size` images of
their statistics, in one pass, while all else is as in evaluation. The images are the augmented
training images of the first model, those of `analysis.augmented`, whose split is another than that
of the images that are scored, unless a study says so. A last batch that is smaller is left out. A
notebook resets if `loss=` says how images are augmented, and has only the images that are looked
at. Networks without running statistics have no such rows.

The table `plane`: one row for each of three models, whose weights have the same names and shapes,
and one per point of a grid over the plane that contains the three (Garipov et al. 2018). The axes
are orthonormal by Gram-Schmidt: `x` is the distance from the first model towards the second, `y`
from their line towards the third, by the 2-norm of all parameters, running statistics aside. A
point has `other_share` times the weights of the second model, `third_share` times those of the
third, and the rest of the first; beyond the triangle shares are negative or above 1.

A row of a model has the scores of its `predictions`. On the grid, running statistics are reset as
above; where they cannot be, or `analysis.plane.reset_images` is 0, they are mixed as weights are.
Beyond the triangle a variance may then be negative, and the scores are null.
"""

from dataclasses import dataclass

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.measures.measure import (
    Case,
    FigureKind,
    ImagesToClassify,
    Measure,
    check_measure_of_augmented,
    images_to_classify,
    only,
    together,
)
from vitscope.measures.work import Work, work_for_images
from vitscope.settings.section import setting

TABLE = Table(
    "interpolation",
    {
        "model": ("string", "first model of the pair, as the study names it"),
        "other_model": ("string", "second model of the pair"),
        "share": ("float64", "share of the second model in the weights, 0 to 1"),
        "reset": ("bool", "whether running statistics are computed anew at the point"),
        "images": ("int64", "number of images"),
        "nll": ("float64", "mean negative log-likelihood; null where logits overflow"),
        "nll_excess": (
            "float64",
            "nll less the line between both ends; its barrier is the maximum",
        ),
        "error": ("float64", "share of wrong predictions, in percent; null as nll"),
        "error_excess": ("float64", "error less the line between both ends, in points"),
    },
)

PLANE_TABLE = Table(
    "plane",
    {
        "model": ("string", "first model, as the study names it"),
        "other_model": ("string", "second model"),
        "third_model": ("string", "third model"),
        "network": ("int64", "1 to 3: the row is of this model; 0: of a point of the grid"),
        "x": ("float64", "distance from the first model along the line to the second"),
        "y": ("float64", "distance from that line towards the third model"),
        "other_share": ("float64", "share of the second model in the weights"),
        "third_share": ("float64", "share of the third model in the weights"),
        **{name: TABLE.columns[name] for name in ("reset", "images", "nll", "error")},
    },
)


@dataclass(frozen=True)
class InterpolationSettings(ImagesToClassify):
    """The line between the weights of two networks of one shape."""

    points: int = setting(11, "Points of the line, with both ends.", minimum=2)
    reset_images: int = setting(
        1024,
        "How many of the augmented images, at most, running statistics are reset on; 0 to leave "
        "this out, where networks have none or there are no training images.",
        minimum=0,
    )


@dataclass(frozen=True)
class PlaneSettings(InterpolationSettings):
    """The plane through the weights of three networks of one shape."""

    points: int = setting(11, "Points along each side of the grid.", minimum=2)
    margin: float = setting(
        0.25,
        "How far the grid goes beyond the networks, as a share of their width and height.",
        minimum=0,
    )


def count_passes_between(case: Case) -> Work | None:
    """Count a pass at each point for each image, and for each image that resets statistics."""
    settings, of_line = case.settings, case.measure.models == 2
    augmented = min(settings.reset_images, case.study.analysis.augmented.images)
    points = settings.points if of_line else settings.points**2
    # A line is scored with a reset and without; a plane once, as each of its networks.
    scored = points * (1 + (augmented > 0)) if of_line else points + 3
    work = work_for_images(scored, settings.images, case.images, case.batch_size)
    if work is None:
        return None
    # All networks are in memory.
    vectors = case.measure.models
    return Work(work.passes + points * augmented, work.batch, vectors=vectors, most=augmented > 0)


def refuse_unlike_models(case: Case) -> None:
    """Refuse models with interventions or of two data sets, and statistics without images."""
    study, name = case.study, case.measure.name
    if case.settings.reset_images:
        try:
            check_measure_of_augmented(study, name)
        except VitscopeError as error:
            none = f"Or say analysis.{name}.reset_images: 0, to reset no statistics."
            raise VitscopeError(f"{error} {none}") from error
    shown = {key: each for key, each in study.figures.items() if each.measure == name}
    for key, figure in shown.items():
        for one, other in ((one, other) for one, *others in figure.groups for other in others):
            where = f"{study.path}: figures.{key}.{figure.named_by}: found '{one}' and '{other}'"
            first, second = study.models[one], study.models[other]
            if first.interventions or second.interventions:
                raise VitscopeError(
                    f"{where}, allowed: two models without interventions, which are in no weights."
                )
            if first.data != second.data or (first.mean, first.std) != (second.mean, second.std):
                raise VitscopeError(
                    f"{where} on data.{first.data} and data.{second.data}, allowed: two models on "
                    f"one data set, with the same mean and std."
                )


INTERPOLATION = Measure(
    needs="line",
    measure="compute:measure_interpolation",
    table=TABLE,
    question="How networks train",
    figures={"interpolation": FigureKind("show:plot_interpolation")},
    settings=InterpolationSettings,
    arguments=together(images_to_classify, only("points", "reset_images")),
    takes=count_passes_between,
    models=2,
    refuse_settings=refuse_unlike_models,
)

PLANE = Measure(
    needs="line",
    measure="compute:measure_plane",
    table=PLANE_TABLE,
    question="How networks train",
    figures={"plane": FigureKind("show_plane:plot_plane")},
    settings=PlaneSettings,
    arguments=together(images_to_classify, only("points", "margin", "reset_images")),
    takes=count_passes_between,
    models=3,
    refuse_settings=refuse_unlike_models,
)
