"""Which part of a network each parameter is in: the block, and the kind of layer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from vitscope.networks.finding.branches import factors_of
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation, record
from vitscope.networks.finding.operations import (
    CONVOLUTIONS,
    NORMALIZATIONS,
    PRODUCTS,
    SOFTMAXES,
    is_fused_attention,
)

# `qkv` makes queries, keys and values, `projection` takes what attention returns; `other` is all
# that no layer multiplies by: scales of branches, position biases.
Layer = Literal["stem", "qkv", "projection", "mlp", "convolution", "norm", "other", "head"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
OTHER: Layer = "other"


class Place(NamedTuple):
    """Where a parameter is: before which cut point, or behind all, and in which kind of layer."""

    block: int
    layer: Layer


def place_parameters(
    model: nn.Module, cut_points: Sequence[CutPoint], images: Tensor
) -> dict[str, Place]:
    """Return where each parameter of a model is, by its name; `images` are two or more.

    All that lies before the first cut point is the stem, and behind the last the head, except for
    norms.
    """
    blocks = _blocks(model, cut_points, images)
    layers = _Layers(model, record(model, images)).find()
    ends: Mapping[int, Layer] = {0: "stem", len(cut_points): "head"}
    return {
        name: Place(
            block, layers[name] if layers[name] == "norm" else ends.get(block, layers[name])
        )
        for name, block in blocks.items()
    }


@torch.no_grad()
def _blocks(model: nn.Module, cut_points: Sequence[CutPoint], images: Tensor) -> dict[str, int]:
    """Return how many cut points are passed when the module that owns a parameter begins.

    If that never runs as a module, it is when the one around it begins.
    """
    passed = 0
    began: dict[str, int] = {}

    def cut(index: int, _: Tensor) -> None:
        nonlocal passed
        passed = index + 1

    def begin(name: str) -> Callable[..., None]:
        def note(*_: object) -> None:
            began.setdefault(name, passed)

        return note

    # Registered after the cut points: what a module owns comes after a cut at its input.
    with capturing(model, cut_points, cut):
        hooks = [
            each.register_forward_pre_hook(begin(name)) for name, each in model.named_modules()
        ]
        try:
            model(images)
        finally:
            for hook in hooks:
                hook.remove()
    return {
        name: next(began[each] for each in _outwards(name) if each in began)
        for name, _ in model.named_parameters()
    }


def _outwards(name: str) -> Iterator[str]:
    """Yield the modules that hold a parameter, the one that owns it first, the network last."""
    while name:
        name = name.rpartition(".")[0]
        yield name


class _Layers:
    """Finds the kind of layer of each parameter by the operation that takes it."""

    def __init__(self, model: nn.Module, flow: Dataflow) -> None:
        self._model, self._flow = model, flow
        self._users: dict[int, list[int]] = {}
        for index, operation in enumerate(flow.operations):
            for value in operation.operands():
                self._users.setdefault(value.operation, []).append(index)
        self._qkv: set[int] = set()
        self._projections: set[int] = set()

    def find(self) -> dict[str, Layer]:
        """Return the kinds of all parameters."""
        for index, operation in enumerate(self._flow.operations):
            if operation.name in SOFTMAXES or is_fused_attention(operation.name):
                self._follow_attention(index)
        taking = self._taking()
        found = {name: self._kind(name, taking) for name, _ in self._model.named_parameters()}
        # What is added apart from a product, as a bias may be, belongs to the layer all the same.
        beside = {name.rpartition(".")[0]: kind for name, kind in found.items() if kind != OTHER}
        return {
            name: beside.get(name.rpartition(".")[0], kind)
            if kind == OTHER and self._model.get_parameter(name).ndim == 1
            else kind
            for name, kind in found.items()
        }

    def _follow_attention(self, index: int) -> None:
        """Note the layers around an attention: those nearest before its products, and behind."""
        operation = self._flow.operations[index]
        products = [index]
        if operation.name in SOFTMAXES:
            before = [i for i in self._back([index]) if self._multiplies_values(i)]
            if not before:
                return
            behind = [i for i in self._onwards([index]) if self._multiplies_values(i)]
            products = [*before, *behind]
        self._qkv.update(i for i in self._back(products) if self._has_weights(i))
        self._projections.update(i for i in self._onwards(products) if self._has_weights(i))

    def _back(self, starts: Sequence[int]) -> Iterator[int]:
        return self._walk(
            starts, lambda i: (each.operation for each in self._flow.operations[i].operands())
        )

    def _onwards(self, starts: Sequence[int]) -> Iterator[int]:
        return self._walk(starts, lambda i: self._users.get(i, []))

    def _walk(self, starts: Sequence[int], step: Callable[[int], Iterable[int]]) -> Iterator[int]:
        """Yield the operations that are reached, up to layers with weights."""
        waiting, seen = [*starts], {*starts}
        while waiting:
            for index in step(waiting.pop()):
                if index not in seen:
                    seen.add(index)
                    yield index
                    if not self._has_weights(index):
                        waiting.append(index)

    def _multiplies_values(self, index: int) -> bool:
        operation = self._flow.operations[index]
        return operation.name in PRODUCTS and len(factors_of(operation)) == 2

    def _has_weights(self, index: int) -> bool:
        operation = self._flow.operations[index]
        multiplies = operation.name in PRODUCTS | CONVOLUTIONS
        return multiplies and any(each.ndim > 1 for each in _constants(operation))

    def _kind_of_operation(self, index: int) -> Layer:
        operation = self._flow.operations[index]
        if operation.name in NORMALIZATIONS:
            return "norm"
        if not self._has_weights(index):
            return OTHER
        if index in self._qkv:
            return "qkv"
        if index in self._projections:
            return "projection"
        return "convolution" if operation.name in CONVOLUTIONS else "mlp"

    def _taking(self) -> list[tuple[int, int, str, Layer]]:
        """Return what operations take that is not of the images.

        That is where in memory it is, its size, the module that runs the operation, and its kind.
        """
        taken = []
        for index, operation in enumerate(self._flow.operations):
            kind = self._kind_of_operation(index)
            taken += [
                (_memory(each), each.numel(), operation.module, kind)
                for each in _constants(operation)
            ]
        return taken

    def _kind(self, name: str, taking: Sequence[tuple[int, int, str, Layer]]) -> Layer:
        owner = name.rpartition(".")[0]
        parameter = self._model.get_parameter(name)
        size, memory = parameter.numel(), _memory(parameter)
        itself = [kind for at, _, _, kind in taking if at == memory]
        # Weights may be made of a parameter, as standardized ones are.
        made = [kind for _, taken, within, kind in taking if (taken, within) == (size, owner)]
        kind = [*itself, *made, OTHER][0]
        # Some norms are made of several operations.
        by_name = "norm" in type(self._model.get_submodule(owner)).__name__.lower()
        return "norm" if kind == OTHER and by_name else kind


def _constants(operation: Operation) -> list[Tensor]:
    leaves = tree_leaves((operation.args, dict(operation.kwargs)))
    return [leaf.tensor for leaf in leaves if isinstance(leaf, Constant)]


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
