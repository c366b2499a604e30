"""Singular values: how many directions the tokens of an image, and whole images, spread along.

The table `singular_values`: two rows per model and cut point, of its tokens and of its images.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token, do not count. The vectors of `tokens` are the tokens of one image, and their values are
averaged over images. The vectors of `images` are the means of the tokens of each image. The
singular values are those of the matrix of vectors by channels, after subtracting the mean vector:
at most as many as channels, or one less than vectors.

If both positions and channels are more than `analysis.singular_values.tokens`, as many positions
are drawn at random, the same in every image: `vectors` has their number.

The effective rank (Roy & Vetterli 2007) is exp(-Σ p log p), where p are the singular values over
their sum: their number if all are equal, 1 if there is one, 0 if there is none. Vectors that differ
by no more than the rounding of float32 have none: they add 0 to the mean of the effective rank, and
nothing to the mean spectrum. Maps with one position have no spectrum of tokens, and a single image
has no spectrum of images: null.

Singular values below a millionth of the first count as a millionth of it, which is the rounding of
float32. The rounding of latents in bfloat16 is up to some hundredths.

A part has one row per cut point and image of a shard.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, OF_IMAGE, interval_columns, resampled_column
from vitscope.measures.measure import FigureKind, Measure, Merge, Multiples, bootstrap, own_settings
from vitscope.settings.section import setting

TOKENS, IMAGES = "tokens", "images"
# Relative to the first singular value: below this is the rounding of float32.
FLOOR = 1e-6

TABLE = Table(
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

PART = Table(
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
class Settings:
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
    table=TABLE,
    part=PART,
    question="What becomes of tokens",
    figures={kind: FigureKind(options=Multiples) for kind in ("singular_values", "effective_rank")},
    settings=Settings,
    arguments=own_settings,
    merge=Merge(bootstrap, at_cut_points=True),
    # Measured for a ViT-Ti on images of CIFAR; computing eigenvalues takes the time.
    seconds_per_gb=9.0,
)
