"""The table `probe`: how well classes are read from vectors at each cut point.

It has a row for each model, cut point, vector (`of`) and way to read it (`by`). The vectors of an
image are the mean of its tokens, its first prefix token, which in most networks is the class token,
and one token at a place that was drawn for the image: a network without prefix tokens has no such
rows.

Images are dealt to five folds at random, by their numbers: how they were cut into shards makes no
difference. Each fold is classified by what was fitted on the other four, so that no image is read
by a probe that has seen it. `linear` is ridge regression on classes as zeros and ones, of channels
scaled to unit variance, with an intercept; of its penalties one is chosen for each fold, by the
accuracy on another one that was left out for that. `neighbours` is a vote of the nearest vectors by
cosine, each with the weight exp(cosine / 0.07) (Wu et al. 2018). The interval is over the images
that are classified; it does not say how probes that were fitted on other images would differ.

A part has one row per cut point, image and vector. It has the vectors and nothing of the maps: with
25 cut points of 768 channels and 4 tokens, 0.5 MB for each image. To merge, one part and one cut
point of all images are in memory, and no more; the others wait in a temporary folder.
"""

from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, OF_IMAGE, interval_columns, resampled_column

MEAN, PREFIX, TOKEN = "mean", "prefix", "token"
LINEAR, NEIGHBOURS = "linear", "neighbours"
# What `probe_tokens` reads from tokens.
POSITION, PIXELS = "position", "pixels"

TABLE = Table(
    "probe",
    {
        **AT_CUT_POINT,
        "classes": ("int64", "number of classes among them"),
        "of": ("string", "vector that is read: mean, prefix or token"),
        "by": ("string", "how it is read: linear or neighbours"),
        "accuracy": ("float64", "share of the images whose class is found"),
        **interval_columns(),
        **resampled_column("accuracy"),
        "chance": ("float64", "share of the images that are of the most frequent class"),
        "network": ("float64", "accuracy of the network itself; null if it has no classifier"),
        "penalty": ("float64", "median of the chosen penalties, each for an image; of linear"),
    },
)

PART = Table(
    "probe_per_image",
    {
        **OF_IMAGE,
        "label": ("int64", "class of the image, -1 if that is unknown"),
        "predicted": ("int64", "class that the network predicts, -1 if it has no classifier"),
        "of": ("string", "vector: mean, prefix or token"),
        "token": ("int32", "number of the token among those drawn, else 0"),
        "row": ("float64", "middle of the token, 0 at the top and 1 at the bottom; else null"),
        "column": ("float64", "middle of the token, 0 at the left and 1 at the right; else null"),
        "norm": ("float64", "norm of the token over the median of its image; else null"),
        "vector": ("list of float32", "value of each channel"),
        "pixels": ("list of float32", "what the network is shown where the token is; else empty"),
    },
)
