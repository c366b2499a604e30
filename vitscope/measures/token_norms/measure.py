"""Norms of tokens: how they are distributed, and the few that stand out."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The norms of tokens."""

    threshold: float = setting(
        3.0,
        (
            "A token is an outlier if its norm is more than so many times the median norm of the "
            "tokens of its image."
        ),
        exclusiveMinimum=1,
    )


class TokenNorms(Measure):
    """The norms of the tokens of an image, and outliers among them, at every cut point."""

    needs = "latents"
    in_parts = True
    merges_blocks = True
    seconds_per_gb = 0.6
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"token_norms": self.kind(), "token_outliers": self.kind("outliers")}

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return which tokens are outliers."""
        return asdict(study.section("token_norms", Settings))

    def merging(self, study: "Study", model: str) -> Given:
        """Return which tokens were outliers, and how intervals are made."""
        return asdict(study.section("token_norms", Settings)) | asdict(study.analysis.bootstrap)


MEASURE = TokenNorms()
