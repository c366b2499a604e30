"""Lesions: the accuracy of a model without one of its residual branches.

For each lesion, the model's own forward pass runs again, but the addition that joins the branch to
the stream returns the stream alone. Modules that finish before this addition give the same outputs
as in the clean pass: these outputs are kept and returned, and not computed again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.data.split import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array
from vitscope.measures.given import OnModel
from vitscope.measures.measure import Given
from vitscope.measures.scores import accuracy_changes
from vitscope.networks.building.networks import logits_of_network, without_fast_path
from vitscope.networks.finding.cut_points import CUT_POINT, Alike, CutPoint, Join, OperationId
from vitscope.networks.running.joins import PROVED, Silencing, refuse_unproven_capture


def joins_for_lesions(name: str, cut_points: Sequence[CutPoint]) -> dict[int, Join]:
    """Return the joins (of branch and stream) that can be silenced, by the cut point's index."""
    joins = {i: point.join for i, point in enumerate(cut_points) if point.join is not None}
    if not joins:
        raise VitscopeError(
            f"models.{name}: no cut point of the model has a residual branch, so that no unit can "
            f"be removed: take the model out of the figures of the kind lesion."
        )
    return joins


def _tensor_versions(value: object) -> list[object]:
    """Return how often each tensor was changed in place.

    Tensors of inference mode do not count this: take something that equals nothing else.
    """
    if isinstance(value, Tensor):
        return [object() if value.is_inference() else value._version]
    if isinstance(value, tuple | list):
        return [version for item in value for version in _tensor_versions(item)]
    return []


class _Kept(NamedTuple):
    """The output of a module, versions of its tensors, and counts of the module's operations."""

    output: Any
    versions: list[object]
    counted: Counter[tuple[str, Alike]]


