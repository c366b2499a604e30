"""Every test is of one tier, and a release waits for the slow one."""

import re
from pathlib import Path

import yaml

from tests.nightly import STEPS

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_a_release_waits_for_a_nightly_run() -> None:
    nightly = yaml.safe_load((WORKFLOWS / "nightly.yml").read_text(encoding="utf-8"))
    steps = nightly["jobs"]["nightly"]["steps"]
    assert any("make nightly" in step.get("run", "") for step in steps)
    release = yaml.safe_load((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert release["nightly"]["uses"].endswith("/nightly.yml")
    assert release["release"]["needs"] == "nightly"
    assert sum(step.minutes for step in STEPS) < nightly["jobs"]["nightly"]["timeout-minutes"]


def test_steps_of_the_night_share_no_test_and_leave_none_out() -> None:
    paths = [step.tests for step in STEPS if not step.module]
    assert paths[0] == "tests"
    assert len(set(paths)) == len(paths)
    for path in paths:
        assert (ROOT / path).exists()
    ignored = {
        step.tests: {word.removeprefix("--ignore=") for word in step.command() if "=" in word}
        for step in STEPS
        if not step.module
    }
    assert ignored["tests"] >= {*paths} - {"tests"}
    assert "tests/faults/test_kills.py" in ignored["tests/faults"]


def test_the_page_says_what_runs_when() -> None:
    section = PAGE.partition("## What runs when")[2].partition("\n## ")[0]
    for name in re.findall(r"`(tests/[\w/.]+)`", section):
        assert (ROOT / name).exists(), name
    slow = [path for path in (ROOT / "tests").glob("*/test_*.py") if is_nightly(path)]
    for path in slow:
        folder = f"tests/{path.parent.name}"
        if folder in ("tests/runs", "tests/faults", "tests/slurm", "tests/gpu"):
            assert f"`{folder}" in section, path


def is_nightly(path: Path) -> bool:
    return "pytest.mark.nightly" in path.read_text(encoding="utf-8")
