"""The fifteen corruptions as functions of images, and the parameters of each severity."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache, partial
from io import BytesIO
from itertools import product
from math import log
from zlib import crc32

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy import fft, ndimage
from scipy.sparse import csr_array

from vitscope.corruptions import CORRUPTIONS, SEVERITIES
from vitscope.corruptions import frost as frost_plates
from vitscope.errors import VitscopeError, nearest
from vitscope.files.arrays import Array as Maps
from vitscope.files.images import as_picture, as_pixels
from vitscope.files.strict_yaml import load_yaml
from vitscope.package_data import CORRUPTION_PARAMETERS

# Float32 from 0 to 1, (n, channels, height, width): three channels, or one for grey images.
Images = Maps
Draws = Iterable[np.random.Generator]
# The weights of red, green and blue in the lightness of a colour (ITU-R BT.601).
LIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)[:, None, None]
# The sides of images, in pixels, for which parameters are published.
SMALL, LARGE = 32, 224
# The maximum number of images to corrupt at once: enough to share the overhead of each step.
AT_ONCE = 256
# The maximum number of values to corrupt at once, to limit memory.
VALUES_AT_ONCE = 10_000_000


def draw_each(draw: Callable[[np.random.Generator], Maps], draws: Draws) -> Maps:
    return np.stack([draw(generator) for generator in draws])


def map_both_axes(matrix_of: Callable[[int], Maps], images: Maps) -> Maps:
    """Apply a linear map to all columns and rows; `matrix_of` gives its matrix for a length."""
    for axis in (-2, -1):
        lines = np.moveaxis(images, axis, 0)
        # A sparse product, unlike a dense one, rounds the same for any number of images or threads.
        matrix = csr_array(matrix_of(len(lines)).astype(images.dtype))
        mapped = matrix @ lines.reshape(len(lines), -1)
        images = np.moveaxis(mapped.reshape(lines.shape), 0, axis)
    return np.ascontiguousarray(images)


def gaussian_noise(images: Images, draws: Draws, deviation: float) -> Images:
    shape = images.shape[1:]
    noise = draw_each(lambda draw: draw.standard_normal(shape, dtype=np.float32), draws)
    return images + np.float32(deviation) * noise


def shot_noise(images: Images, draws: Draws, photons: float) -> Images:
    """Draw Poisson counts of photons; a value of 1 stands for `photons` on average."""
    expected = iter(images * np.float64(photons))
    counts = draw_each(lambda draw: draw.poisson(next(expected)).astype(np.float32), draws)
    return counts / np.float32(photons)


def impulse_noise(images: Images, draws: Draws, share: float) -> Images:
    """Set a share of the values to 0 or 1 with equal chance."""
    shape = images.shape[1:]
    chance = draw_each(lambda draw: draw.random(shape, dtype=np.float32), draws)
    salted = np.where(chance < share / 2, np.float32(1), images)
    return np.where(chance >= 1 - share / 2, np.float32(0), salted)


def disk_kernel(radius: float, smoothing: float) -> Maps:
    """Return the kernel of a lens out of focus: a disk with a soft edge that sums to 1."""
    reach = max(8, int(np.ceil(radius))) + 2
    offset = np.arange(-reach, reach + 1)
    inside = np.hypot(*np.meshgrid(offset, offset)) <= radius
    taps = 1 if radius <= 8 else 2
    soft = np.exp(-np.square(np.arange(-taps, taps + 1) / smoothing) / 2)
    kernel = ndimage.convolve(inside.astype(np.float64), np.outer(soft, soft))
    used = reach - (kernel > 0).any(axis=0).argmax()
    kernel = kernel[reach - used : reach + used + 1, reach - used : reach + used + 1]
    normalized: Maps = kernel / kernel.sum()
    return normalized


def defocus_blur(images: Images, draws: Draws, radius: float, smoothing: float) -> Images:
    """Convolve with a disk; mirror the image beyond its edge."""
    kernel = disk_kernel(radius, smoothing).astype(np.float32)
    reach = len(kernel) // 2
    height, width = images.shape[-2:]
    shape = [fft.next_fast_len(side + 2 * reach, real=True) for side in (height, width)]
    response = fft.rfft2(kernel, shape)
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="reflect")
    # Transform each image alone: rounding may depend on how many are transformed together.
    blurred = [fft.irfft2(fft.rfft2(image, shape) * response, shape) for image in padded]
    return np.stack(blurred)[..., 2 * reach :, 2 * reach :][..., :height, :width]


def gaussian_matrix(deviation: float, mode: str, truncate: float) -> Callable[[int], Maps]:
    """Return a function from a length to the matrix of SciPy's Gaussian filter."""
    smooth, sigma = ndimage.gaussian_filter, (deviation, 0)
    return lambda length: smooth(np.eye(length), sigma, mode=mode, truncate=truncate)


