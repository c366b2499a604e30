"""The job of claims: count those that figures are about, draw them, and introduce the study."""

from dataclasses import asdict
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from vitscope.claims.tables import AGREEMENT, CLAIMS
from vitscope.files.pages import as_html, as_latex, as_markdown
from vitscope.files.tables import Table, read_warnings
from vitscope.files.whole import write_text
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.jobs.reporting import introduce_study, tables_in, values_of_introduction
from vitscope.measures import registry
from vitscope.networks.building.family import complete
from vitscope.networks.finding.cut_points import BLOCKS

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.claims.claim import Evidence
    from vitscope.claims.counting import Tables


def _figures_with_claims(study: Study) -> dict[str, Values]:
    """Return the figures that the paper may make claims about, and what counts those claims."""
    found = {}
    measures = registry.of(study)
    for name, figure in study.figures.items():
        kind = measures.kinds()[figure.kind]
        if claims := measures.claiming(kind):
            found[name] = {
                "claims": claims,
                "models": figure.models,
                "published": None if figure.published is None else asdict(figure.published),
                "columns": sorted(kind.published),
                "snapshots": figure.shown_snapshots(),
            }
            if own := measures.own.get(kind.measure):
                found[name]["own"] = {"runs": own.claims, "table": own.measure.table.name}
    return found


def _values_of_claims(study: Study, names: Names) -> Values:
    figures, measures = _figures_with_claims(study), registry.of(study)
    tables = {name for figure in figures for name in study.figures[figure].measures}
    return {
        "study": describing.title(study),
        "figures": figures,
        "columns": {name: measures.columns_of(name) for name in sorted(tables)},
        "traits_of": {name: traits_of(study, name) for name in study.models_of()},
        "labels": describing.labels(study),
        "introduction": values_of_introduction(study),
        "repeats": study.repeats(),
        "modules": sorted({figure["claims"] for figure in figures.values()}),
    }


def traits_of(study: Study, model: str) -> Values:
    """Return the traits that tell a model from others, with its network as its family builds it."""
    entry, said = study.models[model], study.traits_of(model)
    others = {key: value for key, value in said.items() if not key.startswith("arch.")}
    arch = complete(entry.family, entry.arch)
    return others | {f"arch.{key}": value for key, value in arch.items()}


def count_claims(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write claims and agreements as tables, both together as a page, and draw the verdicts."""
    from vitscope.claims.counting import add_recipes, joined, trainings
    from vitscope.claims.report import introduction, list_warnings, sections

    evidence: dict[str, Evidence] = {}
    for name, figure in values["figures"].items():
        found = resolve_name(figure["claims"])
        evidence[name] = found(**figure["own"]) if "own" in figure else found
    tables = _read_tables(inputs, evidence, values["columns"])
    traits = values["traits_of"]
    counted = [
        _count_of_figure(name, values["figures"][name], found, tables, inputs["published"], traits)
        for name, found in evidence.items()
    ]
    seeds = {model: each.get("training.seed") for model, each in traits.items()}
    every = joined(CLAIMS, [each for each, _ in counted])
    claims = add_recipes(every, trainings(values["repeats"], seeds))
    agreement = joined(AGREEMENT, [each for _, each in counted])
    CLAIMS.write(claims, outputs["claims"])
    AGREEMENT.write(agreement, outputs["agreement"])
    title = f"Claims of the paper: {values['study']}"
    shown = sections(claims, agreement, values["labels"], evidence.values())
    page = (title, introduction(claims), list_warnings(read_warnings(tables_in(inputs))) + shown)
    write_text(outputs["text"], as_markdown(*page))
    write_text(outputs["page"], as_html(*page))
    write_text(outputs["latex"], as_latex(title, shown))
    _draw(claims, outputs, values, inputs["style"])
    given = {**inputs, "claims": outputs["claims"]}
    introduce_study(given, {"page": outputs["introduction"]}, values["introduction"], resources)


COUNT_CLAIMS = Job(run=count_claims, values=_values_of_claims)


def _read_tables(
    inputs: Files, evidence: "dict[str, Evidence]", columns: Values
) -> "dict[str, pd.DataFrame]":
    import pandas as pd

    needed = {each.table for each in evidence.values()}
    tables = {name: Table(**columns[name]).read(inputs[name]) for name in sorted(needed)}
    cut_points = [BLOCKS.read(path) for path in inputs["cut_points"]]
    return tables | {"blocks": pd.concat(cut_points, ignore_index=True)}


def _count_of_figure(
    name: str,
    figure: Values,
    found: "Evidence",
    tables: "Tables",
    files: list[str],
    traits_of: Values,
) -> "tuple[pd.DataFrame, pd.DataFrame]":
    """Return the claims about a figure and how well it agrees with the published one."""
    from vitscope.claims import counting
    from vitscope.claims.agreement import score_agreement
    from vitscope.claims.points import at_snapshots, read_published_of

    published = read_published_of(figure["published"], set(figure["columns"]), files)
    shown = at_snapshots(tables, figure["snapshots"])
    return (
        counting.count_claims(name, found, shown, figure["models"], published, traits_of),
        score_agreement(name, found, shown, published),
    )


def _draw(claims: "pd.DataFrame", outputs: Files, values: Values, style_file: str) -> None:
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style
    from vitscope.drawing.verdicts import plot

    labels = {model: literal(label) for model, label in values["labels"].items()}
    with style(style_file):
        figure = plot(claims, labels)
        for ending in ("pdf", "png", "svg"):
            about = {"Study": values["study"]}
            save(figure, outputs[ending], "Verdicts on claims of the paper", about)
