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


@pytest.mark.parametrize("measure", registry.names())
def test_a_room_reruns_the_jobs_of_its_table_alone(measure: str) -> None:
    own = registry.module(measure)
    readers = {kind for kind, figure in registry.kinds().items() if measure in figure.tables}
    merging = {name for name in registry.names() if registry.declared(name).parts_of == measure}
    about = {measure, *readers, *merging}
    jobs = {job for job in reruns().get(own, ()) if job != "count_claims"}
    assert {job.split()[1] for job in jobs} <= about
