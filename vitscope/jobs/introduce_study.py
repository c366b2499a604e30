"""Introduce a study to readers of its report: what it is of, its networks, how many claims hold."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values

if TYPE_CHECKING:
    import pandas as pd


def _values(study: Study, names: Names) -> Values:
    data = sorted({study.models[name].data for name in study.models_of()})
    return {
        "study": describing.title(study),
        "description": study.description,
        "data": ", ".join(describing.data(study, name) for name in data),
        "labels": describing.labels(study),
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
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
    pictures = _draw(_alike(blocks, values["labels"]), inputs["style"])
    write_text(outputs["page"], as_fragment(values["study"], paragraphs, pictures))


def _alike(blocks: "pd.DataFrame", labels: Mapping[str, str]) -> "dict[str, pd.DataFrame]":
    """Return the cut points of networks, those that have the same ones under all their labels."""
    found: dict[str, tuple[list[str], pd.DataFrame]] = {}
    for model, rows in blocks.groupby("model", sort=False):
        points = rows.drop(columns="model").to_json()
        found.setdefault(points, ([], rows))[0].append(labels[str(model)])
    return {", ".join(names) + _sides(rows): rows for names, rows in found.values()}


def _sides(rows: "pd.DataFrame") -> str:
    sides = rows["norm"].dropna().unique()
    return f" (read {' and '.join(sides)} the norms of sums)" if len(sides) else ""


def _draw(networks: "Mapping[str, pd.DataFrame]", style_file: str) -> dict[str, bytes]:
    """Draw networks as the rows of their cut points, as SVG."""
    from pathlib import Path
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
