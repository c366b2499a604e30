"""The pins of pyproject.toml, envs/ and what is installed say the same."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RANGES = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))


def constraints() -> dict[str, str]:
    lines = (ROOT / "envs" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert all(len(pin) == 2 for pin in pins)
    return {canonicalize_name(name): pinned for name, pinned in pins}


def pins_of(environment: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the pins of a conda environment, of conda and of pip."""
    listed = yaml.safe_load(environment.read_text(encoding="utf-8"))["dependencies"]
    conda = dict(entry.split("=") for entry in listed if isinstance(entry, str))
    pip = dict(
        entry.split("==") for part in listed if isinstance(part, dict) for entry in part["pip"]
    )
    return conda, {canonicalize_name(name): pinned for name, pinned in pip.items()}


def test_each_package_is_pinned_once() -> None:
    lines = (ROOT / "envs" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert len(constraints()) == len([line for line in lines if line and line[0] != "#"])


@pytest.mark.parametrize("text", RANGES)
def test_ranges_contain_the_pins(text: str) -> None:
    requirement = Requirement(text)
    assert requirement.specifier.contains(constraints()[canonicalize_name(requirement.name)])


def test_ranges_are_bounded() -> None:
    for text in RANGES:
        operators = {specifier.operator for specifier in Requirement(text).specifier}
        assert operators in ({">=", "<"}, {"=="}), text


def test_every_pin_is_needed_and_every_need_is_pinned() -> None:
    """Follow what the installed packages require, from those of pyproject.toml on."""
    pinned, reached = constraints(), set()
    pending = [Requirement(text) for text in RANGES]
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in reached:
            continue
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            # Builds of torch for a GPU bring packages of their own, and others do not have them.
            assert name.startswith(("nvidia-", "cuda-", "triton")), name
            continue
        reached.add(key)
        for need in map(Requirement, needs):
            extras = requirement.extras or {""}
            marker = need.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                pending.append(need)
    names = {name for name, _ in reached}
    outside = {"setuptools", "pip", "wheel"}
    unpinned = {name for name in names - pinned.keys() - outside if not _for_gpu(name)}
    assert unpinned == set()
    assert pinned.keys() - names == set()


def _for_gpu(name: str) -> bool:
    return name.startswith(("nvidia-", "cuda-", "triton"))


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


def test_torchvision_is_the_one_of_torch() -> None:
    needs = map(Requirement, requires("torchvision") or [])
    (torch,) = (need for need in needs if need.name == "torch")
    assert torch.specifier.contains(constraints()["torch"])
    major, minor, *_ = Version(constraints()["torch"]).release
    assert major == 2
    assert Version(constraints()["torchvision"]).release[:2] == (0, minor + 15)


def rules() -> dict[str, str]:
    """Return the text of every rule that runs something."""
    texts = {}
    for file in [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]:
        parts = re.split(r"^rule (\w+):", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        texts |= dict(zip(parts[1::2], parts[2::2], strict=True))
    return texts


def test_every_rule_that_runs_something_names_an_environment_that_exists() -> None:
    texts = rules()
    assert len(texts) > 10
    for name, text in texts.items():
        if not re.search(r"^    (script|shell|run):", text, re.MULTILINE):
            continue
        (environment,) = re.findall(r'conda:\s+"\.\./envs/(\w+\.yaml)"', text)
        assert ROOT / "envs" / environment in ENVIRONMENTS, name
