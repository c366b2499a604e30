"""What attention looks at, in numbers: how far, how evenly, and whether queries differ.

The table `attention`: one row per model, attention and head; and one for the mean of its heads.

Attention is a softmax of products of queries and keys that are positions of the image, wherever a
network computes such a softmax. It is read as the network uses it, with its windows, pooled keys,
masks and biases. The place of a position, in pixels of the image, is traced through the forward
pass. A convolution or a pooling with a stride leaves the middle of a map where it was, so that keys
which a padded one makes may lie up to half a stride beside the pixels they are computed from (CvT).
Tokens without a place, such as the class token, are left out as queries and as keys in `distance`
and `nmi`, but not in `entropy`.

All values are means over the queries of an image, over its windows, and then over images. The
distance of a query is the mean distance to the keys, weighted by attention. Attention to tokens
without a place adds nothing to `distance`; `distance_renormalized` divides the distance of a query
by its attention to keys with a place (Park et al. 2023). `nmi` is the mutual information of query
and key, divided by the square root of the product of their entropies, with all queries equally
likely; before that, attention to tokens without a place is left out, 1e-8 is added to the rest, and
rows are normalized again. It is 0 if all queries attend alike. All values but `entropy` are null if
an attention has no query with a place, such as class attention. `distance_renormalized` leaves out
queries that attend to no key with a place, and `nmi` leaves out windows with one query or one key.

A part has one row per attention, image of a shard and head.

The table `attention_low_pass`: one row per model, attention and head; and one for the mean of its
heads.

The high frequencies of tokens are what is left of them after subtracting their mean. The rows of
attention sum to one, so that the mean of the values adds nothing to the high frequencies of a
head's output: these are the centred matrix of attention times the high frequencies of the values.
Their Frobenius norm is at most the spectral norm of that matrix, the `bound`, times the norm of the
high frequencies of the values. `let_through` is the norm for the output divided by the norm for the
values, as the network computes both; it is 1 if nothing is lost. The centred matrix is the
attention of all queries to all keys of a window, the class token included, minus the mean of its
rows. With several windows, `bound` is the largest of their bounds, and each norm is over all
windows. The bound is never above the rate that Wang et al. 2022 derive from logits alone, for n
tokens and logits between -a and a: the square root of n exp(2a) / (exp(2a) + n - 1).

All values are means over images, except `room`, which is the minimum over images and windows: the
share of the bound that the high frequencies of the output leave unused. Before, 0.00001 of the norm
of the values, as much as rounding may add, is subtracted from the norm of these high frequencies.
`let_through` is null if all values of an image are equal up to this rounding. All values are null
for attention with one query, and if the network does not multiply its values by the attention that
is read, as with talking heads. `room` is null for networks that compute in less than 32 bits, which
round more. It checks the measure, and no claim is about it: it is above 0 if the network used the
attention that was read.

The table `attention_maps`: one row per model, image, query and head that is shown.

A map is the attention of a query to each key, as the network computes it: the weights of a query
sum to one over all keys, including those without a place in the image, such as the class token,
which no map shows. A query does not attend to keys outside its window.

The subject is where a [mask](data.md#masks) of the image is white.

The table `attention_rollout`: one row per model and image that is shown.

The rollout of an image is how much each position of the feature map at the first attention would
contribute to the output if attention were all that moves information between positions (Abnar &
Zuidema 2020). For each attention, the `fusion` combines its heads, the lowest weights are left out
if a share is discarded, the identity is added for the shortcut, and rows are normalized. These
matrices are multiplied through the network. The rollout is the row of the product for the class
token or, where a network has none, the mean over the rows of all queries, divided by its largest
value. Everything else in a network, such as convolutions and MLPs, is assumed to move nothing.

Where there are windows, a query takes nothing from outside its window. Where a map is pooled, a
position takes equally from the positions that it covers; where keys are pooled, the attention to a
key is shared equally by the positions that it covers.
"""

from dataclasses import dataclass
from typing import Literal

from vitscope.files.tables import Columns, Table
from vitscope.measures.columns import interval_columns, resampled_column
from vitscope.measures.measure import (
    FigureKind,
    Measure,
    Merge,
    Multiples,
    bootstrap,
    images_to_show,
    named,
    only,
    passes_of_measure,
    selection,
    together,
)
from vitscope.settings.section import optional, setting

