"""Cut points that a study names: modules, and where each is read."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.networks.finding.cut_points import Kind
from vitscope.networks.finding.cuts import Cut, layer_kind
from vitscope.networks.finding.operations import ACTIVATIONS, NORMALIZATIONS, multiplies
from vitscope.networks.finding.recorded_pass import RecordedPass

# As a study gives them.
Points = Sequence[Mapping[str, Any]]


def named_cuts(recorded: RecordedPass, points: Points) -> list[Cut]:
    """Return the cuts at the points that a study names, in the order of the network."""
    entries = [
        _locate(recorded, name, point) for point in points for name in _match(recorded, point)
    ]
    cuts: list[Cut] = []
    last = 0
    for index, name, at in sorted(entries):
        if cuts and index == last:
            raise VitscopeError(
                f"points: the {at} of {quoted(name)} is the same value as "
                f"{quoted(cuts[-1].block)}, which is named too: leave one out."
            )
        called = name if at == "output" else f"{name}.input"
        end = _end_of(recorded, index)
        begin = recorded.before(end) if recorded.joins(end) else last
        # Where a point within a branch is named too, no more than the sum may be left behind it.
        works = any(multiplies(op.name) for op in recorded.between(last, index))
        kind: Kind = layer_kind(recorded, last if works else begin, index) if cuts else "stem"
        cuts.append(Cut(index, "named", kind, end, called, last, begin))
        last = index
    return cuts


def _match(recorded: RecordedPass, point: Mapping[str, Any]) -> list[str]:
    """Return the modules that a pattern fits: `*` is any part of a name, `**` any parts."""
    fitting = re.escape(point["module"]).replace(r"\*\*", ".*").replace(r"\*", "[^.]*")
    names = [name for name in recorded.modules if re.fullmatch(fitting, name)]
    if not names:
        raise VitscopeError(
            f"points: the network has no module '{point['module']}'."
            f"{nearest(point['module'], recorded.modules)}"
        )
    return names


def _locate(recorded: RecordedPass, name: str, point: Mapping[str, Any]) -> tuple[int, str, str]:
    """Return the operation whose value a module takes or returns."""
    at, calls = point.get("at", "output"), recorded.flow.calls[name]
    if calls != 1:
        raise VitscopeError(
            f"points: {quoted(name)} runs {calls} times in a pass, allowed: modules that run once."
        )
    indices = [
        passage.value.operation
        for passage in recorded.flow.passages
        if (passage.module, passage.at) == (name, at) and passage.value.output == 0
    ]
    if not indices or recorded.maps.layout(indices[0]) is None:
        raise VitscopeError(
            f"points: the {at} of {quoted(name)} is no feature map: {_shape_of(recorded, indices)}."
        )
    if indices[0] not in recorded.dominators and not point.get("inside", False):
        raise VitscopeError(
            f"points: the {at} of {quoted(name)} is not the whole stream: the result also "
            f"depends on values that go around it. Say `inside: true` with the point to read "
            f"it all the same."
        )
    return indices[0], name, at


def _shape_of(recorded: RecordedPass, indices: Sequence[int]) -> str:
    if not indices:
        return "it does not depend on the images"
    shape = recorded.operations[indices[0]].shape
    return f"of {recorded.flow.images} images it has the shape {shape}"


def _end_of(recorded: RecordedPass, index: int) -> int:
    """Return the join whose activation an operation is, or the operation itself."""
    operation = recorded.operations[index]
    before = [value.operation for value in operation.operands()]
    closes = operation.name in ACTIVATIONS | NORMALIZATIONS
    activated = closes and before and recorded.joins(before[0])
    return before[0] if activated and before[0] in recorded.dominators else index
