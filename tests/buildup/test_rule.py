"""Which network is tried next: by hand, and as the authors did it."""

import csv
from itertools import product

import pytest

from vitscope.buildup.rule import Candidate, Course, Plan, follow_buildup, stage_name
from vitscope.package_data import PUBLISHED_POINTS

# Of the ResNet-50 that became AlterNet-50: c4 has a block more than in other ResNets.
PAPER = (3, 4, 6, 4)


def plan(*blocks: int, patience: int = 1, steps: int = 20) -> Plan:
    return Plan(blocks or PAPER, patience, steps)


def attentions(course: Course) -> list[tuple[int, ...]]:
    return [step.candidate.attention for step in course.steps]


def test_the_baseline_is_first() -> None:
    course = follow_buildup(plan(), [])
    assert (course.steps, course.best, course.ended) == ((), None, "")
    assert course.next == Candidate((0, 0, 0, 0), None)


def test_nothing_improves() -> None:
    # What is as good is no improvement.
    course = follow_buildup(plan(), [0.5, 0.5, 0.4, 0.4, 0.4])
    assert [step.decision for step in course.steps[1:]] == ["rejected"] * 4
    assert attentions(course)[1:] == [(0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0)]
    assert (course.next, course.ended) == (None, "stages")
    assert course.best == course.steps[0]


def test_stages_without_room_are_passed_over() -> None:
    narrow = plan(2, 1, 1, 3)
    assert follow_buildup(narrow, [0.5, 0.6]).next == Candidate((1, 0, 0, 1), 0)
    assert follow_buildup(plan(2, 2, 2, 1), [0.5]).next == Candidate((0, 0, 1, 0), 2)
    assert follow_buildup(plan(1, 1, 1, 1), [0.5]).ended == "stages"


def test_with_patience_a_stage_goes_on_after_a_failure() -> None:
    patient = plan(patience=2)
    course = follow_buildup(patient, [0.5, 0.4])
    assert course.next == Candidate((0, 0, 0, 2), 3)
    # A failure counts in its own stage alone.
    course = follow_buildup(patient, [0.5, 0.6, 0.5])
    assert course.next == Candidate((0, 0, 1, 1), 2)
    course = follow_buildup(patient, [0.5, 0.6, 0.5, 0.5])
    assert course.next == Candidate((0, 0, 2, 1), 2)
    # What improves after it is kept with what failed before.
    course = follow_buildup(patient, [0.5, 0.6, 0.5, 0.5, 0.7])
    assert course.steps[-1].decision == "kept"
    assert course.next == Candidate((0, 0, 3, 1), 2)


def test_no_more_steps_than_are_asked_for() -> None:
    course = follow_buildup(plan(steps=2), [0.5, 0.6, 0.7])
    assert (course.next, course.ended) == (None, "steps")
    assert course.best == course.steps[2]
    assert follow_buildup(plan(steps=1), [0.5]).next is not None


def test_more_scores_than_are_asked_for() -> None:
    with pytest.raises(ValueError, match="3 scores, of 2 networks"):
        follow_buildup(plan(1, 1, 1, 2), [0.5, 0.6, 0.7])


def test_every_order_of_results_ends() -> None:
    for better in product((True, False), repeat=6):
        scores, outcomes = [0.0], iter(better)
        while (course := follow_buildup(plan(2, 3, 4, 2), scores)).next is not None:
            assert course.best is not None
            scores.append(course.best.score + (1 if next(outcomes) else -1))
        found = attentions(course)
        assert len(set(found)) == len(found) <= 6
        assert course.ended == "stages"


def published() -> list[tuple[str, int, float]]:
    """Return the points of Fig. 12a; each stage begins with the best of those behind it."""
    with (PUBLISHED_POINTS / "fig12a.csv").open(encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        return [(row["branch"], int(row["msa_number"]), float(row["accuracy"])) for row in rows]


def published_tries() -> list[tuple[str, int, float]]:
    """Return those that are networks of their own, and not where a stage begins."""
    points = published()
    begins = [n == 0 or points[n - 1][0] != point[0] for n, point in enumerate(points)]
    return [point for point, begin in zip(points, begins, strict=True) if not begin]


def as_published(course: Course) -> list[tuple[str, int, float]]:
    return [(stage_name(s.candidate.stage), s.candidate.number, s.score) for s in course.steps[1:]]


def test_the_rule_makes_the_network_of_the_paper() -> None:
    """One network more is in the figure: c3 was tried once more than the text of the paper says."""
    tries = [point for point in published_tries() if point[:2] != ("c3", 5)]
    scores = [published()[0][2], *(accuracy for _, _, accuracy in tries)]
    course = follow_buildup(plan(), scores)
    assert as_published(course) == tries
    assert course.ended == "stages"
    assert course.best is not None
    assert (course.best.candidate.attention, course.best.score) == ((0, 1, 1, 2), 84.02)


def test_with_patience_it_tries_all_that_the_figure_has() -> None:
    scores = [published()[0][2], *(accuracy for _, _, accuracy in published_tries())]
    course = follow_buildup(plan(patience=2), scores)
    assert as_published(course) == published_tries()
    assert course.ended == "stages"
    assert course.best is not None
    assert course.best.candidate.attention == (0, 1, 1, 2)
