"""Jobs of reports: the record of a run, which says how to repeat it, and an introduction."""

import json
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from vitscope import __version__
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.measures import registry
from vitscope.package_data import ROOT
from vitscope.web import redact

if TYPE_CHECKING:
    import pandas as pd

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


class _Dumper(yaml.SafeDumper):
    """Write settings that several models share in full, not as references to the first."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _commit(root: str) -> str | None:
    """Return the commit of the workflow, marked where files differ from it."""
    command = ["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _without_secrets(settings: Any) -> Any:
    """Return settings with their addresses as they may be shown."""
    if isinstance(settings, Mapping):
        return {
            key: redact(value) if key == "url" else _without_secrets(value)
            for key, value in settings.items()
        }
    return settings


def _numbered_classes(facts: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata of a split, in which it is seen which class has which number."""
    names = enumerate(json.loads(facts.get("classes", "[]")))
    named = {number: name for number, name in names if name != str(number)}
    return {**facts, **({"classes": named} if named else {})}


def run_record(
    name: str,
    settings: Mapping[str, Any],
    checkpoints: Iterable[str],
    data: Iterable[str],
    tables: Iterable[str],
    root: str,
) -> str:
    """Return the record of a study's run as YAML; seeds are among the study's settings."""
    record = {
        "vitscope": __version__,
        "commit": _commit(root),
        "python": platform.python_version(),
        "packages": {package: _installed(package) for package in PACKAGES},
        "checkpoints": {
            Path(path).stem: {"sha256": sha256_of(path), **TensorFile(path).metadata}
            for path in checkpoints
        },
        "data": {
            f"{Path(path).parent.name}/{Path(path).stem}": {
                "sha256": sha256_of(path),
                **_numbered_classes(TensorFile(path).metadata),
            }
            for path in data
        },
        "tables": {Path(path).stem: {"sha256": sha256_of(path)} for path in tables},
        "study": {"name": name, **_without_secrets(settings)},
    }
    return yaml.dump(record, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


def splits_shown(study: Study) -> list[tuple[str, str]]:
    """Return the data sets and splits that the figures of a study are made from."""
    shown = {
        (study.models[model].data, name)
        for measure in study.measures()
        for model in study.models_of(measure)
        for name in registry.of(study).declared(measure).splits(study)
    }
    return sorted(shown)


def record_run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the record, and a page of it."""
    from vitscope.files.pages import text_as_html
    from vitscope.files.whole import write_text

    name, tables = values["name"], []
    for given in inputs.values():
        paths = [given] if isinstance(given, str) else given
        tables += [path for path in paths if path.endswith(".parquet")]
    record = run_record(
        name, values["study"], inputs["checkpoints"], inputs["data"], tables, str(ROOT)
    )
    write_text(outputs["record"], record)
    write_text(outputs["page"], text_as_html(f"Record of the run: {name}", record))


RECORD_RUN = Job(
    run=record_run,
    values=lambda study, names: {"name": study.name, "study": study.settings},
)


def _values_of_introduction(study: Study, names: Names) -> Values:
    data = sorted({study.models[name].data for name in study.models_of()})
    return {
        "study": describing.title(study),
        "description": study.description,
        "data": ", ".join(describing.data(study, name) for name in data),
        "labels": describing.labels(study),
    }


def introduce_study(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the introduction; networks of the same cut points have one picture."""
    import pandas as pd

    from vitscope.claims.report import count_in_words
    from vitscope.claims.tables import CLAIMS
    from vitscope.files.pages import as_fragment
    from vitscope.files.whole import write_text
    from vitscope.networks.finding.cut_points import BLOCKS

    blocks = pd.concat([BLOCKS.read(path) for path in inputs["cut_points"]])
    paragraphs = [
        values["description"],
        f"Images: {values['data']}." if values["data"] else "",
        count_in_words(CLAIMS.read(inputs["claims"])),
    ]
    pictures = _draw_networks(_networks_alike(blocks, values["labels"]), inputs["style"])
    write_text(outputs["page"], as_fragment(values["study"], paragraphs, pictures))


INTRODUCE_STUDY = Job(run=introduce_study, values=_values_of_introduction)


def _networks_alike(blocks: "pd.DataFrame", labels: Mapping[str, str]) -> "dict[str, pd.DataFrame]":
    """Return the cut points of networks, those that have the same ones under all their labels."""
    found: dict[str, tuple[list[str], pd.DataFrame]] = {}
    for model, rows in blocks.groupby("model", sort=False):
        points = rows.drop(columns="model").to_json()
        found.setdefault(points, ([], rows))[0].append(labels[str(model)])
    return {", ".join(names) + _sides_of_norms(rows): rows for names, rows in found.values()}


def _sides_of_norms(rows: "pd.DataFrame") -> str:
    sides = rows["norm"].dropna().unique()
    return f" (read {' and '.join(sides)} the norms of sums)" if len(sides) else ""


def _draw_networks(networks: "Mapping[str, pd.DataFrame]", style_file: str) -> dict[str, bytes]:
    """Draw networks as the rows of their cut points, as SVG."""
    from tempfile import TemporaryDirectory

    from vitscope.drawing.figure import literal
    from vitscope.drawing.network import plot
    from vitscope.drawing.saving import save, style

    drawn = {}
    with style(style_file), TemporaryDirectory() as folder:
        file = Path(folder) / "network.svg"
        for label, blocks in networks.items():
            save(plot(blocks, literal(label)), file, label, {})
            drawn[label] = file.read_bytes()
    return drawn
