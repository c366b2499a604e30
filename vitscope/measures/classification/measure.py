"""Accuracy and calibration of the predictions of a model.

The table `classification`: one row per model.

The scores are as the paper's authors define them. A prediction is *confident* if its confidence is
above 0.9.

- `accuracy_90`: accuracy among confident predictions; null if none is confident
- `unconfidence_90`: among wrong predictions, the share that is not confident; null if none is
  wrong
- `iou`: TP / (TP + FP + FN) of each class, mean over the classes that occur as labels
- `iou_90`: `iou` of the confident predictions alone, over the classes that occur among their
  labels; null if none is confident
- `frequency_90`: the share of predictions that are confident
- `brier`: squared error of the probabilities against 1 for the label and 0 else, summed over
  classes, mean over images
- `ece`: share of images times the distance between accuracy and mean confidence, summed over the
  bins of `reliability`
- `signed_ece`: the same sum with mean confidence minus accuracy: positive if a model is
  overconfident
- `ece_calibrated`: the mean ECE of a calibrated network with the same confidences on the same
  number of images, that is, of predictions that are right as often as their confidence says. This
  part of the ECE is due to chance alone, and resamples add to it: if the ECE is near
  `ece_calibrated`, the interval of the ECE lies too high. `nll`, `brier` and `signed_ece` have no
  such bias.

Two details of the authors' code are left out: small numbers (1e-7) in denominators, which give 0
where the table has null, and bins that sum the confidence over [low, high) but count images over
(low, high]. If no confidence is on the edge of a bin, both together change no score by more than
1e-6.

The table `fit`: two rows per model.

The error is measured on `analysis.classification.images` images of `analysis.split`. The NLL is the
mean cross entropy with the mixed and smoothed targets of `analysis.fit.images` augmented images, in
evaluation mode and in float32; at best it is the entropy of these targets.
[`fit`](figures/how-networks-train.md#fit) says which images these are.

The table `reliability`: one row per model and bin of confidence.

Ten bins of equal width; a bin holds the images whose confidence is above `low` and not above
`high`.

The table `shape_texture`: one row per model and class, and one for all classes.

Images whose shape and texture belong to the same class are left out. An image is decided by its
shape if the predicted class is that of the shape. The interval resamples images, and so both shares
together; it leaves out resamples without a decision by shape or texture, and is null for a single
image. A class has a row if some image shows its shape. Only the row of all images keeps the
resamples.

For the images that people classified too (`cue_conflict`), the table has the error consistency of
Geirhos et al. (2020): the mean over people of Cohen's kappa of whether the model and the person
name the shape of an image. It counts all images, including those whose shape and texture show the
same class. 0 is chance, 1 is the same errors.

The table `beside_people`: one row per model and condition, and one for their mean.

Networks and people decide among the same 16 categories, by images of one of the sets of
`model_vs_human`. The error consistency of Geirhos et al. (2020) is Cohen's kappa of whether two are
right about each image of a condition: 0 is chance, 1 is the same errors. That of a model is the
mean over people, that of a person the mean over the other people; it is null where chance explains
all agreement, as of two that are always right. Intervals resample the images of each condition. The
row `mean` is the mean over conditions that are `counted`: those whose images were changed, and of
which people name more than a fifth, as the authors choose them.
"""

from dataclasses import dataclass

from vitscope.errors import quoted, unknown, wrong
from vitscope.files.tables import Table
from vitscope.measures.columns import SCORES, interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    ImagesToClassify,
    Measure,
    bootstrap,
    together,
)
from vitscope.measures.work import Work
from vitscope.settings.section import setting

CLASSIFICATION_TABLE = Table(
    "classification",
    {
        "model": ("string", "model, as the study names it"),
        "images": ("int64", "number of images"),
        **SCORES,
        **interval_columns("of ece over images", "ece"),
        "ece_calibrated": ("float64", "mean ece of a calibrated network of as many images"),
    },
)


@dataclass(frozen=True)
class ClassificationSettings(ImagesToClassify):
    """The accuracy and calibration of predictions."""


CLASSIFICATION = Measure(
    needs="predictions",
    measure="compute:measure_classification",
    settings=ClassificationSettings,
    table=CLASSIFICATION_TABLE,
    arguments=together(
        lambda case: {"classes": case.study.dataset_of(case.model).classes}, bootstrap
    ),
)

FIT_TABLE = Table(
    "fit",
    {
        "model": ("string", "model, as the study names it"),
        "metric": ("string", "error_percent on test images, or nll_train on augmented ones"),
        "images": ("int64", "number of images"),
        "value": ("float64", "share of wrong predictions, in percent; or the mean NLL"),
        **interval_columns("over images; null for nll_train"),
        **resampled_column("value"),
    },
)


@dataclass(frozen=True)
class FitSettings:
    """The loss on training images with the same augmentation for all models."""

    images: int = setting(
        2000,
        "How many images are drawn and augmented by the study's recipe; many, since whole "
        "batches are mixed or not mixed.",
        minimum=1,
    )


PUBLISHED = frozenset({"metric", "value", "images"})

FIT = Measure(
    needs="model",
    measure="fit:measure_fit",
    table=FIT_TABLE,
    question="How networks train",
    figures={
        "fit": FigureKind(
            "show:plot_fit",
            "claims:CLAIMS_FIT",
            sketch="vitscope.measures.sketches:sketch_fit",
            published=PUBLISHED,
        ),
        "fit_by_window": FigureKind(
            "show:plot_fit",
            "claims:CLAIMS_FIT_BY_WINDOW",
            sketch="vitscope.measures.sketches:sketch_fit",
            published=PUBLISHED,
        ),
    },
    settings=FitSettings,
    predictions_of=("classification", ClassificationSettings),
    arguments=bootstrap,
    takes=lambda case: Work(case.settings.images, case.batch_size),
    reads=("predictions", "alike"),
)

