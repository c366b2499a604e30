"""The job of claims: count the claims about figures, draw the verdicts, and introduce the study."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from vitscope.claims.tables import AGREEMENT, CLAIMS
from vitscope.files.pages import page_as_html, page_as_latex, page_as_markdown
from vitscope.files.tables import Table, read_warnings
from vitscope.files.whole import write_text
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.jobs.tables import columns_of, read_all, tables_in
from vitscope.measures import registry
from vitscope.networks.building.family import complete_family_arch
from vitscope.networks.finding.cut_points import BLOCKS

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.claims.claim import Evidence


def job_values_to_count_claims(study: Study, among: Collection[str]) -> Values:
    """Return job parameters to count claims about figures in `among` whose kinds have claims."""
    figures: dict[str, Values] = {}
    measures = registry.of(study)
    for name, figure in study.figures.items():
        kind = measures.kinds()[figure.kind]
        # Claims are about networks that are trained.
        if kind.claims and name in among and not figure.by_epoch:
            figures[name] = {
                "claims": kind.claims,
                "models": figure.models,
                "published": None if figure.published is None else asdict(figure.published),
                "columns": sorted(kind.published),
                "snapshots": figure.shown_snapshots(),
            }
            if kind.claims_from:
                figures[name]["own"] = kind.claims_from
    tables = {name for figure in figures for name in study.figures[figure].measures}
    return {
        "figures": figures,
        "columns": {name: columns_of(study, name) for name in sorted(tables)},
        "traits_of": {name: traits_for_claims_job(study, name) for name in study.models_of()},
        "classes": {name: study.dataset_of(name).classes for name in study.models_of()},
        "repeats": study.repeats,
        "modules": sorted({figure["claims"] for figure in figures.values()}),
    }


def _values_of_claims_job(study: Study, names: Names) -> Values:
    shown = sorted({study.models[name].data for name in study.models_of()})
    classes = {name: study.data[name].classes for name in shown}
    data = [f"{name}, {count} classes" if count else name for name, count in classes.items()]
    return {
        "study": describing.title(study),
        "description": study.description,
        "data": "; ".join(data),
        **job_values_to_count_claims(study, study.figures),
        "labels": describing.labels(study),
        "name": study.name,
        "shown": {name: _describe_shown_in_claims_job(study, name) for name in study.figures},
    }


def _describe_shown_in_claims_job(study: Study, figure: str) -> Values:
    entry = study.figures[figure]
    question = registry.of(study).declared(entry.measure).question
    return {"question": question, "change": bool(entry.options.get("change"))}


def traits_for_claims_job(study: Study, model: str) -> Values:
    """Return the traits that distinguish a model, with the defaults of its family in `arch`.

    `images` says which images it is measured on.
    """
    entry, said = study.models[model], study.traits_of(model)
    others = {key: value for key, value in said.items() if not key.startswith("arch.")}
    arch = complete_family_arch(entry.family, entry.arch)
    images = {"images": study.settings_of_images(model)}
    return others | images | {f"arch.{key}": value for key, value in arch.items()}


def count_claims_from_job_inputs(
    inputs: Files, values: Values
) -> "tuple[pd.DataFrame, pd.DataFrame, list[Evidence]]":
    """Count claims about figures; return them, the agreement with published points, the evidence.

    `values` come from `job_values_to_count_claims`.
    """
    from vitscope.claims import counting
    from vitscope.claims.agreement import score_agreement
    from vitscope.claims.doubts import ACCURACY_TABLES, doubt_claims
    from vitscope.claims.points import at_snapshots, published_points_of_figure

    evidence: dict[str, Evidence] = {}
    for name, figure in values["figures"].items():
        found = resolve_name(figure["claims"])
        evidence[name] = found(**figure["own"]) if "own" in figure else found
    columns = values["columns"]
    needed = {each.table for each in evidence.values()} | ({*ACCURACY_TABLES} & {*columns})
    tables = {
        name: read_all(Table(**columns[name]), tables_in({name: inputs[name]}))
        for name in sorted(needed)
    }
    if evidence:
        tables["blocks"] = read_all(BLOCKS, inputs["cut_points"])
    claims, agreement, traits = [], [], values["traits_of"]
    for name, found in evidence.items():
        figure = values["figures"][name]
        files = inputs["published"]
        published = published_points_of_figure(figure["published"], set(figure["columns"]), files)
        shown = at_snapshots(tables, figure["snapshots"])
        of_figure = (name, found, shown, figure["models"], published, traits)
        claims.append(counting.count_claims(*of_figure))
        agreement.append(score_agreement(name, found, shown, published))
    seeds = {model: each.get("training.seed") for model, each in traits.items()}
    trained = counting.trainings(values["repeats"], seeds)
    joined = counting.join_rows_of_figures(CLAIMS, claims)
    every = counting.count_by_recipe(doubt_claims(joined, tables, values["classes"]), trained)
    return every, counting.join_rows_of_figures(AGREEMENT, agreement), [*evidence.values()]


def count_claims_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write tables of claims and agreements, a page of both, the verdicts and the introduction."""
    from vitscope.claims.report import introduction_to_claims, list_warnings, sections_of_claims

    claims, agreement, evidence = count_claims_from_job_inputs(inputs, values)
    CLAIMS.write(claims, outputs["claims"])
    AGREEMENT.write(agreement, outputs["agreement"])
    title = f"Claims of the paper: {values['study']}"
    shown = sections_of_claims(claims, agreement, values["labels"], evidence)
    page = (
        title,
        introduction_to_claims(claims),
        list_warnings(read_warnings(tables_in(inputs))) + shown,
    )
    write_text(outputs["text"], page_as_markdown(*page))
    write_text(outputs["page"], page_as_html(*page))
    write_text(outputs["latex"], page_as_latex(title, shown))
    _draw_verdicts_in_claims_job(claims, outputs, values, inputs["style"])
    rows = _draw_grid_in_claims_job(claims, outputs, values, inputs["style"])
    found = introduce_study_in_report(claims, evidence, rows, inputs, values)
    write_text(outputs["introduction"], found)


