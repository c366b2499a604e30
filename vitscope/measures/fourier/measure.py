"""Fourier-transformed feature maps: log amplitudes by frequency, and the variance in bands."""

from dataclasses import dataclass

from vitscope.measures.fourier.measure_spectrum import Settings as SpectrumSettings
from vitscope.measures.measure import BY_DEPTH, Case, FigureKind, Given, Measure, Merge, bootstrap
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The Fourier-transformed feature maps."""

    radial: bool = setting(
        True, "Measure the radial profile too, which takes a whole transform of every map."
    )


COMPONENT = frozenset({"delta_log_amplitude"})


def rings_and_bands(case: Case) -> Given:
    """Depend on whether rings are measured, and where bands end if the whole map is transformed.

    The rings and the bands are of one transform of the whole map: one part has them all, and the
    measure `spectrum` merges the bands. Bands cost nothing beside rings: with them, a figure of
    bands measures nothing anew.
    """
    study, radial = case.study, case.settings.radial
    whole = radial or "spectrum" in study.tables()
    edges = study.section("spectrum", SpectrumSettings).edges if whole else None
    return {"radial": radial, "edges": edges}


MEASURE = Measure(
    needs="latents",
    figures={
        "fourier": FigureKind(),
        "fourier_curves": FigureKind("curves", published=COMPONENT | {"index", "frequency"}),
        "fourier_depth": FigureKind("depth", published=COMPONENT | BY_DEPTH),
    },
    settings=Settings,
    arguments=rings_and_bands,
    merge=Merge(bootstrap, at_cut_points=True),
    seconds_per_gb=1.9,
)
