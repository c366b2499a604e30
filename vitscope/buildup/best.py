"""The best network of a build-up, as a model that a study can measure."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from vitscope.buildup.deciding import Plan, follow
from vitscope.buildup.tried import Network
from vitscope.buildup.trying import network_of

HEAD = """\
# The best network that was tried: copy it to the `models` of a study whose data set has this name.
"""


def as_model(
    name: str,
    plan: Plan,
    scores: Sequence[float],
    *,
    baseline: Network,
    data: str,
    weights: Sequence[Mapping[str, str]],
) -> str:
    """Return the entry of a study for the best network; `weights` say where those of each are."""
    course = follow(plan, scores)
    if course.best is None:
        raise ValueError("nothing was tried")
    network = network_of(baseline, course.best.tried.attention)
    entry: dict[str, Any] = {
        "label": f"AlterNet ({', '.join(map(str, course.best.tried.attention))})",
        "family": network["family"],
        "arch": network["arch"],
        "data": data,
        "checkpoint": dict(weights[course.steps.index(course.best)]),
    }
    text: str = yaml.safe_dump({name: entry}, sort_keys=False, default_flow_style=None)
    return HEAD + text