def glass_blur(images: Images, draws: Draws, deviation: float, reach: int, rounds: int) -> Images:
    """Blur, swap every pixel with one nearby, and blur again."""
    smooth = gaussian_matrix(deviation, "nearest", truncate=4.0)
    blurred = np.rint(255 * map_both_axes(smooth, images)).astype(np.uint8)
    shuffled = swap_pixels_behind_glass(blurred, draws, reach, rounds)
    return map_both_axes(smooth, shuffled.astype(np.float32) / 255)


def swap_pixels_behind_glass(images: Maps, draws: Draws, reach: int, rounds: int) -> Maps:
    """Swap every pixel, from the last to the first, with one that is up to `reach` away."""
    count, channels, height, width = images.shape
    inside = product(range(height - reach, reach, -1), range(width - reach, reach, -1))
    positions = np.array([row * width + column for row, column in inside] * rounds)
    steps = draw_each(
        lambda draw: draw.integers(-reach, reach, (2, len(positions)), dtype=np.int8), draws
    ).astype(np.intp)
    partners = positions[:, None] + steps[:, 0].T * width + steps[:, 1].T
    # Lay pixels out as (height * width, images), so that a pixel's three channels move together.
    pixels = np.zeros((height * width, count, 4), np.uint8)
    pixels[..., :channels] = images.reshape(count, channels, -1).transpose(2, 0, 1)
    whole = pixels.view(np.uint32)[..., 0]
    flat, image = whole.reshape(-1), np.arange(count)
    for position, partner in zip(positions, partners * count + image, strict=True):
        here = whole[position].copy()
        whole[position] = flat[partner]
        flat[partner] = here
    return pixels[..., :channels].transpose(1, 2, 0).reshape(images.shape)


def motion_blur(images: Images, draws: Draws, radius: int, deviation: float) -> Images:
    """Smear each image in a random direction within 45 degrees of the horizontal."""
    angles = draw_each(lambda draw: np.asarray(draw.uniform(-45, 45)), draws)
    return smear(images, angles, radius, deviation)


def motion_kernel(angle: float, radius: int, deviation: float) -> tuple[Maps, Maps]:
    """Return the offsets (down, right) along a motion, and their weights: half of a Gaussian."""
    step = np.arange(2 * radius + 1)
    weights = np.exp(-np.square(step / deviation) / 2)
    direction = np.array([np.sin(np.radians(angle)), np.cos(np.radians(angle))])
    steps = np.ceil(step[:, None] * direction - 0.5).astype(np.intp)
    return steps, weights / weights.sum()


def smear(images: Images, angles: Maps, radius: int, deviation: float) -> Images:
    """Blur each image along its angle; repeat edge pixels beyond the image."""
    reach = 2 * radius
    height, width = images.shape[-2:]
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="edge")
    blurred = np.zeros_like(images)
    for source, target, angle in zip(padded, blurred, angles, strict=True):
        steps, weights = motion_kernel(float(angle), radius, deviation)
        for (down, right), weight in zip(steps + reach, weights.astype(np.float32), strict=True):
            target += weight * source[:, down : down + height, right : right + width]
    return blurred


