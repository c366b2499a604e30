"""Find the selective scans of a network, and where in the image their positions are."""

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import isfunction, ismodule, signature
from typing import Any

import torch
from torch import Tensor

from vitscope.errors import VitscopeError, quoted
from vitscope.measures.attention_tokens import Tokens, attention_tokens
from vitscope.measures.given import OnModel
from vitscope.networks.finding.dataflow import Dataflow
from vitscope.networks.finding.dataflow_recorder import note_tensor, on_shapes, record_dataflow
from vitscope.networks.finding.positions import PositionTracer

TAKEN = ["u", "delta", "A", "B", "C"]
# What a scan is called with, by the names of its parameters.
Call = dict[str, Any]


@dataclass(frozen=True)
class Scan:
    """The channels of a call that run along one path; `tokens` numbers what they pass."""

    call: int
    channels: Tensor
    tokens: Tokens


def _takes_scan(value: Any) -> bool:
    return isfunction(value) and [*signature(value).parameters][: len(TAKEN)] == TAKEN


@contextmanager
def calling(sink: Callable[[Call], None]) -> Iterator[None]:
    """Call `sink` with what each selective scan takes that a network runs in the block.

    A scan is a global function of any module, since classes call functions of others: its name
    begins with `selective_scan`, its parameters with `TAKEN`. Scans inside scans are not counted.
    """
    running: list[object] = []

    def watch(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not running:
                bound = signature(function).bind(*args, **kwargs)
                bound.apply_defaults()
                sink(bound.arguments)
            running.append(function)
            try:
                return function(*args, **kwargs)
            finally:
                running.pop()

        return watched

    with ExitStack() as stack:
        for space in [vars(module) for module in [*sys.modules.values()] if ismodule(module)]:
            for name, value in [*space.items()]:
                if name.startswith("selective_scan") and _takes_scan(value):
                    stack.callback(space.__setitem__, name, value)
                    space[name] = watch(value)
        yield


def scans_of(given: OnModel) -> dict[int, list[Scan]]:
    """Return the scans of each block, by the index of its cut point; refuse what cannot be read.

    The scans of a block pass the same tokens, each on a path of its own.
    """

    def find_in_pass(run: Callable[[Tensor], Any], images: Tensor) -> dict[int, list[Scan]]:
        noted: list[Any] = []
        with calling(lambda call: noted.append(note_tensor(call["u"]))):
            flow = record_dataflow(given.network, images, run)
        tracer, blocks = PositionTracer(flow), dict[int, list[Scan]]()
        cuts = [flow.value_of(point).operation for point in given.cut_points]
        for number, (value, before, module) in enumerate(noted):
            # What scans behind the last cut point is counted to it.
            scans = blocks.setdefault(min(bisect_left(cuts, before), len(cuts) - 1), [])
            scans += _scans_of_call(flow, tracer, number, value, module)
            if not all(scan.tokens.same(scans[0].tokens) for scan in scans):
                raise VitscopeError(f"the scans of {quoted(module)} do not pass the same tokens.")
        return blocks

    try:
        blocks = on_shapes(given.network.eval(), given.settings, find_in_pass)
        if not blocks:
            raise VitscopeError(
                "no selective scan was found: the network calls no global function of a module "
                "that is named selective_scan_fn or selective_scan_ref and takes u, delta, A, B, "
                "C; leave the model out of this figure."
            )
    except VitscopeError as error:
        raise VitscopeError(f"models.{given.model}: {error}") from error
    return blocks


def _scans_of_call(
    flow: Dataflow, tracer: PositionTracer, call: int, value: Any, module: str
) -> Iterator[Scan]:
    """Yield a scan for each path in the image along which channels of a call run."""
    positions = value and tracer.positions(value)
    if not positions or not (positions.row.isfinite() & positions.column.isfinite()).any():
        raise VitscopeError(
            f"nobody can tell where in the image the positions of a scan of {quoted(module)} are: "
            f"leave the model out of this figure."
        )
    images, channels, length = flow.shape_of(value)
    own = torch.arange(images, dtype=positions.image.dtype)[:, None, None]
    if images != flow.images or not (positions.image.isnan() | (positions.image == own)).all():
        raise VitscopeError(f"a scan of {quoted(module)} does not take images one by one.")
    # One path, unless channels differ in their places.
    several = max(tensor.shape[1] for tensor in positions[1:])
    paths = torch.stack([t[:1].expand(1, several, length)[0] for t in positions[1:]], -1)
    flat = paths.nan_to_num(-1.0).flatten(1)
    alike = flat.unique(dim=0, return_inverse=True)[1]  # type: ignore[no-untyped-call]
    for path in dict.fromkeys(alike.tolist()):
        which = torch.nonzero(alike.expand(channels) == path).ravel()
        tokens = attention_tokens(paths[which[0] % several].double().numpy()[None])
        if len({*tokens.numbers.ravel()}) != length:
            raise VitscopeError(f"a scan of {quoted(module)} passes a place of the image twice.")
        yield Scan(call, which, tokens)
