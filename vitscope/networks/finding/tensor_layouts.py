"""How a tensor lays out its images, channels and space, told by the positions of its values."""

from math import inf

import torch
from torch import Tensor

from vitscope.networks.finding.cut_points import Layout
from vitscope.networks.finding.positions import DIGITS, Positions


def layout_of(positions: Positions, shape: tuple[int, ...]) -> Layout | None:
    """Return the layout of a tensor of feature maps, or None if it holds none."""
    varying = [_varying(positions, dimension) for dimension in range(len(shape))]
    channels = [d for d, size in enumerate(shape) if not varying[d] and size > 1]
    spatial = [d for d, letters in enumerate(varying) if letters & {"row", "column"}]
    images = [d for d, letters in enumerate(varying) if "image" in letters]
    if not spatial:
        return _of_one_position(shape)
    if len(images) != 1 or len(channels) > 1:
        return None
    if not channels:
        channels = [d for d in range(len(shape)) if d not in (*images, *spatial)][-1:]
    if len(channels) != 1:
        return None
    (image,), (channel,) = images, channels
    if image == 0 and varying[image] == {"image"}:
        plain = _plain(varying, channel, spatial)
        if plain is not None and len(shape) == 4:
            return Layout(plain)
    if image in spatial and image != 0:
        return None
    return _of_tokens(positions, shape, image, channel, spatial)


def _varying(positions: Positions, dimension: int) -> set[str]:
    each = {"image": positions.image, "row": positions.row, "column": positions.column}
    return {name for name, tensor in each.items() if _varies(tensor, dimension)}


def _varies(tensor: Tensor, dimension: int) -> bool:
    """Tell whether coordinates differ along a dimension, where there are any."""
    if tensor.shape[dimension] == 1:
        return False
    least, most = tensor.nan_to_num(inf), tensor.nan_to_num(-inf)
    return bool((least.amin(dimension) < most.amax(dimension)).any())


def _of_one_position(shape: tuple[int, ...]) -> Layout | None:
    """Return the layout of maps of a single position, which only their shape tells."""
    if len(shape) != 4:
        return None
    if shape[2:] == (1, 1):
        return Layout("nchw")
    return Layout("nhwc") if shape[1:3] == (1, 1) else None


def _plain(varying: list[set[str]], channel: int, spatial: list[int]) -> str | None:
    """Return the order of a map that needs no more than its dimensions moved, if it is one."""
    letters = {0: "n", channel: "c"}
    for dimension in spatial:
        if varying[dimension] == {"row"}:
            letters[dimension] = "h"
        elif varying[dimension] == {"column"}:
            letters[dimension] = "w"
    order = "".join(letters.get(dimension, "?") for dimension in range(len(varying)))
    return order if order in ("nchw", "nhwc") else None


def _of_tokens(
    positions: Positions, shape: tuple[int, ...], image: int, channel: int, spatial: list[int]
) -> Layout | None:
    """Return the layout of tokens: which of them are positions, and which position is which."""
    inner = [d for d in spatial if d != image]
    others = [d for d in range(len(shape)) if d not in (image, channel, *inner)]
    order = (image, *others, *inner, channel)
    full = [t.expand(shape).permute(order) for t in _each(positions)]
    numbers = full[0].nan_to_num(0.0)
    count = int(numbers.max()) + 1
    try:
        flat = [t.reshape(count, -1, shape[channel])[..., 0] for t in full]
    except RuntimeError:
        return None
    own = torch.arange(count, dtype=flat[0].dtype)[:, None]
    if not bool(((flat[0] == own) | flat[0].isnan()).all()):
        return None
    rows, columns = (_ranks(t[0]) for t in flat[1:])
    on_map = (rows >= 0) & (columns >= 0)
    height, width = int(rows.max()) + 1, int(columns.max()) + 1
    prefix = int(on_map.int().argmax())
    if height * width == 0 or int(on_map.sum()) != height * width:
        return None
    raster = torch.full((height * width,), -1)
    raster[rows[on_map] * width + columns[on_map]] = torch.arange(len(on_map))[on_map]
    if bool((raster < 0).any()):
        return None
    # Row by row up to the last token: any behind the map would have to be left out.
    in_order = raster.tolist() == [*range(prefix, len(on_map))]
    letters = {image: "n", channel: "c"} | dict.fromkeys(inner, "l") | dict.fromkeys(others, "l")
    name = "".join(letters[d] for d in range(len(shape)))
    tokens = None if in_order else tuple(raster.tolist())
    return Layout(name, prefix if in_order else 0, (height, width), len(on_map), tokens)


def _each(positions: Positions) -> tuple[Tensor, Tensor, Tensor]:
    return positions.image, positions.row, positions.column


def _ranks(coordinates: Tensor) -> Tensor:
    """Return the rank of each coordinate among all different ones, -1 where there is none."""
    rounded = torch.round(coordinates.double(), decimals=DIGITS)
    different = torch.unique(rounded[~rounded.isnan()])
    ranks = torch.searchsorted(different, rounded.nan_to_num(-1.0).contiguous())
    return torch.where(rounded.isnan(), -1, ranks)
