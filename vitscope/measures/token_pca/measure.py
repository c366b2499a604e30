"""Principal components of tokens: what a network takes for alike, within and across images.

The table `token_pca`: one row per model and image that is shown.

A token is the vector of all channels at one position of a feature map; prefix tokens, such as the
class token and registers, do not count. Outliers are left out: tokens whose norm is more than
`outliers` times the median norm of their image, as in `token_norms`. Components are those of the
tokens of all images together, centred and not scaled.

The foreground is one side of zero on the first component (Oquab et al. 2023): the side a smaller
share of whose tokens is at the border of images, and if both are alike, the side of fewer tokens.
`components` are then those of the foreground alone. The largest loading of each component, in
absolute value, is positive.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.measure import (
    FigureKind,
    Measure,
    images_to_show,
    named,
    passes_of,
    together,
    whole_settings,
)
from vitscope.settings.section import setting

# The frames of a video have the components of at most this many of them.
FRAMES_TOGETHER = 32

TABLE = Table(
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
class Settings:
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
    table=TABLE,
    question="What becomes of tokens",
    figures={"token_pca": FigureKind()},
    settings=Settings,
    arguments=together(whole_settings, named(chosen=images_to_show)),
    takes=passes_of(batch=1),
    about_features=True,
)
