"""The variance of feature maps in bands of frequency, from the parts of `fourier`."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.measure import FigureKind, Given, Measure
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The variance of feature maps in three bands of frequency."""

    edges: list[float] = setting(
        [0.25, 0.5],
        "Where the middle band begins and ends, in units of pi.",
        items={"exclusiveMinimum": 0, "exclusiveMaximum": 1},
        minItems=2,
        maxItems=2,
    )


class Spectrum(Measure):
    """The variance of feature maps in three bands of frequency."""

    needs = "parts"
    in_parts = True
    parts_of = "fourier"
    merges_blocks = True
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {"spectrum": self.kind()}

    def merging(self, study: "Study", model: str) -> Given:
        """Return where bands end, and how intervals are made."""
        edges = study.section("spectrum", Settings).edges
        return {"edges": edges} | asdict(study.analysis.bootstrap)

    def check(self, study: "Study") -> None:
        """Refuse a middle band that ends before it begins."""
        begin, end = study.section("spectrum", Settings).edges
        if begin >= end:
            raise VitscopeError(
                f"{study.path}: analysis.spectrum.edges: found [{begin}, {end}], allowed: two "
                f"numbers of which the second is larger."
            )


MEASURE = Spectrum()
