"""Which jobs an edit of a module reruns, by the imports: a few of them, and the right ones."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.every_job import everything, kinds
from tests.helpers.rules import ROOT
from vitscope.jobs.job import find_job
from vitscope.measures import registry
from vitscope.networks.building.family import family_names, module_of
from vitscope.planning.code import reached

# What every job needs: its errors, its files, and where there is one, its study. Each table of cut
# points has their columns: whoever reads it depends on what they mean.
EVERYWHERE = ("vitscope", "vitscope.errors", "vitscope.files", "vitscope.settings")
SHARED_COLUMNS = "vitscope.networks.finding.cut_point_columns"
MOST = 1 / 3


def job_kinds() -> Iterator[tuple[str, set[str]]]:
    """Yield every kind of job, and the modules that it reaches, but for that of its family."""
    study, families = everything(), {module_of(name) for name in family_names()}
    for name, chosen in kinds():
        about = {"measure", "table", "figure", "dataset"} & chosen.keys()
        label = " ".join([name, *(chosen[each] for each in about)])
        modules = find_job(name).values(study, chosen).get("modules", [])
        named = modules.values() if isinstance(modules, dict) else modules
        yield label, set(reached(name, *(each for each in named if each not in families)))


def _does_something(file: Path) -> bool:
    """Tell whether a module has more than a docstring."""
    body = ast.parse(file.read_bytes()).body
    return any(not isinstance(node, ast.Expr) for node in body)


@cache
def reruns() -> dict[str, list[str]]:
    """Return for every module the kinds of jobs that an edit of it reruns."""
    found: dict[str, list[str]] = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): []
        for file in sorted((ROOT / "vitscope").rglob("*.py"))
        if _does_something(file)
    }
    for label, modules in job_kinds():
        for module in modules & found.keys():
            found[module].append(label)
    return found


def jobs_of_studies() -> set[str]:
    """Return the kinds of jobs."""
    return {label for label, _ in job_kinds()}


def test_no_module_reruns_more_than_a_third_of_all_jobs() -> None:
    jobs = jobs_of_studies()
    shares = {
        module: len(jobs & set(reruns()[module])) / len(jobs)
        for module in reruns()
        if not module.startswith(tuple(f"{name}." for name in EVERYWHERE[1:]))
        and module not in (*EVERYWHERE, SHARED_COLUMNS)
    }
    assert {module: share for module, share in shares.items() if share > MOST} == {}


@pytest.mark.parametrize("measure", registry.names())
def test_a_room_reruns_the_jobs_of_its_table_alone(measure: str) -> None:
    own = registry.columns_module(measure)
    readers = {kind for kind, figure in registry.kinds().items() if measure in figure.tables}
    merging = {name for name in registry.names() if registry.declared(name).parts_of == measure}
    about = {measure, *readers, *merging}
    jobs = {job for job in reruns()[own] if job != "count_claims"}
    assert {job.split()[1] for job in jobs} <= about
