"""Trace where in the image a tensor's values lie, and so how the tensor lays out a feature map."""

from collections.abc import Callable, Iterator, Sequence
from math import inf, isnan, nan, prod
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool1d, pad

from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.addends import summed_stack
from vitscope.networks.finding.cut_points import Layout
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.finding.leaves import leaves, map_leaves

ROUNDING = 1e-6
# Compare coordinates after rounding to this many digits, since means of coordinates are inexact.
DIGITS = 4


class Positions(NamedTuple):
    """Gives image, row and column of a tensor's values; NaN where a value has no position.

    A coordinate has size 1 along the dimensions where it does not change.
    """

    image: Tensor
    row: Tensor
    column: Tensor

    def change_each(self, change: Callable[[Tensor], Tensor]) -> "Positions":
        """Apply `change` to each coordinate, and shrink dimensions where the result is constant."""
        return Positions(*(_shrink_coordinate(change(t)) for t in self))


class _Line(NamedTuple):
    """Describes a map's rows or columns by their middle and the distance between neighbours."""

    middle: float
    apart: float

    def coordinates(self, count: int) -> Tensor:
        return self.middle + (torch.arange(count) - (count - 1) / 2) * self.apart


def _fit_line_to_positions(
    positions: Positions, shape: tuple[int, ...], dimension: int
) -> _Line | None:
    """Fit rows (dimension 2) or columns (3) of a tensor (N, C, H, W); None if it has no maps."""
    tensor = (positions.row, positions.column)[dimension - 2]
    count, varying = shape[dimension], tensor.flatten()
    if tensor.shape[dimension] != count or len(varying) != count:
        return None
    middle = float(varying.mean())
    if count == 1:
        return None if isnan(middle) else _Line(middle, 1.0)
    line = _Line(middle, float(varying[-1] - varying[0]) / (count - 1))
    return line if torch.allclose(varying, line.coordinates(count), atol=1e-4) else None


def _map_positions(image: Tensor, rows: Tensor, columns: Tensor) -> Positions:
    return Positions(image, rows.view(1, 1, -1, 1), columns.view(1, 1, 1, -1))


def _image_positions(shape: tuple[int, ...]) -> Positions:
    """Return the positions of maps (N, C, H, W), each of which covers one image."""
    numbers = torch.arange(shape[0], dtype=torch.float32).view(-1, 1, 1, 1)
    return _map_positions(numbers, *(_Line(0.5, 1 / n).coordinates(n) for n in shape[2:]))


def _lines_of_positions(positions: Positions | None, shape: tuple[int, ...]) -> list[_Line]:
    """Return the rows and columns of a tensor's maps (N, C, H, W); an empty list if it has none."""
    if positions is None or len(shape) != 4:
        return []
    if any(positions.image.shape[d] > 1 for d in (1, 2, 3)):
        return []
    found = [_fit_line_to_positions(positions, shape, dimension) for dimension in (2, 3)]
    return [line for line in found if line is not None] if None not in found else []


def _stride_between_maps(operation: Operation, before: tuple[int, ...], dimension: int) -> float:
    """Return how many rows (dimension 2) or columns (3) become a row or column of the next map."""
    args = operation.args
    if operation.name in ops.CONVOLUTIONS:
        stride = _setting_of_axis(args[3], dimension)
        return 1 / stride if args[6] else stride
    if operation.name in ops.STRIDED_POOLINGS:
        return _setting_of_axis(args[2] if len(args) > 2 and args[2] else args[1], dimension)
    return before[dimension] / operation.shape[dimension]


def _coordinates_of_new_map(
    operation: Operation, lines: Sequence[_Line], before: tuple[int, ...]
) -> Iterator[Tensor]:
    """Yield the coordinates of rows, and of columns, of the map that an operation makes."""
    for dimension, line in enumerate(lines, 2):
        count = operation.shape[dimension]
        if operation.name in ops.ADAPTIVE_POOLINGS and count < before[dimension]:
            # What it pools overlaps, and differs in size, where it does not divide the map. A map
            # that it enlarges has several values of the same pixels, which fill it all the same.
            yield adaptive_avg_pool1d(line.coordinates(before[dimension])[None], count)[0]
        else:
            apart = line.apart * _stride_between_maps(operation, before, dimension)
            yield _Line(line.middle, apart).coordinates(count)


