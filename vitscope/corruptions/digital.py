"""Digital: low contrast, distortion, few pixels, compression."""

from collections.abc import Callable
from io import BytesIO

import numpy as np
from PIL import Image
from scipy import ndimage

from vitscope.corruptions.blur import gaussian
from vitscope.corruptions.images import Draws, Images, Maps, draw_each, map_both_axes
from vitscope.files.pictures import as_picture, as_pixels


def contrast(images: Images, draws: Draws, kept: float) -> Images:
    """Bring every channel of an image near its mean."""
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
    fields = displacements(draws, (height, width), amplitude, smoothing)
    grid = np.indices((height, width), np.float64)
    distorted = np.empty_like(images)
    for source, target, moved, field in zip(images, distorted, corners, fields, strict=True):
        sheared = _sample(source, _shear(grid, moved), "mirror")
        target[:] = _sample(sheared, grid + field, "reflect")
    return distorted


def displacements(draws: Draws, size: tuple[int, int], amplitude: float, smoothing: float) -> Maps:
    """Return how far each pixel of each image moves down and right, (n, 2, height, width)."""
    noise = draw_each(lambda draw: draw.uniform(-1, 1, (2, *size)), draws)
    return amplitude * map_both_axes(gaussian(smoothing, "reflect", truncate=3.0), noise)


def _shear(grid: Maps, moved: Maps) -> Maps:
    """Return where each pixel comes from when the corners of a triangle are moved."""
    size = np.array(grid.shape[1:])
    centre, reach = size // 2, size.min() // 3
    corners = centre + reach * np.array([[1, 1], [-1, 1], [-1, -1]])
    with_one = np.column_stack([corners + moved, np.ones(3)])
    back = np.linalg.solve(with_one, corners)
    sources: Maps = np.einsum("dij,dk->kij", grid, back[:2]) + back[2][:, None, None]
    return sources


def _sample(image: Maps, points: Maps, mode: str) -> Maps:
    """Return the values of an image at points between pixels, linearly."""
    return np.stack(
        [ndimage.map_coordinates(channel, points, order=1, mode=mode) for channel in image]
    )


def pixelate(images: Images, draws: Draws, share: float) -> Images:
    """Reduce an image to a share of its side, and enlarge it again."""

    def reduce(image: Image.Image) -> Image.Image:
        width, height = image.size
        small = (max(1, int(width * share)), max(1, int(height * share)))
        return image.resize(small, Image.Resampling.BOX).resize(image.size, Image.Resampling.BOX)

    return _change_each(images, reduce)


def jpeg_compression(images: Images, draws: Draws, quality: int) -> Images:
    """Compress an image and decode it."""

    def compress(image: Image.Image) -> Image.Image:
        file = BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file)

    return _change_each(images, compress)


def _change_each(images: Images, change: Callable[[Image.Image], Image.Image]) -> Images:
    """Change each image as a picture of bytes."""
    pixels = np.rint(255 * images).astype(np.uint8).transpose(0, 2, 3, 1)
    changed = np.stack([as_pixels(change(as_picture(each))) for each in pixels])
    return changed.transpose(0, 3, 1, 2).astype(np.float32) / 255
