"""The job of claims: count the claims about figures, draw the verdicts, and introduce the study."""

from collections.abc import Collection
from dataclasses import asdict
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

from vitscope.claims.tables import AGREEMENT, CLAIMS
from vitscope.files.pages import page_as_html, page_as_latex, page_as_markdown
from vitscope.files.tables import Table, read_warnings
from vitscope.files.whole import write_text
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.jobs.reporting import (
    introduce_study_in_report,
    tables_in,
    values_of_report_introduction,
)
from vitscope.jobs.tables import columns_of, read_all
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
        claims = measures.claiming(kind)
        if claims and name in among:
            figures[name] = {
                "claims": claims,
                "models": figure.models,
                "published": None if figure.published is None else asdict(figure.published),
                "columns": sorted(kind.published),
                "snapshots": figure.shown_snapshots(),
            }
            if own := measures.own.get(kind.measure):
                figures[name]["own"] = {"runs": own.claims, "table": own.measure.table.name}
    tables = {name for figure in figures for name in study.figures[figure].measures}
    return {
        "figures": figures,
        "columns": {name: columns_of(study, name) for name in sorted(tables)},
        "traits_of": {name: traits_for_claims_job(study, name) for name in study.models_of()},
        "repeats": study.repeats,
        "modules": sorted({figure["claims"] for figure in figures.values()}),
    }


def _values_of_claims_job(study: Study, names: Names) -> Values:
    return {
        "study": describing.title(study),
        **job_values_to_count_claims(study, study.figures),
        "labels": describing.labels(study),
        "introduction": values_of_report_introduction(study),
    }


def traits_for_claims_job(study: Study, model: str) -> Values:
    """Return the traits that distinguish a model, with the defaults of its family in `arch`."""
    entry, said = study.models[model], study.traits_of(model)
    others = {key: value for key, value in said.items() if not key.startswith("arch.")}
    arch = complete_family_arch(entry.family, entry.arch)
    return others | {f"arch.{key}": value for key, value in arch.items()}


class Counted(NamedTuple):
    """Claims about figures, the agreement with published points, and the evidence for claims."""

    claims: "pd.DataFrame"
    agreement: "pd.DataFrame"
    evidence: "list[Evidence]"


def count_claims_from_job_inputs(inputs: Files, values: Values) -> Counted:
    """Count the claims about figures; `values` come from `job_values_to_count_claims`."""
    from vitscope.claims import counting
    from vitscope.claims.agreement import score_agreement
    from vitscope.claims.points import at_snapshots, published_points_of_figure

    evidence: dict[str, Evidence] = {}
    for name, figure in values["figures"].items():
        found = resolve_name(figure["claims"])
        evidence[name] = found(**figure["own"]) if "own" in figure else found
    needed, columns = {each.table for each in evidence.values()}, values["columns"]
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
    every = counting.count_by_recipe(counting.join_rows_of_figures(CLAIMS, claims), trained)
    return Counted(every, counting.join_rows_of_figures(AGREEMENT, agreement), [*evidence.values()])


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
    given = {**inputs, "claims": outputs["claims"]}
    introduce_study_in_report(
        given, {"page": outputs["introduction"]}, values["introduction"], resources
    )


COUNT_CLAIMS = Job(run=count_claims_job, values=_values_of_claims_job)


def _draw_verdicts_in_claims_job(
    claims: "pd.DataFrame", outputs: Files, values: Values, style_file: str
) -> None:
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style
    from vitscope.drawing.verdicts import plot_verdicts

    labels = {model: literal(label) for model, label in values["labels"].items()}
    with style(style_file):
        figure = plot_verdicts(claims, labels)
        for ending in ("pdf", "png", "svg"):
            about = {"Study": values["study"]}
            save(figure, outputs[ending], "Verdicts on claims of the paper", about)