def _setting_of_axis(given: Any, dimension: int) -> int:
    """Return an operation's setting, such as a stride, for rows (dimension 2) or columns (3)."""
    each = [given] if isinstance(given, int) else [*given]
    return int(each[(dimension - 2) % len(each)])


def _shrink_coordinate(tensor: Tensor) -> Tensor:
    """Shrink each dimension along which values do not change to size 1."""
    for dimension in range(tensor.ndim):
        if tensor.shape[dimension] == 0:
            # A network without prefix tokens may slice them off, and put them back.
            continue
        first = tensor.narrow(dimension, 0, 1)
        # Expanded values are equal without a comparison. Pixels are farther apart than `ROUNDING`.
        if tensor.stride(dimension) == 0 or torch.allclose(
            tensor, first, rtol=0, atol=ROUNDING, equal_nan=True
        ):
            tensor = first
    return tensor


def _reshape_coordinate(tensor: Tensor, shape: tuple[int, ...], result: tuple[int, ...]) -> Tensor:
    """Reshape a coordinate from `shape` to `result`; equal last dimensions may stay at size 1."""
    kept = 0
    while (
        kept < min(len(shape), len(result))
        and shape[-1 - kept] == result[-1 - kept]
        and tensor.shape[-1 - kept] == 1
    ):
        kept += 1
    varying = tensor.reshape(tensor.shape[: len(shape) - kept])
    moved = varying.expand(shape[: len(shape) - kept]).reshape(result[: len(result) - kept])
    return moved.reshape(*moved.shape, *[1] * kept)


def has_places(positions: Positions | None) -> bool:
    return positions is not None and max(positions.row.numel(), positions.column.numel()) > 1


def _has_positions_in_a_row(positions: Positions | None) -> bool:
    """Tell whether values of several rows and columns lie along one dimension."""
    if positions is None:
        return False
    varying = [
        {d for d, count in enumerate(t.shape) if count > 1}
        for t in (positions.row, positions.column)
    ]
    return len(varying[0] | varying[1]) == 1 and bool(varying[0] & varying[1])


def _moves_positions_by_index(operation: Operation) -> bool:
    """Tell whether an operation puts values of images at other places, without adding them."""
    if operation.name not in ops.SCATTERS:
        return False
    adds = operation.name == "index_put" and operation.args[-1] is True
    return not adds and any(isinstance(leaf, Value) for leaf in leaves(operation.args[1:]))


def _shifts_positions(operation: Operation) -> bool:
    """Tell whether an operation shifts a map, with as much padding as it cuts off."""
    if operation.name != "constant_pad_nd":
        return False
    sides = operation.args[1]
    pairs = [*zip(sides[::2], sides[1::2], strict=True)]
    return any(sides) and all(before == -after for before, after in pairs)


def _kernel_covers_all(operation: Operation, shape: tuple[int, ...]) -> bool:
    """Tell whether a convolution takes the whole of several maps of each image at once."""
    kernel = operation.args[1]
    covers = isinstance(kernel, Constant) and kernel.shape[2:] == shape[2:]
    return covers and max(shape[2:]) > 1 and not any(operation.args[4])


def _keeps_tokens(operation: Operation, shape: tuple[int, ...]) -> bool:
    """Tell whether a convolution computes each value from the token of its index, and others."""
    kernel = operation.args[1]
    if operation.name not in ops.CONVOLUTIONS or not isinstance(kernel, Constant):
        return False
    (stride,), (padding,), (dilation,), transposed = operation.args[3:7]
    taken = range(0, kernel.shape[2] * dilation, dilation)
    plain = stride == 1 and not transposed and operation.shape[2] >= shape[2]
    return plain and padding in taken


def _dimension_of_product(operation: Operation) -> int:
    """Return the dimension of its first value that a product of matrices sums over.

    It is the last dimension, or the one before that if a constant matrix is on the left.
    """
    factor = operation.args[1 if operation.name in ("addmm", "baddbmm") else 0]
    return -2 if isinstance(factor, Constant) else -1


