"""Lesions: the accuracy of a model without one of its residual branches.

For each lesion, the model runs its own forward pass again, in which the branch returns zeros.
Modules that ended before the branch began cannot differ from the clean pass, so they are not
computed again: they return what they returned in the clean pass.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.data.image_rows import known_labels, rows_to_classify
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnModel
from vitscope.measures.intervals import accuracy_changes
from vitscope.networks.cut_point_columns import CUT_POINT
from vitscope.networks.cut_points import CutPoint

Array = npt.NDArray[np.bool_]


def branches_of(name: str, model: nn.Module, cut_points: Sequence[CutPoint]) -> dict[int, str]:
    """Return the residual branches of a model, by the positions of their cut points."""
    branches = {i: point.branch for i, point in enumerate(cut_points) if point.branch is not None}
    if not branches:
        raise VitscopeError(
            f"models.{name}: no cut point of the model has a residual branch, so that no unit can "
            f"be removed: take the model out of the figures of the kind lesion."
        )
    modules = dict(model.named_modules())
    for branch in branches.values():
        if branch not in modules:
            raise VitscopeError(
                f"models.{name}: the model has no module '{branch}', which its family takes for a "
                f"residual branch: take the model out of the figures of the kind lesion."
            )
    return branches


def _versions(value: object) -> list[int]:
    """Return how often each tensor was changed in place; torch does not count in inference mode."""
    if isinstance(value, Tensor):
        return [value._version]
    if isinstance(value, tuple | list):
        return [version for item in value for version in _versions(item)]
    return []


@dataclass(frozen=True)
class _Kept:
    """What a module returned, and how often its tensors had been changed in place by then."""

    output: Any
    versions: list[int]

    def intact(self) -> bool:
        """Tell whether nothing has changed the tensors since."""
        return _versions(self.output) == self.versions


class _CleanPass:
    """The clean forward pass, and the outputs of modules that lesions use again."""

    def __init__(self, model: nn.Module, branches: Sequence[str], images: Tensor) -> None:
        self._finished: dict[nn.Module, _Kept] = {}
        self._before: dict[nn.Module, dict[nn.Module, _Kept]] = {}
        self._given: dict[nn.Module, list[Tensor]] = defaultdict(list)
        self._entered: dict[nn.Module, list[int]] = {}
        self._calls: Counter[nn.Module] = Counter()
        handles = []
        for branch in map(model.get_submodule, branches):
            handles += [
                branch.register_forward_pre_hook(self._enter_branch),
                branch.register_forward_hook(self._leave_branch),
            ]
        for module in _worth_keeping(model, branches):
            handles += [
                module.register_forward_pre_hook(self._enter),
                module.register_forward_hook(self._leave),
            ]
        try:
            self.logits: Tensor = model(images)
        finally:
            for handle in handles:
                handle.remove()
        self._finished.clear()

    def _enter_branch(self, branch: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._before.setdefault(branch, dict(self._finished))

    def _leave_branch(self, branch: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        self._given[branch].append(torch.empty_like(output, device="meta"))

    def _enter(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._entered[module] = _versions(inputs)

    def _leave(self, module: nn.Module, inputs: tuple[Any, ...], output: object) -> None:
        self._calls[module] += 1
        # If a module changes its input in place, returning its output again would not be enough.
        if _versions(inputs) == self._entered[module] and _of_tensors(output):
            for inner in module.modules():
                self._finished.pop(inner, None)
            self._finished[module] = _Kept(output, _versions(output))

    def take(self, branch: nn.Module) -> dict[nn.Module, Callable[..., Any]]:
        """Return what modules do instead of their forward pass while a branch gives zeros.

        What was kept for the branch is forgotten.
        """
        device = self.logits.device
        zeros = iter([torch.zeros_like(like, device=device) for like in self._given[branch]])
        answers: dict[nn.Module, Callable[..., Any]] = {
            module: _answer(kept.output)
            for module, kept in self._before.pop(branch).items()
            if self._calls[module] == 1 and kept.intact()
        }
        return answers | {branch: lambda *_, **__: next(zeros)}


def _answer(output: object) -> Callable[..., Any]:
    return lambda *_, **__: output


def _of_tensors(output: object) -> bool:
    """Tell whether an output is a tensor, or a tuple of tensors: a list could be changed."""
    return isinstance(output, Tensor) or (
        isinstance(output, tuple) and all(isinstance(item, Tensor) for item in output)
    )


def _worth_keeping(model: nn.Module, branches: Sequence[str]) -> list[nn.Module]:
    """Return the modules whose outputs are kept: those with a matrix, next to the branches.

    These are the children of the modules that contain a branch. The others, such as normalizations
    and activations, save too little time for the memory that their outputs take.
    """
    parts = [branch.split(".") for branch in branches]
    on_the_ways = {".".join(path[:end]) for path in parts for end in range(len(path))}
    beside = {module for name in on_the_ways for module in model.get_submodule(name).children()}
    return [m for m in beside if any(p.ndim > 1 for p in m.parameters())]


@contextmanager
def _doing(answers: Mapping[nn.Module, Callable[..., Any]]) -> Iterator[None]:
    """Replace the forward passes of modules."""
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
    model: nn.Module, branches: Sequence[str], images: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """Return the logits of a model for a batch, and the logits without each of some branches.

    The model must be in evaluation mode, and the batch on its device.
    """
    clean = _CleanPass(model, branches, images)
    without = []
    # The last branch comes first: it uses the most outputs, and those that no earlier branch uses
    # are freed after it.
    for branch in reversed(branches):
        with _doing(clean.take(model.get_submodule(branch))):
            without.append(model(images))
    return clean.logits, without[::-1]


def correctness(
    model: nn.Module,
    branches: Sequence[str],
    batches: Iterable[Tensor],
    labels: npt.NDArray[np.int64],
    device: torch.device | None = None,
) -> tuple[Array, Array]:
    """Tell for all images whether their class is found, (N,), and without each branch, (N, K)."""
    model = model.eval().to(device)
    clean, without = [], []
    first = 0
    for batch in batches:
        logits, others = lesioned(model, branches, batch.to(device))
        truth = torch.from_numpy(labels[first : first + len(batch)])
        clean.append(_found(logits, truth, "the whole model"))
        found = [
            _found(each, truth, f"the model without {branch}")
            for branch, each in zip(branches, others, strict=True)
        ]
        without.append(np.stack(found, axis=1))
        first += len(batch)
    if first != len(labels):
        raise ValueError(f"got {first} images, expected {len(labels)}")
    return np.concatenate(clean), np.concatenate(without)


def _found(logits: Tensor, truth: Tensor, what: str) -> Array:
    lost = int((~logits.isfinite()).any(dim=1).sum())
    if lost:
        raise VitscopeError(
            f"The logits of {what} are not finite for {lost} of {len(logits)} images, so that no "
            f"class can be told: check the checkpoint, and the mean and std of the data set."
        )
    found: Array = (logits.argmax(dim=1).cpu() == truth).numpy()
    return found


def lesion_table(
    blocks: pd.DataFrame,
    units: Sequence[int],
    clean: Array,
    without: Array,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Return a row for each unit: its cut point, and the change of accuracy without it."""
    changes = accuracy_changes(clean, without, resamples, seed)
    changes = changes.assign(index=list(units), images=len(clean))
    return blocks[[*CUT_POINT]].merge(changes, on="index", validate="one_to_one")


def measure(
    given: OnModel, chosen: Mapping[str, Any], bootstrap: Mapping[str, int]
) -> pd.DataFrame:
    """Return the change of accuracy without each residual branch, on the `chosen` images."""
    if given.blocks is None:
        raise ValueError("lesions need the block table")
    rows = rows_to_classify(given.images, chosen["images"], chosen["seed"])
    labels = known_labels(given.images, rows)
    branches = branches_of(given.model, given.network, given.cut_points)
    clean, without = correctness(
        given.network, list(branches.values()), given.batches(rows), labels, given.device
    )
    return lesion_table(given.blocks, list(branches), clean, without, **bootstrap)
