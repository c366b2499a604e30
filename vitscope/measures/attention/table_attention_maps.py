"""The table `attention_maps`: one row per model, image, query and head that is shown.

A map says how much a query takes of each key, as the network computes it: all values of a query
sum to one, with those of keys that have no place in the image, such as the token of the class,
which no map shows. Keys that are outside of the window of a query are not attended to.
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
        "mass": ("float64", "share of the attention that a line is drawn around, if any"),
        "picture": ("binary", "the image, as a file of the format PNG"),
    },
)
