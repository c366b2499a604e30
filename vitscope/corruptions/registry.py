"""Every corruption by its name, the parameters of its severities, and how images go through it."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import log
from zlib import crc32

import numpy as np
import numpy.typing as npt

from vitscope.corruptions import CORRUPTIONS, GROUPS, SEVERITIES, blur, digital, noise, weather
from vitscope.corruptions.images import Images
from vitscope.errors import VitscopeError, nearest
from vitscope.files.strict_yaml import load_yaml
from vitscope.package_data import CORRUPTION_PARAMETERS

MODULES = {"noise": noise, "blur": blur, "weather": weather, "digital": digital}
FUNCTIONS: dict[str, Callable[..., Images]] = {
    name: getattr(MODULES[group], name) for group, names in GROUPS.items() for name in names
}

# The sizes of image that parameters are published for.
SMALL, LARGE = 32, 224
# Images that are corrupted at once: enough to share what each step costs, few enough for memory.
AT_ONCE, VALUES_AT_ONCE = 256, 10_000_000


def parameters(corruption: str, severity: int, side: int) -> dict[str, float]:
    """Return the parameters of a corruption for images of a side.

    Parameters are published for 32 and for 224 pixels; in between, they run from the first to the
    second with the logarithm of the side.
    """
    share = min(max(log(side / SMALL) / log(LARGE / SMALL), 0), 1)
    found: dict[str, float] = {}
    for name, values in _load_parameters()[corruption].items():
        low, high = values["cifar"][severity - 1], values["imagenet"][severity - 1]
        value = (1 - share) * low + share * high
        whole = all(isinstance(number, int) for number in values["cifar"] + values["imagenet"])
        found[name] = round(value) if whole else value
    return found


@cache
def _load_parameters() -> dict[str, dict[str, dict[str, list[float]]]]:
    return load_yaml(CORRUPTION_PARAMETERS)


def corrupt(
    images: npt.NDArray[np.uint8],
    corruption: str,
    severity: int,
    rows: Sequence[int] | npt.NDArray[np.int64],
    seed: int = 0,
) -> npt.NDArray[np.uint8]:
    """Corrupt images of bytes, (N, C, H, W), in colour or grey.

    The result for an image depends on the corruption, the severity, the image's row and the seed,
    and not on the other images.
    """
    if corruption not in CORRUPTIONS:
        raise VitscopeError(
            f"There is no corruption '{corruption}', only {', '.join(CORRUPTIONS)}."
            f"{nearest(corruption, CORRUPTIONS)}"
        )
    if severity not in SEVERITIES:
        raise VitscopeError(f"There is no severity {severity} of {corruption}, only 1 to 5.")
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1] not in {1, 3}:
        raise ValueError(
            f"images are {images.dtype}{images.shape}, expected uint8 (N, 3, H, W) or (N, 1, H, W)"
        )
    corrupted, name = np.empty_like(images), crc32(corruption.encode())
    step = min(AT_ONCE, max(1, VALUES_AT_ONCE // images[0].size)) if len(images) else 1
    for first in range(0, len(images), step):
        some = slice(first, first + step)
        # Corruptions without chance ask for no generator.
        keys = ((seed, name, severity, int(row)) for row in rows[some])
        draws = map(np.random.default_rng, keys)
        corrupted[some] = _corrupt(images[some], corruption, severity, draws)
    return corrupted


def _corrupt(
    images: npt.NDArray[np.uint8],
    corruption: str,
    severity: int,
    draws: Iterator[np.random.Generator],
) -> npt.NDArray[np.uint8]:
    chosen = parameters(corruption, severity, min(images.shape[2:]))
    scaled = images.astype(np.float32) / 255
    changed = FUNCTIONS[corruption](scaled, draws, **chosen)
    pixels: npt.NDArray[np.uint8] = np.rint(255 * changed.clip(0, 1)).astype(np.uint8)
    return pixels
