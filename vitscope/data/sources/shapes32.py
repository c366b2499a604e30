"""shapes32: generated images of 10 classes, each a shape filled with a texture (docs/data.md)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from vitscope.data.source import Generated, Sample
from vitscope.files.arrays import Array

SOURCE: dict[str, Any] = {
    "meaning": "generated images of ten classes, with splits `train`, `test` and `conflict`",
    "keys": {
        "seed": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Seed of a generated data set.",
        }
    },
}

Maps = tuple[Array, Array]
Integers = npt.NDArray[np.int64]

SIZE = 32
SIZES = {"train": 50_000, "test": 10_000, "conflict": 10_000}
# The share of train and test images in which one of the two cues comes from another class.
DISAGREEMENT = 0.1
CHUNK = 64
CHOICES = 40
LEAVES = 40
NUMBERS_PER_LEAF = 6
NOISE_MAPS = 8

ROWS, COLUMNS = np.indices((SIZE, SIZE), np.float32) + np.float32(0.5)


@dataclass(frozen=True)
class Images:
    """Generated images, (n, 32, 32, 3), with their labels and the classes of both cues."""

    pixels: npt.NDArray[np.uint8]
    labels: Integers
    shapes: Integers
    textures: Integers


class _Draws:
    """Random numbers for a chunk of images; each call takes the next number of every image."""

    def __init__(self, split: str, indices: Integers, seed: int) -> None:
        number = list(SIZES).index(split)
        rows = [np.random.default_rng((seed, number, index)) for index in indices]
        numbers = np.stack([r.random(CHOICES, dtype=np.float32) for r in rows], axis=1)
        self._columns = iter(numbers)
        leaves = (LEAVES, NUMBERS_PER_LEAF)
        self.leaves: Array = np.stack([r.random(leaves, dtype=np.float32) for r in rows])
        maps = (NOISE_MAPS, SIZE, SIZE)
        self.noise: Array = np.stack([r.standard_normal(maps, dtype=np.float32) for r in rows])

    def between(self, low: float, high: float) -> Array:
        column: Array = next(self._columns)[:, None, None]
        return low + (high - low) * column

    def below(self, bound: int) -> Integers:
        column: Array = next(self._columns)
        return (column * bound).astype(np.int64)


def _soft_cover(field: Array) -> Array:
    """Return how far a field covers pixels: 0 where it is negative, 1 inside, soft at edges."""
    return np.clip(0.5 + field, 0, 1)


def _cross_shape(x: Array, y: Array) -> Array:
    long, short = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
    return np.minimum(0.98 - long, 0.31 - short)


def _star_shape(x: Array, y: Array) -> Array:
    # Fold the five points onto one half of a point, whose edge is a straight line.
    fifth = 2 * np.pi / 5
    angle = np.abs((np.arctan2(x, -y) + fifth / 2) % fifth - fifth / 2)
    radius = np.hypot(x, y)
    return 0.59 * (1.1 - radius * np.cos(angle)) - 0.81 * radius * np.sin(angle)


def _heart_shape(x: Array, y: Array) -> Array:
    # Fold onto the right half: a lobe, and a tip that is part of a square standing on a corner.
    x = np.abs(x)
    lobe = 0.53 - np.hypot(x - 0.5, y + 0.42)
    tip = np.minimum(0.588 - 0.707 * x - 0.707 * y, 0.707 * (y - x) + 0.65)
    return np.maximum(lobe, tip)


def _sine_wave(phase: Array) -> Array:
    return np.sin(2 * np.pi * phase)


def _brick_texture(x: Array, y: Array) -> Array:
    course = np.floor(y)
    to_bed = 0.5 - np.abs(y - course - 0.5)
    to_joint = 1 - 2 * np.abs((x / 2 + course / 2) % 1 - 0.5)
    field: Array = 4 * (np.minimum(to_bed, to_joint) - 0.17)
    return field


Field = Callable[..., Array]
# Fields that are positive inside a shape with a radius of about 1, and fall by about 1 per unit of
# length.
SHAPES: dict[str, Field] = {
    "disk": lambda x, y: 0.88 - np.hypot(x, y),
    "ring": lambda x, y: 0.3 - np.abs(np.hypot(x, y) - 0.7),
    "crescent": lambda x, y: np.minimum(1.0 - np.hypot(x, y), np.hypot(x - 0.6, y) - 0.72),
    "triangle": lambda x, y: 0.55 - np.maximum(0.866 * np.abs(x) - 0.5 * y, y),
    "square": lambda x, y: 0.78 - np.maximum(np.abs(x), np.abs(y)),
    "cross": _cross_shape,
    "star": _star_shape,
    "heart": _heart_shape,
    "hourglass": lambda x, y: np.minimum(
        0.88 - np.abs(y), 0.76 * (0.1 + 0.85 * np.abs(y) - np.abs(x))
    ),
    "flower": lambda x, y: 0.7 * (0.72 + 0.28 * np.cos(5 * np.arctan2(x, -y)) - np.hypot(x, y)),
}
# Fields whose sign selects one of two colours, with a period of about 1. The last argument is
# noise, (n, 2, 32, 32): blotches with about that period, and grain.
TEXTURES: dict[str, Field] = {
    "striped": lambda x, y, noise: _sine_wave(x),
    "checked": lambda x, y, noise: 2 * _sine_wave(x / 1.6) * _sine_wave(y / 1.6),
    "dotted": lambda x, y, noise: _sine_wave(x / 1.2) + _sine_wave(y / 1.2) - 0.7,
    "meshed": lambda x, y, noise: 2 * np.maximum(_sine_wave(x / 1.4), _sine_wave(y / 1.4)) - 1.3,
    "rippled": lambda x, y, noise: _sine_wave(np.hypot(x, y)),
    "zigzag": lambda x, y, noise: _sine_wave(y / 1.2 + np.abs((x / 2.4) % 1 - 0.5) * 1.6),
    "bricked": lambda x, y, noise: _brick_texture(x, y),
    "blotched": lambda x, y, noise: 1.5 * noise[:, 0],
    "grainy": lambda x, y, noise: 0.5 * noise[:, 1],
    "shaded": lambda x, y, noise: 0.16 * x,
}
CLASSES = tuple(f"{texture} {shape}" for texture, shape in zip(TEXTURES, SHAPES, strict=True))


def _choose_shape_and_texture(draws: _Draws, split: str) -> tuple[Integers, Integers, Integers]:
    """Choose label, shape and texture; in `conflict`, the label is always the shape's class."""
    label = draws.below(len(CLASSES))
    other = (label + 1 + draws.below(len(CLASSES) - 1)) % len(CLASSES)
    disagree = draws.between(0, 1).ravel() < (1.0 if split == "conflict" else DISAGREEMENT)
    shape_leads = (draws.below(2) == 1) | (split == "conflict")
    shape = np.where(disagree & ~shape_leads, other, label)
    texture = np.where(disagree & shape_leads, other, label)
    return label, shape, texture


