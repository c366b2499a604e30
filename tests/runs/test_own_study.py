import os
import re
import sys
import textwrap
from functools import partial
from pathlib import Path
from subprocess import STDOUT

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.own_network import MY_NET, my_network
from tests.helpers.processes import output_of
from tests.runs.copies import REPOSITORY, SNAKEMAKE, SOME_KINDS, TINY, Workflow

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def test_all_of_a_study_is_nothing_of_the_default_one(finished: Workflow) -> None:
    everything = f"figures/{TINY}/all"
    # All else is made already, under the name of the default study.
    made = {"draw_figure": len(SOME_KINDS) - 1, "draw_video": 1, "all_of_study": 1}
    assert finished.plan(everything) == made


@pytest.fixture
def place(fresh: Workflow, tmp_path: Path) -> Path:
    """The folder of a user: a network, its weights, images, and a study; the clone is elsewhere."""
    rng = np.random.default_rng(0)
    for number in range(100):
        file = tmp_path / "work" / "images" / f"class{number % 10}" / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(file)
    work = tmp_path / "work"
    (work / "my_net.py").write_text(MY_NET, encoding="utf-8")
    torch.save(my_network().state_dict(), work / "my_net.pth")
    (study,) = re.findall(r"    # my-study.yaml\n((?:    .*\n)+)", README)
    (work / "my-study.yaml").write_text(textwrap.dedent(study), encoding="utf-8")
    (tmp_path / "vitscope").symlink_to(fresh.root)
    return work


def run(place: Path, command: str) -> str:
    """Run a line of the README in a shell, as it stands there."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SNAKEMAKE")}
    clone = place.parent / "vitscope"
    environment = kept | {
        "HOME": str(place.parent),
        "PATH": f"{SNAKEMAKE.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(clone.resolve()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return output_of("bash", "-c", command, cwd=place, env=environment, stderr=STDOUT)


def test_the_first_figure_of_the_readme(place: Path) -> None:
    (command,) = re.findall(r"^    (vitscope make .*studies_dir.*)$", README, re.MULTILINE)
    run(place, command.replace("vitscope", "python -m vitscope", 1))
    assert (place / "figures" / "my-study" / "fig9.pdf").is_file()
    made = {path.name for path in place.iterdir()} - {".snakemake"}
    assert made == {
        *("benchmarks", "figures", "images", "logs", "results"),
        *("my-study.yaml", "my_net.pth", "my_net.py"),
    }


@pytest.mark.nightly
def test_the_other_commands_of_the_readme(place: Path) -> None:
    commands = re.findall(r"^\| `(vitscope \w+ my-study.yaml)` \|", README, re.MULTILINE)
    assert {command.split()[1] for command in commands} == {"check", "plan", "report"}
    for command in commands:
        output = run(place, command.replace("vitscope", "python -m vitscope", 1))
        assert ("Plan of my-study: " in output) == ("plan" in command)
    assert (place / "report-my-study.html").stat().st_size > 1e6
    assert {path.name for path in (place / "figures").iterdir()} == {"my-study"}
    assert (place / "results" / "my-study" / "run.yaml").is_file()


@pytest.mark.nightly
def test_a_report_in_the_environment_that_the_readme_makes(tmp_path: Path) -> None:
    clone = tmp_path / "vitscope"
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    in_clone = partial(output_of, cwd=clone, env=kept)
    output_of("git", "clone", "--quiet", REPOSITORY, clone)
    python = Path(sys.base_prefix) / "bin" / "python3"
    in_clone("make", "figures/fig9.pdf", f"PYTHON={python}")
    binaries = clone / ".venv" / "bin"
    # Names and versions alone: a place that is shown may have any name in it.
    installed = in_clone(binaries / "python", "-m", "pip", "list", "--format=freeze").lower()
    assert "snakemake==" in installed
    assert "pytest==" not in installed
    in_clone(binaries / "snakemake", "figures/fig9.pdf", "--report", "report.html")
    assert (clone / "report.html").stat().st_size > 1e6
    planned = in_clone(binaries / "vitscope", "plan", "mini", "figures/fig9.pdf")
    assert planned == "Nothing to be done.\n"
