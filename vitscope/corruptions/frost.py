"""Drawn frosted panes, in place of photographs: feathers of ice, each a spine with barbs."""

from functools import lru_cache

import numpy as np
from PIL import Image
from scipy import ndimage

from vitscope.files.arrays import Array

PANES = 5
# The side of a pane as it is drawn, in pixels.
DRAWN = 640
# A pane is then resized to this many times the longer side of an image.
SIDES = 3
# For each layer, the number of feathers, and the distance between their barbs in pixels.
LAYERS = ((45, 10.0), (200, 6.5))
# The tangent of the angle between spine and barb.
BARBS = np.float32(1.5)
# The slightly blue colour of ice.
COLOUR = np.array([0.92, 0.97, 1.0], np.float32)[:, None, None]


def crop_frost(draw: np.random.Generator, height: int, width: int) -> Array:
    """Return a random crop of a random pane, (3, height, width), from 0 to 1."""
    pane = grow_frost_panes(max(height, width))[draw.integers(PANES)]
    top, left = draw.integers(len(pane) - height), draw.integers(len(pane) - width)
    cut = pane[top : top + height, left : left + width]
    coloured: Array = COLOUR * (cut[:, ::-1] if draw.random() < 0.5 else cut)
    return coloured


@lru_cache(maxsize=2)
def grow_frost_panes(side: int) -> Array:
    size, smoothly = (SIDES * side, SIDES * side), Image.Resampling.BILINEAR
    grown = []
    for draw in map(np.random.default_rng, range(PANES)):
        thickness = (0.7 + 0.45 * _smooth_noise(draw, 9)).clip(0.15, 1.6)
        feathers = [_grow_feathers(draw, count, distance) for count, distance in LAYERS]
        ice = (thickness * (0.05 + np.maximum(*feathers))).clip(0, 1)
        grown.append(np.asarray(Image.fromarray(ice).resize(size, smoothly)))
    return np.stack(grown)


def _grow_feathers(draw: np.random.Generator, count: int, distance: float) -> Array:
    """Return feathers, from 0 to 1, that meet where they grow towards each other."""
    seeds = draw.integers(DRAWN, size=(2, count))
    free = np.ones((DRAWN, DRAWN), bool)
    free[tuple(seeds)] = False
    nearest = ndimage.distance_transform_edt(free, return_distances=False, return_indices=True)
    number = np.zeros(free.shape, np.intp)
    number[tuple(seeds)] = np.arange(count)
    feather = number[tuple(nearest)]
    turn = draw.uniform(0, 2 * np.pi, count).astype(np.float32)
    sine, cosine = np.sin(turn)[feather], np.cos(turn)[feather]
    light = draw.uniform(0.4, 1, count).astype(np.float32)[feather]
    down, right = (np.indices(free.shape, np.int32) - nearest).astype(np.float32)
    # Use the distance between barbs as the unit of length, and bend each feather slightly.
    bend = np.float32(0.2) * _smooth_noise(draw, 20)
    along = (right * cosine + down * sine) / distance + bend
    aside = np.abs((down * cosine - right * sine) / distance + bend)
    barbs = np.square(np.square(np.cos(np.pi * (along - aside / BARBS)))) * np.exp(-aside / 5)
    feathers: Array = light * np.maximum(barbs, np.exp(-np.square(aside / np.float32(0.25))))
    return feathers


def _smooth_noise(draw: np.random.Generator, count: int) -> Array:
    """Return smooth noise of mean 0, enlarged from `count` by `count` random values."""
    noise = draw.standard_normal((count, count), dtype=np.float32)
    smooth = Image.fromarray(noise).resize((DRAWN, DRAWN), Image.Resampling.BICUBIC)
    return np.asarray(smooth)
