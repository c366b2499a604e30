"""The job of the record of a run: what it takes to make the same results again."""

import json
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from vitscope import __version__
from vitscope.files.pages import text_as_html
from vitscope.files.whole import sha256_of, write_text
from vitscope.jobs.job import Files, Job, Resources, Study, Values
from vitscope.jobs.tables import tables_in
from vitscope.measures import registry
from vitscope.package_data import ROOT
from vitscope.web import without_secrets

PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "numpy",
    "scipy",
    "pillow",
    "pandas",
    "pyarrow",
    "matplotlib",
    "snakemake",
)


def splits_to_report(study: Study) -> list[tuple[str, str]]:
    """Return the data sets and splits that the figures of a study are made from."""
    shown = {
        (study.models[model].data, name)
        for measure in study.measures()
        for model in study.models_of(measure)
        for name in registry.of(study).declared(measure).splits(study)
    }
    return sorted(shown)


class _Dumper(yaml.SafeDumper):
    """Writes shared settings in full for each model that has them, not as references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _git_commit() -> str | None:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _with_numbered_classes(facts: Mapping[str, str]) -> dict[str, Any]:
    names = enumerate(json.loads(facts.get("classes", "[]")))
    named = {number: name for number, name in names if name != str(number)}
    return {**facts, **({"classes": named} if named else {})}


def record_run_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the record as YAML and as a page; the study's settings include the seeds."""
    from vitscope.files.tensors import TensorFile

    record = {
        "vitscope": __version__,
        "commit": _git_commit(),
        "python": platform.python_version(),
        "packages": {
            **{package: _installed_version(package) for package in PACKAGES},
            **registry.installed().versions,
        },
        "checkpoints": {
            Path(path).stem: {"sha256": sha256_of(path), **TensorFile(path).metadata}
            for path in inputs["checkpoints"]
        },
        "data": {
            f"{Path(path).parent.name}/{Path(path).stem}": {
                "sha256": sha256_of(path),
                **_with_numbered_classes(TensorFile(path).metadata),
            }
            for path in inputs["data"]
        },
        "tables": {Path(path).stem: {"sha256": sha256_of(path)} for path in tables_in(inputs)},
        "study": {"name": values["name"], **values["study"]},
    }
    text = yaml.dump(record, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    write_text(outputs["record"], text)
    write_text(outputs["page"], text_as_html(f"Record of the run: {values['name']}", text))


RECORD_RUN = Job(
    run=record_run_job,
    values=lambda study, names: {"name": study.name, "study": without_secrets(study.settings)},
)
