"""Find attention in any network: a softmax after a product of two values that depend on images."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from vitscope.errors import quoted
from vitscope.networks.attention.reading import Attention, separates_images
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import factors_of, multiplies_values
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, Value
from vitscope.networks.finding.dataflow_recorder import Run, on_shapes, record_dataflow
from vitscope.networks.finding.leaves import leaves
from vitscope.networks.finding.positions import DIGITS, PositionTracer

NO_SOFTMAX = "what weighs its values is no softmax of products that can be read"
CHANNELS_ATTEND = "channels attend to channels there, and not positions to positions"


@dataclass(frozen=True)
class FoundAttention:
    attentions: list[Attention]
    refused: dict[str, str]


class _RefusedError(Exception):
    """Raised for attention that cannot be read."""


def find_attention(
    model: nn.Module, network: Mapping[str, Any], cut_points: Sequence[CutPoint]
) -> FoundAttention:

    def find_in_pass(run: Run, images: Tensor) -> FoundAttention:
        flow = record_dataflow(model, images, run)
        cuts = [flow.value_of(point).operation for point in cut_points]
        return _AttentionFinder(flow, cuts).find_attentions()

    return on_shapes(model.eval(), network, find_in_pass)


def list_attention_doubts(found: FoundAttention) -> list[str]:
    """Return warnings about attention that is not read, or is read before its heads are mixed."""
    said = []
    if found.refused:
        total = len(found.refused) + len(found.attentions)
        refused = list_refused_attention(found)
        said.append(f"{len(found.refused)} of {total} attentions are not read: {refused}.")
    mixed = [each.name for each in found.attentions if each.mixed]
    if mixed:
        said.append(
            f"in {len(mixed)} attentions, as in {quoted(mixed[0])}, heads are mixed behind the "
            f"softmax: what is read is the softmax."
        )
    return said


def add_attentions_read(sums_and_operations: str, found: FoundAttention) -> str:
    """Return how much of a network is read, as "4 of 4 sums, 2 of 2 attentions, 100% of ..."."""
    sums, _, operations = sums_and_operations.partition(", ")
    total = len(found.attentions) + len(found.refused)
    attentions = f"{len(found.attentions)} of {total} attentions" if total else ""
    return ", ".join(filter(None, (sums, attentions, operations)))


def list_refused_attention(found: FoundAttention) -> str:
    """Return the names of attention that cannot be read, by reason, as part of a sentence."""
    names: dict[str, list[str]] = {}
    for name, why in found.refused.items():
        names.setdefault(why, []).append(quoted(name or "the network"))
    return "; ".join(f"{', '.join(those)} ({why})" for why, those in names.items())


# Image, row and column of each query or key, or only row and column.
Places = npt.NDArray[np.float64]


class _Factors(NamedTuple):
    query: Value
    key: Value
    module: str
    transposed: bool


class _AttentionFinder:
    def __init__(self, flow: Dataflow, cuts: Sequence[int]) -> None:
        self._flow, self._cuts = flow, cuts
        self._tracer = PositionTracer(flow)
        self._needed = set(flow.needed())

    def find_attentions(self) -> FoundAttention:
        found: list[Attention] = []
        refused: dict[str, str] = {}
        read: set[int] = set()
        for index, operation in enumerate(self._flow.operations):
            if index not in self._needed:
                continue
            factors = self._find_factors(index, operation)
            if factors is None:
                continue
            read.add(index)
            name = _unique_name(factors.module, [*(each.name for each in found), *refused])
            try:
                found.append(self._describe_attention(name, index, factors))
            except _RefusedError as reason:
                refused[name] = str(reason)
        for module in self._modules_of_unread_products(read):
            refused[_unique_name(module, [*(each.name for each in found), *refused])] = NO_SOFTMAX
        return FoundAttention(found, refused)

    def _modules_of_unread_products(self, read: set[int]) -> Iterator[str]:
        weighing = self._products_with_read_weights(read)
        for index, operation in enumerate(self._flow.operations):
            if index in self._needed and multiplies_values(operation):
                behind = self._users_of_product(index)
                products = {i for i in behind if multiplies_values(self._flow.operations[i])}
                # Attention may take what attention returns, as along rows and then columns: the
                # first product is of values then, and not of queries and keys.
                if products - (weighing if index in weighing else set()) and not behind & read:
                    yield operation.module

    def _products_with_read_weights(self, read: set[int]) -> set[int]:
        """Return the products of values and the weights that a softmax of `read` gives."""
        softmaxes = (i for i in read if self._flow.operations[i].name in ops.SOFTMAXES)
        behind = {user for softmax in softmaxes for user in self._users_of_product(softmax)}
        return {each for each in behind if multiplies_values(self._flow.operations[each])}

    def _users_of_product(self, product: int) -> set[int]:
        """Return the operations that use a product, up to and including the next layers."""
        waiting, seen = [product], set[int]()
        while waiting:
            for user in self._flow.users.get(waiting.pop(), []):
                if user not in seen and user in self._needed:
                    seen.add(user)
                    if self._flow.operations[user].name not in ops.PRODUCTS | ops.CONVOLUTIONS:
                        waiting.append(user)
        return seen

    def _find_factors(self, index: int, operation: Operation) -> "_Factors | None":
        if ops.is_fused_attention(operation.name):
            query, key = operation.args[:2]
            both = isinstance(query, Value) and isinstance(key, Value)
            return _Factors(query, key, operation.module, False) if both else None
        if operation.name not in ops.SOFTMAXES:
            return None
        product = self._product_before(index)
        if product is None:
            return None
        multiplied = self._flow.operations[product]
        query, key = factors_of(multiplied)
        return _Factors(query, key, multiplied.module, True)

    def _product_before(self, softmax: int) -> int | None:
        """Return the product of values that a softmax takes, perhaps scaled, biased or masked."""
        size = np.prod(self._flow.operations[softmax].shape)
        waiting, seen = [softmax], {softmax}
        while waiting:
            operation = self._flow.operations[waiting.pop()]
            for value in operation.operands:
                before = self._flow.operations[value.operation]
                if np.prod(self._flow.shape_of(value)) != size or value.operation in seen:
                    continue
                if multiplies_values(before):
                    return value.operation
                if before.name not in ops.SOFTMAXES:
                    seen.add(value.operation)
                    waiting.append(value.operation)
        return None

    def _describe_attention(self, name: str, index: int, factors: "_Factors") -> Attention:
        operation = self._flow.operations[index]
        query, key = factors.query, factors.key
        if factors.transposed:
            if operation.args[1] not in (-1, len(operation.shape) - 1):
                raise _RefusedError("its softmax is not over the keys")
            queries, keys = self._places_of_value(query, -1), self._places_of_value(key, -2)
            moved = "its queries are moved between their product and the softmax"
            at_softmax = self._places_of_value(Value(index), -1, moved)
            if not np.array_equal(queries, at_softmax, equal_nan=True):
                raise _RefusedError(moved)
        else:
            queries, keys = self._places_of_value(query, -1), self._places_of_value(key, -1)
            # Several consecutive heads of queries may share one head of keys.
            keys = keys.repeat(len(queries) // len(keys), axis=0)
        return self._split_first_dimension(name, index, queries, keys)

    def _split_first_dimension(
        self, name: str, softmax: int, queries: Places, keys: Places
    ) -> Attention:
        """Return an attention; its first dimension is split into images, windows and heads."""
        images, packed = self._flow.images, self._packs_images(softmax, queries, keys)
        if packed:
            queries, keys = (np.concatenate(np.split(p, images, 1)) for p in (queries, keys))
        of_image, inner = _find_images_of_attention(
            np.concatenate([queries[..., 0], keys[..., 0]], 1), images
        )
        queries, keys = queries[..., 1:], keys[..., 1:]
        groups: list[list[int]] | None = None
        for image in range(images):
            places = np.flatnonzero(of_image == image)
            found = _find_attention_windows(queries[places], keys[places])
            if groups is not None and found != groups:
                raise _RefusedError("windows of one image are others than those of another")
            groups = found
        assert groups is not None
        if len({len(group) for group in groups}) != 1:
            raise _RefusedError("its windows have different numbers of heads")
        first = np.flatnonzero(of_image == 0)
        firsts = first[[group[0] for group in groups]]
        queries, keys = queries[firsts], keys[firsts]
        heads, arrangement = len(groups[0]), np.array(groups).ravel()
        operation = self._flow.operations[softmax].which
        index, mixed = bisect_left(self._cuts, softmax), self._has_mixed_heads(softmax)
        read = (name, index, operation, queries, keys, heads, inner, arrangement, mixed, packed)
        return Attention(*read)

    def _packs_images(self, index: int, queries: Places, keys: Places) -> bool:
        """Tell whether images follow one another in one sequence, each masked from the others."""
        images, pairs = self._flow.images, (queries.shape[1], keys.shape[1])
        for places in (queries[..., 0], keys[..., 0]):
            expected = np.arange(places.shape[1]) * images // places.shape[1]
            if places.shape[1] % images or (places != expected).any():
                return False
        return any(separates_images(mask, images) for mask in self._masks_before(index, pairs))

    def _masks_before(self, softmax: int, pairs: tuple[int, int]) -> Iterator[Tensor]:
        """Yield the constants of all pairs on the way from a product to its softmax."""
        waiting = [softmax]
        while waiting:
            operation = self._flow.operations[waiting.pop()]
            for leaf in leaves((operation.args, operation.kwargs)):
                if isinstance(leaf, Constant) and leaf.shape[-2:] == pairs:
                    yield leaf.tensor
            if not multiplies_values(operation):
                before = [v for v in operation.operands if self._flow.shape_of(v)[-2:] == pairs]
                waiting += [value.operation for value in before]

    def _places_of_value(
        self, value: Value, channel: int, varying: str = CHANNELS_ATTEND
    ) -> Places:
        """Return image, row and column of all queries or keys: (leading, queries or keys, 3).

        Raise an error with the text `varying` if places differ between channels.
        """
        positions, shape = self._tracer.positions(value), self._flow.shape_of(value)
        if positions is None:
            raise _RefusedError("nobody can tell where in the image its queries and keys are")
        if any(tensor.shape[channel] > 1 for tensor in positions):
            raise _RefusedError(varying)
        one = list(shape)
        one[channel] = 1
        stacked = torch.stack([t.expand(one).squeeze(channel) for t in positions], -1)
        places: Places = stacked.double().numpy()
        return places.reshape(-1, *places.shape[-2:])

    def _has_mixed_heads(self, index: int) -> bool:
        """Tell whether weights are changed between the softmax and their product with values.

        Other uses of the same weights, as to choose the best tokens by them, change nothing.
        """
        if ops.is_fused_attention(self._flow.operations[index].name):
            return False
        waiting, changed, weighs = [index], list[int](), False
        while waiting:
            for user in self._flow.users.get(waiting.pop(), []):
                operation = self._flow.operations[user]
                if user not in self._needed:
                    continue
                if operation.name in ops.MOVES or operation.name == "native_dropout":
                    waiting.append(user)
                elif multiplies_values(operation):
                    weighs = True
                else:
                    changed.append(user)
        products = {user for each in changed for user in self._users_of_product(each)}
        weighed = any(multiplies_values(self._flow.operations[each]) for each in products)
        return weighed if weighs else bool(changed)


def _unique_name(name: str, names: Sequence[str]) -> str:
    count = sum(each.partition("#")[0] == name for each in names)
    return name if count == 0 else f"{name}#{count + 1}"


def _find_images_of_attention(places: Places, images: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return the image of each place, and how many consecutive places share one image."""
    least = np.where(np.isnan(places), np.inf, places).min(axis=1)
    most = np.where(np.isnan(places), -np.inf, places).max(axis=1)
    if (least != most).any():
        raise _RefusedError("images attend to each other")
    of_image = least.astype(np.int64)
    if len({*of_image.tolist()}) < images:
        raise _RefusedError(
            "images are packed into one sequence there, and each attends in an operation of its own"
        )
    inner = int(np.argmax(of_image != 0))
    expected = np.arange(len(of_image)) // max(inner, 1) % images
    if inner == 0 or (of_image != expected).any():
        raise _RefusedError("its images do not follow one another")
    return of_image, inner


def _find_attention_windows(queries: Places, keys: Places) -> list[list[int]]:
    groups: dict[bytes, list[int]] = {}
    for place, (of_queries, of_keys) in enumerate(zip(queries, keys, strict=True)):
        where = np.concatenate([of_queries, of_keys]).round(DIGITS)
        groups.setdefault(where.tobytes(), []).append(place)
    return list(groups.values())
