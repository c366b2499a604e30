"""The best network of a build-up, as a model that a study can measure."""

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from vitscope.buildup.proposal import Network, network_of
from vitscope.buildup.rule import Plan, follow

HEAD = """\
# The best network that was tried: copy it to the `models` of a study whose data set has this name.
"""


def describe_model(
    name: str,
    plan: Plan,
    scores: Sequence[float],
    *,
    baseline: Network,
    data: str,
    weights: Sequence[Mapping[str, str]],
) -> str:
    """Return the entry of a study for the best network; `weights` say where each network's are."""
    course = follow(plan, scores)
    if course.best is None:
        raise ValueError("nothing was tried")
    network = network_of(baseline, course.best.candidate.attention)
    entry: dict[str, Any] = {
        "label": f"AlterNet ({', '.join(map(str, course.best.candidate.attention))})",
        "family": network["family"],
        "arch": network["arch"],
        "data": data,
        "checkpoint": dict(weights[course.steps.index(course.best)]),
    }
    text: str = yaml.safe_dump({name: entry}, sort_keys=False, default_flow_style=None)
    return HEAD + text
