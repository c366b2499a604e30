"""Which cut points of a network are chosen."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.networks.finding.cut_points import CutPoint

# A network of one stage is measured at so many points, from the stem to the last.
POINTS = 5


def chosen(model: str, points: Sequence[CutPoint], wanted: Sequence[str]) -> list[int]:
    """Return the positions of the cut points that names or patterns fit, in order.

    A name must be there; without any, the last of each stage are chosen.
    """
    if not wanted:
        return _of_stages(points)
    names = [point.name for point in points]
    where = f"models.{model}: analysis.receptive_field.cut_points"
    for name in wanted:
        if name not in names and not set(name) & {*"*?["}:
            raise VitscopeError(
                f"{where}: the network has no cut point {quoted(name)}.{nearest(name, names)} "
                f"`vitscope check` lists them."
            )
    found = [
        index
        for index, name in enumerate(names)
        if any(fnmatchcase(name, pattern) or name == pattern for pattern in wanted)
    ]
    if not found:
        raise VitscopeError(
            f"{where}: none of {', '.join(map(quoted, wanted))} fits a cut point of the network: "
            f"`vitscope check` lists them."
        )
    return found


def _of_stages(points: Sequence[CutPoint]) -> list[int]:
    last = {point.stage: index for index, point in enumerate(points)}
    if len(last) <= 2:
        return sorted({*np.linspace(0, len(points) - 1, POINTS).round().astype(int).tolist()})
    return sorted(last.values())
