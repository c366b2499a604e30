"""Keep a folder during a training run, to resume from if the run is interrupted.

The folder holds the snapshots so far, the trajectory of the parameters if recorded, and the last
two checkpoints, so that one is always complete. Random numbers depend only on seed and epoch.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from vitscope.errors import VitscopeError
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import copy_file, sha256_of
from vitscope.networks.checkpoints.conversion import write_weights
from vitscope.progress import Say
from vitscope.settings.snapshots import HISTORY_FILE, UNFINISHED, epochs_of, place_of
from vitscope.training.history import HISTORY
from vitscope.training.recipe import Recipe
from vitscope.training.trajectory import TrajectoryFile

# The record of an epoch, by column of the table `training_history`.
Row = dict[str, Any]

MODEL, OPTIMIZER, MOMENTS = "model", "optimizer", "moments"
KEPT = 2


class Unfinished:
    """A training run in progress, the `facts` that it depends on, and its files in `directory`."""

    def __init__(
        self,
        directory: Path,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        recipe: Recipe,
        facts: Mapping[str, str],
    ) -> None:
        self._directory, self._folder = directory, directory / UNFINISHED
        self._recipe, self._facts = recipe, dict(facts)
        self._model, self._optimizer = model, optimizer
        self.history: list[Row] = []
        self.moments: TrajectoryFile | None = None

    @property
    def done(self) -> int:
        return len(self.history)

    def begin(self, say: Say) -> None:
        """Resume from the newest checkpoint that fits, or start over, and say which."""
        for path in self._checkpoints():
            try:
                self._go_on(path)
            except _UnfitError as error:
                say(f"{path} is not used: {error}.")
                path.unlink()
            else:
                say(f"going on after epoch {self.done} of {self._recipe['epochs']}")
                return
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        if self._recipe["trajectory"]:
            self.moments = TrajectoryFile(self._folder / MOMENTS, self._model)
            self.moments.add(self._model)

    def keep_snapshots(self) -> None:
        """Keep the current weights, if the recipe has a snapshot after this epoch."""
        dtype = getattr(torch, self._recipe["snapshot_dtype"])
        for name in self._snapshots(self.done):
            facts = {key: self._facts[key] for key in ("seed", "recipe")}
            facts |= {"snapshot": name, "epoch": str(self.done)}
            weights = {
                key: tensor.to(dtype) if tensor.is_floating_point() else tensor
                for key, tensor in state_of(self._model).items()
            }
            write_weights(self._folder / place_of(name), weights, facts)

    def keep_epoch(self, row: Row) -> None:
        """Keep the state after an epoch, for the next epoch to start from; `row` is its record."""
        self.history.append(row)
        if self.moments is not None:
            self.moments.add(self._model)
        self._write_checkpoint()

    def finish(self) -> None:
        """Write snapshots and history to their final places, and delete the recorded trajectory."""
        self.keep_snapshots()
        if self.moments is not None:
            # Skip the first moment, which is before the first epoch.
            points = self.moments.polar().iloc[1:]
            ways = zip(self.history, points["radius"], points["angle"], strict=True)
            for row, radius, angle in ways:
                row |= {"radius": radius, "angle": angle}
            self.moments = None
            self._write_checkpoint()
            (self._folder / MOMENTS).unlink()
        for name in epochs_of(self._recipe):
            copy_file(self._folder / place_of(name), self._directory / place_of(name))
        untraced = {"radius": None, "angle": None}
        self.history = [untraced | row for row in self.history]
        HISTORY.write(pd.DataFrame(self.history), self._directory / HISTORY_FILE)

    def remove(self) -> None:
        shutil.rmtree(self._folder)

    def _write_checkpoint(self) -> None:
        state = {
            "history": self.history,
            "moments": self.moments.sums if self.moments else None,
            "snapshots": {
                name: sha256_of(self._folder / place_of(name))
                for epoch in range(self.done)
                for name in self._snapshots(epoch)
            },
        }
        tensors = {f"{MODEL}.{key}": tensor for key, tensor in state_of(self._model).items()}
        for number, values in self._optimizer.state_dict()["state"].items():
            of_parameter = {f"{OPTIMIZER}.{number}.{key}": each for key, each in values.items()}
            tensors |= {key: tensor.cpu() for key, tensor in of_parameter.items()}
        facts = {"training": json.dumps(self._facts), "state": json.dumps(state)}
        write_weights(self._folder / f"checkpoint_{self.done}.safetensors", tensors, facts)
        for old in self._checkpoints()[KEPT:]:
            old.unlink()

    def _snapshots(self, epoch: int) -> list[str]:
        return [name for name, after in epochs_of(self._recipe).items() if after == epoch]

    def _checkpoints(self) -> list[Path]:
        found = self._folder.glob("checkpoint_*.safetensors")
        return sorted(found, key=lambda path: -int(path.stem.removeprefix("checkpoint_")))

    def _go_on(self, path: Path) -> None:
        try:
            file = TensorFile(path)
            file.verify()
            facts, state = (json.loads(file.metadata[key]) for key in ("training", "state"))
        except (VitscopeError, LookupError, ValueError) as error:
            raise _UnfitError("it is damaged") from error
        keys = dict.fromkeys([*self._facts, *facts])
        differing = [key for key in keys if facts.get(key) != self._facts.get(key)]
        if differing:
            raise _UnfitError(f"it is of another training, of another {' and '.join(differing)}")
        for name, digest in state["snapshots"].items():
            kept = self._folder / place_of(name)
            if not kept.is_file() or sha256_of(kept) != digest:
                raise _UnfitError(f"the snapshot {kept} is not what was written")
        if state["moments"]:
            try:
                self.moments = TrajectoryFile(self._folder / MOMENTS, self._model, state["moments"])
            except VitscopeError as error:
                raise _UnfitError(f"of what was kept with it, {error}".rstrip(".")) from error
        self.history = state["history"]
        tensors = {name: torch.tensor(file.array(name)) for name in file.names}
        self._model.load_state_dict(_tensors_below(MODEL, tensors))
        self._load_optimizer(_tensors_below(OPTIMIZER, tensors))

    def _load_optimizer(self, tensors: Mapping[str, Tensor]) -> None:
        groups = self._optimizer.param_groups
        parameters = [parameter for group in groups for parameter in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            number, _, key = name.partition(".")
            parameter = parameters[int(number)]
            if tensor.shape == parameter.shape:
                # Use the parameter's memory order, which the fused optimizer requires.
                tensor = torch.empty_like(parameter, device="cpu").copy_(tensor)
            state.setdefault(int(number), {})[key] = tensor
        groups_only = self._optimizer.state_dict()["param_groups"]
        self._optimizer.load_state_dict({"state": state, "param_groups": groups_only})


class _UnfitError(Exception):
    """Raised with the reason why a checkpoint cannot be used."""


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's current weights on the CPU."""
    return {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}


def _tensors_below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}
