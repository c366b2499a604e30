"""Fourier-transformed feature maps: log amplitudes by frequency, and the variance in bands.

The table `fourier`: one row per model, cut point, measure and frequency.

The measure `diagonal` is the authors': F(k, k) from frequency 0 on. Its frequencies are their
labels, evenly from 0 to 1, which
[`fourier_curves`](figures/what-blocks-do-to-feature-maps.md#fourier_curves) explains. The
high-frequency component of a cut point is the row with frequency 1. A map that is one or two pixels
wide or high has only frequency 0. If a map is not square, its diagonal has the frequencies of the
shorter side and as many pi on the longer one, where the logarithm is interpolated between two
components.

The measure `radial` is the mean over rings of the whole transform: log(|F| + 10⁻⁶) over all
components whose distance from frequency 0 rounds to the same whole number, halves down, from 0 to
half of the size, mean over channels and images. Its frequencies are the radii of the rings, with 1
at the end of an axis; for an odd size the last one is slightly below 1. Corners beyond are left
out. If a map is not square, distances are relative to the end of each axis and counted in steps of
the longer one.

An amplitude of 0 has the logarithm of 10⁻⁶, -13.8: a constant map has it at every frequency but 0.
Feature maps with values that are not finite are an error.

A part has one row per cut point, image, quantity and frequency.
"""

from dataclasses import dataclass

from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, OF_IMAGE, interval_columns, resampled_column
from vitscope.measures.fourier.measure_spectrum import Settings as SpectrumSettings
from vitscope.measures.measure import BY_DEPTH, Case, FigureKind, Given, Measure, Merge, bootstrap
from vitscope.settings.section import setting

TABLE = Table(
    "fourier",
    {
        **AT_CUT_POINT,
        "measure": ("string", "diagonal: along the half-diagonal; radial: azimuthal mean"),
        "frequency": ("float64", "frequency, in units of pi"),
        "log_amplitude": ("float64", "log amplitude, mean over channels and images"),
        "delta_log_amplitude": ("float64", "log amplitude minus the log amplitude at frequency 0"),
        **interval_columns("of the difference"),
        **resampled_column("delta_log_amplitude"),
    },
)

PART = Table(
    "fourier_per_image",
    {
        **OF_IMAGE,
        "quantity": ("string", "diagonal or radial: a log amplitude; low, middle or high: a band"),
        "step": ("int32", "frequency, in steps from 0 to the highest; 0 for a band"),
        "value": ("float64", "log amplitude, or variance over space; mean over channels"),
    },
)


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
    question="What blocks do to feature maps",
    figures={
        "fourier": FigureKind(),
        "fourier_curves": FigureKind("curves", published=COMPONENT | {"index", "frequency"}),
        "fourier_depth": FigureKind("depth", published=COMPONENT | BY_DEPTH),
        "averaging": FigureKind("averaging", beside=("feature_variance", "reliability")),
    },
    settings=Settings,
    arguments=rings_and_bands,
    merge=Merge(bootstrap, at_cut_points=True),
    seconds_per_gb=1.9,
)