_ATTENTION: Columns = {
    "attention": ("int32", "which attention of the network, 0 for the first"),
    "name": ("string", "module that computes it"),
    "windows": ("int32", "windows of an image, within which it attends"),
    "queries": ("int32", "queries of a window, including those without a place"),
    "keys": ("int32", "keys of a window, including those without a place"),
    "distance_uniform": ("float64", "distance of queries that attend to all keys equally, pixels"),
    "distance_anywhere": (
        "float64",
        "distance of the same queries if they attend equally to all keys of all windows, pixels",
    ),
}
_OF_ROW: Columns = {
    "index": ("int32", "cut point after it, or the last one if there is none"),
    "stage": ("int32", "stage of that cut point"),
    "depth": ("float64", "normalized depth of that cut point"),
    "heads": ("int32", "heads of this attention"),
    "head": ("int32", "head, 0 for the first; null for the mean over all"),
    "images": ("int64", "number of images"),
}
_OF_HEAD: Columns = {
    "distance": ("float64", "mean distance of keys, weighted by attention, in pixels of the image"),
    "distance_renormalized": ("float64", "the same for the attention to keys that have a place"),
    "entropy": ("float64", "entropy of the attention of a query, nats"),
    "nmi": ("float64", "mutual information of query and key over the root of their entropies"),
}
VALUES = tuple(_OF_HEAD)

ATTENTION_TABLE = Table(
    "attention",
    {
        "model": ("string", "model, as the study names it"),
        **_ATTENTION,
        **_OF_ROW,
        **{
            column: kind
            for name, value in _OF_HEAD.items()
            for column, kind in {name: value, **interval_columns(f"of {name}", name)}.items()
        },
        # Resamples, null in rows that no claim is about.
        **resampled_column("distance"),
        **resampled_column("distance_renormalized"),
        **resampled_column("nmi"),
    },
)

ATTENTION_PART = Table(
    "attention",
    {
        **_ATTENTION,
        "index": ("int32", "cut point after it, or the number of cut points if there is none"),
        "image": ("int64", "row of the image in its split"),
        "head": ("int32", "head, 0 for the first"),
        **_OF_HEAD,
    },
)

# The cost of a pass that reads attention, relative to a pass that does not.
READING = 1.5


@dataclass(frozen=True)
class AttentionOptions(Multiples):
    """How distances are drawn."""

    renormalized: bool | None = optional(
        "For `attention_distance`: true, as if this is left out, where the attention to tokens "
        "without a place, such as the class token, is left out and the rest normalized again; "
        "false where the distance is multiplied with the attention as it is, so that attention to "
        "these tokens makes it shorter."
    )


ATTENTION = Measure(
    needs="model",
    measure="compute:measure_attention",
    table=ATTENTION_TABLE,
    part=ATTENTION_PART,
    question="Where networks look",
    figures={
        "attention_distance": FigureKind(
            "show:plot_attention_distance",
            "claims:CLAIMS_ATTENTION_DISTANCE",
            published=frozenset({"block", "attention_distance_px"}),
            options=AttentionOptions,
        ),
        "attention_entropy": FigureKind("show:plot_attention_entropy", options=Multiples),
        "attention_nmi": FigureKind(
            "show:plot_attention_nmi",
            "claims:CLAIMS_ATTENTION_NMI",
            published=frozenset({"block", "attention_nmi"}),
            options=Multiples,
        ),
    },
    arguments=selection,
    takes=passes_of_measure(READING),
    shares="shards",
    merge=Merge("heads:merge_attention", bootstrap, at_cut_points=True),
    reads_attention=True,
)

ATTENTION_LOW_PASS_TABLE = Table(
    "attention_low_pass",
    {
        "model": ("string", "model, as the study names it"),
        "attention": ("int32", "which attention of the network, 0 for the first"),
        "name": ("string", "module that computes it"),
        **_OF_ROW,
        "bound": ("float64", "most of the high frequencies of any values that can pass"),
        **interval_columns("of bound", "bound"),
        "let_through": ("float64", "what passed of the high frequencies of the values"),
        **interval_columns("of let_through", "let_through"),
        **resampled_column("let_through"),
        "room": ("float64", "least share of the bound that what passed leaves"),
    },
)


@dataclass(frozen=True)
class AttentionLowPassSettings:
    """The share of high frequencies (tokens minus their mean) that heads let through."""

    images: int = setting(
        50, "How many images are used, the first of those that are measured.", minimum=1
    )


ATTENTION_LOW_PASS = Measure(
    needs="model",
    measure="compute:measure_attention_low_pass",
    table=ATTENTION_LOW_PASS_TABLE,
    question="Where networks look",
    figures={
        "attention_low_pass": FigureKind(
            "show:plot_attention_low_pass", "claims:CLAIMS_ATTENTION_LOW_PASS", options=Multiples
        )
    },
    settings=AttentionLowPassSettings,
    arguments=named(chosen=images_to_show, bootstrap=bootstrap),
    # The cost per image: one pass, and the singular values of its attention.
    takes=passes_of_measure(10, batch=1),
    reads_attention=True,
)

