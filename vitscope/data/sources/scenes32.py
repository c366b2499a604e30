"""scenes32: generated textures of 100 classes; each patch says a little about the class."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.source import Generated, Sample
from vitscope.files.arrays import Array

SOURCE: dict[str, Any] = {
    "meaning": "generated textures of a hundred classes, with splits `train` and `test`",
    "keys": {
        "seed": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Seed of a generated data set.",
        }
    },
}

SIZE = 32
SIZES = {"train": 50_000, "test": 10_000}
COUNT = 100
CLASSES = tuple(f"scene {number}" for number in range(COUNT))

DOWN, ACROSS = np.fft.fftfreq(SIZE)[:, None], np.fft.rfftfreq(SIZE)
FREQUENCY = np.maximum(np.hypot(DOWN, ACROSS), 1 / SIZE)
DIRECTION = np.arctan2(DOWN, ACROSS)
# The matrix from lightness, warmth and greenness to red, green and blue.
COLORS = np.array([[1, 0.25, 0.12], [1, -0.02, -0.2], [1, -0.25, 0.12]])
SLOPE = np.linspace(-0.5, 0.5, SIZE)


def _draw_scene_classes() -> tuple[Array, Array, Array]:
    """Draw the spectrum, colour matrix and tone of each class, the same for every seed."""
    draw = np.random.default_rng(1)

    def per_class(low: float, high: float) -> Array:
        return draw.uniform(low, high, COUNT)[:, None, None]

    steepness, lean, angle = per_class(1.4, 1.8), per_class(0.1, 0.5), per_class(0, np.pi)
    scale, strength = np.exp(per_class(np.log(1 / 16), np.log(1 / 4))), per_class(0, 0.7)
    band = 1 + strength * np.exp(-((np.log(FREQUENCY / scale) / 0.35) ** 2))
    directed = np.sqrt(1 + lean * np.cos(2 * (DIRECTION - angle)))
    weight = 0.14 * np.array([0.2, 1, 1])[:, None]
    colors = COLORS @ (np.eye(3) + draw.standard_normal((COUNT, 3, 3)) * weight)
    return FREQUENCY**-steepness * directed * band, colors, draw.normal(0, 0.015, (COUNT, 3))


AMPLITUDES, MIXES, TONES = _draw_scene_classes()


def draw_scene(split: str, index: int, seed: int) -> tuple[npt.NDArray[np.uint8], int]:
    """Draw an image, (32, 32, 3), of textured noise, light and film grain; return its class too."""
    random = np.random.default_rng((seed, list(SIZES).index(split), index))
    label = int(random.integers(COUNT))
    spectrum = np.fft.rfft2(random.standard_normal((3, SIZE, SIZE))) * AMPLITUDES[label]
    field = np.fft.irfft2(spectrum, s=(SIZE, SIZE))
    field -= field.mean((1, 2), keepdims=True)
    image = np.einsum("ij,jhw->hwi", MIXES[label], field / field.std()) * random.uniform(0.08, 0.22)
    image += 0.48 + TONES[label] + random.normal(0, 0.1) + random.normal(0, 0.04, 3)
    # Add light that changes evenly across the image.
    light, down, across = random.uniform(0, 0.4), *random.normal(0, 0.25, 2)
    image += light * (down * SLOPE[:, None] + across * SLOPE)[..., None]
    image += random.uniform(0.005, 0.03) * random.standard_normal(image.shape)
    return np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8), label


class Scenes32(Generated):
    name, sizes, class_names = "scenes32", SIZES, CLASSES

    def samples(self, indices: npt.NDArray[np.int64]) -> Iterator[Sample]:
        for index in indices:
            pixels, label = draw_scene(self._split, int(index), self._seed)
            yield Sample(Image.fromarray(pixels), label)


open_split = Scenes32
