import ast
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import packages_distributions, version
from inspect import getsource
from pathlib import Path

import grimp
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.helpers.coverage import reached
from tests.helpers.every_job import everything, kinds
from tests.helpers.packages import hiding_all_but, needed_by
from tests.helpers.processes import python
from tests.helpers.rules import ROOT, rules
from vitscope.jobs.job import JOBS, find_job
from vitscope.measures import registry

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
RANGES = [*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra)]
IMPORTS = (ast.Import, ast.ImportFrom)
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))
SCRIPTS = sorted({*(ROOT / "scripts").glob("[!_]*.py")} - {ROOT / "scripts" / "preload.py"})


def constraints() -> dict[str, str]:
    lines = (ROOT / "envs" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pin) == 2 for pin in pins)
    return {canonicalize_name(name): pinned for name, pinned in pins}


def pins_of(environment: Path) -> tuple[dict[str, str], dict[str, str]]:
    listed = yaml.safe_load(environment.read_text(encoding="utf-8"))["dependencies"]
    conda = dict(entry.split("=") for entry in listed if isinstance(entry, str))
    (lists,) = (part["pip"] for part in listed if isinstance(part, dict))
    pip = dict(entry.split("==") for entry in lists)
    return conda, {canonicalize_name(name): pinned for name, pinned in pip.items()}


@pytest.mark.parametrize("text", RANGES)
def test_ranges_contain_the_pins(text: str) -> None:
    requirement = Requirement(text)
    assert requirement.specifier.contains(constraints()[canonicalize_name(requirement.name)])


def test_ranges_are_bounded() -> None:
    for text in RANGES:
        operators = {specifier.operator for specifier in Requirement(text).specifier}
        assert operators in ({">=", "<"}, {"=="}), text


def test_every_pin_is_needed_and_every_need_is_pinned() -> None:
    assert needed_by(RANGES) == constraints().keys()


def test_what_is_installed_is_what_is_pinned() -> None:
    for name, pinned in constraints().items():
        installed = Version(version(name))
        assert installed.public == pinned, name


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda path: path.stem)
def test_environments_have_the_pins(environment: Path) -> None:
    conda, pip = pins_of(environment)
    assert conda.keys() == {"python", "pip"}
    assert SpecifierSet(PROJECT["requires-python"]).contains(conda["python"])
    assert pip
    assert pip.items() <= constraints().items()


def test_every_rule_runs_its_job_in_an_environment_of_its_own_kind() -> None:
    found: dict[str, set[Path]] = {}
    for name, rule in rules().items():
        assert not rule.part("shell"), name
        assert not rule.part("run"), name
        if not rule.part("script"):
            continue
        assert rule.name_in("script") == rule.job, name
        environment = ROOT / "envs" / f"{rule.name_in('conda')}.yaml"
        assert environment in ENVIRONMENTS, name
        found.setdefault(str(rule.job), set()).add(environment)
    assert found.keys() == {*JOBS} == {file.stem for file in SCRIPTS}
    # Some measures take torch.
    assert {job for job, environments in found.items() if len(environments) > 1} == {"measure"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_the_job_of_its_name(script: Path) -> None:
    module, job = JOBS[script.stem].split(":")
    *_, importing, _, called = script.read_text(encoding="utf-8").splitlines()
    assert importing == f"from vitscope.{module} import {job}"
    assert called == f"run_job({job}, snakemake)"


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_has_what_its_scripts_import(environment: Path) -> None:
    available = needed_by(f"{name}=={pinned}" for name, pinned in pins_of(environment)[1].items())
    modules = modules_of(environment)
    assert modules
    lines = [hiding_all_but(available), *(f"import {module}" for module in sorted(modules))]
    for job in jobs_of(environment):
        work = ast.parse(getsource(find_job(job).run))
        lines += [ast.unparse(each) for each in ast.walk(work) if isinstance(each, IMPORTS)]
    python("\n".join(lines), cwd=ROOT)


# What imports packages by a call, and which.
BY_A_CALL = {"vitscope.networks.building.timm_import": {"timm", "torchvision"}}


@cache
def imports() -> grimp.ImportGraph:
    """Return what imports what anywhere, but for checkers of types."""
    return grimp.build_graph(
        "vitscope",
        "scripts",
        include_external_packages=True,
        exclude_type_checking_imports=True,
        cache_dir=None,
    )


def reached_from(modules: Iterable[str]) -> set[str]:
    """Return these modules, what they import, what this imports, and so on."""
    found = {*modules}.union(*map(imports().find_upstream_modules, modules))
    return found.union(*(BY_A_CALL[name] for name in found & BY_A_CALL.keys()))


def jobs_of(environment: Path) -> set[str]:
    return {
        str(rule.job)
        for rule in rules().values()
        if rule.part("script") and rule.name_in("conda") == environment.stem
    }


@cache
def modules_of(environment: Path) -> set[str]:
    """Return the kinds of work of an environment, and what they import by computed names."""
    study = everything()
    jobs = jobs_of(environment)
    found = {find_job(job).run.__module__ for job in jobs} | {"scripts._job"}
    for name, chosen in kinds():
        measure = registry.declared(chosen["measure"]) if name == "measure" else None
        elsewhere = measure and measure.need.torch != (environment.stem == "torch")
        for model in study.models if name in jobs and not elsewhere else ():
            names = {**chosen, "video": model} | ({} if "model" not in chosen else {"model": model})
            names |= {"model": chosen["model"]} if name == "merge" else {}
            listed = find_job(name).values(study, names).get("modules", [])
            found |= {each.partition(":")[0] for each in listed}
    return found


def packages_of(modules: Iterable[str]) -> set[str]:
    owners = packages_distributions()
    tops = {module.partition(".")[0] for module in modules}
    return {canonicalize_name(owner) for top in tops for owner in owners.get(top, ())}


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_has_nothing_that_its_jobs_never_import(environment: Path) -> None:
    needed = packages_of(reached_from(modules_of(environment)))
    assert pins_of(environment)[1].keys() - needed == set()


def test_jobs_read_no_studies() -> None:
    names = {module for job in JOBS for module in reached(job)}
    assert [name for name in names if name.startswith("vitscope.studies")] == []
    assert "vitscope.settings.keys" not in names
    checking = packages_of(reached_from(["vitscope.studies.loading"]))
    assert "pyyaml" in checking


def test_the_library_imports_what_it_asks_for() -> None:
    imported = packages_of(reached_from(imports().find_descendants("vitscope")))
    asked = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    assert imported - {"vitscope", "torchvision"} == asked
