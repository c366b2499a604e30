"""The block table: the ordered cut points of a network, from which every figure takes its bands."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Literal, NamedTuple, Self, get_args

import pandas as pd
import torch
from torch import Tensor, UntypedStorage, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.flop_counter import FlopCounterMode

from vitscope.errors import VitscopeError, first_of, quoted
from vitscope.files.tables import warning_metadata
from vitscope.networks.building.networks import refuse_unreadable_network, uncompiled
from vitscope.networks.building.own_code import explain_network_code_failure
from vitscope.networks.finding import operations as ops
from vitscope.networks.finding.branches import multiplies_values
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_finder import Points
from vitscope.networks.finding.cut_points import CutPoint, PartCosts, Side, write_cut_points
from vitscope.networks.finding.dataflow import Constant, Dataflow, Operation
from vitscope.networks.finding.dataflow_recorder import (
    Run,
    keeping_attributes,
    modules_beside_torch,
    on_shapes,
    record_dataflow,
    without_onednn,
)
from vitscope.networks.finding.leaves import leaves
from vitscope.networks.finding.operations import Args, Kwargs
from vitscope.networks.finding.search import FoundPoints, search_for_cut_points

Shape = tuple[int, ...]
# Name at most this many modules in a warning.
SHOWN = 3


# What torch, and checks in networks, raise where images have another size or other channels.
OF_SHAPES = (RuntimeError, ValueError, AssertionError)


class Blocks(NamedTuple):
    table: pd.DataFrame
    head: PartCosts
    points: list[CutPoint]
    uncovered: list[str]
    warnings: list[str]
    read: str

    def metadata(self) -> dict[str, str]:
        head = {f"head_{cost}": str(value) for cost, value in self.head._asdict().items()}
        found = {"uncovered": "; ".join(self.uncovered), "read": self.read}
        found |= warning_metadata(self.warnings)
        return head | found | {"cut_points": write_cut_points(self.points)}


def list_blocks(
    name: str,
    model: nn.Module,
    network: Mapping[str, Any],
    points: Points | None = None,
    norms: Side = "after",
) -> Blocks:
    """Return the block table of a network, with one row per cut point.

    `norms` says whether a cut point at a sum lies before or after the normalization layer that
    follows this sum, if any.
    """

    def list_blocks_in_pass(run: Run, images: Tensor) -> Blocks:
        # Restore attributes that modules set, such as cached biases: the next pass would read them.
        with keeping_attributes(model):
            found = search_for_cut_points(model, images, run, points, norms)
            # With values, code beside torch runs too, such as that of NumPy.
            beside = modules_beside_torch(model, images) if run is model else []
        classes = network.get("classes")
        if classes is not None and found.outputs != (classes,):
            shape = "x".join(map(str, found.outputs))
            raise VitscopeError(
                f"the network returns {shape} values for an image, where its data have {classes} "
                f"classes: say `classes: {shape}` of the model if each output is a class, or give "
                f"it as many outputs as its data have classes."
            )
        shapes, parts, unread = _measure_block_costs(model, run, found.points, images[:1])
        table = _tabulate_blocks(name, found.points, shapes, parts[:-1], found.missed)
        uncovered = [*found.uncovered]
        if unread:
            uncovered.append(f"{unread} parameters that no operation reads")
        said = [*found.warnings, *_warn_of_values_beside_torch(beside)]
        warnings = [f"models.{name}: {warning}." for warning in said]
        read = _describe_what_is_read(found, parts)
        return Blocks(table, parts[-1], found.points, uncovered, warnings, read)

    try:
        refuse_unreadable_network(model)
        return on_shapes(model.eval(), network, list_blocks_in_pass)
    except VitscopeError as error:
        raise VitscopeError(f"models.{name}: {error}") from error
    except Exception as error:
        if reason := explain_network_code_failure(error):
            given = _describe_images_given(network) if isinstance(error, OF_SHAPES) else ""
            raise VitscopeError(f"models.{name}: {reason}{given}") from error
        raise


def _describe_images_given(network: Mapping[str, Any]) -> str:
    channels = f"{len(network['mean'])} channel{'s' if len(network['mean']) > 1 else ''}"
    return (
        f" Or correct the data set, if the network takes other images than those of its "
        f"`image_size: {network['image_size']}` and of {channels}, as many as `mean` has."
    )


def _describe_what_is_read(found: FoundPoints, parts: Sequence[PartCosts]) -> str:
    """Return how many sums of stream and branch, and how much of the work, is at cut points."""
    joins, missed = sum(point.how == "join" for point in found.points), sum(found.missed)
    whole = sum(part.operations for part in parts)
    counted = zip(parts, found.missed, strict=True)
    read = sum(part.operations for part, without in counted if not without)
    share = f", {read / whole:.0%} of the operations" if whole else ""
    return f"{joins} of {joins + missed} sums{share}"


def _warn_of_values_beside_torch(modules: Sequence[str]) -> Iterator[str]:
    if modules:
        named = first_of([quoted(module or "the network") for module in modules], SHOWN)
        yield (
            f"in {named} numbers that depend on the images are computed by NumPy or Python, as by "
            f".numpy(), .tolist() or .item(): what is made of them is taken for constant, and "
            f"branches through it are in no figure; compute it with torch"
        )


def _tabulate_blocks(
    name: str,
    points: Sequence[CutPoint],
    shapes: Sequence[Shape],
    parts: Sequence[PartCosts],
    missed: Sequence[int],
) -> pd.DataFrame:
    # Count sums that are no cut points in the depth too: it is that of the whole network.
    before = [*accumulate(missed)]
    last = max(len(points) - 1 + before[-1], 1)
    return pd.DataFrame(
        {
            "model": name,
            "index": index,
            "name": point.name,
            "kind": point.kind,
            "stage": point.stage,
            "depth": (index + before[index]) / last,
            **dict(zip(("channels", "height", "width"), shape, strict=True)),
            "norm": point.norm,
            **part._asdict(),
        }
        for index, (point, shape, part) in enumerate(zip(points, shapes, parts, strict=True))
    )


def _measure_block_costs(
    model: nn.Module, run: Run, cut_points: Sequence[CutPoint], image: Tensor
) -> tuple[list[Shape], list[PartCosts], int]:
    """Return shapes at cut points, costs of the parts, and the number of unread parameters."""
    # On the meta device, attention runs as two products and a softmax even where other devices
    # fuse them.
    shapes: list[Shape] = []
    parts: list[PartCosts] = []
    weights = _BlockParameterCounter(model)
    operations, activations = FlopCounterMode(display=False), BlockActivationCounter()

    def end_part() -> None:
        total = operations.get_total_flops() // 2
        before = sum(part.operations for part in parts)
        parts.append(PartCosts(weights.take_count(), total - before, *activations.take()))

    def end_part_at_cut(_: int, latent: Tensor) -> None:
        shapes.append(tuple(latent.shape[1:]))
        end_part()

    # Enter the reader last, so that it sees each operation before a counter takes it apart, and
    # reads each result after all counters have counted it.
    reading = capturing(model, cut_points, end_part_at_cut)
    with _needing_no_gradients(model), uncompiled(), operations, activations, weights, reading:
        run(image)
    end_part()
    return shapes, parts, weights.unread_count()


@contextmanager
def _needing_no_gradients(model: nn.Module) -> Iterator[None]:
    """Let no weight need a gradient in the block, since torch's counter fails at views of some."""
    needing = [each for each in model.parameters() if each.requires_grad]
    try:
        for each in needing:
            each.requires_grad_(False)
        with torch.no_grad():
            yield
    finally:
        for each in needing:
            each.requires_grad_(True)


