"""Measure tables of a network at epochs of its training, whatever loop trains it."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from itertools import chain
from math import ceil
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from vitscope.drawing.figure import Member
from vitscope.errors import VitscopeError, check_known, nearest, quoted, visible
from vitscope.measures import registry
from vitscope.networks.building import networks
from vitscope.scopes.lending import choose_device_for_lending
from vitscope.scopes.scope import Scope, look
from vitscope.scopes.tables import OTHERS, Tables
from vitscope.settings.snapshots import after_epoch
from vitscope.settings.study import AT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The name of a table, or a function as `scope.measure` takes it.
Watched = str | Callable[..., Any]
# Weights that are cut into pieces, of which this process has one: by the names of their classes.
_IN_PIECES = {"DTensor", "FullyShardedDataParallel", "FlatParameter"}


class Watch(Tables):
    """The tables of a network by epoch, of which more come while the network is trained.

    Used in a `with` block around the loop, it measures the network as it is at the beginning of the
    block, and after epochs. Then it has what scopes have; the column `epoch` of each table says
    after how many epochs a row was measured.
    """

    def __init__(
        self,
        scope: Scope,
        device: Any,
        tables: Sequence[Watched],
        every: int,
        epochs: int | None,
        begin: int,
    ) -> None:
        self.members: list[Member] = []
        # Holds the network and the images until the training has ended.
        self._scope: Scope | None = scope
        self._device, self._asked, self._every, self._epochs = device, tables, every, epochs
        (self._first,), self._blocks = scope.members, scope.table("blocks")
        # Tables by the name of the model, then by their own.
        self._tables: dict[str, dict[str, pd.DataFrame]] = {}
        self._calls: dict[str, Any] = {}
        self._epoch, self._warned = begin, False

    def __enter__(self) -> "Watch":
        self._begin(self._epoch)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._end(finished=error is None)

    def after_epoch(self, epoch: int | None = None) -> None:
        """Measure the network after an epoch, if it is one of those to measure; never raise.

        Call it after each epoch. `epoch` is how many there have been; if left out, one more than
        at the last call. What cannot be measured is said once, and the training goes on.
        """
        self._epoch = self._epoch + 1 if epoch is None else epoch
        self._measure_or_warn(last=self._epoch == self._epochs)

    def lightning(self) -> Any:
        """Return a callback for the `Trainer` of Lightning, in place of the `with` block."""
        from vitscope.scopes.callbacks import lightning_callback

        return lightning_callback(self)

    def transformers(self) -> Any:
        """Return a callback for the `Trainer` of transformers, in place of the `with` block."""
        from vitscope.scopes.callbacks import transformers_callback

        return transformers_callback(self)

    def available(self) -> list[str]:
        """Return the names of the tables that are measured."""
        return [*dict.fromkeys(["blocks", *self._names()])] if self.members else []

    def own(self) -> dict[str, Any]:
        """Return the calls of the user's functions that have measured, by the function's name."""
        return self._calls

    def table(self, name: str, resamples: bool = False) -> pd.DataFrame:
        """Return a table by its name, with the rows of all epochs; the column `epoch` says which.

        With `resamples`, as the workflow has it: with the values in 400 resamples of the images.
        """
        table = super().table(name, resamples)
        epochs = {member.model: member.epoch for member in self.members}
        table.insert([*table].index("model") + 1, "epoch", table["model"].map(epochs))
        return table

    def plot(self, kind: str, ax: "Axes | None" = None, **options: Any) -> "Figure":
        """Draw a figure of a kind, by epoch if the kind can be, and save nothing.

        Other kinds, and those with `change=True` or `together=True`, show each epoch as a network.
        """
        known = registry.kinds().get(kind)
        by_epoch = kind in self._calls or (known is not None and "by_epoch" in known.option_keys)
        if by_epoch and not {"change", "together"} & {*options}:
            options = {"by_epoch": True, **options}
        return super().plot(kind, ax, **options)

    def _whole_table(self, name: str) -> pd.DataFrame:
        if name not in (there := self.available()):
            raise VitscopeError(
                f"There is no table '{name}' by epoch.{nearest(name, there)} There are "
                f"{', '.join(there) or 'none yet'}."
            )
        tables = [self._tables[each.model][name].assign(model=each.model) for each in self.members]
        return pd.concat(tables, ignore_index=True)

    def __repr__(self) -> str:
        epochs = ", ".join(str(member.epoch) for member in self.members) or "none yet"
        return (
            f"<Watch of {self._first.label}; epochs: {epochs}; tables: {', '.join(self._names())}>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>"

    def _begin(self, epoch: int, epochs: int | None = None) -> None:
        """Measure the network before the training, or before it is resumed after an epoch."""
        if self.members or self._scope is None:
            raise VitscopeError("This watch has had its training: make another one for the next.")
        _refuse_weights_in_pieces(self._scope._network)
        self._epoch, self._epochs = epoch, self._epochs or epochs
        begun = perf_counter()
        self._measure(self._scope)
        seconds, images = perf_counter() - begun, len(self._scope._maker.images)
        what = f"measured {', '.join(self._names())} of {images} images in {seconds:.1f} s"
        print(f"vitscope: {what}, and will measure {self._when(seconds)}")

    def _when(self, seconds: float) -> str:
        if self._epochs is None:
            return f"after every {'epoch' if self._every == 1 else f'{self._every} epochs'}"
        count = ceil(self._epochs / self._every) - self._epoch // self._every
        times = f"{count} more time{'s' * (count != 1)}"
        return f"{times} during the training, in about {count * seconds:.0f} s"

    def _end(self, finished: bool) -> None:
        """Measure the last epoch unless it is; let the network and the images go."""
        if finished and self.members and self.members[-1].epoch != self._epoch:
            self._measure_or_warn(last=True)
        if self._scope:
            self._scope._folder.cleanup()
        self._scope = None

    def _measure_or_warn(self, last: bool) -> None:
        try:
            if self._epoch % self._every and not last:
                return
            if self._scope is None or not self.members:
                raise VitscopeError("a network is watched within a `with` block around the loop")
            if self._epoch <= (before := self.members[-1].epoch or 0):
                raise VitscopeError(f"epoch {before} was measured before it")
            self._measure(self._scope)
        except Exception as error:  # Whatever it is, a training of hours goes on.
            plain = "" if isinstance(error, VitscopeError) else f"{type(error).__name__}: "
            if not self._warned:
                why = visible(f"{plain}{error}").rstrip(".")
                print(
                    f"vitscope: warning: epoch {self._epoch} is not measured: {why}; the training "
                    f"goes on, and of further epochs that cannot be measured nothing is said."
                )
            self._warned = True

    def _measure(self, whole: Scope) -> None:
        """Measure all tables or, if one cannot be measured, none."""
        device = choose_device_for_lending(whole._network, self._device)
        with _keeping_random_numbers(whole._network, device):
            scope = whole._measured_anew(device)
            try:
                scope._maker.make_only(self._names())
                for function in filter(callable, self._asked):
                    scope.measure(function)
                tables = {name: scope.table(name, resamples=True) for name in self._names()}
            finally:
                scope._folder.cleanup()
        self._calls = scope.own()
        model = f"{self._first.model}{AT}{after_epoch(self._epoch)}"
        label = f"{self._first.label}, epoch {self._epoch}"
        self._tables[model] = {**tables, "blocks": self._blocks}
        self.members.append(Member(model, label, self._first.family, self._epoch))

    def _names(self) -> list[str]:
        """Return the names of the tables that are watched."""
        return [each if isinstance(each, str) else each.__name__ for each in self._asked]


@contextmanager
def _keeping_random_numbers(
    network: nn.Module, *devices: torch.device, images: Any = None
) -> Iterator[None]:
    """Restore the generators of Python, NumPy, torch, the GPUs in use, and a loader of images."""
    used = {*devices, *(each.device for each in chain(network.parameters(), network.buffers()))}
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  (trainings use it)
    own = getattr(images, "generator", None)
    state = own.get_state() if isinstance(own, torch.Generator) else None
    with torch.random.fork_rng([each for each in used if each.type == "cuda"]):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
            if own is not None and state is not None:
                own.set_state(state)


def watch(
    network: nn.Module,
    images: Any,
    labels: Any = None,
    tables: Watched | Sequence[Watched] = ("feature_variance",),
    every: int = 1,
    *,
    epochs: int | None = None,
    begin: int = 0,
    device: torch.device | str | None = None,
    **looking: Any,
) -> Watch:
    """Watch a network while it is trained: measure tables of it by epoch, on the same images.

        with vitscope.watch(network, images, tables=["token_similarity"]) as watched:
            for epoch in range(30):
                ...                          # train the network for an epoch
                watched.after_epoch()
        watched.plot("token_similarity")

    `tables` are names of tables, and functions of your own as `scope.measure` takes them. They are
    measured before the training, after `every` epochs, and after the last one. `epochs` is how many
    there will have been, if that is known: then it is said how long measuring will take in all. A
    training that is resumed has had `begin` of them. Other keywords are those of `look`, as `mean`
    and `std`; without `device`, the network is measured where it is by then.

    The training is not disturbed: weights, buffers, gradients, modes and random numbers are as they
    would be without.
    """
    asked = [tables] if isinstance(tables, str) or callable(tables) else [*tables]
    if "classification" in asked:
        # Verdicts on claims ask how many classes there are.
        asked = [*dict.fromkeys([*asked, "predictions"])]
    numbers = {"every": (every, 1), "epochs": (1 if epochs is None else epochs, 1)}
    for key, (value, least) in {**numbers, "begin": (begin, 0)}.items():
        if not isinstance(value, int) or value < least:
            allowed = f"a whole number, from {least}"
            raise VitscopeError(f"{key}: found {quoted(value)}, allowed: {allowed}.")
    if not isinstance(network, nn.Module):
        raise VitscopeError(f"`network` is a {type(network).__name__}, allowed: a torch.nn.Module.")
    whole: nn.Module = networks.unwrap_compiled(network)
    whole = whole.module if isinstance(whole, nn.parallel.DistributedDataParallel) else whole
    _refuse_weights_in_pieces(whole)
    with _keeping_random_numbers(whole, images=images):
        scope = look(whole, images, labels, device=device, **looking)
        try:
            _check_watched(scope, asked)
        except BaseException:
            scope._folder.cleanup()
            raise
    return Watch(scope, device, asked, every, epochs, begin)


def _check_watched(scope: Scope, asked: Sequence[Watched]) -> None:
    known = (*OTHERS, *registry.names())
    if not asked:
        raise VitscopeError(f"tables: found none, allowed: some of {', '.join(known)}.")
    for each in asked:
        if not callable(each):
            check_known("watch", "tables", each, known)
            if why := scope._maker.why_not(each):
                raise VitscopeError(f"watch: tables: {why}")


def _refuse_weights_in_pieces(network: nn.Module) -> None:
    there = {type(each).__name__ for each in chain(network.modules(), network.parameters())}
    if cut := sorted(there & _IN_PIECES):
        raise VitscopeError(
            f"The network has only pieces of its weights in this process ({', '.join(cut)}): watch "
            f"one that is whole."
        )