def _dimension_chosen_by_values(operation: Operation) -> int | None:
    """Return the dimension along which values decide which of them an operation takes, if any."""
    if operation.name in ops.SORTS:
        at = 2 if operation.name == "topk" else 1
        return int([*operation.args[at : at + 1], operation.kwargs.get("dim", -1)][0])
    if operation.name in ("gather", "index_select") and isinstance(operation.args[2], Value):
        return int(operation.args[1])
    return None


def _summed_dimensions(operation: Operation) -> list[int]:
    """Return the dimensions of its value that an operation sums over, weighed by constants."""
    if operation.name in ops.PRODUCTS:
        return [_dimension_of_product(operation)]
    if operation.name in ops.CONVOLUTIONS:
        # Spatial sums of a convolution are not meant: dimension 1 may hold tokens.
        return [1]
    return [*operation.args[1]] if ops.is_fourier(operation.name) else []


class PositionTracer:
    """Finds the positions of a pass's values; `images` may give its input other coordinates."""

    def __init__(self, flow: Dataflow, images: Positions | None = None) -> None:
        self._flow = flow
        self._known: dict[Value, Positions | None] = {}
        self._known[Value(0)] = images or _image_positions(flow.operations[0].shape)

    def positions(self, value: Value) -> Positions | None:
        # Use a list and no recursion, since a network may be deeper than Python's stack.
        missing = [value]
        while missing:
            last = missing[-1]
            if last in self._known:
                missing.pop()
                continue
            unknown = [v for v in self._deciding_values(last) if v not in self._known]
            if unknown:
                missing += unknown[:1]
                continue
            self._known[last] = self._find_positions(last)
        return self._known[value]

    def _deciding_values(self, value: Value) -> list[Value]:
        """Return the values whose positions decide the positions of `value`."""
        operation = self._flow.operations[value.operation]
        operands = self._added_by_stack(operation) or operation.operands
        if operation.name in ops.MOVES or operation.kwargs.get("at"):
            return operands
        if not self._added_by_stack(operation) and (
            operation.name in ops.PRODUCTS | ops.REDUCTIONS | ops.MAPS | ops.UNFOLDING
            or _shifts_positions(operation)
        ):
            return operands[:1]
        if operation.name in ops.SORTS:
            return operands[:1]
        if _moves_positions_by_index(operation):
            return []
        same = [v for v in operands if self._flow.shape_of(v) == operation.shape]
        # Ask the earliest operand first: with a shortcut, it is the stream, which is the easiest to
        # trace. If it has lost its places, ask the next operand; and first the one that holds no
        # channels of zeros, which have none. What a copy overwrites comes last.
        over = operation.args[0] if operation.name == "copy" else None
        asked: list[Value] = []
        for operand in sorted(same, key=lambda v: (v == over, self._is_padded(v), v.operation)):
            asked.append(operand)
            if operand not in self._known or has_places(self._known[operand]):
                break
        return asked

    def _is_padded(self, value: Value) -> bool:
        return self._flow.operations[value.operation].name == "constant_pad_nd"

    def _added_by_stack(self, operation: Operation) -> list[Value]:
        """Return the values of a stack that an operation sums up: it is an addition of these."""
        stack = summed_stack(self._flow, operation)[:1]
        added = [v for index in stack for v in self._flow.operations[index].operands]
        return added if all(self._flow.shape_of(v) == operation.shape for v in added) else []

    def _find_positions(self, value: Value) -> Positions | None:
        operation = self._flow.operations[value.operation]
        if operation.name in ops.MAPS:
            return self._positions_of_new_map(operation)
        if operation.name in ops.UNFOLDING:
            return self._positions_of_unfolded(operation)
        if _shifts_positions(operation):
            return self._known[operation.operands[0]]
        if operation.kwargs.get("at"):
            return self._positions_of_written(operation)
        deciding = [self._known[each] for each in self._deciding_values(value)]
        chosen = _dimension_chosen_by_values(operation)
        if chosen is not None:
            # What is chosen among values of the same position keeps it, whatever is chosen.
            fixed = deciding[0] and not any(varies_along(t, chosen) for t in deciding[0])
            return deciding[0] if fixed else None
        if operation.name in ops.MOVES:
            known = bool(deciding) and all(each is not None for each in deciding)
            return self._move_positions(operation, value.output) if known else None
        told = [each for each in deciding if each is not None]
        if not told:
            return None
        first = next(filter(has_places, told), told[0])
        if operation.name in ops.PRODUCTS:
            return self._positions_of_means(first, [_dimension_of_product(operation)])
        if operation.name in ops.REDUCTIONS and not self._added_by_stack(operation):
            keep = len(operation.shape) == first.row.ndim
            args = operation.args
            return self._positions_of_means(first, args[1], keep) if len(args) > 1 else None
        return first

    def _positions_of_new_map(self, operation: Operation) -> Positions | None:
        """Return the positions in the map that an operation makes; dimension 0 may hold heads."""
        operand = operation.operands[0]
        before, shape = self._known[operand], self._flow.shape_of(operand)
        if operation.name in ops.CONVOLUTIONS and _kernel_covers_all(operation, shape):
            # Patches that were cut out before are the maps of this convolution, each as a whole.
            dims = [*range(1, len(shape))]
            return before and self._positions_of_means(before, dims)
        if len(operation.shape) == 3:
            return before and self._positions_along_sequence(operation, before, shape)
        if len(operation.shape) != 4:
            return None
        weight = operation.args[1] if operation.name in ops.CONVOLUTIONS else None
        of_one_value = isinstance(weight, Constant) and weight.shape[2:] == (1, 1)
        # A 1x1 convolution mixes dimension 1: if that holds heads, scores keep their places; if it
        # holds tokens, the places are lost.
        if of_one_value and operation.shape[2:] == shape[2:]:
            return before and before.change_each(lambda t: t.nanmean(1, keepdim=True))
        lines = _lines_of_positions(before, shape)
        if before is not None and lines:
            return _map_positions(before.image, *_coordinates_of_new_map(operation, lines, shape))
        # Tokens in a row are no map, even if a layer for maps takes them. Their places remain
        # known only if it averages.
        if 1 in shape[2:] and _has_positions_in_a_row(before):
            averages = operation.name == "avg_pool2d"
            return self._move_positions(operation, 0) if averages else None
        return (
            _image_positions(operation.shape) if operation.shape[0] == self._flow.images else None
        )

    def _positions_along_sequence(
        self, operation: Operation, before: Positions, shape: tuple[int, ...]
    ) -> Positions | None:
        """Return the positions of a convolution along a sequence of tokens (N, C, L).

        A value keeps the place of the token of its index, if it is computed from that one. The
        values that the padding of a causal convolution adds at the end have none.
        """
        if not _keeps_tokens(operation, shape) or not has_places(before):
            return None
        apart = operation.args[8] == shape[1]
        if not apart and any(varies_along(each, 1) for each in before):
            return None
        more = (0, operation.shape[2] - shape[2])
        return Positions(*(pad(t.expand(-1, -1, shape[2]), more, value=nan) for t in before))

    def _positions_of_written(self, operation: Operation) -> Positions | None:
        """Return the positions of a tensor into which values of known places are written."""
        before, written = operation.args
        old = self._known.get(before) if isinstance(before, Value) else None
        new = self._known[written]
        if new is None:
            return old
        found = [torch.full(operation.shape, nan) for _ in new]
        for number, tensor in enumerate(found):
            if old is not None:
                tensor.copy_(old[number].expand(operation.shape))
            region = tensor.as_strided(*operation.kwargs["at"])
            region.copy_(new[number].expand(region.shape))
        return Positions(*map(_shrink_coordinate, found))

    def _positions_of_unfolded(self, operation: Operation) -> Positions | None:
        operand = operation.operands[0]
        before, shape = self._known[operand], self._flow.shape_of(operand)
        lines = _lines_of_positions(before, shape)
        if before is None or not lines:
            return None
        kernel, dilation, padding, stride = operation.args[1:5]
        counts = [
            (
                shape[d]
                + 2 * _setting_of_axis(padding, d)
                - _setting_of_axis(dilation, d) * (_setting_of_axis(kernel, d) - 1)
                - 1
            )
            // _setting_of_axis(stride, d)
            + 1
            for d in (2, 3)
        ]
        rows, columns = (
            _Line(line.middle, line.apart * _setting_of_axis(stride, d)).coordinates(count)
            for d, (line, count) in enumerate(zip(lines, counts, strict=True), 2)
        )
        each = torch.cartesian_prod(rows, columns)
        image = before.image.reshape(-1, 1, 1)
        return Positions(image, each[:, 0].view(1, 1, -1), each[:, 1].view(1, 1, -1))

    def _positions_of_means(self, positions: Positions, dims: Any, keep: bool = True) -> Positions:
        """Return the positions of means along dimensions; a mean over all positions has none."""
        mean = positions.change_each(lambda t: t.nanmean(dims, keepdim=keep))
        if has_places(positions) and not has_places(mean):
            row, column = (torch.full_like(t, nan) for t in (mean.row, mean.column))
            return Positions(mean.image, row, column)
        return mean

    def _move_positions(self, operation: Operation, output: int) -> Positions | None:
        try:
            return Positions(*(self._move_coordinate(operation, output, n) for n in range(3)))
        except (RuntimeError, IndexError, TypeError, NotImplementedError):
            return None

    def _move_coordinate(self, operation: Operation, output: int, number: int) -> Tensor:
        """Return one of the three coordinates of a result: run the operation on this coordinate."""

        def known_coordinate(value: Value) -> Tensor:
            known = self._known[value]
            assert known is not None
            return known[number]

        if operation.name in ops.VIEWS:
            (viewed,) = operation.operands
            before, after = self._flow.shape_of(viewed), operation.shapes[output]
            return _shrink_coordinate(_reshape_coordinate(known_coordinate(viewed), before, after))

        def coordinates_of_leaf(leaf: Any) -> Any:
            if isinstance(leaf, Value):
                return known_coordinate(leaf).expand(self._flow.shape_of(leaf))
            if isinstance(leaf, Constant):
                numbers = not leaf.tensor.is_meta and not leaf.tensor.is_floating_point()
                # Integers choose tokens in these operations; other constants have no place.
                chooses = numbers and operation.name in ops.CHOICES
                return leaf.tensor if chooses else torch.full((), nan).expand(leaf.shape)
            return leaf

        args, kwargs = map_leaves(coordinates_of_leaf, (operation.args, operation.kwargs))
        for key in ("device", "dtype", "layout", "pin_memory", "memory_format"):
            kwargs.pop(key, None)
        if operation.name in ops.COPIES:
            moved = args[0]
        elif operation.name == "constant_pad_nd":
            moved = pad(args[0], args[1], value=nan)
        else:
            moved = operation.function(*args, **kwargs)
        if isinstance(moved, list | tuple):
            moved = moved[output]
        return _shrink_coordinate(moved)


