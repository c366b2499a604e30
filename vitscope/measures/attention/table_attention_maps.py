"""The table `attention_maps`: one row per model, image, query and head that is shown.

A map is the attention of a query to each key, as the network computes it: the values of a query sum
to one, including keys without a place in the image, such as the class token, which no map shows.
There is no attention to keys outside the window of a query.
"""

from vitscope.files.tables import Table

TABLE = Table(
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
        "picture": ("binary", "the image, as a PNG file"),
    },
)