def _rotate_and_scale(x: Array, y: Array, angle: Array, unit: Array) -> Maps:
    cosine, sine = np.cos(angle) / unit, np.sin(angle) / unit
    return x * cosine + y * sine, y * cosine - x * sine


def _evaluate_fields(kinds: Integers, fields: dict[str, Field], *maps: Array) -> Array:
    result = np.empty((len(kinds), SIZE, SIZE), np.float32)
    for kind, field in enumerate(fields.values()):
        chosen = kinds == kind
        if chosen.any():
            result[chosen] = field(*(values[chosen] for values in maps))
    return result


def _filter_noise(noise: Array, response: Array) -> Array:
    """Filter white noise; give each map mean 0, and an image's maps together deviation 1."""
    spectrum = np.fft.rfft2(noise) * response
    maps = np.fft.irfft2(spectrum, s=(SIZE, SIZE)).astype(np.float32)
    maps = maps - maps.mean((-2, -1), keepdims=True)
    scaled: Array = maps / maps.std((-3, -2, -1), keepdims=True)
    return scaled


FREQUENCY = np.hypot(*np.meshgrid(np.fft.rfftfreq(SIZE), np.fft.fftfreq(SIZE))).astype(np.float32)


def _to_rgb(light: Array, warm: Array, green: Array) -> Array:
    red, blue = light + warm - green / 2, light - warm - green / 2
    return np.stack([red, light + green / 2, blue], axis=1)


def _power_law_noise(noise: Array, steepness: Array) -> Array:
    """Return noise with a power-law spectrum, stronger in lightness than in colour."""
    response = np.maximum(FREQUENCY, 1 / SIZE) ** -steepness[:, None]
    light, warm, green = np.moveaxis(_filter_noise(noise, response), 1, 0)
    return 0.9 * _to_rgb(light, 0.4 * warm, 0.3 * green)


def _dead_leaves(leaves: Array) -> Array:
    """Cover the image with disks of power-law sizes, in which later disks hide earlier ones."""
    column, row, size, light, warm, green = np.moveaxis(leaves, 2, 0)[..., None, None]
    column, row = (column * 1.4 - 0.2) * SIZE, (row * 1.4 - 0.2) * SIZE
    # Radii lie between 2.5 and 16, with a density that falls with the third power.
    radius = 2.5 / np.sqrt(1 - size * (1 - (2.5 / 16) ** 2))
    colour = 3 * _to_rgb(light - 0.5, 0.4 * (warm - 0.5), 0.4 * (green - 0.5)).swapaxes(1, 2)
    canvas = np.zeros((len(leaves), 3, SIZE, SIZE), np.float32)
    for leaf in range(LEAVES):
        squared = (COLUMNS - column[:, leaf]) ** 2 + (ROWS - row[:, leaf]) ** 2
        cover = _soft_cover(radius[:, leaf] - np.sqrt(squared))[:, None]
        canvas += cover * (colour[:, leaf] - canvas)
    return canvas


