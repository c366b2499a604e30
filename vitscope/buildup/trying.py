"""The network that a step of a build-up tries: how it follows from the baseline and the results."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitscope.buildup.deciding import Path as Course
from vitscope.buildup.deciding import Plan, Try, follow, stage_name
from vitscope.buildup.tried import Network, Tried


def plan_of(settings: Mapping[str, Any]) -> Plan:
    """Return the plan of a build-up from its settings as a job has them."""
    return Plan(tuple(settings["blocks"]), settings["patience"], settings["steps"])


def network_of(baseline: Mapping[str, Any], attention: Sequence[int]) -> Network:
    """Return the network of the baseline, as an AlterNet, with MSA blocks of each stage."""
    return {**baseline, "arch": {**baseline["arch"], "attention": list(attention)}}


def decide(baseline: Mapping[str, Any], plan: Plan, scores: Sequence[float]) -> Tried:
    """Return what the step after those with these scores tries."""
    following = follow(plan, scores).next
    network = None if following is None else network_of(baseline, following.attention)
    return Tried(len(scores), network)


def told(tried: Try | None) -> str:
    """Say what is tried, as on the axis of the figure: `c4: 1`, or `baseline`."""
    if tried is None:
        return ""
    return f"{stage_name(tried.stage)}: {tried.number}" if tried.stage is not None else "baseline"


def ending(course: Course) -> str:
    """Say what comes after the last step: what is tried next, or why nothing is."""
    reasons = {"stages": "no stage is left", "steps": "no more steps are asked for"}
    return f"ended: {reasons[course.ended]}" if course.ended else told(course.next)
