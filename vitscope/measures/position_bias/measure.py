"""Position bias: what attention adds for the offset between two positions.

The table `position_bias`: one row per model, layer that attends, and head.

A relative position bias is what a layer adds to the product of a query and a key, before the
softmax, depending on the offset between their positions. `values` has it by offset, row by row,
from the key farthest above and to the left to the key farthest below and to the right: in the
middle is the bias of a position to itself. Where attention is in windows, offsets are within a
window.

Biases are distinguished from masks by their values, which are equal for all pairs of positions with
the same offset. They may be computed from any parameters: a table, or a network of the offset.
"""

from vitscope.files.tables import Table
from vitscope.measures.measure import FigureKind, Measure

TABLE = Table(
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
    table=TABLE,
    question="What the first layer and positions hold",
    figures={"position_bias": FigureKind()},
)
