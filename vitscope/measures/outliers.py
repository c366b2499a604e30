"""Which tokens are outliers, by their norms."""

from dataclasses import dataclass

from vitscope.settings.section import setting


@dataclass(frozen=True)
class TokenNormsSettings:
    """The norms of tokens."""

    threshold: float = setting(
        3.0,
        "A token is an outlier if its norm is more than this many times the median norm of "
        "the tokens of its image.",
        exclusiveMinimum=1,
    )
