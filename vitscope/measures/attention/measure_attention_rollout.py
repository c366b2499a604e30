"""Attention rollout: what the output looks at, through all attention of a network.

The table `attention_rollout`: one row per model and image that is shown.

The rollout of an image is how much each position of the map at the first attention would contribute
to the output if attention were all that moves information between positions (Abnar & Zuidema 2020):
the `fusion` over the heads of each attention, less its lowest weights if a share of these is
discarded, plus the identity for the shortcut, with rows normalized, multiplied through the network;
of the product, the row of the class token or, where a network has none, the mean over the rows of
all queries. It is divided by its largest value. Everything else in a network, such as convolutions
and MLPs, is assumed to move nothing.

Where there are windows, a query takes nothing from outside its own. Where a map is pooled, a
position takes equally from the positions that it covers; where keys are pooled, the attention to a
key is shared equally by the positions that it covers.
"""

from dataclasses import dataclass
from typing import Literal

from vitscope.files.tables import Table
from vitscope.measures.measure import Case, FigureKind, Given, Measure, images_to_show, passes_of
from vitscope.settings.section import optional, setting

TABLE = Table(
    "attention_rollout",
    {
        "model": ("string", "model, as the study names it"),
        "image": ("int64", "row of the image in its split"),
        "fusion": ("string", "how heads are combined: mean, max or min; and what is discarded"),
        "of": ("string", "which row is shown: class token, or mean of queries"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "rollout": ("list of float64", "value of each position, row by row; 1 is the largest"),
        "picture": ("binary", "the image, as a PNG file"),
        "class_name": ("string", "class that the image is taken for; null without classes"),
        "confidence": ("float64", "probability of that class"),
    },
)


@dataclass(frozen=True)
class Settings:
    """What the output looks at, as attention rollout has it."""

    images: int = setting(3, "How many images are shown, the first of those measured.", minimum=1)
    heads: Literal["mean", "max", "min"] = setting(
        "mean", "What is taken of the heads of an attention, for each query and key."
    )
    discard: float = setting(
        0.0,
        (
            "The share of the weights of each attention, the lowest ones, that is left out; in "
            "large networks many small weights add up to an even rollout."
        ),
        minimum=0,
        exclusiveMaximum=1,
    )


@dataclass(frozen=True)
class Options:
    """How the rollout is drawn."""

    product: bool | None = optional(
        "For `attention_rollout`: whether the image is multiplied with the rollout, and so dark "
        "where that is low, in place of lying under it; false if left out."
    )
    clip: float | None = optional(
        "For `attention_rollout`: the share of the positions of each map, the highest ones, that "
        "are as bright as can be, so that a few of them do not leave all others black; 0.02 if "
        "left out, 0 for none.",
        minimum=0,
        exclusiveMaximum=1,
    )


def choose_images(case: Case) -> Given:
    """Depend on which images are shown, how heads are put together, and what is discarded."""
    settings = case.settings
    return {
        "heads": settings.heads,
        "discard": settings.discard,
        "chosen": images_to_show(case),
    }


ATTENTION_ROLLOUT = Measure(
    needs="model",
    table=TABLE,
    question="Where networks look",
    figures={"attention_rollout": FigureKind(options=Options)},
    settings=Settings,
    arguments=choose_images,
    # A pass of each image, and the products of attention.
    takes=passes_of(2, batch=1),
    reads_attention=True,
)
