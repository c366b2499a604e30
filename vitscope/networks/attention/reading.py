"""Read attention while a network computes it: the weight of each key for each query."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError, quoted
from vitscope.networks.building.networks import own_type, widened, without_fast_path
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.cut_points import OperationId
from vitscope.networks.finding.operations import Args, Kwargs

# Compute this many bytes of attention at once: the results then stay in the cache of a core.
BYTES_AT_ONCE = 4 << 20


@dataclass(frozen=True, eq=False)
class Attention:
    """Describes one attention of a network: its queries and keys by window, and its heads.

    `queries` and `keys` give each position as shares of the image's height and width: (windows,
    queries or keys, 2). A window may be the whole image. Tokens without a position, such as the
    class token, are NaN. In a network's tensors, all dimensions before queries and keys are merged
    into one: along it the image changes every `inner` places, and `arrangement` lists one image's
    places by window and head. `index` is the index of the next cut point. Heads are `mixed` if the
    network does not multiply the values by the weights that are read here. Images may be `packed`:
    they follow one another in one sequence, and a mask lets each attend to itself alone.
    """

    name: str
    index: int
    operation: OperationId
    queries: npt.NDArray[np.float64]
    keys: npt.NDArray[np.float64]
    heads: int
    inner: int
    arrangement: npt.NDArray[np.int64]
    mixed: bool = False
    packed: bool = False

    @property
    def windows(self) -> int:
        return len(self.queries)

    def places(self, images: int, first: int, last: int, heads: slice) -> npt.NDArray[np.int64]:
        """Return where images `first` to `last - 1` of `images` lie in the merged dimension."""
        outer, inner = np.divmod(self.arrangement, self.inner)
        numbers = np.arange(first, last)[:, None]
        places: npt.NDArray[np.int64] = (outer * images + numbers) * self.inner + inner
        return places.reshape(last - first, self.windows, self.heads)[:, :, heads]


Sink = Callable[[int, "Weights"], None]


@dataclass(frozen=True)
class Piece:
    """Holds the attention of some images and heads: (images, windows, heads, queries, keys)."""

    images: slice
    heads: slice
    weights: Tensor


class Weights:
    """Computes the weights of one attention of a network for a batch, piece by piece."""

    def __init__(
        self, attention: Attention, images: int, source: "Tensor | _FusedAttention"
    ) -> None:
        self.attention, self.images = attention, images
        self._source = source

    @property
    def computed(self) -> Tensor | None:
        """The tensor that the network computed; None if a fused operation does not return it."""
        return self._source if isinstance(self._source, Tensor) else None

    def of(self, values: Tensor) -> "Weights":
        """Return weights with other `values` per query and key, laid out like the network's."""
        return Weights(self.attention, self.images, values)

    def read_pieces(self) -> Iterator[Piece]:
        """Yield the attention of a few images at a time, or of a few heads of one image."""
        attention = self.attention
        queries, keys = attention.queries.shape[1], attention.keys.shape[1]
        of_head = 4 * attention.windows * queries * keys
        heads = min(attention.heads, max(1, BYTES_AT_ONCE // of_head))
        images = max(1, BYTES_AT_ONCE // (of_head * heads)) if heads == attention.heads else 1
        for first in range(0, self.images, images):
            last = min(first + images, self.images)
            for start in range(0, attention.heads, heads):
                chosen = slice(start, min(start + heads, attention.heads))
                places = attention.places(self.images, first, last, chosen)
                weights = _read_attention_places(self._source, places.ravel())
                shaped = weights.reshape(*places.shape, *weights.shape[-2:])
                yield Piece(slice(first, last), chosen, shaped)


def _read_attention_places(
    source: "Tensor | _FusedAttention", places: npt.NDArray[np.int64]
) -> Tensor:
    """Take places along all dimensions but the last two, as if they were one dimension."""
    if isinstance(source, _FusedAttention):
        return source.weights_at(places)
    flat = source.reshape(-1, *source.shape[-2:])
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 == len(places) and (np.diff(places) == 1).all():
        return flat[first : last + 1]
    return flat[torch.from_numpy(places).to(flat.device)]


class _FusedAttention:
    """Recomputes attention from the operands of a fused operation, which does not return it."""

    def __init__(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        names = [argument.name for argument in function._schema.arguments]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        query, key = given["query"], repeat_shared_heads(given["query"], given["key"])
        leading = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
        self._query, self._key = (each.expand(*leading, -1, -1) for each in (query, key))
        mask = given.get("attn_mask")
        self._mask: Tensor | None = given.get("attn_bias") if mask is None else mask
        self._causal = bool(given.get("is_causal"))
        scale = given.get("scale")
        self._scale = 1 / sqrt(self._query.shape[-1]) if scale is None else scale

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self._query.shape[:-1], self._key.shape[-2])

    def unpack(self, images: int) -> None:
        if self._mask is None or not separates_images(self._mask, images):
            raise _attending_to_each_other()
        self._mask = _unpack_pairs(self._mask, images)
        self._query, self._key = (unpack_rows(each, images) for each in (self._query, self._key))

    def weights_at(self, places: npt.NDArray[np.int64]) -> Tensor:
        query, key = (
            widened(_read_attention_places(each, places)) for each in (self._query, self._key)
        )
        scores = torch.matmul(query * self._scale, key.transpose(-2, -1))
        if self._causal:
            ones = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
            scores = scores.masked_fill(~ones.tril(), -torch.inf)
        if self._mask is not None:
            mask = self._read_mask_at(places)
            if mask.dtype is torch.bool:
                scores = scores.masked_fill(~mask, -torch.inf)
            else:
                scores = scores + mask
        masked = self._causal or self._mask is not None
        # Give zeros where all keys are masked, as the operation itself does.
        softmax: Callable[[Tensor, int], Tensor] = torch._safe_softmax if masked else torch.softmax
        return softmax(scores, -1)

    def _read_mask_at(self, places: npt.NDArray[np.int64]) -> Tensor:
        """Return the mask at each place; places may share one mask."""
        assert self._mask is not None
        leading = self.shape[:-2]
        mask = self._mask[(None,) * (len(self.shape) - self._mask.ndim)]
        if all(size == 1 for size in mask.shape[:-2]):
            return mask.reshape(mask.shape[-2:])
        where = zip(np.unravel_index(places, leading), mask.shape[:-2], strict=True)
        chosen = [torch.from_numpy(at if size > 1 else 0 * at) for at, size in where]
        return mask[tuple(each.to(mask.device) for each in chosen)]


def _read_attention_source(
    function: Any, args: Args, kwargs: Kwargs, result: Any
) -> Tensor | _FusedAttention:
    name = ops.operation_name(function)
    weights: Tensor = result
    if name == ops.FLEX_ATTENTION:
        # FlexAttention returns its weights if the values are an identity matrix.
        query, key, value, *rest = args
        identity = torch.eye(value.shape[-2], dtype=value.dtype, device=value.device)
        weights, *_ = function(query, key, identity.expand(*value.shape[:-1], -1), *rest, **kwargs)
    elif ops.is_fused_attention(name):
        return _FusedAttention(function, args, kwargs)
    return weights


def repeat_shared_heads(query: Tensor, key: Tensor) -> Tensor:
    """Repeat keys or values that several heads of queries share, so that each head has its own."""
    if query.ndim > 2 and key.shape[-3] not in (1, query.shape[-3]):
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    return key


def unpack_rows(packed: Tensor, images: int) -> Tensor:
    """Return queries, keys or values of a packed sequence by image: (images, heads, rows, ...)."""
    rows, width = packed.shape[-2:]
    return packed.reshape(-1, images, rows // images, width).transpose(0, 1)


def _unpack_pairs(packed: Tensor, images: int) -> Tensor:
    """Return what each query has of each key of its own image: (images, heads, queries, keys)."""
    queries, keys = (length // images for length in packed.shape[-2:])
    blocks = packed.reshape(-1, images, queries, images, keys)
    return torch.stack([blocks[:, image, :, image] for image in range(images)])


def _unpack(source: "Tensor | _FusedAttention", images: int) -> "Tensor | _FusedAttention":
    """Return attention of a packed sequence by image: each attends alone, as its mask says."""
    if isinstance(source, _FusedAttention):
        source.unpack(images)
        return source
    own = _unpack_pairs(source, images)
    if not torch.isclose(own.sum(), source.sum(), rtol=1e-3):
        raise _attending_to_each_other()
    return own


def _attending_to_each_other() -> VitscopeError:
    return ops.another_path("let packed images attend to each other")


def separates_images(mask: Tensor, images: int) -> bool:
    """Tell whether a mask of equally long parts of a sequence lets each attend to itself alone."""
    parts = [torch.arange(length) // max(length // images, 1) for length in mask.shape[-2:]]
    others = mask[..., (parts[0][:, None] != parts[1]).to(mask.device)]
    hidden = ~others if mask.dtype is torch.bool else others <= torch.finfo(mask.dtype).min / 2
    return not mask.is_meta and bool(hidden.all())


@contextmanager
def attending(model: nn.Module, attentions: Sequence[Attention], sink: Sink) -> Iterator[None]:
    """Call `sink(index, weights)` at each of the `attentions` in every pass in the block."""
    reader = _Reader(model, attentions, sink)
    with without_fast_path(), reader, model.register_forward_hook(reader.refuse_missing):
        yield


class _Reader(ops.ModuleMode):  # type: ignore[no-untyped-call]
    def __init__(self, model: nn.Module, attentions: Sequence[Attention], sink: Sink) -> None:
        super().__init__(model)
        self._attentions, self._sink = attentions, sink
        self._wanted = {each.operation: number for number, each in enumerate(attentions)}
        self._seen = 0

    def begin(self, images: int) -> None:
        super().begin(images)
        self._seen = 0

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        result = function(*args, **kwargs)
        name, tensor = ops.operation_name(function), ops.first_tensor(result)
        if tensor is not None and ops.weighs(name):
            number = self._wanted.get(self.count(name, tensor))
            if number is not None:
                self._sink_weights(number, function, args, kwargs, result)
        return result

    def _sink_weights(
        self, number: int, function: Any, args: Args, kwargs: Kwargs, result: Any
    ) -> None:
        source = _read_attention_source(function, args, kwargs, result)
        attention = self._attentions[number]
        if attention.packed:
            source = _unpack(source, self._images)
        places = self._images * len(attention.arrangement)
        shape = (places, attention.queries.shape[1], attention.keys.shape[1])
        found = (int(np.prod(source.shape[:-2])), *source.shape[-2:])
        if found != shape:
            raise VitscopeError(
                f"The network took another path than the one that was recorded: the attention of "
                f"{quoted(attention.name)} has the shape {found}, where {shape} was recorded."
            )
        self._seen += 1
        self._sink(number, Weights(attention, self._images, source))

    def refuse_missing(self, *_: Any) -> None:
        if self._seen < len(self._attentions):
            raise ops.another_path(f"computed {self._seen} of {len(self._attentions)} attentions")


@dataclass(frozen=True)
class Use:
    """Holds the attention weights read, the values, and the network's own product of both.

    Each is (places, rows, columns), with all places in the network's order.
    """

    attention: Attention
    images: int
    weights: Tensor
    values: Tensor
    output: Tensor

    @property
    def difference(self) -> float:
        """The largest error of weights times values, relative to the largest output."""
        difference = (self.weights @ self.values - self.output).abs().max()
        return float(difference / self.output.abs().max())

    def by_head(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return weights, values and output: (images, windows, heads, rows, columns)."""
        places = self.attention.places(self.images, 0, self.images, slice(None))
        where = torch.from_numpy(places)
        return self.weights[where], self.values[where], self.output[where]


@contextmanager
def reading_attention_use(
    model: nn.Module, attentions: Sequence[Attention], see: Callable[[Use], None]
) -> Iterator[None]:
    """In a `with` block, call `see(use)` for each use of attention whose heads are not mixed."""
    mode = _AttentionUseReader(see)
    with attending(model, attentions, mode.keep_weights), mode:
        yield


class _AttentionUseReader(ops.OperationMode):  # type: ignore[no-untyped-call]
    """Finds the product of the most recently read attention and its values."""

    def __init__(self, see: Callable[[Use], None]) -> None:
        super().__init__()
        self._see = see
        self._last: tuple[Attention, int, Tensor] | None = None

    def keep_weights(self, _: int, weights: Weights) -> None:
        attention = weights.attention
        if attention.mixed:
            return
        places = weights.images * len(attention.arrangement)
        queries, keys = attention.queries.shape[1], attention.keys.shape[1]
        read = torch.full((places, queries, keys), torch.nan)
        for piece in weights.read_pieces():
            first, last = piece.images.start, piece.images.stop
            where = attention.places(weights.images, first, last, piece.heads)
            read[torch.from_numpy(where)] = piece.weights.float().cpu()
        self._last = attention, weights.images, read

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        result = function(*args, **kwargs)
        if self._last is None:
            return result
        name = ops.operation_name(function)
        products: Sequence[tuple[Tensor, Tensor]] = []
        if ops.is_fused_attention(name):
            output = ops.first_tensor(result)
            assert output is not None
            products = [
                (repeat_shared_heads(output, args[2]).expand(*output.shape[:-2], -1, -1), output)
            ]
        elif name in ops.PRODUCTS:
            left, right = args[-2:]
            products = values_and_outputs(left, right, result, _shape_in_network(*self._last))
        if self._last[0].packed:
            images = self._last[1]
            products = [(unpack_rows(v, images), unpack_rows(o, images)) for v, o in products]
        if products:
            uses = [Use(*self._last, *map(merge_places, product)) for product in products]
            self._last = None
            self._see(min(uses, key=lambda use: use.difference))
        return result


def _shape_in_network(attention: Attention, images: int, read: Tensor) -> torch.Size:
    places, queries, keys = read.shape
    packed = images if attention.packed else 1
    return torch.Size((places // packed, packed * queries, packed * keys))


def values_and_outputs(
    left: Tensor, right: Tensor, output: Tensor, read: torch.Size
) -> list[tuple[Tensor, Tensor]]:
    """Return values and output for each way to read a product as attention times values.

    If attention is on the right, transpose all tensors, so that it is on the left.
    """
    if min(left.ndim, right.ndim) < 2:
        return []
    sides = ((left, right, output), (right.mT, left.mT, output.mT))
    return [(values, made) for factor, values, made in sides if merge_places(factor).shape == read]


def merge_places(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1, *tensor.shape[-2:]).float().cpu()


# Tolerate differences up to the larger of these two, as shares of the largest output.
TOLERANCE = 1e-4
ROUNDINGS = 4  # times the machine epsilon of the network's type


def describe_misread_attentions(
    model: nn.Module, attentions: Sequence[Attention], images: Tensor
) -> list[str]:
    """Return a sentence for each attention whose output is not its weights times the values."""
    tolerance = max(TOLERANCE, ROUNDINGS * torch.finfo(own_type(model)).eps)
    return [
        f"the attention of {quoted(name)} is not what was read of it"
        for name, difference in differences_of_read_attention(model, attentions, images).items()
        if not difference <= tolerance
    ]


@torch.inference_mode()
def differences_of_read_attention(
    model: nn.Module, attentions: Sequence[Attention], images: Tensor
) -> Mapping[str, float]:
    """Return, by attention name, how far attention times values is from the network's output.

    The results are shares of the largest output. Attentions with mixed heads are left out.
    """
    found: dict[str, float] = {}

    def note_difference(use: Use) -> None:
        found[use.attention.name] = use.difference

    with reading_attention_use(model, attentions, note_difference):
        model(images)
    return found
