"""Record the values of a pass, find the sums through which all paths go, and replace them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# Paths are counted modulo a prime: two counts that agree by chance are as likely as 1 in 2^61.
PRIME = (1 << 61) - 1
# What an operation has of each of its first operands, by the rest of its arguments.
SUMS: dict[str, Callable[..., tuple[float | Tensor, ...]]] = {
    "add": lambda x, y, alpha=1: (1, alpha),
    "sub": lambda x, y, alpha=1: (1, -alpha),
    "rsub": lambda x, y, alpha=1: (-alpha, 1),
    "lerp": lambda x, y, w: (1 - w, w),
    # Of these the product has no value of its own: it is the rest.
    "addcmul": lambda x, *_, value=1: (1,),
    "addcdiv": lambda x, *_, value=1: (1,),
    "addmm": lambda x, *_, beta=1, alpha=1: (beta,),
    "baddbmm": lambda x, *_, beta=1, alpha=1: (beta,),
    "index_add": lambda x, *_, alpha=1: (1,),
    "scatter_add": lambda x, *_: (1,),
}
# A node, and how much of it a sum has.
Share = tuple[int, float | Tensor]
# An operation of a pass: its name, the shape that it returns, and the how manieth such it is.
Call = tuple[str, tuple[int, ...], int]
PRODUCTS = ("bmm", "mm", "matmul", "baddbmm", "einsum")
# Sums of more parts, such as those of a recurrence, are taken apart no further.
MOST_LEAVES = 16
# These read shapes, not values.
SHAPES = ("zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_full")
MOVES = (
    *("view", "_unsafe_view", "reshape", "expand", "permute", "transpose", "t", "clone", "slice"),
    *("unsqueeze", "squeeze", "_to_copy", "detach", "alias", "contiguous", "select", "roll", "cat"),
    *("unbind", "split", "split_with_sizes", "stack", "constant_pad_nd", "_reshape_alias"),
)


@dataclass
class Node:
    """A tensor as one operation left it: which operation, and from which nodes it was made."""

    call: Call
    output: int
    name: str
    shape: tuple[int, ...]
    parents: tuple[int, ...]
    # Nodes that are summed, with what the sum has of each; empty for what is no sum.
    addends: tuple[Share, ...] = ()
    weighed: bool = False


@dataclass
class Softmax:
    """A softmax: its mean entropy in nats, and the shape of its rows; `fused` with its products."""

    call: Call
    entropy: float
    rows: tuple[int, ...]
    fused: bool


class Recorder(TorchDispatchMode):
    """Names the operations of a pass; `seen` may look at what one returns, or change it.

    A pass may make a constant that the next one has: so each kind of operation is counted alone.
    """

    supports_higher_order_operators = True

    def __init__(self, seen: Callable[[Call, Any, Any, Any, Any], None] | None = None) -> None:
        super().__init__()
        self.seen = seen
        self.counts: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if name_of(func) == "flex_attention":
            raise NotImplementedError("FlexAttention runs functions, whose steps are not seen")
        result = func(*args, **kwargs)
        kind = name_of(func), tuple(next((tuple(each.shape) for each in tensors_in(result)), ()))
        self.counts[kind] += 1
        if self.seen:
            self.seen((*kind, self.counts[kind]), func, args, kwargs, result)
        return result


def name_of(func: Any) -> str:
    packet = getattr(func, "overloadpacket", None)
    return str(packet.__name__).rstrip("_") if packet is not None else str(func.name())


def tensors_in(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


class Graph:
    """What depends on what in a pass; memory that is written to makes new nodes of its views."""

    def __init__(self, model: nn.Module, images: Tensor) -> None:
        self.nodes: list[Node] = [Node(("images", (), 0), 0, "images", tuple(images.shape), ())]
        self._of = {id(images): 0}
        self._alive = [images]
        # By memory: the last node that wrote to it.
        self._written: dict[int, int] = {}
        self._memory: dict[int, int] = {id(images): -1}
        self.memory_read: set[int] = set()
        with torch.no_grad(), Recorder(self._note):
            result = model(images)
        found = self._node(result)
        if found is None:
            raise ValueError("the result does not depend on the images")
        self.result = found
        self.users: dict[int, list[int]] = {}
        self.needed = self._ancestors(self.result)
        for index in sorted(self.needed):
            for parent in self.nodes[index].parents:
                self.users.setdefault(parent, []).append(index)

    def _node(self, tensor: Tensor) -> int | None:
        """Return the node of a tensor as it is now."""
        memory = tensor.untyped_storage()._cdata
        index, last = self._of.get(id(tensor)), self._written.get(memory)
        if last is None or (index is not None and last <= self._memory.get(id(tensor), -1)):
            return index
        parents = (last,) if index is None else (index, last)
        written = self.nodes[last]
        self._keep(
            tensor, Node(written.call, written.output, "write", tuple(tensor.shape), parents)
        )
        return self._of[id(tensor)]

    def _keep(self, tensor: Tensor, node: Node) -> None:
        self.nodes.append(node)
        self._of[id(tensor)] = len(self.nodes) - 1
        self._memory[id(tensor)] = len(self.nodes) - 1
        self._alive.append(tensor)

    def _note(self, call: Call, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = name_of(func)
        self._alive += tensors_in((args, kwargs))
        self._alive += tensors_in(result)
        if name in SHAPES:
            return
        given = [(each, self._node(each)) for each in tensors_in((args, kwargs))]
        self.memory_read |= {each.untyped_storage()._cdata for each, _ in given}
        parents = tuple(dict.fromkeys(index for _, index in given if index is not None))
        if not parents:
            return
        addends = self._addends(name, args, kwargs)
        # A matrix of weights, or a product of two values, makes a branch of what it takes.
        weighed = any(each.ndim > 1 and index is None for each, index in given) or len(parents) > 1
        weighed = weighed and not addends and name not in MOVES
        weighed = weighed or "pool" in name or "fft" in name
        for output, tensor in enumerate(tensors_in(result)):
            node = Node(call, output, name, tuple(tensor.shape), parents, addends, weighed)
            self._keep(tensor, node)
        if func._schema.is_mutable if hasattr(func, "_schema") else False:
            for tensor in tensors_in(result):
                self._written[tensor.untyped_storage()._cdata] = len(self.nodes) - 1

    def _addends(self, name: str, args: Any, kwargs: Any) -> tuple[Share, ...]:
        if name in ("sum", "mean") and len(args) > 1:
            return self._addends_of_stack(name, args)
        if name not in SUMS or not all(isinstance(each, Tensor) for each in args[:1]):
            return ()
        try:
            shares = SUMS[name](*args, **kwargs)
        except TypeError:
            return ()
        found = []
        for each, share in zip(args, shares, strict=False):
            index = self._node(each) if isinstance(each, Tensor) else None
            if index is not None:
                found.append((index, share))
        several = len({self._node(each) for each in tensors_in(args)} - {None}) > 1
        return tuple(found) if several else ()

    def _addends_of_stack(self, name: str, args: Any) -> tuple[Share, ...]:
        """Return the values that were stacked, if a sum is over all of the stack."""
        stack = self._node(args[0])
        if stack is None or self.nodes[stack].name not in ("stack", "cat"):
            return ()
        whole, parents = self.nodes[stack].shape, self.nodes[stack].parents
        dims = [d % len(whole) for d in ([args[1]] if isinstance(args[1], int) else args[1] or [])]
        if len(dims) != 1 or whole[dims[0]] != len(parents) or len(parents) < 2:
            return ()
        return tuple((each, 1 / len(parents) if name == "mean" else 1.0) for each in parents)

    def _ancestors(self, index: int) -> set[int]:
        found, waiting = set[int](), [index]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self.nodes[each].parents
        return found

    def meeting(self) -> list[int]:
        """Return the nodes through which all paths from the images to the result go."""
        order = sorted(self.needed)
        to = dict.fromkeys(order, 0)
        to[0] = 1
        for index in order:
            if index:
                to[index] = sum(to[each] for each in self.nodes[index].parents) % PRIME
        back = dict.fromkeys(order, 0)
        back[self.result] = 1
        for index in reversed(order):
            for parent in self.nodes[index].parents:
                back[parent] = (back[parent] + back[index]) % PRIME
        return [index for index in order if to[index] * back[index] % PRIME == to[self.result]]

    def works_between(self, start: int, end: int) -> bool:
        """Tell whether anything between two nodes multiplies by weights, by values, or pools."""
        between = {index for index in self._ancestors(end) if start < index <= end}
        return any(self.nodes[index].weighed for index in between)

    def leaves(self, index: int, before: int) -> list[Share]:
        """Return what a sum adds up, and how much of each; sums behind `before` are taken apart."""
        found, waiting = list[Share](), [(index, 1.0)]
        while waiting:
            each, share = waiting.pop(0)
            for addend, of in self.nodes[each].addends if each > before else ():
                waiting.append((addend, share * of))
                found.append((addend, share * of))
        return found[:MOST_LEAVES]

    def attends(self, call: Call) -> bool:
        """Tell whether the softmax of a call is of products of two values, scaled or masked."""
        waiting = [index for index, node in enumerate(self.nodes) if node.call == call]
        if "scaled_dot_product" in call[0]:
            # Queries, keys and values; if no image changes the queries, there are two.
            return any(len(self.nodes[index].parents) > 2 for index in waiting)
        seen = {*waiting}
        size = prod(self.nodes[waiting[0]].shape) if waiting else 0
        while waiting:
            index = waiting.pop()
            node = self.nodes[index]
            if node.name in PRODUCTS and len(node.parents) > 1:
                return index in self.needed or bool(self.needed & seen)
            near = {each for each in node.parents if prod(self.nodes[each].shape) == size}
            waiting += near - seen
            seen |= near
        return False


@dataclass
class Operand:
    """An operand of a sum, and its ratio to the rest: of all tokens, and of fewer.

    `same` says that it is what all paths met in before, unchanged but for places.
    """

    value: Tensor
    same: bool
    ratios: list[float]


@dataclass
class Sum:
    """A sum of maps. All paths `meet` in it, or other paths lead around it.

    `expected` says that they meet and that something works between it and where they met before.
    """

    node: Node
    meets: bool
    expected: bool
    operands: list[Operand]


def several_vectors(shape: Sequence[int]) -> bool:
    # A map of channels is one where the image has shrunk to a single position, too.
    return len(shape) == 4 or sum(size > 1 for size in shape[1:]) > 1


class Reading:
    """All sums of a pass, and what the network returns without the rest of one of them."""

    def __init__(self, model: nn.Module, images: Tensor) -> None:
        self.model, self.images = model, images
        self.graph = graph = Graph(model, images)
        meeting = graph.meeting()
        found: list[tuple[int, int, int]] = []
        for index in sorted(graph.needed):
            # What was written to a part of a value is a sum if what was written is one.
            node = graph.nodes[index]
            maker = node.parents[-1] if node.name == "write" else index
            if graph.nodes[maker].addends and several_vectors(node.shape):
                before = meeting[max(bisect_left(meeting, index) - 1, 0)]
                found.append((index, maker, before))
        wanted = {i for *ends, before in found for i in (*ends, before)}
        wanted |= {graph.nodes[index].parents[0] for index, maker, _ in found if index != maker}
        wanted |= {i for _, maker, before in found for i, _ in graph.leaves(maker, before)}
        self.logits, values = read_values(model, images, graph, wanted)
        self.sums = []
        for index, maker, before in found:
            meets = index in meeting
            expected = meets and graph.works_between(before, index)
            operands = [*self._operands(maker, before, values)]
            if index != maker:
                # What was not written to has no branch.
                whole = values[graph.nodes[index].parents[0]]
                for operand in operands:
                    rest = values[maker].double() - operand.value.double()
                    logs = [side.double().flatten(1).norm(dim=1).log() for side in (whole, rest)]
                    operand.ratios.append(float((logs[0] - logs[1]).mean().exp()))
            self.sums.append(Sum(graph.nodes[maker], meets, expected, operands))

    def _operands(self, maker: int, before: int, values: dict[int, Tensor]) -> Iterator[Operand]:
        whole = values[maker]
        direct = dict(self.graph.nodes[maker].addends)
        for leaf, share in self.graph.leaves(maker, before):
            stream = values[leaf]
            if self.graph.nodes[leaf].name == "write":
                # No operation returned what memory was then: it is what the others leave.
                others = [values[i] * of for i, of in direct.items() if i != leaf]
                stream = (whole - sum(others)) / share if leaf in direct else stream
            if stream.shape == whole.shape and stream.is_floating_point():
                same = leaf == before or _same_values(values[before], stream * share)
                branch = whole.double() - stream.double() * share
                yield Operand(stream * share, same, [*ratios(stream * share, branch)])

    def without_rest(self, each: Sum, operand: Operand) -> Tensor:
        """Return what the network returns if a sum is one of its operands alone."""

        def replace(call: Call, func: Any, args: Any, kwargs: Any, result: Any) -> None:
            if call == each.node.call:
                tensors_in(result)[each.node.output].copy_(operand.value)

        with torch.no_grad(), Recorder(replace):
            logits: Tensor = self.model(self.images).clone()
        return logits


def _same_values(one: Tensor, other: Tensor) -> bool:
    """Tell whether two tensors hold the same values, at whatever places."""
    return one.numel() == other.numel() and torch.equal(
        one.flatten().sort().values, other.flatten().sort().values
    )


def ratios(stream: Tensor, branch: Tensor) -> Iterator[float]:
    """Yield ratios of norms, over images their geometric mean: of all tokens, and of fewer.

    Up to eight are left out in front or behind, or all but one of these.
    """
    for dim in range(1, max(2, stream.ndim)) if stream.ndim == 3 else (1,):
        others = [d for d in range(1, stream.ndim) if d != dim]
        squares = [
            each.double().square().sum(others) if others else each.double().square()
            for each in (stream, branch)
        ]
        length = squares[0].shape[1]
        spans = {(0, length)}
        if stream.ndim == 3:
            spans |= {(left, length) for left in range(min(9, length))}
            spans |= {(0, length - left) for left in range(min(9, length))}
            spans |= {(each, each + 1) for each in range(min(9, length))}
            spans |= {(length - each - 1, length - each) for each in range(min(9, length))}
        for first, last in sorted(spans):
            logs = [each[:, first:last].sum(1).log() / 2 for each in squares]
            yield float((logs[0] - logs[1]).mean().exp())


def read_values(
    model: nn.Module, images: Tensor, graph: Graph, wanted: set[int]
) -> tuple[Tensor, dict[int, Tensor]]:
    """Return what a network returns, and the values of nodes as they were when they were made."""
    places = {(graph.nodes[i].call, graph.nodes[i].output): i for i in sorted(wanted, reverse=True)}
    calls = {call for call, _ in places}
    values = {0: images.clone()}

    def keep(call: Call, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if call in calls:
            for output, tensor in enumerate(tensors_in(result)):
                if (call, output) in places:
                    values[places[call, output]] = tensor.detach().clone()

    with torch.no_grad(), Recorder(keep):
        logits = model(images).clone()
    for index in wanted:
        node = graph.nodes[index]
        if index not in values:
            values[index] = values[places[node.call, node.output]]
    return logits, values


def read_softmaxes(model: nn.Module, images: Tensor) -> list[Softmax]:
    """Return each softmax over keys, in order; of a fused operation, that which it computes."""
    found: list[Softmax] = []

    def note(call: Call, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = name_of(func)
        if name in ("_softmax", "_safe_softmax"):
            weights = result.double()
            found.append(Softmax(call, entropy(weights, args[1]), tuple(weights.shape), False))
        elif "scaled_dot_product" in name:
            weights = weights_of_fused(func, args, kwargs)
            found.append(Softmax(call, entropy(weights, -1), tuple(weights.shape), True))

    with torch.no_grad(), Recorder(note):
        model(images)
    return found


def fused_products(model: nn.Module, images: Tensor) -> int:
    """Return the multiplications of attention that a CPU fuses although others were asked for."""
    found: list[int] = []

    def note(call: Call, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if "attention_for_cpu" in call[0]:
            query, key, value = args[:3]
            pairs = prod(query.shape[:-1]) * key.shape[-2]
            found.append(pairs * (query.shape[-1] + value.shape[-1]))

    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), Recorder(note):
        model(images)
    return sum(found)


def entropy(weights: Tensor, dim: int) -> float:
    return float(-(weights * weights.clamp_min(1e-300).log()).sum(dim).mean())


def weights_of_fused(func: Any, args: Any, kwargs: Any) -> Tensor:
    names = [each.name for each in func._schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    query, key = given["query"].double(), given["key"].double()
    if query.ndim > 2 and key.shape[-3] not in (1, query.shape[-3]):
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scale = given.get("scale")
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if given.get("is_causal"):
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -torch.inf)
    mask = given.get("attn_mask")
    mask = given.get("attn_bias") if mask is None else mask
    if mask is not None:
        scores = (
            scores.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else scores + mask
        )
    return scores.softmax(-1).nan_to_num(0.0)
