"""The table `attention_rollout`: one row per model and image that is shown.

The rollout of an image is what the output takes of each position of the map that the first
attention is of, if attention were all that moves anything (Abnar & Zuidema 2020): of each
attention the `fusion` over heads, plus the identity for the shortcut, rows normalized, multiplied
through the network; then the row of the token of the class or, where a network has none, the mean
of the rows of all queries. It is scaled by its largest value. What a network does between
attentions, such as convolutions and MLPs, is taken to move nothing.

Where windows are, a query takes nothing of what lies outside of its own. Where a map is pooled, a
position takes of those that it covers alike; where keys are pooled, what a query takes of a key is
shared alike by the positions that the key covers.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "attention_rollout",
    {
        "model": ("string", "model, as the study names it"),
        "image": ("int64", "row of the image in its split"),
        "fusion": ("string", "what is taken of the heads: mean, max or min"),
        "of": ("string", "whose row is shown: class token, or mean of queries"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "rollout": ("list of float64", "value of each position, row by row; 1 is the largest"),
        "picture": ("binary", "the image, as a file of the format PNG"),
    },
)
