"""Parameters: the filters of the first layer, and what networks add for positions.

The table `patch_filters`: one row per model and filter, and one per principal component.

The filters belong to the first layer with weights that images pass through: the patch projection in
a ViT, the first convolution in other networks. Weights are taken as the layer uses them, for
example standardized. The principal components are computed from all filters of the layer, as
vectors, after subtracting the mean filter; the sign of a component is chosen so that the value that
is largest in absolute value is positive.

`values` are scaled over the whole filter or component: 0 is its lowest value, 1 its highest. The
frequency of a filter is the mean length of the frequency vectors of its Fourier transform, weighted
by power, in units of pi: 1 is the end of an axis. The mean of each channel counts as frequency 0.
The frequency is null if all weights are 0.

The table `position_similarity`: one row per model and position.

The position embedding is what the network adds to its tokens, different for each position and the
same for all images. It is read as the network uses it, for example after resizing. Tokens without a
position, such as the class token, are left out. If there are more positions than
`analysis.position_similarity.positions`, only every `step`-th row and column are compared and are
in the table.

A cosine is null if one of the two embeddings is zero.

The table `position_bias`: one row per model, layer that attends, and head.

A relative position bias is what a layer adds to the product of a query and a key, before the
softmax, depending on the offset between their positions. `values` are ordered by offset, row by
row, from the key farthest above and left to the key farthest below and right: the value in the
middle is the bias of a position to itself. In attention with windows, offsets are within a window.

Biases are distinguished from masks by their values, which are equal for all pairs of positions with
the same offset. They may be computed from any parameters: a table, or a network of the offset.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.measure import FigureKind, Measure, own_settings
from vitscope.settings.section import setting

PATCH_FILTERS_TABLE = Table(
    "patch_filters",
    {
        "model": ("string", "model, as the study names it"),
        "module": ("string", "name of the layer in the model"),
        "of": ("string", "filter, or component"),
        "number": ("int32", "number of the filter or of the component, from 0"),
        "count": ("int32", "how many filters the layer has, or components its filters have"),
        "channels": ("int32", "channels of the filter"),
        "height": ("int32", "rows of the filter"),
        "width": ("int32", "columns of the filter"),
        "lowest": ("float64", "lowest value, which is 0 in `values`"),
        "highest": ("float64", "highest value, which is 1 in `values`"),
        "frequency": ("float64", "mean frequency, in units of pi"),
        "share": ("float64", "share of a component in the variance of the filters; or null"),
        "values": ("list of float64", "scaled values, by row, column and channel"),
    },
)


@dataclass(frozen=True)
class PatchFiltersSettings:
    """The filters of the first layer, and their principal components."""

    filters: int = setting(128, "How many filters at most, from the first.", minimum=1)
    components: int = setting(28, "How many principal components at most.", minimum=1)


PATCH_FILTERS = Measure(
    needs="network",
    measure="patch_filters:measure_patch_filters",
    table=PATCH_FILTERS_TABLE,
    question="What the first layer and positions hold",
    figures={
        "patch_filters": FigureKind("show:plot_filter_tiles", values={"of": "filter"}),
        "patch_components": FigureKind(
            "show:plot_filter_tiles", "claims:CLAIMS_PATCH_COMPONENTS", values={"of": "component"}
        ),
    },
    settings=PatchFiltersSettings,
    arguments=own_settings,
)

POSITION_SIMILARITY_TABLE = Table(
    "position_similarity",
    {
        "model": ("string", "model, as the study names it"),
        "embedding": ("string", "parameter that is added, or else the module that adds it"),
        "height": ("int32", "rows of positions that are compared"),
        "width": ("int32", "columns of positions that are compared"),
        "step": ("int32", "how far apart in the network rows and columns are; 1 for all"),
        "row": ("int32", "row of the position among those that are compared"),
        "column": ("int32", "column of the position among those that are compared"),
        "norm": ("float64", "norm of its embedding"),
        "to_neighbours": ("float64", "mean cosine with those above, below, left and right"),
        "to_others": ("float64", "mean cosine with all others"),
        "products": ("list of float32", "dot product with every position, row by row"),
        "cosines": ("list of float32", "cosine with every position, row by row"),
    },
)


@dataclass(frozen=True)
class PositionSimilaritySettings:
    """The similarity of position embeddings."""

    positions: int = setting(
        2048,
        "If there are more positions, only every second row and column are compared, or every "
        "third, and so on.",
        minimum=4,
    )


POSITION_SIMILARITY = Measure(
    needs="network",
    measure="learned_positions:measure_position_similarity",
    table=POSITION_SIMILARITY_TABLE,
    question="What the first layer and positions hold",
    figures={
        "position_similarity": FigureKind(
            "show:plot_position_similarity", "claims:CLAIMS_POSITION_SIMILARITY"
        ),
        "position_products": FigureKind("show:plot_position_products"),
    },
    settings=PositionSimilaritySettings,
    arguments=own_settings,
)

POSITION_BIAS_TABLE = Table(
    "position_bias",
    {
        "model": ("string", "model, as the study names it"),
        "layer": ("int32", "number of the layer among those with a bias, from 0"),
        "module": ("string", "name of the layer in the model"),
        "head": ("int32", "number of the head, from 0; null where all heads share one bias"),
        "height": ("int32", "offsets down, from the least to the largest"),
        "width": ("int32", "offsets to the right, from the least to the largest"),
        "at_itself": ("float64", "bias of a position to itself"),
        "to_neighbours": ("float64", "mean bias to those above, below, left and right"),
        "lowest": ("float64", "lowest bias"),
        "highest": ("float64", "highest bias"),
        "values": ("list of float64", "bias by offset, row by row"),
    },
)

POSITION_BIAS = Measure(
    needs="network",
    measure="learned_positions:measure_position_bias",
    table=POSITION_BIAS_TABLE,
    question="What the first layer and positions hold",
    figures={"position_bias": FigureKind("show:plot_position_bias")},
)
