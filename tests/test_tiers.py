import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.helpers.tiers import COLLECTED, Selection, is_selected
from tests.nightly import STEPS, Step

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
PER_CHANGE = [WORKFLOWS / "checks.yml", WORKFLOWS / "figures.yml"]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def selections() -> dict[str, Selection]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (default,) = re.findall("-m '(.+)'", project["tool"]["pytest"]["ini_options"]["addopts"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", "")
    found = {"test": (default, ("tests",)), "nightly": ("nightly", ("tests",))}
    for target in ("test-others", "regenerate"):
        (text,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
        (line,) = [line for line in text.splitlines() if "pytest" in line]
        (expression,) = re.findall(r'-m (\w+|".+?") ', line.replace("-m pytest", "") + " ")
        places = tuple(re.findall(r"\s(tests/\S+)", line)) or ("tests",)
        found[target] = (expression.strip('"'), places)
    return found


def test_every_test_is_of_one_tier(pytestconfig: pytest.Config) -> None:
    tiers = selections().values()
    for test in pytestconfig.stash[COLLECTED]:
        assert [is_selected(test, each, ROOT) for each in tiers].count(True) == 1, test


def test_every_change_runs_the_tiers_of_changes() -> None:
    (made,) = re.findall(r'^PARTS="(.*)"$', CI, re.MULTILINE)
    *tiers, of_the_night = made.split()
    assert tiers == ["lint", "test", "test-others", "regenerate", "site"]
    assert of_the_night == "one-of-nightly"
    jobs = [yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"] for path in PER_CHANGE]
    steps = [step.get("run", "") for job in jobs for each in job.values() for step in each["steps"]]
    for target in tiers:
        assert any(step.startswith(f"make {target} ") for step in steps), target


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
        step.tests: {
            word.removeprefix("--ignore=")
            for word in step.command(step.minutes)
            if word.startswith("--ignore")
        }
        for step in STEPS
        if not step.module
    }
    assert ignored["tests"] >= {*paths} - {"tests"}
    assert "tests/faults/test_kills.py" in ignored["tests/faults"]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.what)
def test_one_step_of_the_night_runs_in_ten_minutes(step: Step) -> None:
    whole, some = step.command(step.minutes), step.command(10)
    if not step.module:
        assert [word for word in some if word != "-x"] == whole
        return
    *command, _, seed, option, count = some
    assert [*command, "--seed", "today", option, str(step.cases[1])] == whole
    assert (seed, int(count)) == ("0", 10 * step.cases[1] // (3 * step.minutes))