class _BlockParameterCounter(ops.OperationMode):  # type: ignore[no-untyped-call]
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._model = model
        self._names: dict[int, str] = {}
        self._unread = dict[str, int]()
        self._count = 0

    def __enter__(self) -> Self:
        """Note the parameters, now and in each pass, since a pass on shapes replaces them."""
        super().__enter__()
        self._note_parameters()
        self._blocks[-1].callback(
            self._model.register_forward_pre_hook(self._note_parameters).remove
        )
        return self

    def _note_parameters(self, *_: object) -> None:
        for name, parameter in self._model.named_parameters():
            self._names[id(parameter)] = name
            self._unread.setdefault(name, parameter.numel())

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        for leaf in leaves((args, kwargs)):
            self._count_parameter(leaf)
        return function(*args, **kwargs)

    def empty(self, tensor: Tensor) -> Tensor:
        self._count_parameter(tensor)
        return super().empty(tensor)

    def _count_parameter(self, leaf: object) -> None:
        name = self._names.get(id(leaf))
        if name in self._unread:
            count = self._unread[name]
            self._unread[name] = 0
            self._count += count

    def take_count(self) -> int:
        count, self._count = self._count, 0
        return count

    def unread_count(self) -> int:
        return sum(self._unread.values())


class BlockActivationCounter(ops.OperationMode):
    """Counts the bytes of new tensors that operations return: their sum, and the peak in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._made = self._peak = 0
        self._live: list[tuple[StorageWeakRef, int]] = []

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        if ops.operation_name(function) == ops.FLEX_ATTENTION:
            # Run each of its steps, as torch does on a CPU, so that other counters see them too.
            from torch._higher_order_ops.flex_attention import sdpa_dense

            with self:
                return sdpa_dense(*args, **kwargs)
        given = {storage._cdata for storage in _tensor_storages((args, kwargs))}
        result = function(*args, **kwargs)
        for storage in _tensor_storages(result):
            if storage._cdata not in given:
                self._made += storage.nbytes()
                reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self._live.append((reference, storage.nbytes()))
        self._peak = max(self._peak, self._bytes_in_memory())
        return result

    def take(self) -> tuple[int, int]:
        """Return the sum of bytes and the peak of bytes in memory, and restart both counts."""
        taken = self._made, self._peak
        self._made, self._peak = 0, self._bytes_in_memory()
        return taken

    def _bytes_in_memory(self) -> int:
        self._live = [live for live in self._live if not live[0].expired()]  # type: ignore[no-untyped-call]
        return sum(size for _, size in self._live)


def _tensor_storages(values: Any) -> list[UntypedStorage]:
    return [leaf.untyped_storage() for leaf in leaves(values) if isinstance(leaf, Tensor)]


# `qkv` computes queries, keys and values.
# `projection` takes the output of attention.
# `other` is a parameter that no layer multiplies by, such as a scale or a position bias.
Layer = Literal["stem", "qkv", "projection", "mlp", "convolution", "norm", "other", "head"]
LAYERS: tuple[Layer, ...] = get_args(Layer)
OTHER: Layer = "other"


class BlockPlace(NamedTuple):
    block: int
    layer: Layer


def place_parameters_in_blocks(
    model: nn.Module, cut_points: Sequence[CutPoint], images: Tensor
) -> dict[str, BlockPlace]:
    """Map each parameter's name to its block and layer, given at least two `images`."""
    with without_onednn():
        flow = record_dataflow(model, images)
    cuts = [flow.value_of(point).operation for point in cut_points]
    ends: Mapping[int, Layer] = {0: "stem", len(cut_points): "head"}
    places = {}
    for name, layer in _BlockLayers(model, flow).find_layers().items():
        owner = name.rpartition(".")[0]
        while owner not in flow.begun:
            owner = owner.rpartition(".")[0]
        # A parameter is in the block in which its module first runs.
        block = bisect_left(cuts, flow.begun[owner])
        places[name] = BlockPlace(block, layer if layer == "norm" else ends.get(block, layer))
    return places


