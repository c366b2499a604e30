"""Class maps: what the score of a class depends on in an image, and how faithful that is.

The table `class_maps`: one row per model, image that is shown, and method. The score is the logit
of the class that the network predicts, or of `class_maps.of_class` if that is set; for a category
of several outputs, it is the logarithm of their mean probability.

- `grad_cam` (Selvaraju et al. 2017): the positive part of a weighted sum of the channels of the
  feature map at a cut point; the weight of a channel is the gradient of the score with respect to
  the channel, averaged over positions. By default, the cut point is the last at which the score of
  the first image depends on more than one position: in a network with a class token, it lies before
  the last attention, after which only the class token counts.
- `layer_cam` (Jiang et al. 2021): the same at the same cut point, but each value of the feature map
  has a weight of its own, the positive part of the gradient of the score with respect to it.
- `gradient_rollout` (Chefer et al. 2021): the matrix of an attention is the mean over heads of the
  positive part of the attention times the gradient of the score with respect to it, plus the
  identity for the shortcut; rows are not normalized. These matrices are multiplied through the
  network, and the identity is subtracted from the product. The map is the row of the class token
  or, where a network has none, the mean over the rows of all queries. This is their rule for
  self-attention in "Generic Attention-Model Explainability", not their propagation of relevance
  through all layers.
- `rollout`: as in the table `attention_rollout`, with the mean of heads; it is the same for all
  classes.

Each map is divided by its largest value. Networks without attention have no rollouts.

The table `faithfulness`: one row per model, method, change, and share of the pixels.

Every image is explained as in `class_maps`, whose settings apply. A map is resized to the image
(bilinear), and pixels are changed step by step, by descending value of the map, pixels of equal
value in random order. `deleted` pixels become zero, after the image is normalized; `inserted`
pixels replace the pixels of the blurred image (Petsiuk et al. 2018). After every step, the network
gives the probability of the class that was explained. The sooner this probability falls by deletion
and rises by insertion, the more faithful is the map.

The method `random` is a map of random values with as many positions as the map of `grad_cam`. A map
that says nothing about an image does as well as this random map.

`area` is the area below the curve of an image, by the trapezoidal rule, with the share of changed
pixels (0 to 1) along the x axis; its interval is for the mean over images.
"""

from dataclasses import asdict, dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    bootstrap,
    images_to_show,
    named,
    only,
    passes_of_measure,
)
from vitscope.settings.section import setting

CLASS_MAPS_TABLE = Table(
    "class_maps",
    {
        "model": ("string", "model, as the study names it"),
        "image": ("int64", "row of the image in its split"),
        "method": ("string", "grad_cam, layer_cam, gradient_rollout or rollout"),
        "of": ("string", "cut point of both CAMs; of rollouts: class token, or mean of queries"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "values": ("list of float64", "value of each position, row by row; 1 is the largest"),
        "picture": ("binary", "the image, as a PNG file"),
        "class_name": ("string", "class whose score is explained"),
        "confidence": ("float64", "probability of that class"),
    },
)
# The cost per image: a forward pass, and a backward pass that costs two forward passes.
PASSES = 3

METHODS = {
    "grad_cam": "Grad-CAM",
    "layer_cam": "LayerCAM",
    "gradient_rollout": "gradient rollout",
    "rollout": "rollout",
}


@dataclass(frozen=True)
class ClassMapsSettings:
    """What the score of a class depends on."""

    images: int = setting(3, "How many images are shown, the first of those measured.", minimum=1)
    cut_point: str | int | None = setting(
        None,
        "Where Grad-CAM and LayerCAM read: the name of a cut point, or a number from 0 on, from "
        "the end if below 0; null for the last of several positions on which the score depends.",
    )
    of_class: int | None = setting(
        None,
        "Number of the class that is explained; null for the one that is predicted.",
        minimum=0,
    )


def class_map_settings(case: Case) -> Given:
    """Return the settings of class maps, except `images`: all measures of class maps share them."""
    settings = asdict(case.study.section("class_maps", ClassMapsSettings))
    del settings["images"]
    return settings


CLASS_MAPS = Measure(
    needs="model",
    measure="compute:measure_class_maps",
    table=CLASS_MAPS_TABLE,
    question="Where networks look",
    figures={"class_maps": FigureKind("show:plot_class_maps")},
    settings=ClassMapsSettings,
    arguments=named(explained=class_map_settings, chosen=images_to_show),
    takes=passes_of_measure(PASSES, batch=1, keeps="gradient"),
    by_label=False,
)

FAITHFULNESS_TABLE = Table(
    "faithfulness",
    {
        "model": ("string", "model, as the study names it"),
        "method": ("string", "grad_cam, layer_cam, gradient_rollout, rollout or random"),
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
_METHODS = 5  # the maximum, with the random map
_CHANGES = 2  # deleted and inserted


@dataclass(frozen=True)
class FaithfulnessSettings:
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
    """Count passes per image: for its explanation, and one for each step of each curve."""
    settings: FaithfulnessSettings = case.settings
    return PASSES + _METHODS * _CHANGES * (settings.steps + 1)


FAITHFULNESS = Measure(
    needs="model",
    measure="compute:measure_faithfulness",
    table=FAITHFULNESS_TABLE,
    question="Where networks look",
    figures={
        "deletion": FigureKind(
            "show:plot_faithfulness", "claims:CLAIMS_DELETION", values={"change": "deleted"}
        ),
        "insertion": FigureKind(
            "show:plot_faithfulness", "claims:CLAIMS_INSERTION", values={"change": "inserted"}
        ),
    },
    settings=FaithfulnessSettings,
    arguments=named(
        explained=class_map_settings,
        chosen=images_to_show,
        changed=only("steps", "blur", "seed"),
        bootstrap=bootstrap,
    ),
    takes=passes_of_measure(count_views),
    by_label=False,
)
