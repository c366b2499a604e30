"""Copies of the workflow to do harm to, and one in which nothing happened."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.everything import NAME, SOME, targets, write_everything, write_weights
from tests.runs.copies import Workflow, copy_workflow

Mount = Callable[..., None]


@pytest.fixture(scope="session")
def vit(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The weights of the only model, at three moments of its training."""
    return write_weights(tmp_path_factory.mktemp("vit"))


@pytest.fixture(scope="session")
def some(tmp_path_factory: pytest.TempPathFactory, vit: dict[str, Path]) -> Path:
    """A folder with the study of some kinds of figures."""
    folder = tmp_path_factory.mktemp("some")
    write_everything(folder, vit, SOME)
    return folder


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, some: Path) -> Workflow:
    """A copy in which the study of some kinds was made."""
    workflow = copy_workflow(tmp_path_factory.mktemp("undisturbed") / "copy", some)
    output = workflow.make("--cores", "2", *targets(SOME), default=NAME)
    (workflow.root / "run.log").write_text(output)
    return workflow


@pytest.fixture
def victim(undisturbed: Workflow, tmp_path: Path) -> Workflow:
    """A copy of that one, dates and Snakemake's records included."""
    root = tmp_path / "victim"
    shutil.copytree(undisturbed.root, root, symlinks=True)
    return Workflow(root, undisturbed.studies)


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mount something on a folder until the test is over; skip where that is not allowed."""
    mounted: list[Path] = []

    def run(folder: Path, *options: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["mount", *options, str(folder)], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("needs the right to mount file systems")
        if folder not in mounted:
            mounted.append(folder)

    yield run
    for folder in reversed(mounted):
        subprocess.run(["umount", str(folder)], check=False)