def sums_over_positions(tracer: PositionTracer, operation: Operation) -> bool:
    """Tell whether an operation sums over positions by constants, and so mixes tokens.

    This is a product of tokens and a matrix, such as a linear layer on transposed tokens, a
    convolution that takes tokens for channels, or a Fourier transform. Where places are lost, one
    over several dimensions is of positions, and not of channels alone.
    """
    values = operation.operands
    dimensions = _summed_dimensions(operation) if len(values) == 1 else []
    known = tracer.positions(values[0]) if dimensions else None
    if not has_places(known):
        return ops.is_fourier(operation.name) and len(dimensions) > 1
    return known is not None and any(
        varies_along(each, d) for each in (known.row, known.column) for d in dimensions
    )


def layout_of_positions(positions: Positions, shape: tuple[int, ...]) -> Layout | None:
    each = positions._asdict().items()
    varying = [{name for name, t in each if varies_along(t, d)} for d in range(len(shape))]
    channels = [d for d, size in enumerate(shape) if not varying[d] and size > 1]
    spatial = [d for d, letters in enumerate(varying) if letters & {"row", "column"}]
    images = [d for d, letters in enumerate(varying) if "image" in letters]
    if not spatial:
        # Recognize maps with a single position by their shape.
        order = "nchw" if shape[2:] == (1, 1) else "nhwc" if shape[1:3] == (1, 1) else ""
        return Layout(order) if order and len(shape) == 4 else None
    if len(images) != 1 or len(channels) > 1:
        return None
    if not channels:
        channels = [d for d in range(len(shape)) if d not in (*images, *spatial)][-1:]
    if len(channels) != 1:
        return None
    (image,), (channel,) = images, channels
    if image == 0 and varying[image] == {"image"}:
        plain = _order_of_map_positions(varying, channel, spatial)
        if plain is not None and len(shape) == 4:
            return Layout(plain)
    if image in spatial and prod(shape[:image]) > 1:
        return None
    return _layout_of_token_positions(positions, shape, image, channel, spatial)


