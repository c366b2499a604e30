"""The block table: the ordered cut points of a network, from which every figure takes its bands.

The network is run once on torch's meta device, where nothing is computed and only shapes are known,
with or without weights. There attention is a product of matrices, a softmax and another product: on
other devices it may be one operation that keeps less in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import pandas as pd
import torch
from torch import Tensor, UntypedStorage, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from vitscope.errors import VitscopeError
from vitscope.files.tables import warning_metadata
from vitscope.networks.building.compiler import uncompiled
from vitscope.networks.building.failing import explain_failure
from vitscope.networks.finding.block_table import Part
from vitscope.networks.finding.capture import capturing
from vitscope.networks.finding.cut_points import CutPoint, Side, write_points
from vitscope.networks.finding.modes import Args, Kwargs, OperationMode
from vitscope.networks.finding.named_points import Points
from vitscope.networks.finding.operations import FLEX_ATTENTION, plain_name
from vitscope.networks.finding.search import find_cut_points
from vitscope.networks.finding.shapes import Run, keeping_attributes, on_shapes

Shape = tuple[int, ...]


class Blocks(NamedTuple):
    """The block table of a network, its cut points, and what of it these do not cover.

    `head` is what the part behind the last cut point costs; `warnings` say what cannot be followed.
    """

    table: pd.DataFrame
    head: Part
    points: list[CutPoint]
    uncovered: list[str]
    warnings: list[str]

    def metadata(self) -> dict[str, str]:
        """Return what the metadata of the block table say."""
        head = {f"head_{cost}": str(value) for cost, value in self.head._asdict().items()}
        found = {"uncovered": "; ".join(self.uncovered)}
        found |= warning_metadata(self.warnings)
        return head | found | {"cut_points": write_points(self.points)}


def list_blocks(
    name: str,
    model: nn.Module,
    network: Mapping[str, Any],
    points: Points | None = None,
    norms: Side = "after",
) -> Blocks:
    """Return one row per cut point of `model`, which a study describes as `network`.

    The cut points are found, unless a study names `points`; `norms` says on which side of the norms
    of sums they lie.
    """

    def count_parts(run: Run, images: Tensor) -> Blocks:
        # What modules keep of a pass, as biases that they look up once, is read in the next, too.
        with keeping_attributes(model):
            found = find_cut_points(model, images, run, points, norms)
        _check_outputs(found.outputs, network.get("classes"))
        shapes, parts, unread = _measure(model, run, found.points, images[:1])
        table = _table(name, found.points, shapes, parts[:-1], found.lost)
        uncovered = [*found.uncovered]
        if unread:
            uncovered.append(f"{unread} parameters that no operation reads")
        warnings = [f"models.{name}: {warning}." for warning in found.warnings]
        return Blocks(table, parts[-1], found.points, uncovered, warnings)

    try:
        return on_shapes(model.eval(), network, count_parts)
    except VitscopeError as error:
        raise VitscopeError(f"models.{name}: {error}") from error
    except Exception as error:
        if reason := explain_failure(error):
            raise VitscopeError(f"models.{name}: {reason}") from error
        raise


def _check_outputs(outputs: tuple[int, ...], classes: int | None) -> None:
    if classes is not None and outputs != (classes,):
        shape = "x".join(map(str, outputs))
        raise VitscopeError(
            f"the network returns {shape} values for an image, where its data have {classes} "
            f"classes: give it as many outputs, or its data as many classes."
        )


def _table(
    name: str,
    points: Sequence[CutPoint],
    shapes: Sequence[Shape],
    parts: Sequence[Part],
    lost: int,
) -> pd.DataFrame:
    # The points that were found are not all of a network whose rest was lost.
    last = max(len(points) - 1 + lost, 1)
    return pd.DataFrame(
        {
            "model": name,
            "index": index,
            "name": point.name,
            "kind": point.kind,
            "stage": point.stage,
            "depth": index / last,
            **dict(zip(("channels", "height", "width"), shape, strict=True)),
            "norm": point.norm,
            **part._asdict(),
        }
        for index, (point, shape, part) in enumerate(zip(points, shapes, parts, strict=True))
    )


def _measure(
    model: nn.Module, run: Run, cut_points: Sequence[CutPoint], image: Tensor
) -> tuple[list[Shape], list[Part], int]:
    """Return the shapes at the cut points, and the parts that they cut the network into.

    And how many parameters are in none of them.
    """
    shapes: list[Shape] = []
    parts: list[Part] = []
    weights = _ParameterCounter(model)
    operations, activations = FlopCounterMode(display=False), ActivationCounter()

    def end_part() -> None:
        # FLOPs are two for every multiply-add.
        total = operations.get_total_flops() // 2
        before = sum(part.operations for part in parts)
        parts.append(Part(weights.take(), total - before, *activations.take()))

    def cut(_: int, latent: Tensor) -> None:
        shapes.append(tuple(latent.shape[1:]))
        end_part()

    # What reads comes last: it sees each operation before a counter takes it apart, and reads its
    # result when all have counted it.
    reading = capturing(model, cut_points, cut)
    with torch.no_grad(), uncompiled(), operations, activations, weights, reading:
        run(image)
    end_part()
    return shapes, parts, weights.unread()


class _ParameterCounter(OperationMode):  # type: ignore[no-untyped-call]
    """Counts the parameters that operations read, each once."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._model = model
        self._names: dict[int, str] = {}
        self._unread = dict[str, int]()
        self._count = 0

    def __enter__(self) -> Self:
        """Learn what the parameters are: in a pass on shapes, others stand for them."""
        super().__enter__()
        self._learn()
        self._blocks[-1].callback(self._model.register_forward_pre_hook(self._learn).remove)
        return self

    def _learn(self, *_: object) -> None:
        for name, parameter in self._model.named_parameters():
            self._names[id(parameter)] = name
            self._unread.setdefault(name, parameter.numel())

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, and count what it reads for the first time."""
        for leaf in tree_leaves((args, dict(kwargs))):
            self._read(leaf)
        return function(*args, **kwargs)

    def empty(self, tensor: Tensor) -> Tensor:
        """Return a tensor without its values, which was read."""
        self._read(tensor)
        return super().empty(tensor)

    def _read(self, leaf: object) -> None:
        name = self._names.get(id(leaf))
        if name in self._unread:
            count = self._unread[name]
            self._unread[name] = 0
            self._count += count

    def take(self) -> int:
        """Return the count, and start another."""
        count, self._count = self._count, 0
        return count

    def unread(self) -> int:
        """Return how many parameters no operation has read."""
        return sum(self._unread.values())


class ActivationCounter(OperationMode):
    """Counts the bytes that operations return: all of them, and the most in memory at once.

    Views, and what is changed in place, take no memory of their own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made = self._peak = 0
        self._live: list[tuple[StorageWeakRef, int]] = []

    def run(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Run an operation, and count what it returns."""
        if plain_name(function) == FLEX_ATTENTION:
            return self._run_flex_attention(args, kwargs)
        given = {storage._cdata for storage in _storages((args, kwargs))}
        result = function(*args, **kwargs)
        for storage in _storages(result):
            if storage._cdata not in given:
                self._made += storage.nbytes()
                reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self._live.append((reference, storage.nbytes()))
        self._peak = max(self._peak, self._in_memory())
        return result

    def _run_flex_attention(self, args: Args, kwargs: Kwargs) -> Any:
        """Run FlexAttention step by step, as torch does on a CPU: other counters need it too."""
        from torch._higher_order_ops.flex_attention import sdpa_dense

        with self:
            return sdpa_dense(*args, **kwargs)

    def take(self) -> tuple[int, int]:
        """Return the bytes made and the most in memory at once, and start to count anew."""
        taken = self._made, self._peak
        self._made, self._peak = 0, self._in_memory()
        return taken

    def _in_memory(self) -> int:
        self._live = [live for live in self._live if not live[0].expired()]  # type: ignore[no-untyped-call]
        return sum(size for _, size in self._live)


def _storages(values: Any) -> Iterator[UntypedStorage]:
    for value in tree_leaves(values):
        if isinstance(value, Tensor):
            yield value.untyped_storage()
