"""Noise of one frequency, and what it costs in accuracy.

The table `frequency_noise`: one row per model and frequency.

The noise is drawn for every image, channel and draw: random signs times `eps`, filtered to the
Fourier components in the ring; the real part is added to the normalized image. The ring lies
between two squares around frequency 0, with sides of `2 * int((frequency ± width) * image_size /
2)` components, at least none and at most the whole plane. By definition they reach one component
further to negative frequencies than to positive ones. Settings are taken as decimals, so that
rounding moves no border. Images need an even size, and every ring a component; otherwise the study
is refused when it is read. Of images that are not square both are rectangles, a frequency is in
units of pi along each side, and `image_size` is the height.

The signs depend only on the number of the draw and the row of the image in its split: all models
and frequencies get the same. In `accuracy` and in the interval, an image counts with the share of
its draws that are classified correctly; the interval is for the difference to the same image
without noise, and null for a single image.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.image_size import height_and_width
from vitscope.measures.columns import CHANGE
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Measure,
    bootstrap,
    images_to_classify,
    named,
    only,
    passes_of,
)
from vitscope.settings.section import setting


def sides(frequency: float, width: float, size: int) -> tuple[int, int]:
    """Return the sides of the outer and inner square around a ring; numbers count as decimals."""
    if size % 2:
        raise VitscopeError(
            f"analysis.frequency_noise: a ring of frequencies needs images of an even size and "
            f"these have {size} pixels: set image_size to {size - 1}."
        )
    middle, half = Fraction(str(frequency)), Fraction(str(width))
    outer, inner = _side(middle + half, size), _side(middle - half, size)
    if outer == inner:
        # A width of one step of the plane is enough at every frequency, 0 included.
        enough = -(-20_000 // size) / 10_000
        raise VitscopeError(
            f"analysis.frequency_noise: the ring at {frequency:g} pi with a width of {width:g} pi "
            f"holds no Fourier component of images of {size} pixels: raise width to {enough:g} or "
            f"leave the frequency out."
        )
    return outer, inner


def _side(border: Fraction, size: int) -> int:
    """Return the side of the square within a border, which reaches from 0 to the whole plane."""
    return min(max(2 * int(border * size / 2), 0), size)


TABLE = Table(
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
class Settings:
    """Noise of one frequency, added to normalized images."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )
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


def count_views(case: Case) -> int:
    """Count a pass without noise, and one for each draw at each frequency."""
    noise: Settings = case.settings
    return 1 + len(noise.frequencies) * noise.seeds


def refuse_frequencies(case: Case) -> None:
    across = height_and_width(case.study.dataset_of(case.model).image_size)
    for frequency, size in product(case.settings.frequencies, across):
        with case.naming():
            sides(frequency, case.settings.width, size)


FREQUENCY_NOISE = Measure(
    needs="model",
    table=TABLE,
    question="How networks classify",
    figures={
        "frequency_noise": FigureKind(published=frozenset({"frequency", "change"}), overview=True)
    },
    settings=Settings,
    arguments=named(
        chosen=images_to_classify,
        noise=only("frequencies", "width", "eps", "seeds"),
        bootstrap=bootstrap,
    ),
    takes=passes_of(count_views),
    refuse=refuse_frequencies,
)
