"""The table `attention`: one row per model, attention and head; and one for the mean of its heads.

Attention is a softmax of products of queries and keys that are positions of the image, wherever a
network computes one. It is read as the network uses it, with its windows, pooled keys, masks and
biases. The place of a position, in pixels of the image, follows from the pass. Tokens without a
place, such as the class token, are left out as queries and keys in `distance` and `nmi`, but not in
`entropy`.

All values are means over the queries of an image, over its windows, and then over images. The
distance of a query is the mean distance of keys, weighted by attention; attention to tokens without
a place adds nothing to `distance`, and `distance_renormalized` divides by the attention that is
left (Park et al. 2023). For `nmi`, 1e-8 is added to attention without these tokens and rows are
normalized again; it is the mutual information of query and key over the root of the product of
their entropies, with all queries equally likely. It is 0 if all queries attend to the same keys.
Values are null if an attention has no query with a place, such as class attention. Queries without
attention to keys with a place are left out of `distance_renormalized`, and windows with one query
or one key out of `nmi`.

A part has one row per attention, image of a shard and head.
"""

from vitscope.files.tables import Columns, Table
from vitscope.measures.columns import interval_columns, resampled_column

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
_MEANINGS = {
    "distance": "mean distance of keys, weighted by attention, in pixels of the image",
    "distance_renormalized": "the same for the attention to keys that have a place",
    "entropy": "entropy of the attention of a query, nats",
    "nmi": "mutual information of query and key over the root of their entropies",
}
VALUES = tuple(_MEANINGS)


TABLE = Table(
    "attention",
    {
        "model": ("string", "model, as the study names it"),
        **_ATTENTION,
        "index": ("int32", "cut point after it, or the last one if there is none"),
        "stage": ("int32", "stage of that cut point"),
        "depth": ("float64", "normalized depth of that cut point"),
        "heads": ("int32", "heads of this attention"),
        "head": ("int32", "head, 0 for the first; null for the mean over all"),
        "images": ("int64", "number of images"),
        **{
            column: kind
            for name, meaning in _MEANINGS.items()
            for column, kind in (
                {name: ("float64", meaning)} | interval_columns(f"of {name}", name)
            ).items()
        },
        # Those of heads that no claim is about are null.
        **resampled_column("distance"),
        **resampled_column("distance_renormalized"),
        **resampled_column("nmi"),
    },
)

PART = Table(
    "attention",
    {
        **_ATTENTION,
        "index": ("int32", "cut point after it, or the number of cut points if there is none"),
        "image": ("int64", "row of the image in its split"),
        "head": ("int32", "head, 0 for the first"),
        **{name: ("float64", meaning) for name, meaning in _MEANINGS.items()},
    },
)
