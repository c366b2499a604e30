"""Choose which blocks of a network become MSAs next in a build-up, given the accuracies so far.

The rule of the paper (Park & Kim 2022): every second block of the last stage becomes an MSA, from
the last block on; when one more MSA does not improve the accuracy, go on with the previous stage.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text

# The number of MSA blocks in each stage, from the first stage to the last.
Attention = tuple[int, ...]
Decision = Literal["baseline", "kept", "rejected"]

BASELINE: Decision = "baseline"
KEPT: Decision = "kept"
REJECTED: Decision = "rejected"
FAMILY = "alternet"
BASELINES = ("resnet", FAMILY)
# A study's settings of a network: `family`, `arch`, `classes` and others.
BuildupNetwork = dict[str, Any]
HEAD = """\
# The best network that was tried: copy it to the `models` of a study whose data set has this name.
"""


@dataclass(frozen=True)
class Plan:
    """The limits of a build-up.

    `blocks` is the number of blocks in each stage, `patience` the number of failures in a row after
    which a stage gets no more MSAs, and `steps` the maximum number of steps after the baseline.
    """

    blocks: tuple[int, ...]
    patience: int
    steps: int

    def room(self, stage: int) -> int:
        """Return how many blocks of a stage can be MSAs: every second one."""
        return self.blocks[stage] // 2


@dataclass(frozen=True)
class Candidate:
    """A network to try: the number of MSAs in each stage, and the stage that got the newest.

    Stages are numbered from 0; the baseline has the stage None.
    """

    attention: Attention
    stage: int | None

    @property
    def number(self) -> int:
        return sum(self.attention)

    @property
    def label(self) -> str:
        """The stage of the newest MSA, and the total number of MSAs, such as `c4: 1`."""
        return f"{stage_name(self.stage)}: {self.number}"


@dataclass(frozen=True)
class Step:
    """A network that was tried, its score, and the decision; `best` is the score to beat."""

    candidate: Candidate
    score: float
    best: float | None
    decision: Decision


@dataclass(frozen=True)
class Course:
    """All steps, the best step, and the next candidate.

    When the build-up has ended, `next` is None and `ended` says why; else `ended` is empty.
    """

    steps: tuple[Step, ...]
    best: Step | None
    next: Candidate | None
    ended: Literal["", "stages", "steps"]


def follow_buildup(plan: Plan, scores: Sequence[float]) -> Course:
    """Return the course of a build-up from the scores of its networks, the baseline first."""
    baseline = Candidate((0,) * len(plan.blocks), None)
    if not scores:
        return Course((), None, baseline, "")
    best = Step(baseline, scores[0], None, BASELINE)
    steps = [best]
    at, failures = baseline, 0
    for score in scores[1:]:
        candidate = _choose_next_buildup_candidate(plan, at, best.candidate, failures)
        if candidate is None:
            raise ValueError(f"{len(scores)} scores, of {len(steps)} networks that are tried")
        better = score > best.score
        steps.append(Step(candidate, score, best.score, KEPT if better else REJECTED))
        # Count failures within a stage.
        failures = 0 if better else 1 + failures * (candidate.stage == at.stage)
        at, best = candidate, steps[-1] if better else best
    following = _choose_next_buildup_candidate(plan, at, best.candidate, failures)
    if following is None:
        return Course(tuple(steps), best, None, "stages")
    enough = len(steps) > plan.steps
    return Course(tuple(steps), best, None if enough else following, "steps" if enough else "")


def _choose_next_buildup_candidate(
    plan: Plan, at: Candidate, best: Candidate, failures: int
) -> Candidate | None:
    """Return the candidate after `at`; None if no MSA can be added in its stage or earlier."""
    last = len(plan.blocks) - 1
    stage = last if at.stage is None else at.stage
    if failures < plan.patience and at.attention[stage] < plan.room(stage):
        return _add_one_msa(at.attention, stage)
    # Go on from the best network, without the MSAs that failed in a later stage.
    earlier = (each for each in reversed(range(stage)) if plan.room(each))
    return next((_add_one_msa(best.attention, each) for each in earlier), None)


def _add_one_msa(attention: Attention, stage: int) -> Candidate:
    one_more = (*attention[:stage], attention[stage] + 1, *attention[stage + 1 :])
    return Candidate(one_more, stage)


def stage_name(stage: int | None) -> str:
    """Return the paper's name for a stage, from `c1` on; an empty name for the baseline."""
    return "" if stage is None else f"c{stage + 1}"


class Proposal(NamedTuple):
    """The index of a step and the network that the step tries; None after a build-up's end."""

    step: int
    network: BuildupNetwork | None


def write_buildup_proposal(proposal: Proposal, path: Path | str) -> None:
    write_text(path, json.dumps(proposal._asdict(), sort_keys=True) + "\n")


def read_buildup_proposal(path: Path | str) -> Proposal:
    try:
        return Proposal(**json.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        raise VitscopeError(
            f"{path} does not say what is tried: delete it and run again."
        ) from error


def buildup_network_to_try(path: Path | str, where: str) -> tuple[int, BuildupNetwork]:
    """Return the index of a step and the network that it tries; refuse a step after the end."""
    proposal = read_buildup_proposal(path)
    if proposal.network is None:
        raise VitscopeError(
            f"{where}: there is no step {proposal.step}: the build-up ended before it, so ask for "
            f"an earlier one; {path} says where."
        )
    return proposal.step, proposal.network


def plan_of(settings: Mapping[str, Any]) -> Plan:
    return Plan(tuple(settings["blocks"]), settings["patience"], settings["steps"])


def network_of(baseline: Mapping[str, Any], attention: Sequence[int]) -> BuildupNetwork:
    """Return the baseline, an AlterNet, with `attention` MSA blocks in each stage."""
    return {**baseline, "arch": {**baseline["arch"], "attention": list(attention)}}


def propose_step(baseline: Mapping[str, Any], plan: Plan, scores: Sequence[float]) -> Proposal:
    following = follow_buildup(plan, scores).next
    network = network_of(baseline, following.attention) if following else None
    return Proposal(len(scores), network)


def describe_best_of_buildup(
    name: str,
    plan: Plan,
    scores: Sequence[float],
    *,
    baseline: BuildupNetwork,
    data: str,
    weights: Sequence[Mapping[str, str]],
) -> str:
    """Return a study's entry for the best network; `weights` has the checkpoint of each step."""
    course = follow_buildup(plan, scores)
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
    # Import here, because figures of build-ups do not need YAML.
    import yaml

    text: str = yaml.safe_dump({name: entry}, sort_keys=False, default_flow_style=None)
    return HEAD + text
