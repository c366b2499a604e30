"""Callbacks of libraries that train, for a `Watch` of a network; these are imported when asked."""

from importlib import import_module
from math import ceil
from typing import Any

from vitscope.errors import VitscopeError


def lightning_callback(watch: Any) -> Any:
    """Return a callback for the `Trainer` of Lightning; the first of its processes measures."""
    base: Any = _import_library("lightning.pytorch").Callback

    class WatchWithLightning(base):  # type: ignore[misc]
        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                epochs = trainer.max_epochs
                watch._begin(trainer.current_epoch, epochs if epochs and epochs > 0 else None)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.is_global_zero:
                watch.after_epoch(trainer.current_epoch + 1)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            watch._end(finished=True)

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            watch._end(finished=False)

    return WatchWithLightning()


def transformers_callback(watch: Any) -> Any:
    """Return a callback for the `Trainer` of transformers; the first of its processes measures."""
    base: Any = _import_library("transformers").TrainerCallback

    class WatchWithTransformers(base):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                watch._begin(int(state.epoch or 0), state.num_train_epochs or None)

        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                # A last epoch may be cut short by a number of steps.
                watch.after_epoch(ceil(state.epoch - 1e-3))

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watch._end(finished=True)

    return WatchWithTransformers()


def _import_library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise VitscopeError(f"{name} cannot be imported here: {error}.") from error