COUNT_CLAIMS = Job(run=count_claims_job, values=_values_of_claims_job)


def _draw_verdicts_in_claims_job(
    claims: "pd.DataFrame", outputs: Files, values: Values, style_file: str
) -> None:
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style
    from vitscope.drawing.verdicts_page import plot_verdicts

    labels = {model: literal(label) for model, label in values["labels"].items()}
    with style(style_file):
        figure = plot_verdicts(claims, labels)
        for ending in ("pdf", "png", "svg"):
            about = {"Study": values["study"]}
            save(figure, outputs[ending], "Verdicts on claims of the paper", about)


def _draw_grid_in_claims_job(
    claims: "pd.DataFrame", outputs: Files, values: Values, style_file: str
) -> dict[str, tuple[float, float]]:
    """Draw the grid; return where its rows are."""
    from vitscope.drawing.claims_grid import plot_claims_grid, rows_of_grid
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style

    labels = {model: literal(label) for model, label in values["labels"].items()}
    recipes = {model: group[0] for group in values["repeats"] for model in group}
    with style(style_file):
        figure = plot_claims_grid(claims, labels, recipes)
        for ending in ("pdf", "png", "svg"):
            about = {"Study": values["study"]}
            save(figure, outputs[f"grid_{ending}"], "Claims by network", about)
    return rows_of_grid(figure)


# How many figures the front of a report shows.
_FINDINGS = 6


def introduce_study_in_report(
    claims: "pd.DataFrame",
    evidence: "Sequence[Evidence]",
    rows: Mapping[str, tuple[float, float]],
    inputs: Files,
    values: Values,
) -> str:
    """Return the front of the report; networks with the same cut points share a picture.

    `rows` maps claims to their rows in the grid of claims.
    """
    from vitscope.claims.findings import Shown, findings_of_study
    from vitscope.claims.report import count_in_words
    from vitscope.drawing.front_page import Front

    shown = {name: Shown(**each) for name, each in values["shown"].items()}
    order = dict.fromkeys(claim.name for each in evidence for claim in each.claims)
    first = {row["claim"]: row for row in claims.iloc[::-1].to_dict("records")}
    return Front(
        study=values["name"],
        title=values["study"],
        paragraphs=[
            values["description"],
            f"Images: {values['data']}." if values["data"] else "",
        ],
        findings=findings_of_study(claims, shown, [*order], values["labels"], _FINDINGS),
        count=count_in_words(claims),
        rows=[
            (first[claim]["statement"], first[claim]["figure"], *place)
            for claim, place in rows.items()
        ],
        networks=_draw_networks_for_report(
            _group_blocks_for_report(read_all(BLOCKS, inputs["cut_points"]), values["labels"]),
            inputs["style"],
        ),
    ).as_html()


def _group_blocks_for_report(
    blocks: "pd.DataFrame", labels: Mapping[str, str]
) -> "dict[str, pd.DataFrame]":
    """Return each distinct block table, by the joined labels of all networks that have it."""
    found: dict[str, tuple[list[str], pd.DataFrame]] = {}
    for model, rows in blocks.groupby("model", sort=False):
        points = rows.drop(columns="model").to_json(orient="records")
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