class _BlockLayers:
    def __init__(self, model: nn.Module, flow: Dataflow) -> None:
        self._model, self._flow = model, flow
        self._qkv: set[int] = set()
        self._projections: set[int] = set()

    def find_layers(self) -> dict[str, Layer]:
        for index, operation in enumerate(self._flow.operations):
            if ops.weighs(operation.name):
                self._follow_attention(index)
        taking = self._constants_taken()
        found = {
            name: self._layer_of_parameter(name, taking)
            for name, _ in self._model.named_parameters()
        }
        # A bias may be added apart from its layer's product: it belongs to this layer too.
        beside = {name.rpartition(".")[0]: kind for name, kind in found.items() if kind != OTHER}
        return {
            name: beside.get(name.rpartition(".")[0], kind)
            if kind == OTHER and self._model.get_parameter(name).ndim == 1
            else kind
            for name, kind in found.items()
        }

    def _follow_attention(self, index: int) -> None:
        """Note the nearest layers before attention as `qkv`, and after it as projections."""
        operations = self._flow.operations
        products = [index]
        if operations[index].name in ops.SOFTMAXES:
            before = [i for i in self._walk_back([index]) if multiplies_values(operations[i])]
            if not before:
                return
            behind = [i for i in self._walk_onwards([index]) if multiplies_values(operations[i])]
            products = [*before, *behind]
        self._qkv.update(i for i in self._walk_back(products) if self._multiplies_by_weights(i))
        self._projections.update(
            i for i in self._walk_onwards(products) if self._multiplies_by_weights(i)
        )

    def _walk_back(self, starts: Sequence[int]) -> Iterator[int]:
        return self._walk_to_layers(
            starts, lambda i: (each.operation for each in self._flow.operations[i].operands)
        )

    def _walk_onwards(self, starts: Sequence[int]) -> Iterator[int]:
        return self._walk_to_layers(starts, lambda i: self._flow.users.get(i, []))

    def _walk_to_layers(
        self, starts: Sequence[int], step: Callable[[int], Iterable[int]]
    ) -> Iterator[int]:
        """Follow `step` from `starts`, and yield what it reaches; stop at layers with weights."""
        waiting, seen = [*starts], {*starts}
        while waiting:
            for index in step(waiting.pop()):
                if index not in seen:
                    seen.add(index)
                    yield index
                    if not self._multiplies_by_weights(index):
                        waiting.append(index)

    def _multiplies_by_weights(self, index: int) -> bool:
        operation = self._flow.operations[index]
        multiplies = operation.name in ops.PRODUCTS | ops.CONVOLUTIONS
        return multiplies and any(each.ndim > 1 for each in _constant_tensors(operation))

    def _layer_of_operation(self, index: int) -> Layer:
        operation = self._flow.operations[index]
        if operation.name in ops.NORMALIZATIONS:
            return "norm"
        if not self._multiplies_by_weights(index):
            return OTHER
        if index in self._qkv:
            return "qkv"
        if index in self._projections:
            return "projection"
        return "convolution" if operation.name in ops.CONVOLUTIONS else "mlp"

    def _constants_taken(self) -> list[tuple[int, int, str, Layer]]:
        """Return memory address, size, module and layer of each constant among the operands."""
        return [
            (_memory_address(each), each.numel(), operation.module, self._layer_of_operation(index))
            for index, operation in enumerate(self._flow.operations)
            for each in _constant_tensors(operation)
        ]

    def _layer_of_parameter(
        self, name: str, taking: Sequence[tuple[int, int, str, Layer]]
    ) -> Layer:
        owner = name.rpartition(".")[0]
        parameter = self._model.get_parameter(name)
        size, memory = parameter.numel(), _memory_address(parameter)
        itself = [kind for at, _, _, kind in taking if at == memory]
        # Weights may be computed from a parameter, as in weight standardization.
        made = [kind for _, taken, within, kind in taking if (taken, within) == (size, owner)]
        kind = [*itself, *made, OTHER][0]
        # A normalization layer may run several operations: recognize it by its class's name.
        by_name = "norm" in type(self._model.get_submodule(owner)).__name__.lower()
        return "norm" if kind == OTHER and by_name else kind


def _constant_tensors(operation: Operation) -> list[Tensor]:
    taken = leaves((operation.args, operation.kwargs))
    return [leaf.tensor for leaf in taken if isinstance(leaf, Constant)]


def _memory_address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
