"""Noise: of the sensor, of few photons, of dead and hot pixels."""

import numpy as np

from vitscope.corruptions.images import Draws, Images, draw_each


def gaussian_noise(images: Images, draws: Draws, deviation: float) -> Images:
    """Add normal noise to every value."""
    shape = images.shape[1:]
    noise = draw_each(lambda draw: draw.standard_normal(shape, dtype=np.float32), draws)
    return images + np.float32(deviation) * noise


def shot_noise(images: Images, draws: Draws, photons: float) -> Images:
    """Count photons; a value of 1 stands for `photons` of them."""
    expected = iter(images * np.float64(photons))
    counts = draw_each(lambda draw: draw.poisson(next(expected)).astype(np.float32), draws)
    return counts / np.float32(photons)


def impulse_noise(images: Images, draws: Draws, share: float) -> Images:
    """Set a share of the values to 0 or 1, either as likely."""
    shape = images.shape[1:]
    chance = draw_each(lambda draw: draw.random(shape, dtype=np.float32), draws)
    salted = np.where(chance < share / 2, np.float32(1), images)
    return np.where(chance >= 1 - share / 2, np.float32(0), salted)
