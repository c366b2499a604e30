"""Weather: snow, frost on the lens, fog, glaring light."""

from functools import partial

import numpy as np

from vitscope.corruptions import frost as frost_plates
from vitscope.corruptions.blur import smear
from vitscope.corruptions.blur import zoom as zoom_map
from vitscope.corruptions.images import Draws, Images, Maps, draw_each, map_both_axes

# How light red, green and blue seem (ITU-R BT.601).
LIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)[:, None, None]


def lightness(images: Images) -> Images:
    """Return how light images seem, (..., 1, height, width); grey ones are as light as they are."""
    if images.shape[-3] == 1:
        return images
    light: Images = (LIGHTNESS * images).sum(axis=-3, keepdims=True)
    return light


def snow(
    images: Images,
    draws: Draws,
    mean: float,
    deviation: float,
    zoom: float,
    threshold: float,
    radius: int,
    blur: float,
    clear: float,
) -> Images:
    """Whiten the image and let flakes fall in two directions."""
    draws = list(draws)
    noise = draw_each(lambda draw: draw.normal(mean, deviation, (1, *images.shape[-2:])), draws)
    flakes = map_both_axes(partial(zoom_map, zoom), noise.astype(np.float32))
    flakes = np.where(flakes < threshold, 0, flakes).clip(0, 1)
    angles = draw_each(lambda draw: np.asarray(draw.uniform(-135, -45)), draws)
    flakes = smear(flakes, angles, radius, blur)
    light = lightness(images)
    white = np.maximum(images, 1.5 * light + 0.5)
    return clear * images + (1 - clear) * white + flakes + flakes[..., ::-1, ::-1]


def frost(images: Images, draws: Draws, image: float, ice: float) -> Images:
    """Look through a piece of a frosted pane."""
    height, width = images.shape[-2:]
    pieces = draw_each(lambda draw: frost_plates.cut_piece(draw, height, width), draws)
    # On a grey image a pane is as light as it would seem in colour.
    pieces = pieces if images.shape[1] == 3 else lightness(pieces)
    return np.float32(image) * images + np.float32(ice) * pieces


def fog(images: Images, draws: Draws, thickness: float, decay: float) -> Images:
    """Add clouds of fog, without exceeding the brightest value of the image."""
    height, width = images.shape[-2:]
    clouds = plasma(draws, max(height, width), decay)[:, None, :height, :width]
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    foggy: Images = (images + thickness * clouds) * brightest / (brightest + thickness)
    return foggy


def plasma(draws: Draws, side: int, decay: float) -> Maps:
    """Return clouds from 0 to 1 by diamonds and squares: detail is weaker the finer it is."""
    size = 1 << (side - 1).bit_length()
    noise = draw_each(lambda draw: draw.uniform(-1, 1, (size, size)), draws)
    clouds = np.zeros_like(noise)
    step, amplitude = size, 1.0
    while step >= 2:
        half = step // 2
        # A point gets the mean of its four neighbours, around the edge, and some noise.
        corners, grain = clouds[:, ::step, ::step], amplitude * noise
        centres = _mean_of_four(corners, np.roll(corners, -1, 1), (-1, 2))
        clouds[:, half::step, half::step] = centres + grain[:, half::step, half::step]
        centres = clouds[:, half::step, half::step]
        across = corners + np.roll(corners, -1, 2) + centres + np.roll(centres, 1, 1)
        down = corners + np.roll(corners, -1, 1) + centres + np.roll(centres, 1, 2)
        clouds[:, ::step, half::step] = across / 4 + grain[:, ::step, half::step]
        clouds[:, half::step, ::step] = down / 4 + grain[:, half::step, ::step]
        step, amplitude = half, amplitude / decay**2
    clouds -= clouds.min(axis=(1, 2), keepdims=True)
    scaled: Maps = (clouds / clouds.max(axis=(1, 2), keepdims=True)).astype(np.float32)
    return scaled


def _mean_of_four(one: Maps, other: Maps, roll: tuple[int, int]) -> Maps:
    pair = one + other
    mean: Maps = (pair + np.roll(pair, *roll)) / 4
    return mean


def brightness(images: Images, draws: Draws, added: float) -> Images:
    """Raise the value of every pixel, of its hue, saturation and value."""
    value = images.max(axis=1, keepdims=True)
    raised = np.minimum(value + np.float32(added), 1)
    # Black has no hue: it turns gray.
    factor = np.divide(raised, value, out=np.zeros_like(value), where=value > 0)
    brighter: Images = np.where(value > 0, images * factor, raised)
    return brighter
