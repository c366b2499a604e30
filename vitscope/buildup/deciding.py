"""How a network is built up: which of its blocks become MSAs next, by what was measured so far.

The rule is that of the paper (Park & Kim 2022): blocks of the last stage become MSAs, every
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
    """What may be tried: blocks of each stage, and when a stage or all of it is at its end.

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
class Try:
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
    """A network that was tried, how good it was, and what was decided; `best` was it to beat."""

    tried: Try
    score: float
    best: float | None
    decision: Decision


@dataclass(frozen=True)
class Path:
    """All that was tried, the best of it, and what is next; None where all is done, and why."""

    steps: tuple[Step, ...]
    best: Step | None
    next: Try | None
    ended: Literal["", "stages", "steps"]


def follow(plan: Plan, scores: Sequence[float]) -> Path:
    """Return how the building goes, by how good each network was: the more, the better.

    The first score is that of the baseline. What else there is in `scores` than the rule asks for
    is an error of the caller.
    """
    baseline = Try((0,) * len(plan.blocks), None)
    if not scores:
        return Path((), None, baseline, "")
    best = Step(baseline, scores[0], None, BASELINE)
    steps = [best]
    at, failures = baseline, 0
    for score in scores[1:]:
        tried = _next(plan, at, best.tried, failures)
        if tried is None:
            raise ValueError(f"{len(scores)} scores, of {len(steps)} networks that are tried")
        better = score > best.score
        steps.append(Step(tried, score, best.score, KEPT if better else REJECTED))
        # The first failure in a stage is its first, whatever failed in another.
        failures = 0 if better else 1 + failures * (tried.stage == at.stage)
        at, best = tried, steps[-1] if better else best
    following = _next(plan, at, best.tried, failures)
    if following is None:
        return Path(tuple(steps), best, None, "stages")
    if len(steps) > plan.steps:
        return Path(tuple(steps), best, None, "steps")
    return Path(tuple(steps), best, following, "")


def _next(plan: Plan, at: Try, best: Try, failures: int) -> Try | None:
    """Return what is tried next, after `at`; None if no stage has room where one may be tried."""
    last = len(plan.blocks) - 1
    stage = last if at.stage is None else at.stage
    if failures < plan.patience and at.attention[stage] < plan.room(stage):
        return _with_one_more(at.attention, stage)
    # What failed in a later stage is not taken along to an earlier one.
    earlier = (each for each in range(stage - 1, -1, -1) if plan.room(each) > 0)
    found = next(earlier, None)
    return None if found is None else _with_one_more(best.attention, found)


def _with_one_more(attention: Attention, stage: int) -> Try:
    one_more = (*attention[:stage], attention[stage] + 1, *attention[stage + 1 :])
    return Try(one_more, stage)


def stage_name(stage: int | None) -> str:
    """Return what the paper calls a stage, from `c1` on; nothing for the baseline."""
    return "" if stage is None else f"c{stage + 1}"
