"""Accuracy on images that are disturbed: by noise of one frequency, and patch by patch.

The table `frequency_noise`: one row per model and frequency.

The noise is drawn for every image, channel and draw: random signs times `eps`, filtered to the
Fourier components in the ring; the real part is added to the normalized image. The ring lies
between two squares around frequency 0, with sides of `2 * int((frequency ± width) * image_size /
2)` components, clipped to between 0 and `image_size`. By this definition the squares reach one
component further to negative frequencies than to positive ones. Settings count as exact decimals,
so that rounding moves no border. Images need an even size, and every ring at least one component;
otherwise the study is refused when it is read. For images that are not square, both squares are
rectangles, a frequency is in units of pi along each side, and `image_size` is the height.

The signs depend only on the number of the draw and the row of the image in its split: all models
and frequencies get the same signs. In `accuracy` and in the interval, an image counts with the
share of its draws that are classified correctly; the interval is for the difference from the same
images without noise, and null for a single image.

The table `occlusion`: one row per model and disturbance, and one per model for images as they are.

Each image is cut into a grid of equal patches. Some of the patches become black, which is zero
before normalization; or all patches are put in a random order. The draws depend only on a seed, on
the number of the draw and on the row of the image in its split: all models whose images are cut
into the same grid get the same draws. Within a draw, the patches that are dropped for a larger
share include all patches that are dropped for a smaller one. The number of patches in a share is
rounded down.

`mean_kept` is the share of its accuracy that a model keeps: the mean accuracy over all shares that
are dropped, or over all grids that are shuffled, divided by the accuracy on the images as they are.
If the accuracy on the images as they are is 0, `mean_kept` is null; if it is 0 in a resample of the
images, the interval is null.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import gcd

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.image_size import ImageSize, height_and_width
from vitscope.measures.columns import CHANGE, interval_columns, resampled_column
from vitscope.measures.measure import (
    Case,
    FigureKind,
    ImagesToClassify,
    Measure,
    bootstrap,
    images_to_classify,
    named,
    only,
    passes_of_measure,
)
from vitscope.settings.section import setting


def noise_ring_sides(frequency: float, width: float, size: int) -> tuple[int, int]:
    """Return the sides, in components, of a ring's outer and inner square.

    `frequency` and `width` count as exact decimals.
    """
    if size % 2:
        raise VitscopeError(
            f"analysis.frequency_noise: a ring of frequencies needs images of an even size and "
            f"these have {size} pixels: set image_size to {size - 1}."
        )
    middle, half = Fraction(str(frequency)), Fraction(str(width))
    outer, inner = _square_side(middle + half, size), _square_side(middle - half, size)
    if outer == inner:
        # A band as wide as the spacing of two components holds at least one, even at 0.
        enough = -(-20_000 // size) / 10_000
        raise VitscopeError(
            f"analysis.frequency_noise: the ring at {frequency:g} pi with a width of {width:g} pi "
            f"holds no Fourier component of images of {size} pixels: raise width to {enough:g} or "
            f"leave the frequency out."
        )
    return outer, inner


def _square_side(border: Fraction, size: int) -> int:
    """Return the side, in components, of the square within a border, clipped to 0 and `size`."""
    return min(max(2 * int(border * size / 2), 0), size)


FREQUENCY_NOISE_TABLE = Table(
    "frequency_noise",
    {
        "model": ("string", "model, as the study names it"),
        "frequency": ("float64", "frequency of the noise, in units of pi"),
        "width": ("float64", "half of the width of the ring of frequencies, in units of pi"),
        "eps": ("float64", "size of the noise before the mask, on normalized images"),
        "image_size": ("int32", "side of the images, in pixels"),
        "components": ("int32", "Fourier components that lie in the ring"),
        "images": ("int64", "number of images"),
        "seeds": ("int32", "number of draws of the noise for every image"),
        **CHANGE,
    },
)


@dataclass(frozen=True)
class FrequencyNoiseSettings(ImagesToClassify):
    """Noise of one frequency, added to normalized images."""

    frequencies: list[float] = setting(
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "The frequencies of the noise, in units of pi.",
        items={"minimum": 0, "maximum": 1},
        minItems=1,
        uniqueItems=True,
    )
    width: float = setting(
        0.1,
        "Half of the width of the ring of frequencies, in units of pi.",
        exclusiveMinimum=0,
        maximum=1,
    )
    eps: float = setting(0.7, "Size of the noise before it is masked.", exclusiveMinimum=0)
    seeds: int = setting(3, "How many times noise is drawn for every image.", minimum=1)


def count_noises(case: Case) -> int:
    """Count passes of the images: one without noise, and one for each draw at each frequency."""
    noise: FrequencyNoiseSettings = case.settings
    return 1 + len(noise.frequencies) * noise.seeds


def refuse_frequencies(case: Case) -> None:
    across = height_and_width(case.study.dataset_of(case.model).image_size)
    for frequency, size in product(case.settings.frequencies, across):
        with case.naming():
            noise_ring_sides(frequency, case.settings.width, size)


FREQUENCY_NOISE = Measure(
    needs="model",
    measure="frequency_noise:measure_frequency_noise",
    table=FREQUENCY_NOISE_TABLE,
    question="How networks classify",
    figures={
        "frequency_noise": FigureKind(
            "show:plot_frequency_noise",
            "claims:CLAIMS_FREQUENCY_NOISE",
            sketch="vitscope.measures.sketches:sketch_frequency_noise",
            published=frozenset({"frequency", "change"}),
        )
    },
    settings=FrequencyNoiseSettings,
    arguments=named(
        chosen=images_to_classify,
        noise=only("frequencies", "width", "eps", "seeds"),
        bootstrap=bootstrap,
    ),
    takes=passes_of_measure(count_noises),
    refuse=refuse_frequencies,
)

# The finest grid by default: most vision transformers cut 224 pixels into 14 patches of 16.
FINEST = 14


def occlusion_grid(grid: int | None, size: ImageSize) -> int:
    """Return `grid`, the number of patches along a side; for None, the largest that fits, up to 14.

    Refuse a grid whose equal patches do not fill the images.
    """
    return occlusion_grids(None if grid is None else [grid], size)[-1]


def occlusion_grids(grids: Sequence[int] | None, size: ImageSize) -> Sequence[int]:
    """Return `grids`, numbers of patches along a side; for None, all that fit, up to 14.

    Refuse a grid whose equal patches do not fill the images.
    """
    height, width = height_and_width(size)
    side = gcd(height, width)
    fitting = [grid for grid in range(2, side + 1) if side % grid == 0]
    chosen = [grid for grid in fitting if grid <= FINEST] if grids is None else grids
    for grid in chosen or [FINEST]:
        if grid not in fitting:
            allowed = ", ".join(map(str, fitting)) or "none: give them another image_size"
            raise VitscopeError(
                f"analysis.occlusion: images of {height} x {width} pixels cannot be cut into a "
                f"grid of {grid} x {grid} equal patches; grids that fit are {allowed}."
            )
    return chosen


def count_dropped(share: float, grid: int) -> int:
    """Return the number of patches in a share, rounded down; the share is an exact decimal."""
    return int(Fraction(str(share)) * grid**2)


OCCLUSION_TABLE = Table(
    "occlusion",
    {
        "model": ("string", "model, as the study names it"),
        "change": ("string", "what is done with patches: none, dropped or shuffled"),
        "grid": ("int32", "how many patches lie along each side of an image"),
        "dropped": ("int32", "how many patches are dropped"),
        "share": ("float64", "how many these are, as a share of all patches"),
        "images": ("int64", "number of images"),
        "draws": ("int32", "number of draws for every image"),
        "chance": ("float64", "accuracy of guessing: one over the number of classes"),
        "accuracy": ("float64", "share of the images whose class is found, mean over draws"),
        **interval_columns("of it over images"),
        "mean_kept": ("float64", "share of its accuracy that is kept, in all rows of a change"),
        **interval_columns("of it over images", name="kept"),
        **resampled_column("mean_kept"),
    },
)


@dataclass(frozen=True)
class OcclusionSettings(ImagesToClassify):
    """Dropped or shuffled patches of images."""

    grid: int | None = setting(
        None,
        "How many patches lie along each side where some are dropped; null for as many as fit, "
        "up to 14.",
        minimum=2,
    )
    shares: list[float] = setting(
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "Which shares of the patches are dropped.",
        items={"exclusiveMinimum": 0, "maximum": 1},
        minItems=1,
        uniqueItems=True,
    )
    shuffled_grids: list[int] | None = setting(
        None,
        "How many patches lie along each side where they are shuffled; null for all numbers "
        "that fit, up to 14.",
        items={"minimum": 2},
        minItems=1,
        uniqueItems=True,
    )
    draws: int = setting(5, "How often patches are drawn for every image.", minimum=1)
    seed: int = setting(0, "Seed of the draws.", minimum=0)


def count_changes(case: Case) -> int:
    """Count passes of the images: one without changes, and one for each draw of each change."""
    settings: OcclusionSettings = case.settings
    grids = occlusion_grids(settings.shuffled_grids, case.study.dataset_of(case.model).image_size)
    return 1 + (len(settings.shares) + len(grids)) * settings.draws


def refuse_grids(case: Case) -> None:
    size = case.study.dataset_of(case.model).image_size
    with case.naming():
        occlusion_grid(case.settings.grid, size)
        occlusion_grids(case.settings.shuffled_grids, size)


OCCLUSION = Measure(
    needs="model",
    measure="occlusion:measure_occlusion",
    table=OCCLUSION_TABLE,
    question="How networks classify",
    figures={
        "occlusion": FigureKind(
            "show:plot_occlusion",
            "claims:CLAIMS_OCCLUSION",
            published=frozenset({"share", "accuracy"}),
            others=True,
        ),
        "shuffling": FigureKind("show:plot_shuffling", "claims:CLAIMS_SHUFFLING"),
    },
    settings=OcclusionSettings,
    arguments=named(
        chosen=images_to_classify,
        cut=only("grid", "shares", "shuffled_grids"),
        drawn=only("draws", "seed"),
        bootstrap=bootstrap,
    ),
    takes=passes_of_measure(count_changes),
    refuse=refuse_grids,
)
