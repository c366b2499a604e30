"""What selective scans look at: their hidden attention (Ali, Zimerman and Wolf 2024).

A selective scan, as of Mamba, Vim and VMamba, is linear in the sequence `u` that it reads, once its
steps `delta` and its `B` and `C` are given: position i of a channel takes from position j, which it
has passed, the share alpha[i, j] = C[i] . exp(A (delta[j + 1] + ... + delta[i])) . delta[j] B[j].
The skip `D` and the gate `z`, which stay in place, are not in it, nor is the convolution before it.
The weights of a scan are the mean, over its channels, of the absolute value of alpha; those of a
block are the sum of its scans, such as the two of Vim or the four of VMamba, at the places of
tokens in the image. Its hidden attention is these weights with each row, of a query, divided by its
sum.

The table `scans`: one row per model and cut point whose block scans.

The distance of a query is the mean distance to the tokens that it takes from, in pixels of the
image, weighted by hidden attention. It is averaged over the queries of an image, and over images.
Tokens without a place in the image, such as the class token, are left out as queries and as keys,
and rows are divided by the sum of the rest.

A part has one row per cut point and image of a shard.

The table `scan_maps`: one row per model, image and map that is shown.

A map that `shows` a query is a row of the hidden attention of one block; the row sums to one over
all tokens, of which those without a place are not shown. A map that `shows` the rollout multiplies
the hidden attention of all blocks, each with the identity added for the shortcut and rows divided
by their sum (Abnar and Zuidema 2020): it is the row of the class token or, where a network has
none, the mean of rows, divided by its largest value. Where maps are pooled between blocks, a
position takes equally from those that it covers.
"""

from dataclasses import dataclass

from vitscope.files.tables import Columns, Table
from vitscope.measures.columns import mean_columns, per_image_columns
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
)
from vitscope.settings.section import setting

_UNIFORM: Columns = {
    "uniform": ("float64", "distance if each scan took equally from all that it has passed"),
}
# An estimate of the cost of a pass: each two positions meet in each channel and state.
_SCANNING = 30

SCANS = Measure(
    needs="model",
    measure="compute:measure_scans",
    table=Table("scans", {**mean_columns("distance", "mean distance, in pixels"), **_UNIFORM}),
    part=Table("scans_per_image", {**per_image_columns("distance", "mean distance"), **_UNIFORM}),
    question="Where networks look",
    figures={"scan_distance": FigureKind("show:plot_scan_distance", options=Multiples)},
    arguments=selection,
    takes=passes_of_measure(_SCANNING),
    shares="shards",
    merge=Merge("merge:merge_scans", bootstrap, at_cut_points=True),
    about_features=True,
)


@dataclass(frozen=True)
class Settings:
    """Maps of the hidden attention of selective scans over images."""

    images: int = setting(3, "How many images are shown, the first of those measured.", minimum=1)
    block: int = setting(
        -1, "Which of the blocks that scan is shown, from 0 on, from the end if below 0."
    )
    queries: list[list[float]] = setting(
        [],
        "Whose hidden attention is shown, each as [row, column] in pixels of the image; empty for "
        "the class token or, where there is none, the middles of the four quarters.",
        items={"items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": 2},
    )


SCAN_MAPS = Measure(
    needs="model",
    measure="compute:measure_scan_maps",
    table=Table(
        "scan_maps",
        {
            "model": ("string", "model, as the study names it"),
            "image": ("int64", "row of the image in its split"),
            "shows": ("string", "query: a row of one block; rollout: all blocks"),
            "name": ("string", "cut point after the block; null for all blocks"),
            "of": ("string", "whose map it is: class token, query or mean of queries"),
            "row": ("float64", "row of the query in pixels of the image, if it is one"),
            "column": ("float64", "its column"),
            "height": ("int32", "rows of the map"),
            "width": ("int32", "columns of the map"),
            "weights": ("list of float64", "value of each position, row by row"),
            "picture": ("binary", "the image, as a PNG file"),
            "class_name": ("string", "class that the image is taken for; null without classes"),
            "confidence": ("float64", "probability of that class"),
        },
    ),
    question="Where networks look",
    figures={
        "scan_maps": FigureKind("show:plot_scan_maps", values={"shows": "query"}),
        "scan_rollout": FigureKind("show:plot_scan_maps", values={"shows": "rollout"}),
    },
    settings=Settings,
    arguments=named(shows=only("block", "queries"), chosen=images_to_show),
    takes=passes_of_measure(_SCANNING, batch=1),
    about_features=True,
)
