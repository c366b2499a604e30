"""Shape against texture: what a model goes by where the two disagree.

The table `shape_texture`: one row per model and class, and one for all classes.

Images whose shape and texture belong to one class are left out. An image is decided by its shape if
the class of the shape is predicted. The interval resamples images, and so both shares together;
resamples without a decision for either cue are left out. It is null for a single image. A class has
a row if it is the shape of an image; the row of all images keeps the resamples.

Of images that people were asked about, `cue_conflict`, the error consistency of Geirhos et al.
(2020) is the mean over people of Cohen's kappa of whether the model and the person name the shape
of an image, over all images, also those whose cues agree: 0 is chance, 1 the same errors.
"""

from dataclasses import dataclass

from vitscope.errors import VitscopeError, quoted, unknown
from vitscope.files.tables import Table
from vitscope.measures.classification.measure import Settings as Classification
from vitscope.measures.columns import resampled_column
from vitscope.measures.measure import Case, FigureKind, Measure, bootstrap
from vitscope.settings.section import setting

TABLE = Table(
    "shape_texture",
    {
        "model": ("string", "model, as the study names it"),
        "class_name": ("string", "class of the shape; all for all images"),
        "images": ("int64", "number of images whose cues are of two classes"),
        "shape_accuracy": ("float64", "share of the images that are told by their shape"),
        "texture_accuracy": ("float64", "share of the images that are told by their texture"),
        "shape_bias": ("float64", "share of shape in decisions for either; null if none is"),
        "ci_low": ("float64", "lower end of the 95 % bootstrap interval of the shape bias"),
        "ci_high": ("float64", "upper end of the 95 % bootstrap interval of the shape bias"),
        **resampled_column("shape_bias"),
        "consistency": ("float64", "error consistency with people; null if none were asked"),
        "consistency_low": ("float64", "lower end of its 95 % bootstrap interval"),
        "consistency_high": ("float64", "upper end of its 95 % bootstrap interval"),
    },
)


@dataclass(frozen=True)
class Settings:
    """Whether a model decides by shape or by texture if the two show different classes."""

    split: str = setting(
        "conflict",
        "The split of the data set, whose images say `shape` and `texture`: `shapes32` has one, "
        "`cue_conflict` no other.",
    )
    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


def refuse_unknown_split(case: Case) -> None:
    """Refuse a split that a data set lacks."""
    study, split, model = case.study, case.settings.split, case.model
    splits = study.dataset_of(model).splits
    if split not in splits:
        at = f"analysis.shape_texture.split, for models.{model} on data.{study.models[model].data}"
        raise unknown(study.path, at, split, splits)


def refuse_split(case: Case) -> None:
    """Refuse a split that is classified in two ways."""
    study, ours = case.study, case.settings
    theirs = study.section("classification", Classification)
    if ours.split == study.analysis.split and ours.images != theirs.images:
        raise VitscopeError(
            f"{study.path}: analysis.shape_texture.images: found {quoted(ours.images)}, "
            f"allowed: the same as analysis.classification.images, which is "
            f"{quoted(theirs.images)}: both are of the split '{ours.split}'."
        )


SHAPE_TEXTURE = Measure(
    needs="predictions",
    table=TABLE,
    question="How networks classify",
    figures={
        "shape_texture": FigureKind(published=frozenset({"decisions", "consistency"}), others=True)
    },
    settings=Settings,
    arguments=bootstrap,
    by_label=False,
    own_split=True,
    refuse=refuse_unknown_split,
    refuse_settings=refuse_split,
)