def varies_along(tensor: Tensor, dimension: int) -> bool:
    if tensor.shape[dimension] < 2:
        return False
    least, most = tensor.nan_to_num(inf), tensor.nan_to_num(-inf)
    return bool((least.amin(dimension) < most.amax(dimension)).any())


def _order_of_map_positions(
    varying: list[set[str]], channel: int, spatial: list[int]
) -> str | None:
    """Return the order of a map's dimensions, `nchw` or `nhwc`; None for any other order."""
    letters = {0: "n", channel: "c"}
    for dimension in spatial:
        if varying[dimension] == {"row"}:
            letters[dimension] = "h"
        elif varying[dimension] == {"column"}:
            letters[dimension] = "w"
    order = "".join(letters.get(dimension, "?") for dimension in range(len(varying)))
    return order if order in ("nchw", "nhwc") else None


def _layout_of_token_positions(
    positions: Positions, shape: tuple[int, ...], image: int, channel: int, spatial: list[int]
) -> Layout | None:
    """Return the layout of tokens: which of them have positions, and which position each has."""
    inner = [d for d in spatial if d != image]
    others = [d for d in range(len(shape)) if d not in (image, channel, *inner)]
    order = (image, *others, *inner, channel)
    full = [t.expand(shape).permute(order) for t in positions]
    numbers = full[0].nan_to_num(0.0)
    count = int(numbers.max()) + 1
    try:
        flat = [t.reshape(count, -1, shape[channel])[..., 0] for t in full]
    except RuntimeError:
        return None
    own = torch.arange(count, dtype=flat[0].dtype)[:, None]
    if not bool(((flat[0] == own) | flat[0].isnan()).all()):
        return None
    rows, columns = (_rank_positions(t[0]) for t in flat[1:])
    on_map = (rows >= 0) & (columns >= 0)
    height, width = int(rows.max()) + 1, int(columns.max()) + 1
    prefix = int(on_map.int().argmax())
    if height * width == 0 or int(on_map.sum()) != height * width:
        return None
    raster = torch.full((height * width,), -1)
    raster[rows[on_map] * width + columns[on_map]] = torch.arange(len(on_map))[on_map]
    if bool((raster < 0).any()):
        return None
    # A prefix is enough only if all tokens after it run row by row, and none is left over.
    in_order = raster.tolist() == [*range(prefix, len(on_map))]
    letters = {image: "n", channel: "c"} | dict.fromkeys(inner, "l") | dict.fromkeys(others, "l")
    name = "".join(letters[d] for d in range(len(shape)))
    tokens = None if in_order else tuple(raster.tolist())
    return Layout(name, prefix if in_order else 0, (height, width), len(on_map), tokens)


def _rank_positions(coordinates: Tensor) -> Tensor:
    """Return the rank of each coordinate among the distinct ones; -1 where it is missing."""
    rounded = torch.round(coordinates.double(), decimals=DIGITS)
    different = torch.unique(rounded[~rounded.isnan()])
    ranks = torch.searchsorted(different, rounded.nan_to_num(-1.0).contiguous())
    return torch.where(rounded.isnan(), -1, ranks)
