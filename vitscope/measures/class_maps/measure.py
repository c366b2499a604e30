"""Class maps: what the score of a class depends on in an image, by Grad-CAM and gradient rollout.

The table `class_maps`: one row per model, image that is shown, and method. The score is the logit
of the class that the network predicts, or of `class_maps.of_class`; of a category of several
outputs, it is the logarithm of their mean probability.

- `grad_cam` (Selvaraju et al. 2017): the positive part of a weighted sum of the channels of the
  feature map at a cut point; the weight of a channel is the mean over positions of the gradient of
  the score by it. By default, the cut point is the last whose map has more than one position and on
  whose positions the score of the first image depends: in a network with a class token that is
  before the last attention, behind which only the class token counts.
- `gradient_rollout` (Chefer et al. 2021): of each attention, the mean over heads of the positive
  part of the attention times the gradient of the score by it, plus the identity for the shortcut;
  rows are not normalized. These matrices are multiplied through the network; of the product less
  the identity, the row of the class token or, where a network has none, the mean over the rows of
  all queries. This is their rule for self-attention in "Generic Attention-Model Explainability",
  not their propagation of relevance through all layers.
- `rollout`: the same as in `attention_rollout`, the mean of heads; it is of no class.

Each map is divided by its largest value. Networks without attention have a `grad_cam` alone.
"""

from dataclasses import asdict, dataclass

from vitscope.files.tables import Table
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    images_to_show,
    named,
    passes_of,
)
from vitscope.settings.section import setting

TABLE = Table(
    "class_maps",
    {
        "model": ("string", "model, as the study names it"),
        "image": ("int64", "row of the image in its split"),
        "method": ("string", "grad_cam, gradient_rollout or rollout"),
        "of": ("string", "cut point of grad_cam; of rollouts: class token, or mean of queries"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "values": ("list of float64", "value of each position, row by row; 1 is the largest"),
        "picture": ("binary", "the image, as a PNG file"),
        "class_name": ("string", "class whose score is explained"),
        "confidence": ("float64", "probability of that class"),
    },
)
# Of each image: a pass, and one back, which takes two of these.
PASSES = 3


@dataclass(frozen=True)
class Settings:
    """What the score of a class depends on."""

    images: int = setting(3, "How many images are shown, the first of those measured.", minimum=1)
    cut_point: str | int | None = setting(
        None,
        "Where Grad-CAM reads: the name of a cut point, or a "
        "number from 0 on, from the end if below 0; null for the last of several positions on "
        "which the score depends.",
    )
    of_class: int | None = setting(
        None,
        "Number of the class that is explained; null for the one that is predicted.",
        minimum=0,
    )


def explained(case: Case) -> Given:
    """Depend on what is explained of an image, by whatever measure."""
    settings = asdict(case.study.section("class_maps", Settings))
    del settings["images"]
    return settings


CLASS_MAPS = Measure(
    needs="model",
    table=TABLE,
    question="Where networks look",
    figures={"class_maps": FigureKind()},
    settings=Settings,
    arguments=named(explained=explained, chosen=images_to_show),
    takes=passes_of(PASSES, batch=1, keeps="gradient"),
    by_label=False,
)
