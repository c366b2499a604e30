"""Fourier-transformed feature maps: log amplitudes by frequency, and the variance in bands.

The table `fourier`: one row per model, cut point, measure and frequency.

The measure `diagonal` is the one of the authors: F(k, k) from frequency 0 on. Its frequencies are
the labels of the authors, evenly spaced from 0 to 1, which
[`fourier_curves`](figures/what-blocks-do-to-feature-maps.md#fourier_curves) explains. The
high-frequency component of a cut point is the row with frequency 1. A map that is one or two pixels
wide or high has only frequency 0. If a map is not square, its diagonal has the frequencies of the
shorter side, in units of pi, and the same frequencies on the longer side, where the logarithm is
interpolated between two components.

The measure `radial` averages the whole transform over rings: the mean of log(|F| + 10⁻⁶) over all
components whose distance from frequency 0 rounds to the same whole number (halves are rounded
down), and over channels and images. Distances go from 0 to half of the size. The frequencies are
the radii of the rings, with 1 at the end of an axis; for an odd size the last frequency is slightly
below 1. Corners beyond the last ring are left out. If a map is not square, distances are relative
to the end of each axis and counted in steps of the longer axis.

An amplitude of 0 gives the logarithm of 10⁻⁶, -13.8: a constant map has this value at every
frequency but 0. Feature maps with values that are not finite are an error.

A part has one row per cut point, image, quantity and frequency.

The table `spectrum`: one row per model, cut point and band.

The frequency of a component is the length of its frequency vector, in units of pi: 1 at the end of
an axis, up to √2 in the corners. A component on the edge between two bands belongs to the lower
band; frequency 0 belongs to no band. By Parseval's theorem the variances of the three bands add up
to the variance of `feature_variance`: each is the sum of |F|² over the components of the band,
divided by P (P - 1) for maps with P pixels. The variance of maps with one pixel is null.

`share` is null for a band without components, whose variance is 0; for a band that has all
components of the map; and if the map has no variance. The interval is for this share, computed from
means over resampled images.
"""

from dataclasses import dataclass

from vitscope.errors import wrong
from vitscope.files.tables import Table
from vitscope.measures.columns import AT_CUT_POINT, OF_IMAGE, interval_columns, resampled_column
from vitscope.measures.measure import (
    BY_DEPTH,
    ByBlock,
    Case,
    FigureKind,
    Given,
    Measure,
    Merge,
    Multiples,
    bootstrap,
    own_settings,
    together,
)
from vitscope.settings.section import setting

FOURIER_TABLE = Table(
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

FOURIER_PART = Table(
    "fourier_per_image",
    {
        **OF_IMAGE,
        "quantity": ("string", "diagonal or radial: a log amplitude; low, middle or high: a band"),
        "step": ("int32", "frequency, in steps from 0 to the highest; 0 for a band"),
        "value": ("float64", "log amplitude, or variance over space; mean over channels"),
    },
)


@dataclass(frozen=True)
class FourierSettings:
    """The Fourier-transformed feature maps."""

    radial: bool = setting(
        True, "Measure the radial profile too, which takes a whole transform of every map."
    )


COMPONENT = frozenset({"delta_log_amplitude"})


def choose_rings_and_bands(case: Case) -> Given:
    """Return whether to measure rings, and the edges of bands, which are None to measure no bands.

    Rings and bands come from the same transform of the whole map, so that one part holds both, and
    the measure `spectrum` merges the bands. If rings are measured, bands cost nothing extra, and a
    later figure of bands need not measure anew.
    """
    study, radial = case.study, case.settings.radial
    whole = radial or "spectrum" in study.tables()
    edges = study.section("spectrum", SpectrumSettings).edges if whole else None
    return {"radial": radial, "edges": edges}


FOURIER = Measure(
    needs="latents",
    measure="compute:measure_fourier",
    table=FOURIER_TABLE,
    part=FOURIER_PART,
    question="What blocks do to feature maps",
    figures={
        "fourier": FigureKind("show:plot_fourier", "claims:CLAIMS_FOURIER", options=Multiples),
        "fourier_curves": FigureKind(
            "show:plot_fourier_curves",
            "claims:CLAIMS_FOURIER_CURVES",
            sketch="vitscope.measures.sketches:sketch_fourier_curves",
            published=COMPONENT | {"index", "frequency"},
        ),
        "fourier_depth": FigureKind(
            "show:plot_fourier_depth",
            "claims:CLAIMS_FOURIER_DEPTH",
            sketch="vitscope.measures.sketches:sketch_fourier_depth",
            sketch_change="vitscope.measures.sketches:sketch_fourier_depth_change",
            published=COMPONENT | BY_DEPTH,
            options=ByBlock,
        ),
        "averaging": FigureKind(
            "show:plot_averaging",
            "claims:CLAIMS_AVERAGING",
            beside=("feature_variance", "reliability"),
        ),
    },
    settings=FourierSettings,
    arguments=choose_rings_and_bands,
    merge=Merge("compute:merge_fourier", bootstrap, at_cut_points=True),
    seconds_per_gb=1.9,
    # Half of them diagonal and half of them radial frequencies.
    numbers_per_side=1,
)

SPECTRUM_TABLE = Table(
    "spectrum",
    {
        **AT_CUT_POINT,
        "band": ("string", "low, middle or high"),
        "above": ("float64", "frequency above which the band begins, in units of pi"),
        "up_to": ("float64", "highest frequency of the band; the root of 2 is in the corners"),
        "components": ("int32", "Fourier components of a map that lie in the band"),
        "variance": ("float64", "variance over space in the band, mean over channels, images"),
        "share": ("float64", "share of the variance of all bands; null where it is undefined"),
        **interval_columns("of the share"),
    },
)


@dataclass(frozen=True)
class SpectrumSettings:
    """The variance of feature maps in three bands of frequency."""

    edges: list[float] = setting(
        [0.25, 0.5],
        "Where the middle band begins and ends, in units of pi.",
        items={"exclusiveMinimum": 0, "exclusiveMaximum": 1},
        minItems=2,
        maxItems=2,
    )


def refuse_spectrum_edges(case: Case) -> None:
    """Refuse a middle band that does not end above its beginning."""
    begin, end = case.settings.edges
    if begin >= end:
        allowed = "two numbers of which the second is larger."
        raise wrong(case.study.path, "analysis.spectrum.edges", [begin, end], allowed)


SPECTRUM = Measure(
    needs="parts",
    table=SPECTRUM_TABLE,
    question="What blocks do to feature maps",
    figures={"spectrum": FigureKind("show:plot_spectrum")},
    settings=SpectrumSettings,
    merge=Merge("compute:merge_spectrum", together(own_settings, bootstrap), at_cut_points=True),
    parts_of="fourier",
    refuse_settings=refuse_spectrum_edges,
)
