"""Jobs of reports: the record of a run, and an introduction to a study for its readers."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.claims.tables import CLAIMS
from vitscope.files.pages import as_fragment, text_as_html
from vitscope.files.whole import write_text
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Resources, Study, Values
from vitscope.measures import registry
from vitscope.networks.finding.cut_points import BLOCKS
from vitscope.package_data import ROOT

if TYPE_CHECKING:
    import pandas as pd


def splits_to_report(study: Study) -> list[tuple[str, str]]:
    """Return the data sets and splits that the figures of a study are made from."""
    shown = {
        (study.models[model].data, name)
        for measure in study.measures()
        for model in study.models_of(measure)
        for name in registry.of(study).declared(measure).splits(study)
    }
    return sorted(shown)


def tables_in(inputs: Files) -> list[str]:
    """Return the paths of all tables among inputs; an input is a path or a list of paths."""
    listed = ([given] if isinstance(given, str) else given for given in inputs.values())
    return [path for paths in listed for path in paths if path.endswith(".parquet")]


def record_run_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.jobs.provenance import run_record

    name = values["name"]
    record = run_record(
        name, values["study"], inputs["checkpoints"], inputs["data"], tables_in(inputs), str(ROOT)
    )
    write_text(outputs["record"], record)
    write_text(outputs["page"], text_as_html(f"Record of the run: {name}", record))


RECORD_RUN = Job(
    run=record_run_job, values=lambda study, names: {"name": study.name, "study": study.settings}
)


def values_of_report_introduction(study: Study) -> Values:
    shown = sorted({study.models[name].data for name in study.models_of()})
    classes = {name: study.data[name].classes for name in shown}
    data = [f"{name}, {count} classes" if count else name for name, count in classes.items()]
    return {
        "study": describing.title(study),
        "description": study.description,
        "data": "; ".join(data),
        "labels": describing.labels(study),
    }


def introduce_study_in_report(
    inputs: Files, outputs: Files, values: Values, resources: Resources
) -> None:
    """Write the introduction; networks with the same cut points share a picture."""
    import pandas as pd

    from vitscope.claims.report import count_in_words

    blocks = pd.concat([BLOCKS.read(path) for path in inputs["cut_points"]])
    paragraphs = [
        values["description"],
        f"Images: {values['data']}." if values["data"] else "",
        count_in_words(CLAIMS.read(inputs["claims"])),
    ]
    pictures = _draw_networks_for_report(
        _group_blocks_for_report(blocks, values["labels"]), inputs["style"]
    )
    write_text(outputs["page"], as_fragment(values["study"], paragraphs, pictures))


def _group_blocks_for_report(
    blocks: "pd.DataFrame", labels: Mapping[str, str]
) -> "dict[str, pd.DataFrame]":
    """Return each distinct block table, by the joined labels of all networks that have it."""
    found: dict[str, tuple[list[str], pd.DataFrame]] = {}
    for model, rows in blocks.groupby("model", sort=False):
        points = rows.drop(columns="model").to_json()
        found.setdefault(points, ([], rows))[0].append(labels[str(model)])
    shown = {}
    for names, rows in found.values():
        sides = " and ".join(rows["norm"].dropna().unique())
        read = f" (read {sides} the norms of sums)" if sides else ""
        shown[", ".join(names) + read] = rows
    return shown


def _draw_networks_for_report(
    networks: "Mapping[str, pd.DataFrame]", style_file: str
) -> dict[str, bytes]:
    from tempfile import TemporaryDirectory

    from vitscope.drawing.figure import literal
    from vitscope.drawing.network import plot_cut_points
    from vitscope.drawing.saving import save, style

    drawn = {}
    with style(style_file), TemporaryDirectory() as folder:
        file = Path(folder) / "network.svg"
        for label, blocks in networks.items():
            title = f"Blocks of {label}, and their multiply-adds"
            save(plot_cut_points(blocks, literal(label)), file, title, {})
            drawn[title] = file.read_bytes()
    return drawn