RELIABILITY_TABLE = Table(
    "reliability",
    {
        "model": ("string", "model, as the study names it"),
        "bin": ("int32", "bin of confidence, from 0"),
        "low": ("float64", "confidence above which the bin begins"),
        "high": ("float64", "highest confidence of the bin"),
        "images": ("int64", "number of images in the bin"),
        "accuracy": ("float64", "share of these whose class is found; null if there are none"),
        "confidence": ("float64", "their mean confidence; null if there are none"),
    },
)

RELIABILITY = Measure(
    needs="predictions",
    measure="compute:measure_reliability",
    table=RELIABILITY_TABLE,
    question="How networks classify",
    figures={"reliability": FigureKind("show:plot_reliability", beside=("classification",))},
    predictions_of=("classification", ClassificationSettings),
)

SHAPE_TEXTURE_TABLE = Table(
    "shape_texture",
    {
        "model": ("string", "model, as the study names it"),
        "class_name": ("string", "class of the shape; all for all images"),
        "images": ("int64", "number of images whose cues are of two classes"),
        "shape_accuracy": ("float64", "share of the images that are told by their shape"),
        "texture_accuracy": ("float64", "share of the images that are told by their texture"),
        "shape_bias": ("float64", "share of shape in decisions for either; null if none is"),
        **interval_columns("of the shape bias"),
        **resampled_column("shape_bias"),
        "consistency": ("float64", "error consistency with people; null if none were asked"),
        "consistency_low": ("float64", "lower end of its 95 % bootstrap interval"),
        "consistency_high": ("float64", "upper end of its 95 % bootstrap interval"),
    },
)


@dataclass(frozen=True)
class ShapeTextureSettings(ImagesToClassify):
    """Whether a model decides by shape or by texture if the two show different classes."""

    split: str = setting(
        "conflict",
        "The split of the data set, whose images say `shape` and `texture`: `shapes32` has one, "
        "`cue_conflict` no other.",
    )


def refuse_unknown_split_to_classify(case: Case) -> None:
    study, split, model = case.study, case.settings.split, case.model
    splits = study.dataset_of(model).splits
    if split not in splits:
        at = f"analysis.shape_texture.split, for models.{model} on data.{study.models[model].data}"
        raise unknown(study.path, at, split, splits)


def refuse_other_images_to_classify(case: Case) -> None:
    """Refuse a number of images that `classification` does not use for the same split."""
    study, ours = case.study, case.settings
    theirs = study.section("classification", ClassificationSettings)
    if ours.split == study.analysis.split and ours.images != theirs.images:
        allowed = (
            f"the same as analysis.classification.images, which is {quoted(theirs.images)}: both "
            f"are of the split '{ours.split}'."
        )
        raise wrong(study.path, "analysis.shape_texture.images", ours.images, allowed)


SHAPE_TEXTURE = Measure(
    needs="predictions",
    measure="shape_texture:measure_shape_texture",
    table=SHAPE_TEXTURE_TABLE,
    question="How networks classify",
    figures={
        "shape_texture": FigureKind(
            "show:plot_shape_texture",
            "claims:CLAIMS_SHAPE_TEXTURE",
            published=frozenset({"decisions", "consistency"}),
            others=True,
        )
    },
    settings=ShapeTextureSettings,
    arguments=bootstrap,
    by_label=False,
    own_split=True,
    refuse=refuse_unknown_split_to_classify,
    refuse_settings=refuse_other_images_to_classify,
)

BESIDE_PEOPLE_TABLE = Table(
    "beside_people",
    {
        "model": ("string", "model, as the study names it"),
        "set": ("string", "set of images that people were shown"),
        "position": ("int32", "position of the condition in the natural order of its set"),
        "condition": ("string", "condition, as files of the set name it; mean for their mean"),
        "counted": ("bool", "whether the mean over conditions counts it"),
        "images": ("int64", "number of images"),
        "accuracy": ("float64", "share of the images whose category is found"),
        **interval_columns("of the accuracy over images"),
        "consistency": ("float64", "error consistency with people"),
        **interval_columns("of the consistency over images", "consistency"),
        "people": ("int64", "number of people"),
        "people_accuracy": ("float64", "accuracy of people, their mean"),
        "people_accuracy_lowest": ("float64", "lowest accuracy of a person"),
        "people_accuracy_highest": ("float64", "highest accuracy of a person"),
        "people_consistency": ("float64", "error consistency among people, their mean"),
        "people_consistency_lowest": ("float64", "lowest consistency of a person with the others"),
        "people_consistency_highest": ("float64", "highest of a person with the others"),
    },
)

BESIDE_PEOPLE_SOURCE = "model_vs_human"


def refuse_images_not_shown(case: Case) -> None:
    """Refuse a data set of which no decisions of people are published."""
    model, source = case.study.models[case.model], case.study.dataset_of(case.model).source
    if source["kind"] != BESIDE_PEOPLE_SOURCE:
        at = f"data.{model.data}.source.kind, for models.{case.model} in a figure `beside_people`"
        raise wrong(case.study.path, at, source["kind"], f"{BESIDE_PEOPLE_SOURCE}.")


BESIDE_PEOPLE = Measure(
    needs="predictions",
    measure="beside_people:measure_beside_people",
    table=BESIDE_PEOPLE_TABLE,
    question="How networks classify",
    figures={"beside_people": FigureKind("show_beside_people:plot_beside_people")},
    predictions_of=("classification", ClassificationSettings),
    arguments=bootstrap,
    refuse=refuse_images_not_shown,
)
