"""What a step of a build-up tries, and the best network in the end, as files say them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vitscope.buildup.rule import Candidate, Course, Plan, follow, stage_name
from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text

FAMILY = "alternet"
# The families that a baseline may be of.
BASELINES = ("resnet", FAMILY)

# What a study says of a network: `family`, `arch`, `classes` and others.
Network = dict[str, Any]


class Proposal(NamedTuple):
    """What a step tries: the number of the step, and the network; none at the end."""

    step: int
    network: Network | None


def write_proposal(proposal: Proposal, path: Path | str) -> None:
    """Write what a step tries, for the jobs that train and measure it."""
    write_text(path, json.dumps(proposal._asdict(), sort_keys=True) + "\n")


def read_proposal(path: Path | str) -> Proposal:
    """Read what a step tries."""
    try:
        return Proposal(**json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise VitscopeError(
            f"{path} does not say what is tried: delete it and run again."
        ) from error


def network_to_try(path: Path | str, where: str) -> Network:
    """Return the network that a step tries; refuse a step after the end."""
    proposal = read_proposal(path)
    if proposal.network is None:
        raise VitscopeError(
            f"{where}: there is no step {proposal.step}: the build-up ended before it, so ask for "
            f"an earlier one; {path} says where."
        )
    return proposal.network


def plan_of(settings: Mapping[str, Any]) -> Plan:
    """Return the plan of a build-up from its settings as a job has them."""
    return Plan(tuple(settings["blocks"]), settings["patience"], settings["steps"])


def network_of(baseline: Mapping[str, Any], attention: Sequence[int]) -> Network:
    """Return the network of the baseline, as an AlterNet, with MSA blocks of each stage."""
    return {**baseline, "arch": {**baseline["arch"], "attention": list(attention)}}


def decide(baseline: Mapping[str, Any], plan: Plan, scores: Sequence[float]) -> Proposal:
    """Return the proposal of the step that follows these scores."""
    following = follow(plan, scores).next
    network = None if following is None else network_of(baseline, following.attention)
    return Proposal(len(scores), network)


def describe_candidate(candidate: Candidate) -> str:
    """Return a candidate as it stands on the axis of the figure: `c4: 1`, or `baseline`."""
    stage = stage_name(candidate.stage)
    return f"{stage}: {candidate.number}" if stage else "baseline"


def describe_next(course: Course) -> str:
    """Return what comes after the last step: the next candidate, or why there is none."""
    if course.next is not None:
        return describe_candidate(course.next)
    reasons = {"stages": "no stage is left", "steps": "no more steps are asked for"}
    return f"ended: {reasons[course.ended]}"


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
    # Imported here: figures of build-ups are drawn without it.
    import yaml

    text: str = yaml.safe_dump({name: entry}, sort_keys=False, default_flow_style=None)
    return HEAD + text