@lru_cache(maxsize=256)
def zoom_blur_matrix(factor: float, length: int) -> Maps:
    """Return the matrix that enlarges the middle of a line by a factor, by linear interpolation."""
    kept = int(np.ceil(length / factor))
    first = (length - kept) // 2
    enlarged = ndimage.zoom(np.eye(length)[first : first + kept], (factor, 1), order=1)
    trimmed = (len(enlarged) - length) // 2
    lines: Maps = enlarged[trimmed : trimmed + length]
    return lines


def zoom_blur(images: Images, draws: Draws, largest: float, step: float) -> Images:
    """Average images with their enlarged middles, as an approaching camera sees them."""
    factors = np.arange(1, largest + step / 2, step).tolist()
    total = images.copy()
    for factor in factors:
        total += map_both_axes(partial(zoom_blur_matrix, factor), images)
    return total / np.float32(len(factors) + 1)


def contrast(images: Images, draws: Draws, kept: float) -> Images:
    mean = images.mean(axis=(2, 3), keepdims=True)
    changed: Images = mean + np.float32(kept) * (images - mean)
    return changed


def elastic_transform(
    images: Images, draws: Draws, amplitude: float, smoothing: float, shear: float
) -> Images:
    """Shear an image, then move its pixels by a smooth random field."""
    height, width = images.shape[-2:]
    draws = list(draws)
    corners = draw_each(lambda draw: draw.uniform(-shear, shear, (3, 2)), draws)
    fields = displacement_fields(draws, (height, width), amplitude, smoothing)
    grid = np.indices((height, width), np.float64)
    distorted = np.empty_like(images)
    for source, target, moved, field in zip(images, distorted, corners, fields, strict=True):
        sheared = _interpolate(source, _elastic_shear_positions(grid, moved), "mirror")
        target[:] = _interpolate(sheared, grid + field, "reflect")
    return distorted


def displacement_fields(
    draws: Draws, size: tuple[int, int], amplitude: float, smoothing: float
) -> Maps:
    noise = draw_each(lambda draw: draw.uniform(-1, 1, (2, *size)), draws)
    return amplitude * map_both_axes(gaussian_matrix(smoothing, "reflect", truncate=3.0), noise)


def _elastic_shear_positions(grid: Maps, moved: Maps) -> Maps:
    """Return the source position of each pixel if a triangle's corners are moved by `moved`."""
    size = np.array(grid.shape[1:])
    centre, reach = size // 2, size.min() // 3
    corners = centre + reach * np.array([[1, 1], [-1, 1], [-1, -1]])
    with_one = np.column_stack([corners + moved, np.ones(3)])
    back = np.linalg.solve(with_one, corners)
    sources: Maps = np.einsum("dij,dk->kij", grid, back[:2]) + back[2][:, None, None]
    return sources


def _interpolate(image: Maps, points: Maps, mode: str) -> Maps:
    return np.stack(
        [ndimage.map_coordinates(channel, points, order=1, mode=mode) for channel in image]
    )


def pixelate(images: Images, draws: Draws, share: float) -> Images:
    """Shrink an image to a share of its width and height, and enlarge it again."""

    def shrink_and_enlarge(image: Image.Image) -> Image.Image:
        width, height = image.size
        small = (max(1, int(width * share)), max(1, int(height * share)))
        return image.resize(small, Image.Resampling.BOX).resize(image.size, Image.Resampling.BOX)

    return _change_pictures(images, shrink_and_enlarge)


def jpeg_compression(images: Images, draws: Draws, quality: int) -> Images:
    def compress_as_jpeg(image: Image.Image) -> Image.Image:
        file = BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file)

    return _change_pictures(images, compress_as_jpeg)


def _change_pictures(images: Images, change: Callable[[Image.Image], Image.Image]) -> Images:
    pixels = np.rint(255 * images).astype(np.uint8).transpose(0, 2, 3, 1)
    changed = np.stack([as_pixels(change(as_picture(each))) for each in pixels])
    return changed.transpose(0, 3, 1, 2).astype(np.float32) / 255


