"""How much of what is not the mean token a head lets through, and how much it can at most.

The table `attention_low_pass`: one row per model, attention and head; and one for the mean of its
heads.

The high frequencies of tokens are what is left when their mean is taken from each. The rows of
attention sum to one, so that the mean of the values adds nothing to them: of the output of a head,
they are the centred matrix times those of the values, and their norm (Frobenius) is at most the
spectral norm of that matrix, the `bound`, times the norm of those of the values. `let_through` is
the quotient of both norms, of the values and the output of the network; it is 1 where nothing is
lost. The centred matrix is the attention of all queries to all keys of a window, the class token
included, less the mean of its rows. Of several windows, the bound is the largest, and norms are of
all together. It is never above the rate that Wang et al. 2022 derive from logits alone, for n
tokens and logits between -a and a: the square root of n exp(2a) / (exp(2a) + n - 1).

Values are means over images, but `room`, the least over images and windows: the share of the bound
that is left when what passed is taken from it, less 0.00001 of the norm of the values, which
rounding may add. `let_through` is null where the values of an image are alike up to this rounding.
All are null for attention of one query, and where the network does not multiply values by what is
read of its attention, as with talking heads. `room` is null for networks that compute in less than
32 bits, which round more. It is above 0 wherever the attention that was read is what was used: it
checks the measure, and no claim is about it.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    bootstrap,
    images_to_show,
    passes_of,
)
from vitscope.settings.section import setting

TABLE = Table(
    "attention_low_pass",
    {
        "model": ("string", "model, as the study names it"),
        "attention": ("int32", "which attention of the network, 0 for the first"),
        "name": ("string", "module that computes it"),
        "index": ("int32", "cut point after it, or the last one if there is none"),
        "stage": ("int32", "stage of that cut point"),
        "depth": ("float64", "normalized depth of that cut point"),
        "heads": ("int32", "heads of this attention"),
        "head": ("int32", "head, 0 for the first; null for the mean over all"),
        "images": ("int64", "number of images"),
        "bound": ("float64", "most of the high frequencies of any values that can pass"),
        **interval_columns("of bound", "bound"),
        "let_through": ("float64", "what passed of the high frequencies of the values"),
        **interval_columns("of let_through", "let_through"),
        **resampled_column("let_through"),
        "room": ("float64", "least share of the bound that what passed leaves"),
    },
)


@dataclass(frozen=True)
class Settings:
    """How much of what is not the mean token heads let through."""

    images: int = setting(
        50, "How many images are used, the first of those that are measured.", minimum=1
    )


def choose_images(case: Case) -> Given:
    """Depend on which images are measured, and how intervals are made."""
    return {"chosen": images_to_show(case), "bootstrap": bootstrap(case)}


ATTENTION_LOW_PASS = Measure(
    needs="model",
    table=TABLE,
    question="Where networks look",
    figures={
        "attention_low_pass": FigureKind(
            drawn_by="by_head",
            values={
                "value": "let_through",
                "label": "High frequencies,\noutput over values",
                "reference": "bound",
                "named": "bound, mean of heads",
            },
        ),
    },
    settings=Settings,
    arguments=choose_images,
    # A pass of each image, and the singular values of its attention.
    takes=passes_of(10, batch=1),
    reads_attention=True,
)