def _draw_background_of_shapes(draws: _Draws) -> Array:
    leafy = draws.below(2) == 1
    steepness = draws.between(0.9, 1.7)
    scene = np.empty((len(leafy), 3, SIZE, SIZE), np.float32)
    scene[leafy] = _dead_leaves(draws.leaves[leafy])
    scene[~leafy] = _power_law_noise(draws.noise[~leafy, :3], steepness[~leafy])
    tone = _to_rgb(draws.between(0.3, 0.7), draws.between(-0.15, 0.15), draws.between(-0.1, 0.1))
    return tone + draws.between(0.1, 0.22)[:, None] * scene


def _shape_and_shadow(draws: _Draws, shape: Integers, x: Array, y: Array, radius: Array) -> Maps:
    """Return where the shape covers the image, and where its soft shadow falls."""
    tilt = draws.between(-0.7, 0.7)
    cover = _evaluate_fields(shape, SHAPES, *_rotate_and_scale(x, y, tilt, radius)) * radius
    shadow = (
        _evaluate_fields(shape, SHAPES, *_rotate_and_scale(x - 1.5, y - 2, tilt, radius)) * radius
    )
    return _soft_cover(cover)[:, None], _soft_cover(shadow / 3)[:, None]


def _draw_texture(draws: _Draws, texture: Integers, x: Array, y: Array) -> Array:
    """Draw each texture in two random colours, with a random offset and direction."""
    period = draws.between(3.4, 5.2)
    band = np.exp(-(((FREQUENCY * period - 0.75) / 0.3) ** 2))[:, None]
    blotches = _filter_noise(draws.noise[:, 3:4], band)
    noise = np.concatenate([blotches, draws.noise[:, 4:5]], axis=1)
    x, y = x + draws.between(-6, 6), y + draws.between(-6, 6)
    turned = _rotate_and_scale(x, y, draws.between(0, 2 * np.pi), period)
    pattern = _soft_cover(_evaluate_fields(texture, TEXTURES, *turned, noise))[:, None]
    # Choose two colours that differ in lightness, so that every texture is visible.
    middle, contrast = draws.between(0.35, 0.65), draws.between(0.12, 0.4)
    contrast = contrast * np.where(draws.between(0, 1) < 0.5, 1, -1)
    first, second = (
        _to_rgb(light, draws.between(-0.25, 0.25), draws.between(-0.2, 0.2))
        for light in (middle + contrast, middle - contrast)
    )
    filled: Array = second + pattern * (first - second)
    return filled


def draw_shapes(split: str, indices: Integers, seed: int, places: Array | None = None) -> Images:
    """Draw images; `places`, (n, 2), from -1 to 1, sets how far right and down shapes lie."""
    draws = _Draws(split, indices, seed)
    label, shape, texture = _choose_shape_and_texture(draws, split)
    radius = draws.between(8.5, 14)
    # A shape may extend beyond the image by a quarter of its radius.
    reach = SIZE / 2 - 0.75 * radius
    across, down = draws.between(-1, 1), draws.between(-1, 1)
    if places is not None:
        across, down = places.T.astype(np.float32)[..., None, None]
    x = COLUMNS - SIZE / 2 - across * reach
    y = ROWS - SIZE / 2 - down * reach
    cover, shadow = _shape_and_shadow(draws, shape, x, y, radius)
    fill = _draw_texture(draws, texture, x, y)
    image = _draw_background_of_shapes(draws) * (1 - draws.between(0.1, 0.5)[:, None] * shadow)
    image += cover * (fill - image)
    # Let the light fall off towards one side.
    angle = draws.between(0, 2 * np.pi)
    slope = np.cos(angle) * (COLUMNS / SIZE - 0.5) + np.sin(angle) * (ROWS / SIZE - 0.5)
    image *= (1 + draws.between(0, 0.5) * slope)[:, None]
    image += draws.between(0.01, 0.1)[:, None] * draws.noise[:, 5:8]
    pixels = np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
    return Images(pixels.transpose(0, 2, 3, 1), label, shape, texture)


class Shapes32(Generated):
    name, sizes, class_names = "shapes32", SIZES, CLASSES
    extra = ("shape", "texture")

    def samples(self, indices: Integers) -> Iterator[Sample]:
        for start in range(0, len(indices), CHUNK):
            drawn = draw_shapes(self._split, indices[start : start + CHUNK], self._seed)
            cues = zip(drawn.labels, drawn.shapes, drawn.textures, strict=True)
            for pixels, (label, shape, texture) in zip(drawn.pixels, cues, strict=True):
                extra = (int(shape), int(texture))
                yield Sample(Image.fromarray(pixels), int(label), extra)


open_split = Shapes32