class _PassBeforeLesions(Silencing):  # type: ignore[no-untyped-call]
    """Runs the clean forward pass, and keeps the outputs of modules that lesions use again."""

    def __init__(self, model: nn.Module, joins: Sequence[Join], images: Tensor) -> None:
        super().__init__(model, {name for join in joins for name in join.names})
        self._firsts = {join.additions[0].operation for join in joins}
        self._finished: dict[nn.Module, _Kept] = {}
        self._before: dict[OperationId, dict[nn.Module, _Kept]] = {}
        self._entered: dict[nn.Module, tuple[list[object], Counter[tuple[str, Alike]]]] = {}
        self._calls: Counter[nn.Module] = Counter()
        with ExitStack() as stack:
            for module in _modules_to_keep_for_lesions(model, joins):
                stack.callback(module.register_forward_pre_hook(self._note_inputs).remove)
                stack.callback(module.register_forward_hook(self._keep_output).remove)
            self.logits = _logits_in_mode(model, images, self)
        self._finished.clear()

    def count(self, name: str, tensor: Tensor) -> OperationId:
        """Count an operation; at the first addition of a join, note which modules have finished."""
        operation = super().count(name, tensor)
        if operation in self._firsts:
            self._before[operation] = dict(self._finished)
        return operation

    def _note_inputs(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._entered[module] = _tensor_versions(inputs), self.counts.copy()

    def _keep_output(self, module: nn.Module, inputs: tuple[Any, ...], output: object) -> None:
        self._calls[module] += 1
        versions, counts = self._entered[module]
        # If a module changes its input in place, returning its output again is not enough.
        if _tensor_versions(inputs) == versions and _is_unchangeable(output):
            for inner in module.modules():
                self._finished.pop(inner, None)
            counted = self.counts - counts
            self._finished[module] = _Kept(output, _tensor_versions(output), counted)

    def take_replacements(
        self, join: Join
    ) -> tuple[Silencing, dict[nn.Module, Callable[..., Any]]]:
        """Return the mode that silences a join, and functions to call in place of modules.

        This frees the outputs that were kept for the join.
        """
        silencing = Silencing(self.model, self.names, join)
        answers = {
            module: _reusing_output_in_lesion(kept, silencing)
            for module, kept in self._before.pop(join.additions[0].operation, {}).items()
            if self._calls[module] == 1 and _tensor_versions(kept.output) == kept.versions
        }
        return silencing, answers


def _reusing_output_in_lesion(kept: _Kept, silencing: Silencing) -> Callable[..., Any]:
    def return_kept_output(*_: Any, **__: Any) -> Any:
        silencing.counts += kept.counted
        return kept.output

    return return_kept_output


def _logits_in_mode(model: nn.Module, images: Tensor, mode: Silencing) -> Tensor:
    with mode:
        return logits_of_network(model(images))


def _is_unchangeable(output: object) -> bool:
    """Return whether an output is a tensor or a tuple of tensors; a list could be changed later."""
    return isinstance(output, Tensor) or (
        isinstance(output, tuple) and all(isinstance(item, Tensor) for item in output)
    )


def _modules_to_keep_for_lesions(model: nn.Module, joins: Sequence[Join]) -> list[nn.Module]:
    """Return the modules whose outputs are kept.

    These have a weight matrix, and are children of modules that contain a join. Outputs of others,
    such as normalizations and activations, would save too little time for the memory they need.
    """
    modules = [each.operation.module for join in joins for each in join.additions]
    parts = [module.split(".") if module else [] for module in modules]
    on_the_ways = {".".join(path[:end]) for path in parts for end in range(len(path) + 1)}
    beside = {module for name in on_the_ways for module in model.get_submodule(name).children()}
    # Torch does not allow replacing the forward pass of a scripted module.
    own = [module for module in beside if not isinstance(module, torch.jit.ScriptModule)]
    # A hook of the user may change an output, and would change a kept output again.
    plain = [m for m in own if not (m._forward_hooks or m._forward_pre_hooks)]
    return [m for m in plain if any(p.ndim > 1 for p in m.parameters())]


@contextmanager
def _replacing_forward_in_lesion(answers: Mapping[nn.Module, Callable[..., Any]]) -> Iterator[None]:
    own = {module: vars(module).get("forward") for module in answers}
    try:
        for module, answer in answers.items():
            vars(module)["forward"] = answer
        yield
    finally:
        for module, forward in own.items():
            del vars(module)["forward"]
            if forward is not None:
                vars(module)["forward"] = forward


@torch.no_grad()
def lesioned(
    model: nn.Module, joins: Sequence[Join], images: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Return the logits of a model for a batch, and the logits without the branch of each join.

    The model must be in evaluation mode, and the batch on its device.
    """
    without = []
    with without_fast_path():
        clean = _PassBeforeLesions(model, joins, images)
        # Begin with the last branch: it reuses the most outputs, and so frees the most memory.
        for join in reversed(joins):
            silencing, answers = clean.take_replacements(join)
            try:
                with _replacing_forward_in_lesion(answers):
                    without.append(_logits_in_mode(model, images, silencing))
            except VitscopeError:
                raise
            except Exception:
                # Run every module: some do more than return, such as fill a list that others empty.
                silencing = Silencing(model, clean.names, join)
                without.append(_logits_in_mode(model, images, silencing))
            silencing.check()
    return clean.logits, without[::-1]


def correctness_of_lesions(
    model: nn.Module,
    joins: Mapping[str, Join],
    batches: Iterable[Tensor],
    labels: npt.NDArray[np.int64],
    device: torch.device | None = None,
) -> tuple[Array, Array]:
    """Return whether each image is classified correctly: clean (N,), and per lesion (N, K)."""
    model = model.eval().to(device)
    clean, without = [], []
    first = 0
    for batch in batches:
        logits, others = lesioned(model, list(joins.values()), batch.to(device))
        truth = torch.from_numpy(labels[first : first + len(batch)])
        clean.append(_correct_predictions(logits, truth, "the whole model"))
        found = [
            _correct_predictions(each, truth, f"the model without {branch}")
            for branch, each in zip(joins, others, strict=True)
        ]
        without.append(np.stack(found, axis=1))
        first += len(batch)
    if first != len(labels):
        raise ValueError(f"got {first} images, expected {len(labels)}")
    return np.concatenate(clean), np.concatenate(without)


def _correct_predictions(logits: Tensor, truth: Tensor, what: str) -> Array:
    lost = int((~logits.isfinite()).any(dim=1).sum())
    if lost:
        raise VitscopeError(
            f"The logits of {what} are not finite for {lost} of {len(logits)} images, so that no "
            f"class can be told: check the checkpoint, and the mean and std of the data set."
        )
    return (logits.argmax(dim=1).cpu() == truth).numpy()


def measure_lesion(given: OnModel, chosen: Given, bootstrap: Given) -> pd.DataFrame:
    rows = rows_to_classify(given.images, chosen["images"], chosen["seed"])
    labels = known_labels(given.images, rows)
    joins = joins_for_lesions(given.model, given.cut_points)
    network, (first, *_) = given.network.eval().to(given.device), given.batches(rows[:PROVED])
    refuse_unproven_capture(
        f"models.{given.model}", network, given.cut_points, first.to(given.device)
    )
    named = {given.cut_points[index].name: join for index, join in joins.items()}
    clean, without = correctness_of_lesions(
        network, named, given.batches(rows), labels, given.device
    )
    changes = accuracy_changes(clean, without, **bootstrap)
    changes = changes.assign(index=list(joins), images=len(clean))
    return given.blocks[[*CUT_POINT]].merge(changes, on="index", validate="one_to_one")
