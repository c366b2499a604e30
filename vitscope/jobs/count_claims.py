"""Count the claims of the paper that the figures of a study are about."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.measures import registry

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.claims.counting import Tables
    from vitscope.claims.evidence import Evidence


def _figures(study: Study) -> dict[str, Values]:
    """Return the figures that the paper may claim something of, and who counts it."""
    found = {}
    measures = registry.of(study)
    for name, figure in study.figures.items():
        kind = measures.kinds()[figure.kind]
        if measures.has(kind.measure, "claims"):
            found[name] = {
                "kind": figure.kind,
                "module": measures.module(kind.measure, "claims"),
                "models": figure.models,
                "published": None if figure.published is None else asdict(figure.published),
                "columns": sorted(kind.published),
                "snapshots": figure.shown_snapshots(),
            }
            if own := measures.own.get(kind.measure):
                found[name]["own"] = {"runs": own.claims, **asdict(own.table)}
    return found


def _values(study: Study, names: Names) -> Values:
    figures = _figures(study)
    return {
        "study": describing.title(study),
        "figures": figures,
        "labels": describing.labels(study),
        "repeats": study.repeats(),
        "modules": sorted({figure["module"] for figure in figures.values()}),
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the claims and agreements as tables, and all of it as a page."""
    from vitscope.claims.counting import joined
    from vitscope.claims.report import doubts, introduction, sections
    from vitscope.claims.tables import AGREEMENT, CLAIMS
    from vitscope.files.pages import as_html, as_markdown
    from vitscope.files.tables import read_warnings
    from vitscope.files.whole import write_text

    evidence = _evidence(values["figures"])
    tables = _read_tables(inputs, evidence)
    counted = [
        _count(name, values["figures"][name], found, tables, inputs["published"])
        for name, found in evidence.items()
    ]
    claims = joined(CLAIMS, [each for each, _ in counted])
    agreement = joined(AGREEMENT, [each for _, each in counted])
    CLAIMS.write(claims, outputs["claims"])
    AGREEMENT.write(agreement, outputs["agreement"])
    measured = [path for name in inputs.keys() - {"published"} for path in _paths(inputs[name])]
    page = (
        f"Claims of the paper: {values['study']}",
        introduction(claims),
        [
            *doubts(read_warnings(measured)),
            *sections(claims, agreement, values["labels"], evidence.values(), values["repeats"]),
        ],
    )
    write_text(outputs["text"], as_markdown(*page))
    write_text(outputs["page"], as_html(*page))


def _paths(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else [*given]


def _evidence(figures: dict[str, Values]) -> "dict[str, Evidence]":
    """Return what is claimed of each figure, and what it is counted on; some have no claims."""
    found = {name: _evidence_of(figure) for name, figure in figures.items()}
    return {name: evidence for name, evidence in found.items() if evidence}


def _evidence_of(figure: Values) -> "Evidence | None":
    from importlib import import_module

    module = import_module(figure["module"])
    if "own" in figure:
        own: Evidence = module.read_claims(**figure["own"])
        return own
    found: Evidence | None = module.CLAIMS.get(figure["kind"])
    return found


def _read_tables(inputs: Files, evidence: "dict[str, Evidence]") -> "dict[str, pd.DataFrame]":
    import pandas as pd

    from vitscope.networks.finding.cut_point_columns import BLOCKS

    needed = {each.table.name: each.table for each in evidence.values()}
    tables = {name: table.read(inputs[name]) for name, table in needed.items()}
    cut_points = [BLOCKS.read(path) for path in inputs["cut_points"]]
    return tables | {"blocks": pd.concat(cut_points, ignore_index=True)}


def _count(
    name: str, figure: Values, found: "Evidence", tables: "Tables", files: list[str]
) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Return the claims of a figure, and how well it agrees with the published one."""
    from vitscope.claims.counting import at_snapshots, count_claims, score_agreement
    from vitscope.claims.published import read_published_of

    published = read_published_of(figure["published"], set(figure["columns"]), files)
    shown = at_snapshots(tables, figure["snapshots"])
    return (
        count_claims(name, found, shown, figure["models"], published),
        score_agreement(name, found, shown, published),
    )
