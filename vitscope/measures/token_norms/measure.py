"""Norms of tokens: how they are distributed, and the few that stand out."""

from dataclasses import dataclass

from vitscope.measures.measure import FigureKind, Measure, Merge, bootstrap, own_settings, together
from vitscope.measures.token_norms.table import PART, TABLE
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The norms of tokens."""

    threshold: float = setting(
        3.0,
        "A token is an outlier if its norm is more than this many times the median norm of "
        "the tokens of its image.",
        exclusiveMinimum=1,
    )


TOKEN_NORMS = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="What becomes of tokens",
    figures={"token_norms": FigureKind(), "token_outliers": FigureKind()},
    settings=Settings,
    arguments=own_settings,
    merge=Merge(together(own_settings, bootstrap), at_cut_points=True),
    seconds_per_gb=0.6,
)
