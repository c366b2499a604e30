"""Find the study that a command is about, and run Snakemake for it in the user's folder."""

import json
import os
import signal
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.package_data import ROOT

if TYPE_CHECKING:
    from vitscope.settings.study import Study

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
# What names an executor, or a profile that may: `prefork` takes the place of none.
_NAMES_EXECUTOR = ("--executor", "-e", "--profile", "--workflow-profile")
FOLDERS = {name: name for name in ("results", "figures", "benchmarks")}


@dataclass(frozen=True)
class Asked:
    """The requested study, if any, and the settings by which Snakemake finds it."""

    study: str | None
    settings: dict[str, Any]

    @property
    def folders(self) -> dict[str, str]:
        """The folders that the workflow writes to, relative to the user's folder."""
        return {**FOLDERS, **self.settings.get("pathvars", {})}

    @property
    def targets(self) -> list[str]:
        """The target of the whole study; [] without a study, for Snakemake's default target."""
        return [f"{self.folders['figures']}/{self.study}/all"] if self.study else []

    def read_study(self) -> "Study":
        """Read the requested study or, if none is, the default one."""
        from vitscope.studies.loading import find_studies

        studies = find_studies(self.settings, "config/config.yaml")
        return studies[self.study or studies.default]


def add_study_argument(parser: ArgumentParser, required: bool = False) -> None:
    """Add the argument STUDY to a parser."""
    parser.add_argument(
        "study",
        nargs=None if required else "?",
        metavar="STUDY",
        help="a study: its file, wherever that lies, or the name of one that is configured"
        + ("" if required else "; if left out, the default study"),
    )


def asked_for(study: str | None) -> Asked:
    """Find the study that a command line gives by file or by name."""
    from vitscope.files.strict_yaml import load_yaml
    from vitscope.studies.loading import find_studies

    config = ROOT / "config" / "config.yaml"
    file = Path(study).expanduser() if study else None
    if file and file.is_file():
        return Asked(file.stem, load_yaml(config) | {"studies_dir": str(file)})
    settings = load_yaml(config)
    if study is None:
        return Asked(None, settings)
    known = find_studies(settings, "config/config.yaml")
    if study not in known:
        raise VitscopeError(
            f"found the study {quoted(study)}, allowed: a file that exists, or one of "
            f"{', '.join(known)}.{nearest(study, known)}"
        )
    return Asked(study, settings)


def refuse_without_snakemake() -> None:
    """Raise an error if Snakemake is not installed."""
    if not SNAKEMAKE.is_file():
        raise VitscopeError(
            f"there is no Snakemake, which would be {SNAKEMAKE}: install it by "
            f"pip install 'vitscope[workflow]', or in a clone by pip install -e '.[workflow]'."
        )


def snakemake(asked: Asked, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in the user's folder."""
    command = [str(SNAKEMAKE), "-s", str(ROOT / "Snakefile")]
    # Give the full path: Snakemake would also take a user's folder `default`.
    command += ["--workflow-profile", str(ROOT / "profiles" / "default")]
    command += [*start_jobs_warm(arguments), *arguments]
    if asked.study:
        # Write JSON, which is YAML too, so that Snakemake reads any path as text.
        command += ["--config", f"studies_dir={json.dumps(asked.settings.get('studies_dir', []))}"]
    # Leave Ctrl-C to Snakemake, which ends its jobs and would die if this process ended.
    signal.signal(signal.SIGINT, lambda *_: None)
    return subprocess.run(command, text=True, check=False, **options)


def start_jobs_warm(arguments: Sequence[str]) -> list[str]:
    """Return the options by which jobs start in a process that has imported what most need.

    A profile of the user's may name an executor, which this one would override.
    """
    named = any(word.partition("=")[0] in _NAMES_EXECUTOR for word in arguments)
    in_clone = (ROOT / "packages" / "snakemake-executor-plugin-prefork").is_dir()
    if named or "SNAKEMAKE_PROFILE" in os.environ or not in_clone:
        return []
    return ["--executor", "prefork", "--prefork-preload", "scripts.preload"]


def output_of_snakemake(asked: Asked, *arguments: str, **options: Any) -> str:
    """Return Snakemake's standard output; if Snakemake fails, exit with its last line of errors."""
    done = snakemake(asked, *arguments, capture_output=True, **options)
    if done.returncode:
        sys.exit(done.stderr.strip().splitlines()[-1])
    return done.stdout
