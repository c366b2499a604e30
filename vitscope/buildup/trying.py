"""The network that a step of a build-up tries: how it follows from the baseline, and its file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from vitscope.buildup.deciding import Path as Course
from vitscope.buildup.deciding import Plan, Try, follow, stage_name
from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text

FAMILY = "alternet"
# The families that a baseline may be of.
BASELINES = ("resnet", FAMILY)

# What a study says of a network: `family`, `arch`, `classes` and others.
Network = dict[str, Any]


class Tried(NamedTuple):
    """What a step tries: the number of the step, and the network; none where all is done."""

    step: int
    network: Network | None


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


def write_tried(tried: Tried, path: Path | str) -> None:
    """Write what a step tries, for all that make and measure it."""
    write_text(path, json.dumps(tried._asdict(), sort_keys=True) + "\n")


def read_tried(path: Path | str) -> Tried:
    """Read what a step tries."""
    try:
        return Tried(**json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise VitscopeError(
            f"{path} does not say what is tried: delete it and run again."
        ) from error


def network_to_try(path: Path | str, where: str) -> Network:
    """Return the network that a step tries; refuse a step that there is none of."""
    tried = read_tried(path)
    if tried.network is None:
        raise VitscopeError(
            f"{where}: there is no step {tried.step}: the build-up ended before it, so ask for an "
            f"earlier one; {path} says where."
        )
    return tried.network


def told(tried: Try | None) -> str:
    """Say what is tried, as on the axis of the figure: `c4: 1`, or `baseline`."""
    if tried is None:
        return ""
    return f"{stage_name(tried.stage)}: {tried.number}" if tried.stage is not None else "baseline"


def ending(course: Course) -> str:
    """Say what comes after the last step: what is tried next, or why nothing is."""
    reasons = {"stages": "no stage is left", "steps": "no more steps are asked for"}
    return f"ended: {reasons[course.ended]}" if course.ended else told(course.next)


def as_settings(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain values, for `plan_of`."""
    return asdict(plan) | {"blocks": list(plan.blocks)}
