"""Probes: what is read of classes from the vectors of images, by depth.

The table `probe`: how well classes are read from vectors at each cut point.

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

The table `probe_tokens`: two rows per model and cut point, of its position and of its pixels.

A token is the vector of all channels at one position of a feature map; some are drawn of each
image (`analysis.probe.tokens`). Position is the row and the column of its middle. Pixels are what
the network is shown in its cell of the image, as 4 x 4 means of each colour, or as many as there
are. Both are read by ridge regression as classes are in `probe`, in five folds of images; the
penalty is chosen by the squared error. Tokens are scaled to one norm before, so that outliers are
not misread for their length alone.

`r2` is the share of the squared deviations that is read: 1 minus the squared errors over the
squared distances to the mean of the images that the probe was fitted on. It is 0 where nothing is
read, and below 0 where a probe misleads; it is null for the position in a map of one. An outlier is
a token whose norm is more than `token_norms.threshold` times the median of its image; where fewer
than ten images have one among the drawn tokens, nothing is said of outliers.
"""

from dataclasses import dataclass
from functools import partial

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, OF_IMAGE, interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Measure,
    Merge,
    Multiples,
    bootstrap,
    only,
    passes_of,
    refuse_fewer,
    selection,
    together,
)
from vitscope.measures.tokens.measure import TokenNormsSettings
from vitscope.settings.section import setting

MEAN, PREFIX, TOKEN = "mean", "prefix", "token"
LINEAR, NEIGHBOURS = "linear", "neighbours"
POSITION, PIXELS = "position", "pixels"

PROBE_TABLE = Table(
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

PROBE_PART = Table(
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

# A probe reads one fold of the images after it was fitted on the others.
FOLDS = 5


@dataclass(frozen=True)
class ProbeSettings:
    """What is read from vectors at each cut point, of classes and of places."""

    tokens: int = setting(
        4,
        "Tokens of each image that are read by themselves, at places that are drawn for it and "
        "are the same at all cut points.",
        minimum=1,
    )
    neighbours: int = setting(20, "Nearest vectors that vote for a class.", minimum=1)


def refuse_few_images(case: Case) -> None:
    refuse_fewer(case, FOLDS)
    study, model = case.study, case.model
    if study.dataset_of(model).classes is None:
        raise VitscopeError(
            f"{study.path}: a figure of the kind '{case.measure.name}' needs the classes of "
            f"images, and data.{study.models[model].data} has none: leave models.{model} out of it."
        )


PROBE = Measure(
    needs="model",
    table=PROBE_TABLE,
    part=PROBE_PART,
    question="How networks classify",
    figures={"probe": FigureKind()},
    settings=ProbeSettings,
    arguments=together(selection, only("tokens")),
    takes=passes_of(1),
    shares="shards",
    merge=Merge(together(only("neighbours"), bootstrap), at_cut_points=True),
    about_features=True,
    needs_labels=True,
    refuse=refuse_few_images,
)

PROBE_TOKENS_TABLE = Table(
    "probe_tokens",
    {
        **AT_CUT_POINT,
        "tokens": ("int64", "number of tokens"),
        "target": ("string", "what is read: position or pixels"),
        "r2": ("float64", "share of the squared deviations that is read"),
        **interval_columns(),
        "outliers": ("int64", "number of tokens that are outliers"),
        "r2_outliers": ("float64", "the same share among outliers; null if these are few"),
        "difference": ("float64", "the share among other tokens minus the one among outliers"),
        **interval_columns(name="difference"),
        **resampled_column("difference"),
        "penalty": ("float64", "median of the chosen penalties, each for a token"),
    },
)

PROBE_TOKENS = Measure(
    needs="parts",
    table=PROBE_TOKENS_TABLE,
    parts_of="probe",
    question="What becomes of tokens",
    figures={"probe_tokens": FigureKind(options=Multiples)},
    settings_of=("probe", ProbeSettings),
    merge=Merge(
        lambda case: {
            "threshold": case.study.section("token_norms", TokenNormsSettings).threshold,
            **bootstrap(case),
        },
        at_cut_points=True,
    ),
    refuse=partial(refuse_fewer, least=FOLDS),
)