def lightness(images: Images) -> Images:
    """Return the lightness of images, (..., 1, height, width); return grey images unchanged."""
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
    flakes = map_both_axes(partial(zoom_blur_matrix, zoom), noise.astype(np.float32))
    flakes = np.where(flakes < threshold, 0, flakes).clip(0, 1)
    angles = draw_each(lambda draw: np.asarray(draw.uniform(-135, -45)), draws)
    flakes = smear(flakes, angles, radius, blur)
    light = lightness(images)
    white = np.maximum(images, 1.5 * light + 0.5)
    return clear * images + (1 - clear) * white + flakes + flakes[..., ::-1, ::-1]


def frost(images: Images, draws: Draws, image: float, ice: float) -> Images:
    height, width = images.shape[-2:]
    pieces = draw_each(lambda draw: frost_plates.crop_frost(draw, height, width), draws)
    # On grey images, use the lightness of the pane.
    pieces = pieces if images.shape[1] == 3 else lightness(pieces)
    return np.float32(image) * images + np.float32(ice) * pieces


def fog(images: Images, draws: Draws, thickness: float, decay: float) -> Images:
    """Add clouds of fog, without exceeding the brightest value of the image."""
    height, width = images.shape[-2:]
    clouds = plasma_clouds(draws, max(height, width), decay)[:, None, :height, :width]
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    foggy: Images = (images + thickness * clouds) * brightest / (brightest + thickness)
    return foggy


def plasma_clouds(draws: Draws, side: int, decay: float) -> Maps:
    """Return clouds from 0 to 1 by the diamond-square algorithm; finer detail is weaker."""
    size = 1 << (side - 1).bit_length()
    noise = draw_each(lambda draw: draw.uniform(-1, 1, (size, size)), draws)
    clouds = np.zeros_like(noise)
    step, amplitude = size, 1.0
    while step >= 2:
        half = step // 2
        # A point gets the mean of its four neighbours, wrapped around the edge, plus noise.
        corners, grain = clouds[:, ::step, ::step], amplitude * noise
        pairs = corners + np.roll(corners, -1, 1)
        centres = (pairs + np.roll(pairs, -1, 2)) / 4
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


def brightness(images: Images, draws: Draws, added: float) -> Images:
    """Raise the value (V of HSV) of every pixel."""
    value = images.max(axis=1, keepdims=True)
    raised = np.minimum(value + np.float32(added), 1)
    # Black has no hue: it turns gray.
    factor = np.divide(raised, value, out=np.zeros_like(value), where=value > 0)
    brighter: Images = np.where(value > 0, images * factor, raised)
    return brighter


FUNCTIONS: dict[str, Callable[..., Images]] = {
    each.__name__: each
    for each in (
        *(gaussian_noise, shot_noise, impulse_noise),
        *(defocus_blur, glass_blur, motion_blur, zoom_blur),
        *(snow, frost, fog, brightness),
        *(contrast, elastic_transform, pixelate, jpeg_compression),
    )
}


def corruption_parameters(corruption: str, severity: int, side: int) -> dict[str, float]:
    """Interpolate the published parameters, linearly in the logarithm of the images' side."""
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
    """Corrupt 8-bit images (N, C, H, W); an image's row and `seed` determine its noise."""
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
    chosen = corruption_parameters(corruption, severity, min(images.shape[2:]))
    corrupted, name = np.empty_like(images), crc32(corruption.encode())
    step = min(AT_ONCE, max(1, VALUES_AT_ONCE // images[0].size)) if len(images) else 1
    for first in range(0, len(images), step):
        some = slice(first, first + step)
        # Create generators lazily, since some corruptions draw nothing.
        keys = ((seed, name, severity, int(row)) for row in rows[some])
        draws = map(np.random.default_rng, keys)
        # In one order, since NumPy's sums, in other orders, are less exact.
        scaled = images[some].astype(np.float32, order="C") / 255
        changed = FUNCTIONS[corruption](scaled, draws, **chosen)
        corrupted[some] = np.rint(255 * changed.clip(0, 1)).astype(np.uint8)
    return corrupted
