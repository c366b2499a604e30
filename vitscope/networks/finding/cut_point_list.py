"""The cut points of a network as text, beside its block table."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from vitscope.networks.finding.cut_points import CutPoint, Join, Layout, OperationId


def write_points(points: Sequence[CutPoint]) -> str:
    """Return cut points as text; each layout stands there once, however many share it."""
    layouts = list(dict.fromkeys(point.layout for point in points))
    rows = [{**asdict(point), "layout": layouts.index(point.layout)} for point in points]
    return json.dumps({"layouts": [asdict(layout) for layout in layouts], "points": rows})


def read_points(text: str) -> list[CutPoint]:
    """Return the cut points of a text."""
    listed = json.loads(text)
    layouts = [_layout(entry) for entry in listed["layouts"]]
    return [_point(entry, layouts) for entry in listed["points"]]


def _layout(entry: dict[str, Any]) -> Layout:
    grid, tokens = entry["grid"], entry["tokens"]
    return Layout(
        **{
            **entry,
            "grid": None if grid is None else tuple(grid),
            "tokens": None if tokens is None else tuple(tokens),
        }
    )


def _point(entry: dict[str, Any], layouts: Sequence[Layout]) -> CutPoint:
    join = entry["join"]
    return CutPoint(
        **{
            **entry,
            "layout": layouts[entry["layout"]],
            "operation": _operation(entry["operation"]),
            "join": join and Join(**{**join, "operation": _operation(join["operation"])}),
        }
    )


def _operation(entry: dict[str, Any] | None) -> Any:
    if entry is None:
        return None
    name, dimensions, values = entry["alike"]
    return OperationId(entry["module"], (name, dimensions, values), entry["nth"])
