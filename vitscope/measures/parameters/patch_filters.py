import numpy as np
import pandas as pd

from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.bootstrap import ratio
from vitscope.measures.given import OnNetwork
from vitscope.networks.attention.found_weights import first_projection_weights

# Filters can be shown if they have one channel, or three: red, green and blue.
CHANNELS = (1, 3)
# Singular values below this share of the first count as zero.
ROUND_OFF = 1e-6


def patch_filter_components(filters: Array) -> tuple[Array, Array]:
    """Return the principal components of filters (N, ...), and their shares of the variance."""
    flat = filters.reshape(len(filters), -1)
    _, values, directions = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    there = values > ROUND_OFF * max(float(values[0]), np.finfo(np.float64).tiny)
    values, directions = values[there], directions[there]
    largest = np.take_along_axis(directions, abs(directions).argmax(axis=1)[:, None], axis=1)
    components = (directions * np.sign(largest)).reshape(-1, *filters.shape[1:])
    return components, values**2 / (values**2).sum()


def patch_filter_frequencies(filters: Array) -> Array:
    """Return the mean frequency of each filter (C, H, W), in units of pi; NaN for all zeros."""
    power = (abs(np.fft.fft2(filters)) ** 2).sum(axis=1)
    rows, columns = (2 * np.fft.fftfreq(size) for size in filters.shape[2:])
    weighted = (power * np.hypot(rows[:, None], columns)).sum((1, 2))
    return ratio(weighted, power.sum((1, 2)))


def scale_patch_filters(filters: Array) -> tuple[Array, Array, Array]:
    """Scale each filter to 0..1; return (N, H, W, C), and the filters' lowest and highest values.

    `filters` has the shape (N, C, H, W).
    """
    low, high = (end(filters, axis=(1, 2, 3)) for end in (np.min, np.max))
    span = np.where(high > low, high - low, 1)[:, None, None, None]
    values = (filters - low[:, None, None, None]) / span
    return values.transpose(0, 2, 3, 1), low, high


def _rows_of_filters(of: str, filters: Array, count: int) -> pd.DataFrame:
    values, low, high = scale_patch_filters(filters)
    _, channels, height, width = filters.shape
    return pd.DataFrame(
        {
            "of": of,
            "number": np.arange(len(filters)),
            "count": count,
            "channels": channels,
            "height": height,
            "width": width,
            "lowest": low,
            "highest": high,
            "frequency": patch_filter_frequencies(filters),
            "share": np.nan,
            "values": [each.ravel() for each in values],
        }
    )


def measure_patch_filters(given: OnNetwork, filters: int, components: int) -> pd.DataFrame:
    found = given.find(first_projection_weights)
    weights = found.values.detach().double().cpu().numpy()
    where = f"models.{given.model}: the filters of the first layer, '{found.name}',"
    if weights.shape[1] not in CHANNELS:
        raise VitscopeError(
            f"{where} have {weights.shape[1]} channels, and can be shown where these are one or "
            f"three."
        )
    if not np.isfinite(weights).all():
        raise VitscopeError(f"{where} are not finite: check the checkpoint.")
    directions, shares = patch_filter_components(weights)
    of_filters = _rows_of_filters("filter", weights[:filters], len(weights))
    of_components = _rows_of_filters("component", directions[:components], len(directions))
    of_components = of_components.assign(share=shares[:components])
    both = pd.concat([of_filters, of_components], ignore_index=True)
    return both.assign(model=given.model, module=found.name)
