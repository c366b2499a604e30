"""The table `attention_rollout`: one row per model and image that is shown.

The rollout of an image is how much each position of the map at the first attention would contribute
to the output if attention were all that moves information between positions (Abnar & Zuidema 2020):
the `fusion` over the heads of each attention, plus the identity for the shortcut, with rows
normalized, multiplied through the network; of the product, the row of the class token or, where a
network has none, the mean over the rows of all queries. It is divided by its largest value.
Everything else in a network, such as convolutions and MLPs, is assumed to move nothing.

Where there are windows, a query takes nothing from outside its own. Where a map is pooled, a
position takes equally from the positions that it covers; where keys are pooled, the attention to a
key is shared equally by the positions that it covers.
"""

from vitscope.files.tables import Table

TABLE = Table(
    "attention_rollout",
    {
        "model": ("string", "model, as the study names it"),
        "image": ("int64", "row of the image in its split"),
        "fusion": ("string", "how heads are combined: mean, max or min"),
        "of": ("string", "which row is shown: class token, or mean of queries"),
        "height": ("int32", "rows of the map"),
        "width": ("int32", "columns of the map"),
        "rollout": ("list of float64", "value of each position, row by row; 1 is the largest"),
        "picture": ("binary", "the image, as a PNG file"),
    },
)