ATTENTION_MAPS_TABLE = Table(
    "attention_maps",
    {
        "model": ("string", "model, as the study names it"),
        "name": ("string", "module that computes the attention"),
        "attention": ("int32", "which attention of the network, 0 for the first"),
        "image": ("int64", "row of the image in its split"),
        "shows": ("string", "heads: every head of one query; queries: one head of several"),
        "of": ("string", "whose attention: class token, mean of queries, or query"),
        "query_row": ("float64", "row of the query in pixels of the image, if it is one"),
        "query_column": ("float64", "its column"),
        "head": ("int32", "head, 0 for the first"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "weights": ("list of float64", "attention to each position, row by row"),
        "mass": ("float64", "share of the attention within the drawn line, if any"),
        "on_subject": ("float64", "share of the map that is on the subject; null without a mask"),
        "subject": ("float64", "share of the image that is its subject; null without a mask"),
        "picture": ("binary", "the image, as a PNG file"),
        "class_name": ("string", "class that the image is taken for; null without classes"),
        "confidence": ("float64", "probability of that class"),
    },
)


@dataclass(frozen=True)
class AttentionMapsSettings:
    """Maps of attention over images."""

    images: int = setting(2, "How many images are shown, the first of those measured.", minimum=1)
    block: str | int | None = setting(
        None,
        "Whose attention is shown: the name of a module, or a number from 0 on, from the end "
        "if below 0; null for the last that has queries with a place.",
    )
    query: list[float] | None = setting(
        None,
        "Whose attention all heads are shown of, as [row, column] in pixels of the image; null "
        "for the class token, or the mean of all queries where there is none.",
        items={"minimum": 0},
        minItems=2,
        maxItems=2,
    )
    queries: list[list[float]] = setting(
        [],
        "Whose attention one head is shown of, each as [row, column] in pixels of the image; "
        "empty for the middles of its four quarters.",
        items={"items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": 2},
    )
    head: int = setting(0, "Which head that is, from 0 on.", minimum=0)
    mass: float | None = setting(
        None,
        "The share of the attention that the brightest positions of a map hold, around which a "
        "line is drawn; null for no line.",
        exclusiveMinimum=0,
        exclusiveMaximum=1,
    )


@dataclass(frozen=True)
class AttentionMapsOptions:
    """How maps are drawn."""

    over: bool | None = optional(
        "For `attention_heads` and `attention_query`: whether maps lie over the image; false if "
        "left out."
    )
    own_scales: bool | None = optional(
        "For `attention_heads` and `attention_query`: whether each map has a scale of its own, up "
        "to its largest value; if left out, all maps of a model share one."
    )


ATTENTION_MAPS = Measure(
    needs="model",
    measure="maps:measure_attention_maps",
    table=ATTENTION_MAPS_TABLE,
    question="Where networks look",
    figures={
        "attention_heads": FigureKind(
            "show:plot_attention_maps",
            "claims:CLAIMS_ATTENTION_HEADS",
            values={"shows": "heads"},
            options=AttentionMapsOptions,
        ),
        "attention_query": FigureKind(
            "show:plot_attention_maps", values={"shows": "queries"}, options=AttentionMapsOptions
        ),
    },
    settings=AttentionMapsSettings,
    arguments=named(shows=only("block", "query", "queries", "head", "mass"), chosen=images_to_show),
    takes=passes_of_measure(batch=1),
    reads_attention=True,
)

ATTENTION_ROLLOUT_TABLE = Table(
    "attention_rollout",
    {
        "model": ("string", "model, as the study names it"),
        "image": ("int64", "row of the image in its split"),
        "fusion": ("string", "how heads are combined: mean, max or min; and what is discarded"),
        "of": ("string", "which row is shown: class token, or mean of queries"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "rollout": ("list of float64", "value of each position, row by row; 1 is the largest"),
        "on_subject": ("float64", "share of its sum that is on the subject; null without a mask"),
        "subject": ("float64", "share of the image that is its subject; null without a mask"),
        "picture": ("binary", "the image, as a PNG file"),
        "whole": ("binary", "the image before it is cut, as a PNG file; null if not kept"),
        "class_name": ("string", "class that the image is taken for; null without classes"),
        "confidence": ("float64", "probability of that class"),
    },
)


@dataclass(frozen=True)
class AttentionRolloutSettings:
    """What the output looks at, according to attention rollout."""

    images: int = setting(3, "How many images are shown, the first of those measured.", minimum=1)
    heads: Literal["mean", "max", "min"] = setting(
        "mean", "What is taken of the heads of an attention, for each query and key."
    )
    discard: float = setting(
        0.0,
        "The share of the weights of each attention, the lowest ones, that is left out; in "
        "large networks many small weights add up to an even rollout.",
        minimum=0,
        exclusiveMaximum=1,
    )


@dataclass(frozen=True)
class AttentionRolloutOptions:
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


ATTENTION_ROLLOUT = Measure(
    needs="model",
    measure="maps:measure_attention_rollout",
    table=ATTENTION_ROLLOUT_TABLE,
    question="Where networks look",
    figures={
        "attention_rollout": FigureKind(
            "show:plot_attention_rollout",
            "claims:CLAIMS_ATTENTION_ROLLOUT",
            options=AttentionRolloutOptions,
        )
    },
    settings=AttentionRolloutSettings,
    arguments=together(only("heads", "discard"), named(chosen=images_to_show)),
    # The cost per image: one pass, and the products of its attention matrices.
    takes=passes_of_measure(2, batch=1),
    reads_attention=True,
)
