"""The console command: what it knows before it imports anything, and which study is meant."""

import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.studies import BUNDLED
from vitscope import __version__
from vitscope.__main__ import COMMANDS
from vitscope.commands import plan, report, workflow
from vitscope.commands.workflow import asked_for
from vitscope.errors import VitscopeError
from vitscope.package_data import ROOT

STUDY = ROOT / "config" / "studies" / "mini.yaml"
HEAVY = ("torch", "timm", "pandas", "numpy", "matplotlib", "snakemake", "yaml")


def vitscope(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    line = ["-c", code] if code else ["-m", "vitscope"]
    command = [sys.executable, *line, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_it_tells_its_version() -> None:
    done = vitscope("--version")
    assert (done.returncode, done.stdout) == (0, f"vitscope {__version__}\n")


def test_nothing_heavy_is_imported_before_it_is_known_what_is_asked() -> None:
    code = """
import sys
from vitscope.__main__ import main
try:
    main()
finally:
    print([name for name in %r if name in sys.modules])
"""
    for command in COMMANDS:
        done = vitscope(command, "--help", code=code % (HEAVY,))
        assert done.returncode == 0
        assert done.stdout.startswith(f"usage: vitscope {command} ")
        assert done.stdout.splitlines()[-1] == "[]"


def test_what_a_user_got_wrong_is_one_sentence() -> None:
    done = vitscope("plan", "minni")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"vitscope: found the study 'minni', allowed: a file that exists, or one of "
        f"{', '.join(BUNDLED)}. Did you mean 'mini'?\n"
    )


@pytest.mark.parametrize("rate", ["0", "-1e13", "nan", "inf"])
def test_a_rate_is_above_zero(rate: str) -> None:
    parser = ArgumentParser()
    plan.add_arguments(parser)
    with pytest.raises(VitscopeError, match=r"--rate: found .*, allowed: a number above 0"):
        plan.run(parser.parse_args([f"--rate={rate}"]))


def test_a_study_is_a_file_or_a_name(tmp_path: Path) -> None:
    assert asked_for(None).targets == []
    assert asked_for("paper").targets == ["figures/paper/all"]
    own = tmp_path / "my own.yaml"
    own.write_text(STUDY.read_text())
    asked = asked_for(str(own))
    assert asked.targets == ["figures/my own/all"]
    assert asked.settings["studies_dir"] == str(own)


@pytest.mark.parametrize("command", [plan, report])
def test_without_snakemake_it_is_said_what_to_install(
    command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "SNAKEMAKE", tmp_path / "snakemake")
    with pytest.raises(VitscopeError) as error:
        command.run(Namespace(study="mini", rate=None))
    assert str(error.value) == (
        f"there is no Snakemake, which would be {tmp_path}/snakemake: install it by "
        f"pip install 'vitscope[workflow]', or in a clone by pip install -e '.[workflow]'."
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["figures/paper/fgi9.pdf"], "paper.yaml: figures, buildups and videos: found 'fgi9', "),
        (["fig9", "--cores", "1"], "found the target 'fig9', which is below no folder. Did you "),
        (["figures/own/a.pdf", "--config", "studies_dir={own}"], "own.yaml: figures, buildups and"),
        (["figures/own/a.pdf", "--config", "study=mimi"], "study: found 'mimi', allowed: "),
        (["figures/fig9.pdf", "--config", "pathvars=3"], "pathvars: found 3, allowed: keys and "),
        (
            ["figures/fig9.pdf", "--config", 'studies_dir=" "'],
            "studies_dir: found ' ', allowed: a ",
        ),
    ],
)
def test_what_no_study_has_is_refused_before_snakemake_starts(
    tmp_path: Path, words: list[str], sentence: str
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(STUDY.read_text())
    done = vitscope("make", *(word.format(own=own) for word in words))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("vitscope: ")
    assert sentence in line


def test_what_is_there_is_made_by_snakemake_with_all_that_is_said_to_it(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(STUDY.read_text())
    given = ["-n", "--directory", str(tmp_path), "--config", f"studies_dir={own}"]
    done = vitscope("make", "figures/own/fig9.pdf", *given)
    assert done.returncode == 0, done.stderr
    assert "draw_figure" in done.stdout
    assert vitscope("make", "no_rule", *given).returncode != 0


@pytest.mark.parametrize(
    ("words", "profile", "warm"),
    [
        (["figures/fig9.pdf", "-n"], None, True),
        (["figures/fig9.pdf", "--executor", "local"], None, False),
        (["figures/fig9.pdf", "--executor=slurm"], None, False),
        (["figures/fig9.pdf", "-e", "slurm"], None, False),
        (["figures/fig9.pdf", "--profile", "mine"], None, False),
        (["figures/fig9.pdf", "--workflow-profile", "mine"], None, False),
        # It may name the executor of a cluster, which a command line would override.
        (["figures/fig9.pdf"], "mine", False),
    ],
)
def test_jobs_start_warm_unless_an_executor_may_be_named(
    words: list[str],
    profile: str | None,
    warm: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    printing = tmp_path / "snakemake"
    printing.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    printing.chmod(0o755)
    monkeypatch.setattr(workflow, "SNAKEMAKE", printing)
    monkeypatch.delenv("SNAKEMAKE_PROFILE", raising=False)
    if profile:
        monkeypatch.setenv("SNAKEMAKE_PROFILE", profile)
    done = workflow.snakemake(workflow.Asked(None, {}), *words, capture_output=True)
    given = done.stdout.splitlines()
    assert ("prefork" in given) == warm
    assert given[-len(words) :] == words
