"""Which jobs an edit reruns: a few of them, and the right ones."""

from collections.abc import Iterator
from functools import cache

import pytest

from tests.helpers.every_job import everything, kinds
from vitscope.jobs.job import find_job
from vitscope.measures import registry
from vitscope.networks.building.family import family_names, module_of
from vitscope.planning.code import covered


def job_kinds() -> Iterator[tuple[str, set[str]]]:
    """Yield every kind of job, and the modules it uses names of, but for that of its family."""
    study, families = everything(), {module_of(name) for name in family_names()}
    for name, chosen in kinds():
        about = {"measure", "table", "figure", "dataset"} & chosen.keys()
        label = " ".join([name, *(chosen[each] for each in about)])
        modules = find_job(name).values(study, chosen).get("modules", [])
        named = modules.values() if isinstance(modules, dict) else modules
        found = covered(name, *(each for each in named if each not in families))
        yield label, {module for module, _ in found}


@cache
def reruns() -> dict[str, list[str]]:
    """Return for every module the kinds of jobs that an edit of some of it reruns."""
    found: dict[str, list[str]] = {}
    for label, modules in job_kinds():
        for module in modules:
            found.setdefault(module, []).append(label)
    return found


@pytest.mark.parametrize("room", sorted({registry.module(name) for name in registry.names()}))
def test_a_room_reruns_the_jobs_of_its_tables_alone(room: str) -> None:
    family = {name for name in registry.names() if registry.module(name) == room}
    readers = {kind for kind, figure in registry.kinds().items() if family & {*figure.tables}}
    merging = {name for name in registry.names() if registry.declared(name).parts_of in family}
    jobs = {job for job in reruns().get(room, ()) if job != "count_claims"}
    assert {job.split()[1] for job in jobs} <= family | readers | merging


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("ATTENTION_PART", {"attention"}),
        ("LEAST_BATCH", {"cka", "cka_between"}),
        ("PROBE_TOKENS_TABLE", set()),
    ],
)
def test_of_a_family_what_a_measure_uses_reruns_it_and_no_other(
    name: str, measures: set[str]
) -> None:
    found = set()
    for measure in registry.names():
        functions = filter(None, [registry.merging(measure), _measuring(measure)])
        if any(each[1] == name for each in covered("merge", *functions)):
            found.add(measure)
    assert found == measures


def _measuring(measure: str) -> str | None:
    return None if registry.declared(measure).parts_of else registry.measuring(measure)
