"""vitscope as a library: from a wheel, without the clone, with what it needs and nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from tests.helpers.own_network import MY_NET, STUDY
from tests.helpers.packages import needed_by
from vitscope.package_data import ROOT

pytestmark = pytest.mark.others

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# As in setup.py.
PLUGIN = "snakemake_executor_plugin_prefork"
WORKFLOW = ("Snakefile", "config", "envs", "profiles", "report", "resources", "rules", "scripts")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a folder to work in."""

    python: Path
    folder: Path

    def run(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # Isolated: neither the folder nor the environment say where a vitscope is.
        command = [self.python, "-I", "-c", textwrap.dedent(code), *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True)

    def printed(self, code: str) -> list[str]:
        done = self.run(code)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("from vitscope.__main__ import main\nmain()\n", *arguments)


def link_packages(names: Iterable[str], place: Path) -> None:
    """Put packages that are installed here into a folder of packages, without copying them."""
    for name in names:
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or ()}
        for top in tops - {"..", "__pycache__"}:
            # Several packages may share a folder.
            if not (place / top).exists():
                (place / top).symlink_to(found.locate_file(top))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in a new environment, with the packages that it asks for and no others."""
    place = tmp_path_factory.mktemp("wheel")
    sources, work, environment = place / "sources", place / "work", place / "environment"
    # Where it is built, setuptools leaves files.
    for name in ("vitscope", PLUGIN, *WORKFLOW):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        sources.mkdir(exist_ok=True)
        copy(ROOT / name, sources / name)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    build = (*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", place, sources)
    subprocess.run(build, check=True)
    venv.create(environment)
    (packages,), (wheel,) = environment.glob("lib/python*/site-packages"), place.glob("*.whl")
    subprocess.run((*PIP, "install", "--no-deps", "--target", packages, wheel), check=True)
    link_packages(needed_by(PROJECT["dependencies"]), packages)
    work.mkdir()
    return Installed(environment / "bin" / "python", work)


@pytest.mark.parametrize("there", ["torch and torchvision", "torch alone"])
def test_the_torch_that_is_there_is_kept(installed: Installed, tmp_path: Path, there: str) -> None:
    """As docs/installation.md says, torchvision has to be there: another brings another torch."""
    packages = needed_by(PROJECT["dependencies"])
    assert {"torch", "torchvision"} <= packages
    if there == "torch alone":
        packages -= {"torchvision"}
    venv.create(tmp_path)
    link_packages(["pip", *packages], next(tmp_path.glob("lib/python*/site-packages")))
    (wheel,) = installed.folder.parent.glob("*.whl")
    # Isolated: what pip would take from an index is missing here.
    options = ("--isolated", "install", "--dry-run", "--no-index", "--report", "report.json")
    command = [tmp_path / "bin" / "python", "-m", "pip", *options, wheel]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if there == "torch alone":
        assert done.returncode != 0
        assert re.search(r"timm \S+ depends on torchvision", done.stdout + done.stderr)
    else:
        installing = json.loads((tmp_path / "report.json").read_text())["install"]
        assert [each["metadata"]["name"] for each in installing] == ["vitscope"]


def test_the_wheel_holds_the_package_and_the_workflow_and_nothing_else(
    installed: Installed,
) -> None:
    (wheel,) = installed.folder.parent.glob("*.whl")
    held = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    places = {name: ROOT / name for name in ("vitscope", PLUGIN, *WORKFLOW)}
    files = [
        (Path("" if name in ("vitscope", PLUGIN) else "vitscope/_workflow", file.relative_to(ROOT)))
        for name, place in places.items()
        for file in (place.rglob("*") if place.is_dir() else [place])
        if file.is_file() and file.suffix != ".pyc"
    ]
    assert held == {str(file) for file in files}


def test_an_editable_clone_is_found_from_the_folder_above_it(tmp_path: Path) -> None:
    clone, environment = tmp_path / "vitscope", tmp_path / "environment"
    for name in ("pyproject.toml", "README.md", "LICENSE", "vitscope/__init__.py"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    venv.create(environment)
    python = environment / "bin" / "python"
    build = ("install", "--no-deps", "--no-build-isolation", "--editable", clone)
    (packages,) = environment.glob("lib/python*/site-packages")
    link_packages(["pip", "setuptools"], packages)
    subprocess.run([python, "-m", "pip", "--quiet", *build], check=True)
    command = [python, "-c", "import vitscope; print(vitscope.__file__)"]
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True)
    assert done.stdout == f"{clone / 'vitscope' / '__init__.py'}\n", done.stderr


def test_the_notebook_of_the_readme_looks_at_bundled_networks(installed: Installed) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"## In a notebook\n\n.*:\n\n((?:    .*\n|\n)+)", text)
    then = """
        print(len(scope.feature_variance), *other.feature_variance["model"].unique())
        scope.plot("feature_variance").savefig("looked.svg")
    """
    code = f"{textwrap.dedent(code)}\n{textwrap.dedent(then)}"
    assert installed.printed(code)[-1] == "25 resnet"
    assert (installed.folder / "looked.svg").is_file()


def test_a_study_is_checked_without_a_clone(installed: Installed) -> None:
    (installed.folder / "my_net.py").write_text(MY_NET, encoding="utf-8")
    (installed.folder / "own.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    done = installed.command("check", "own.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("mine: right: 5 cut points ")


def test_what_takes_snakemake_is_refused_without_it(installed: Installed) -> None:
    done = installed.command("plan", "own.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match(r"vitscope: there is no Snakemake, which would be ", done.stderr)
    assert done.stderr.count("\n") == 1


def test_the_workflow_of_the_wheel_makes_the_same_figure_as_that_of_a_clone(
    installed: Installed, tmp_path: Path
) -> None:
    (packages,) = installed.folder.parent.glob("environment/lib/python*/site-packages")
    extra = PROJECT["optional-dependencies"]["workflow"]
    link_packages(needed_by([*PROJECT["dependencies"], *extra]), packages)
    beside = installed.python.with_name("snakemake")
    beside.write_text(
        f"#!{installed.python}\nimport sys\nfrom snakemake.cli import main\nsys.exit(main())\n"
    )
    beside.chmod(0o755)
    done = installed.command("make", "figures/fig9.pdf", "--cores", "2")
    assert done.returncode == 0, done.stderr
    in_clone = [sys.executable, "-m", "vitscope", "make", "figures/fig9.pdf", "--cores", "2"]
    subprocess.run(in_clone, cwd=tmp_path, check=True, capture_output=True)
    made, again = (each / "figures" / "fig9.pdf" for each in (installed.folder, tmp_path))
    assert made.read_bytes() == again.read_bytes()


def test_it_is_the_wheel_that_is_imported_and_that_takes_no_time(installed: Installed) -> None:
    package, seconds, modules = installed.printed("""
        import sys, time
        before, start = set(sys.modules), time.process_time()
        import vitscope
        end = time.process_time()
        print(vitscope.__path__[0])
        print(end - start)
        print(*(set(sys.modules) - before))
    """)
    assert Path(package).is_relative_to(installed.python.parents[1])
    # A module of the standard library takes about a millisecond, and others take many.
    assert len(modules.split()) < 100
    tops = {name.partition(".")[0] for name in modules.split()}
    assert tops <= {*sys.stdlib_module_names, "vitscope"}
    assert float(seconds) < 0.2
