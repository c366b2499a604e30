"""Fourier-transformed feature maps: log amplitudes by frequency, and the variance in bands."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from vitscope.measures.measure import BY_DEPTH, FigureKind, Given, Measure
from vitscope.measures.spectrum.measure import Settings as SpectrumSettings
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """The Fourier-transformed feature maps."""

    radial: bool = setting(
        True, "Measure the radial profile too, which takes a whole transform of every map."
    )


class Fourier(Measure):
    """Log amplitudes along the half-diagonal and on rings, and the variance in bands of frequency.

    The rings and the bands are of one transform of the whole map, so that one part has them all;
    the bands are merged by the measure `spectrum`.
    """

    needs = "latents"
    in_parts = True
    seconds_per_gb = 1.9
    merges_blocks = True
    settings = Settings

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        component = frozenset({"delta_log_amplitude"})
        return {
            "fourier": self.kind(),
            "fourier_curves": self.kind("curves", published=component | {"index", "frequency"}),
            "fourier_depth": self.kind("depth", published=component | BY_DEPTH),
        }

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return whether rings are measured, and where bands end if the whole map is transformed.

        Bands cost nothing beside rings: with them, a figure of bands measures nothing anew.
        """
        radial = study.section("fourier", Settings).radial
        whole = radial or "spectrum" in study.tables()
        edges = study.section("spectrum", SpectrumSettings).edges if whole else None
        return {"radial": radial, "edges": edges}

    def merging(self, study: "Study", model: str) -> Given:
        """Return how intervals are made."""
        return asdict(study.analysis.bootstrap)


MEASURE = Fourier()
