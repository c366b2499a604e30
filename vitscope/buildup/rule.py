"""How a network is built up: which of its blocks become MSAs next, given the accuracies so far.

The rule of the paper (Park & Kim 2022): blocks of the last stage become MSAs, every
second one from its end; where one more does not improve the accuracy, it is the turn of the stage
before. Each network that is tried has the MSAs of the best one so far, and others besides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# MSA blocks of each stage, from the first stage to the last.
Attention = tuple[int, ...]
Decision = Literal["baseline", "kept", "rejected"]

BASELINE: Decision = "baseline"
KEPT: Decision = "kept"
REJECTED: Decision = "rejected"


@dataclass(frozen=True)
class Plan:
    """What may be tried: the blocks of each stage, and when a stage or the whole build-up ends.

    `patience` is how many MSAs are tried in a stage, one after another, that improve nothing;
    `steps` is how many networks are tried at most, beside the baseline.
    """

    blocks: tuple[int, ...]
    patience: int
    steps: int

    def room(self, stage: int) -> int:
        """Return how many blocks of a stage can be MSAs: every second one."""
        return self.blocks[stage] // 2


@dataclass(frozen=True)
class Candidate:
    """A network that is tried: its MSAs, and the stage that got the last of them, from 0 on.

    The baseline has neither.
    """

    attention: Attention
    stage: int | None

    @property
    def number(self) -> int:
        """How many MSAs it has in all."""
        return sum(self.attention)


@dataclass(frozen=True)
class Step:
    """A network that was tried, its score, and the decision; `best` is the score to beat."""

    candidate: Candidate
    score: float
    best: float | None
    decision: Decision


@dataclass(frozen=True)
class Course:
    """All steps, the best of them, and the next candidate: None at the end, with its reason."""

    steps: tuple[Step, ...]
    best: Step | None
    next: Candidate | None
    ended: Literal["", "stages", "steps"]


def follow(plan: Plan, scores: Sequence[float]) -> Course:
    """Return the course of a build-up, given the score of each network: the higher, the better.

    The first score belongs to the baseline. More scores than the rule asks for are an error of the
    caller.
    """
    baseline = Candidate((0,) * len(plan.blocks), None)
    if not scores:
        return Course((), None, baseline, "")
    best = Step(baseline, scores[0], None, BASELINE)
    steps = [best]
    at, failures = baseline, 0
    for score in scores[1:]:
        candidate = _choose_next(plan, at, best.candidate, failures)
        if candidate is None:
            raise ValueError(f"{len(scores)} scores, of {len(steps)} networks that are tried")
        better = score > best.score
        steps.append(Step(candidate, score, best.score, KEPT if better else REJECTED))
        # Failures are counted within a stage.
        failures = 0 if better else 1 + failures * (candidate.stage == at.stage)
        at, best = candidate, steps[-1] if better else best
    following = _choose_next(plan, at, best.candidate, failures)
    if following is None:
        return Course(tuple(steps), best, None, "stages")
    if len(steps) > plan.steps:
        return Course(tuple(steps), best, None, "steps")
    return Course(tuple(steps), best, following, "")


def _choose_next(plan: Plan, at: Candidate, best: Candidate, failures: int) -> Candidate | None:
    """Return the candidate after `at`; None if no stage that may come next has room."""
    last = len(plan.blocks) - 1
    stage = last if at.stage is None else at.stage
    if failures < plan.patience and at.attention[stage] < plan.room(stage):
        return _add_one(at.attention, stage)
    # MSAs that failed in a later stage are left out in an earlier one.
    earlier = (each for each in range(stage - 1, -1, -1) if plan.room(each) > 0)
    found = next(earlier, None)
    return None if found is None else _add_one(best.attention, found)


def _add_one(attention: Attention, stage: int) -> Candidate:
    one_more = (*attention[:stage], attention[stage] + 1, *attention[stage + 1 :])
    return Candidate(one_more, stage)


def stage_name(stage: int | None) -> str:
    """Return what the paper calls a stage, from `c1` on; nothing for the baseline."""
    return "" if stage is None else f"c{stage + 1}"
