"""Probes: how well classes can be read from the vectors of images, and how far apart they lie.

The table `probe`: how well classes are read from vectors at each cut point.

The table has a row for each model, cut point, vector (`of`) and way to read it (`by`). The vectors
of an image are the mean of its tokens; its first prefix token, which in most networks is the class
token; and one token at a place that was drawn for the image. A network without prefix tokens has no
rows for them.

Images are assigned to five folds at random, by index, so that folds do not depend on shards. Each
fold is classified by a probe that was fitted on the other four, so that no probe reads an image
that it was fitted on. `linear` is ridge regression on classes as zeros and ones, with an intercept,
and with channels scaled to unit variance. For each fold, the penalty is chosen by the accuracy on
another fold that was left out for this purpose. `neighbours` is a vote of the nearest vectors by
cosine, each with the weight exp(cosine / 0.07) (Wu et al. 2018). The interval is over the images
that are classified; it does not say how probes that were fitted on other images would differ.

A part has one row per cut point, image and vector. It holds only the vectors, not the maps: with 25
cut points of 768 channels and 4 tokens, 0.5 MB for each image. While parts are merged, memory holds
one part, or one cut point of all images; other cut points wait in a temporary folder.

The table `class_separation`: one row per model, cut point and vector, `mean` or `prefix`.

`separation` is 1 minus the mean cosine distance of two images of one class, over that of any two,
where each class counts alike (Kornblith et al. 2021): 0 where classes lie as anything else does, 1
where all vectors of a class point the same way. Other than theirs, no image is a pair with itself,
which would raise it where images are few. `nc1` (Papyan et al. 2020) is the trace of the scatter
within classes times the pseudo-inverse of the scatter of their means, over the number of classes:
it falls to 0 where each class collapses to a point, and is too low where a class has fewer images
than channels. Both are null where all vectors are alike. `separation` leaves out a class of which
there is a single image, and `nc1` is null where there is one.

The table `probe_tokens`: two rows per model and cut point, for position and pixels.

A token is the vector of all channels at one position of a feature map; some tokens of each image
are drawn (`analysis.probe.tokens`). The position of a token is the row and the column of its
middle. Its pixels are those of its cell of the image, as 4 x 4 means of each colour, or fewer if
the cell has fewer pixels. Both are read by ridge regression like the classes in `probe`, in five
folds of images, with the penalty chosen by the squared error. Tokens are first scaled to the same
norm, so that the length of outliers alone causes no errors.

`r2` is the share of the squared deviations that is read: 1 minus the sum of squared errors divided
by the sum of squared distances from the mean target of the images that the probe was fitted on. It
is 0 where nothing is read, and below 0 where a probe misleads; for the position, it is null in maps
with a single position. An outlier is a token whose norm is more than `token_norms.threshold` times
the median norm of its image. If fewer than ten images have an outlier among the drawn tokens,
columns about outliers are null.
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
    passes_of_measure,
    refuse_few_measured_images,
    selection,
    together,
)
from vitscope.measures.outliers import TokenNormsSettings
from vitscope.settings.section import setting

MEAN, PREFIX, TOKEN = "mean", "prefix", "token"
LINEAR, NEIGHBOURS = "linear", "neighbours"
TARGETS = POSITION, PIXELS = "position", "pixels"

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

# The number of folds of images: each fold is read by a probe that was fitted on the others.
FOLDS = 5


@dataclass(frozen=True)
class ProbeSettings:
    """The probes, which read the class and the place from vectors at each cut point."""

    tokens: int = setting(
        4,
        "Tokens of each image that are read by themselves, at places that are drawn for it and "
        "are the same at all cut points.",
        minimum=1,
    )
    neighbours: int = setting(20, "Nearest vectors that vote for a class.", minimum=1)


def refuse_unfit_for_probe(case: Case) -> None:
    refuse_few_measured_images(case, FOLDS)
    study, model = case.study, case.model
    if study.dataset_of(model).classes is None:
        raise VitscopeError(
            f"{study.path}: a figure of the kind '{case.measure.name}' needs the classes of "
            f"images, and data.{study.models[model].data} has none: leave models.{model} out of it."
        )


PROBE = Measure(
    needs="model",
    measure="vectors:measure_probe",
    table=PROBE_TABLE,
    part=PROBE_PART,
    question="How networks classify",
    figures={"probe": FigureKind("show:plot_probe", "claims:CLAIMS_PROBE")},
    settings=ProbeSettings,
    arguments=together(selection, only("tokens")),
    takes=passes_of_measure(1),
    shares="shards",
    merge=Merge("reading:merge_probe", together(only("neighbours"), bootstrap), at_cut_points=True),
    about_features=True,
    needs_labels=True,
    refuse=refuse_unfit_for_probe,
)

CLASS_SEPARATION = Measure(
    needs="parts",
    table=Table(
        "class_separation",
        {
            **AT_CUT_POINT,
            "classes": ("int64", "number of classes among them"),
            "of": ("string", "vector: mean or prefix"),
            "separation": ("float64", "1 minus cosine distances within classes over all distances"),
            **interval_columns(),
            **resampled_column("separation"),
            "nc1": ("float64", "scatter within classes over that of their means, per class"),
        },
    ),
    parts_of="probe",
    question="How networks classify",
    figures={"class_separation": FigureKind("show:plot_class_separation")},
    settings_of=("probe", ProbeSettings),
    merge=Merge("separation:merge_class_separation", bootstrap, at_cut_points=True),
    needs_labels=True,
    refuse=refuse_unfit_for_probe,
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
    figures={
        "probe_tokens": FigureKind(
            "show:plot_probe_tokens", "claims:CLAIMS_PROBE_TOKENS", options=Multiples
        )
    },
    settings_of=("probe", ProbeSettings),
    merge=Merge(
        "reading:merge_probe_tokens",
        lambda case: {
            "threshold": case.study.section("token_norms", TokenNormsSettings).threshold,
            **bootstrap(case),
        },
        at_cut_points=True,
    ),
    refuse=partial(refuse_few_measured_images, least=FOLDS),
)
