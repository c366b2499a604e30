"""Tokens: their norms, how alike they are, their spectra, and their principal components.

The table `token_norms`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. Its norm is the root of the sum of squares over channels. The quantiles
are computed for the tokens of an image and averaged over images.

An outlier is a token whose norm is more than `threshold` times the median norm of its image.
Published thresholds are absolute numbers, such as 150 for DINOv2 (Darcet et al. 2024): they depend
on the scale of one network, and do not carry over to others.

A part has one row per cut point and image of a shard.

The table `token_similarity`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. The similarity is the mean cosine of all pairs of different tokens of an
image: 1 if all point the same way, 0 if they have nothing in common. It is null for maps with one
position.

A part has one row per cut point and image of a shard.

The table `mean_token`: one row per model and cut point.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. The energy of tokens is the sum of their squared norms; the share is the
part of the energy that remains if each token is replaced by the mean token: 1 if all tokens are
equal, 0 if they cancel. It is null for maps with one position.

A part has one row per cut point and image of a shard.

The table `singular_values`: two rows per model and cut point, one of tokens and one of images.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. In the row of `tokens`, the vectors are the tokens of one image, and
results are averaged over images. In the row of `images`, there is a vector for each image, the mean
of its tokens. The singular values are those of the matrix of vectors by channels, after subtracting
the mean vector. Their number is the number of channels or the number of vectors minus 1, whichever
is smaller.

If a map has more positions and more channels than `analysis.singular_values.tokens`, only that many
positions are used, drawn at random, the same in every image; `vectors` is their number.

The effective rank (Roy & Vetterli 2007) is exp(-Σ p log p), where p are the singular values divided
by their sum: the number of singular values if all are equal, 1 if only one is not zero, 0 if all
are zero. All count as zero if the vectors differ by no more than the rounding of float32; an image
with such tokens counts as 0 in the mean of the effective rank, and is left out of the mean
spectrum. Maps with one position have no spectrum of tokens, and a single image has no spectrum of
images: null.

Singular values below a millionth of the first count as a millionth of it, which is the rounding of
float32. The rounding of latents in bfloat16 is up to some hundredths.

A part has one row per cut point and image of a shard.

The table `token_pca`: one row per model and image that is shown.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token and registers, do not count. Outliers are left out: tokens whose norm is more than
`outliers` times the median norm of their image, as in `token_norms`. Components are those of the
tokens of all images together, centred and not scaled.

The foreground is one side of zero on the first component (Oquab et al. 2023): the side with the
smaller share of its tokens at the border of images or, if both shares are equal, with fewer tokens.
`components` are then those of the foreground alone. The largest loading of each component, in
absolute value, is positive.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import (
    AT_CUT_POINT,
    OF_IMAGE,
    interval_columns,
    mean_columns,
    per_image_columns,
    resampled_column,
)
from vitscope.measures.measure import (
    ByBlock,
    ByDepth,
    FigureKind,
    Measure,
    Merge,
    Multiples,
    bootstrap,
    images_to_show,
    mean_over_images,
    named,
    own_settings,
    passes_of_measure,
    together,
    whole_settings,
)
from vitscope.measures.outliers import TokenNormsSettings
from vitscope.settings.section import setting

QUANTILES = {"lowest": 0.0, "quartile": 0.25, "median": 0.5, "third_quartile": 0.75, "highest": 1.0}
_MEANINGS = {
    "lowest": "lowest norm of an image",
    "quartile": "norm that a quarter of the tokens of an image are below",
    "median": "median norm of an image",
    "third_quartile": "norm that three quarters of the tokens of an image are below",
    "highest": "highest norm of an image",
}

TOKEN_NORMS_TABLE = Table(
    "token_norms",
    {
        **AT_CUT_POINT,
        **{name: ("float64", f"{each}, mean over images") for name, each in _MEANINGS.items()},
        "threshold": ("float64", "times the median norm that an outlier is above"),
        "outliers": ("float64", "share of the tokens that are outliers"),
        **interval_columns(),
        "positions": (
            "list of float64",
            "share of the images whose token is an outlier, for each position, row by row",
        ),
    },
)

TOKEN_NORMS_PART = Table(
    "token_norms_per_image",
    {
        **OF_IMAGE,
        **{name: ("float64", each) for name, each in _MEANINGS.items()},
        "positions": ("list of int32", "positions of its outliers, counted row by row"),
    },
)


TOKEN_NORMS = Measure(
    needs="latents",
    measure="compute:measure_token_norms",
    table=TOKEN_NORMS_TABLE,
    part=TOKEN_NORMS_PART,
    question="What becomes of tokens",
    figures={
        "token_norms": FigureKind("show:plot_token_norms", options=Multiples),
        "token_outliers": FigureKind("show:plot_token_outliers"),
    },
    settings=TokenNormsSettings,
    arguments=own_settings,
    merge=Merge("compute:merge_token_norms", together(own_settings, bootstrap), at_cut_points=True),
    seconds_per_gb=0.6,
)

_COSINE = "mean cosine of all pairs of tokens"
_SHARE = "share of the energy of all tokens that their mean has"

TOKEN_SIMILARITY = Measure(
    needs="latents",
    measure="compute:measure_token_similarity",
    table=Table("token_similarity", mean_columns("similarity", f"{_COSINE}, mean over images")),
    part=Table("token_similarity_per_image", per_image_columns("similarity", _COSINE)),
    question="What becomes of tokens",
    figures={
        "token_similarity": FigureKind(
            "show:plot_token_similarity", "claims:CLAIMS_TOKEN_SIMILARITY", options=ByDepth
        )
    },
    merge=mean_over_images("similarity"),
    seconds_per_gb=0.6,
)

MEAN_TOKEN = Measure(
    needs="latents",
    measure="compute:measure_mean_token",
    table=Table("mean_token", mean_columns("share", f"{_SHARE}, mean over images")),
    part=Table("mean_token_per_image", per_image_columns("share", _SHARE)),
    question="What becomes of tokens",
    figures={
        "mean_token": FigureKind(
            "show:plot_mean_token", "claims:CLAIMS_MEAN_TOKEN", options=ByDepth
        )
    },
    merge=mean_over_images("share"),
    seconds_per_gb=0.6,
)

TOKENS, IMAGES = "tokens", "images"
# Singular values below this share of the first are rounding errors of float32.
FLOOR = 1e-6

SINGULAR_VALUES_TABLE = Table(
    "singular_values",
    {
        **AT_CUT_POINT,
        "of": ("string", "tokens of an image, or images"),
        "vectors": ("int32", "rows of the matrix: tokens that were taken, or images"),
        "most": ("int32", "singular values, as many as the effective rank may be"),
        "effective_rank": ("float64", "effective rank; of tokens, mean over images"),
        **interval_columns("over images, of tokens"),
        **resampled_column("effective_rank"),
        "log_ratios": (
            "list of float64",
            "log of each singular value over the first, in order; of tokens, mean over images",
        ),
    },
)

SINGULAR_VALUES_PART = Table(
    "singular_values_per_image",
    {
        **OF_IMAGE,
        "tokens": ("int32", "tokens that were taken"),
        "effective_rank": ("float64", "effective rank of the tokens; null for one token"),
        "log_ratios": ("list of float64", "log of each singular value over the first"),
        "pooled": ("list of float64", "mean of all tokens, by channel"),
    },
)


@dataclass(frozen=True)
class SingularValuesSettings:
    """The singular values of tokens and of pooled images."""

    tokens: int = setting(
        256,
        "If a map has more positions and more channels than this, as many positions are "
        "drawn, the same in every image.",
        minimum=2,
    )
    seed: int = setting(0, "Seed of the choice of these positions.", minimum=0)


SINGULAR_VALUES = Measure(
    needs="latents",
    measure="spectra:measure_singular_values",
    table=SINGULAR_VALUES_TABLE,
    part=SINGULAR_VALUES_PART,
    question="What becomes of tokens",
    figures={
        "singular_values": FigureKind("show:plot_singular_values", options=Multiples),
        "effective_rank": FigureKind(
            "show:plot_effective_rank", "claims:CLAIMS_EFFECTIVE_RANK", options=ByBlock
        ),
    },
    settings=SingularValuesSettings,
    arguments=own_settings,
    merge=Merge("spectra:merge_singular_values", bootstrap, at_cut_points=True),
    # Measured for a ViT-Ti on images of CIFAR, where eigenvalues take most of the time.
    seconds_per_gb=9.0,
)

# The maximum number of a video's frames that its components are computed from.
FRAMES_TOGETHER = 32

TOKEN_PCA_TABLE = Table(
    "token_pca",
    {
        "model": ("string", "model, as the study names it"),
        "image": ("int64", "row of the image in its split"),
        "of": ("string", "cut point"),
        "height": ("int32", "rows of the feature map"),
        "width": ("int32", "columns of the feature map"),
        "first": (
            "list of float64",
            "first component of all tokens at each position, row by row, above 0 in the "
            "foreground; NaN at outliers",
        ),
        "components": (
            "list of float64",
            "three components of the foreground at each position; NaN elsewhere",
        ),
        "explained": ("list of float64", "share of the variance of the foreground in each"),
        "foreground": ("float64", "share of the tokens that are in the foreground"),
        "outliers": ("float64", "share of the tokens that are outliers"),
        "on_subject": (
            "float64",
            "share of the foreground that is on the subject; null without a mask",
        ),
        "subject": ("float64", "share of the image that the subject takes; null without a mask"),
        "picture": ("binary", "the image, as a PNG file"),
    },
)


@dataclass(frozen=True)
class TokenPcaSettings:
    """The principal components of tokens."""

    images: int = setting(4, "How many images are shown, the first of those measured.", minimum=1)
    cut_point: str | int | None = setting(
        None,
        "Where tokens are read: the name of a cut point, or a number from 0 on, from the end if "
        "below 0; null for the last whose map has more than one position.",
    )
    outliers: float = setting(
        3.0,
        "A token is left out if its norm is more than this many times the median norm of the "
        "tokens of its image.",
        exclusiveMinimum=1,
    )
    foreground: bool = setting(
        True, "Whether the background is left out; if not, all tokens are the foreground."
    )


TOKEN_PCA = Measure(
    needs="model",
    measure="pca:measure_token_pca",
    table=TOKEN_PCA_TABLE,
    question="What becomes of tokens",
    figures={"token_pca": FigureKind("show_pca:plot_token_pca")},
    settings=TokenPcaSettings,
    arguments=together(whole_settings, named(chosen=images_to_show)),
    takes=passes_of_measure(batch=1),
    about_features=True,
)
