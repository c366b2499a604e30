"""Jobs of figures: draw a figure from tables, write its points as CSV, draw pages and networks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from vitscope.claims.tables import CLAIMS
from vitscope.files.natural import natural_order
from vitscope.files.pairs import PREFIXES, by_prefix
from vitscope.files.tables import Table, read_metadata, write_csv
from vitscope.jobs import describing
from vitscope.jobs.claims import count_claims_from_job_inputs, job_values_to_count_claims
from vitscope.jobs.curves import CURVES
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.jobs.networks import find_blocks_for_job, values_of_blocks
from vitscope.jobs.tables import columns_of, read_all, read_all_with_facts
from vitscope.measures import registry
from vitscope.measures.captions import caption_of, sentence_of, title_of
from vitscope.networks.finding.cut_points import BLOCKS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from vitscope.claims.points import PublishedCurve
    from vitscope.drawing.overview import OverviewFigure


def facts_of_figure(study: Study, figure: str) -> dict[str, str]:
    """Describe what a figure is made from, for its caption and its metadata."""
    entry = study.figures[figure]
    models = [study.models[name] for name in entry.models]
    measure = registry.of(study).declared(entry.measure)
    data = sorted({model.data for model in models})
    splits = measure.splits(study)
    made_from = [*data, f"{' and '.join(splits)} images"] if splits else data
    found = {"Study": describing.title(study), "Data": ", ".join(made_from)}
    for name in data:
        found |= describing.describe_classes(study, name, splits)
    for model in models:
        if model.norms != "after":
            found[f"Cut points of {model.label}"] = "before the norms of sums of stream and branch"
        way = "history" in measure.inputs
        found |= (
            describing.describe_trajectory(model) if way else describing.describe_weights(model)
        )
    return found


def _values_of_figure_job(study: Study, names: Names) -> Values:
    name = names["figure"]
    entry = study.figures[name]
    measures = registry.of(study)
    kind = measures.kinds()[entry.kind]
    return {
        "name": name,
        "tables": {table: columns_of(study, table) for table in kind.tables},
        "published_columns": sorted(kind.drawn_columns),
        "members": [describing.describe_member(study, model) for model in entry.models],
        "published": None if entry.published is None else asdict(entry.published),
        "snapshots": entry.shown_snapshots(),
        "facts": facts_of_figure(study, name),
        "caption": caption_of(kind),
        "title": title_of(kind),
        "shows": sentence_of(kind),
        "values": kind.values | entry.options,
        "style": describing.style(study),
        "modules": [kind.draw],
    }


def draw_figure_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.drawing.counts import say_counts
    from vitscope.drawing.figure import escaped_member
    from vitscope.drawing.from_tables import draw_from_tables
    from vitscope.drawing.saving import save, style

    tables, facts, published = read_figure_job_inputs(inputs, values)
    members = [escaped_member(member) for member in values["members"]]
    (plot,) = values["modules"]
    with style(inputs["style"], values["style"]):
        figure = draw_from_tables(
            plot, tables, members, published, values["snapshots"], values["values"]
        )
        images = say_counts(figure)
        how_many = {describing.MEASURED_ON: images} if images else {}
        made_from = values["facts"] | how_many | _digests_of_figure_job_tables(facts, values)
        for path in outputs.values():
            title = f"{values['title']} ({values['name']})"
            save(figure, path, title, made_from, values["shows"])


DRAW_FIGURE = Job(run=draw_figure_job, values=_values_of_figure_job)


def read_figure_job_inputs(
    inputs: Files, values: Values
) -> "tuple[dict[str, pd.DataFrame], dict[str, dict[str, str]], dict[str, PublishedCurve] | None]":
    """Return a figure's tables, what the files of the first say of themselves, published points.

    PublishedCurve points are None if the kind of the figure draws none.
    """
    from vitscope.claims.points import published_points_of_figure

    read = {
        name: read_all_with_facts(Table(**columns), inputs[name])
        for name, columns in values["tables"].items()
    }
    tables = {name: rows for name, (rows, _) in read.items()}
    facts = next(facts for _, facts in read.values())
    drawn = set(values["published_columns"])
    if not drawn:
        return tables, facts, None
    published = published_points_of_figure(values["published"], drawn, inputs["published"])
    return tables, facts, published


def _digests_of_figure_job_tables(
    facts: dict[str, dict[str, str]], values: Values
) -> dict[str, str]:
    found = {}
    labels = {member["model"]: member["label"] for member in values["members"]}
    for path, of_table in facts.items():
        # A table is named after its model or its pair of models.
        models = by_prefix(Path(path).stem)
        for key, digest in of_table.items():
            if key.endswith("_sha256"):
                prefix = next(each for each in reversed(PREFIXES) if key.startswith(each))
                what = key.removeprefix(prefix).removesuffix("_sha256")
                found[f"{what.capitalize()} SHA-256 of {labels[models[prefix]]}"] = digest
    return found


def _values_of_export_figure_job(study: Study, names: Names) -> Values:
    drawn = _values_of_figure_job(study, names)
    needed = ("tables", "members", "snapshots", "published", "published_columns")
    return {name: drawn[name] for name in needed}


def export_figure_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.claims.points import at_snapshots
    from vitscope.drawing.figure import Member, figure_as_table

    tables, _, published = read_figure_job_inputs(inputs, values)
    members = [Member(**member) for member in values["members"]]
    shown = at_snapshots(tables, values["snapshots"])
    write_csv(figure_as_table(shown, members, published or {}), outputs["csv"])


EXPORT_FIGURE = Job(run=export_figure_job, values=_values_of_export_figure_job)


def draw_blocks_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.drawing.figure import literal
    from vitscope.drawing.network import plot_cut_points
    from vitscope.drawing.saving import save, style

    with style(inputs["style"], values["style"]):
        figure = plot_cut_points(find_blocks_for_job(values).table, literal(values["label"]))
        for path in outputs.values():
            save(figure, path, f"Blocks of {values['model']}", {"Study": values["study"]})


DRAW_BLOCKS = Job(
    run=draw_blocks_job,
    values=lambda study, names: {
        **values_of_blocks(study, names),
        "study": describing.title(study),
        "label": study.models[names["model"]].label,
        "style": describing.style(study),
    },
    takes=Takes(torch=True),
)


def figures_for_overview_job(study: Study) -> list[str]:
    """Return the figures and build-ups that the overview shows, all with published points."""
    kinds = registry.of(study).kinds()
    figures = {name: bool(kinds[each.kind].sketch) for name, each in study.figures.items()}
    drawn = {name: each.published for name, each in (study.figures | study.buildups).items()}
    found = [name for name, published in drawn.items() if published and figures.get(name, True)]
    return sorted(found, key=natural_order)


def _figures_by_claims(study: Study) -> dict[str, list[str]]:
    """Return the figures that count the same claims, by the place of these claims."""
    kinds, found = registry.of(study).kinds(), dict[str, list[str]]()
    for name, figure in study.figures.items():
        if (claims := kinds[figure.kind].claims) and not figure.by_epoch:
            found.setdefault(claims, []).append(name)
    return found


def figures_counted_in_overview_job(study: Study) -> list[str]:
    """Return the figures whose claims the overview counts: those of the measures that it shows.

    Kinds of a measure may make the same claims, each of networks of its own.
    """
    names = {*figures_for_overview_job(study)} & {*study.figures}
    shown = {study.figures[name].measure for name in names}
    counting = {name for same in _figures_by_claims(study).values() for name in same}
    return [
        name for name, each in study.figures.items() if name in counting and each.measure in shown
    ]


_BUILDUP_SKETCH = "vitscope.buildup.figure:sketch_buildup"


def _job_values_of_sketch(study: Study, name: str) -> Values:
    if name in study.buildups:
        member = describing.describe_member(study, study.buildups[name].baseline)
        published = {"file": study.buildups[name].published}
        return {"sketch": _BUILDUP_SKETCH, "members": [member], "published": published}
    entry, values = study.figures[name], _values_of_figure_job(study, {"figure": name})
    kept = ("members", "published", "published_columns", "snapshots")
    table, kind = entry.measure, registry.of(study).kinds()[entry.kind]
    found = {
        "sketch": kind.sketch_change if entry.options.get("change") else kind.sketch,
        "table": table,
        "columns": columns_of(study, table),
        "data": {model: study.models[model].data for model in entry.models},
        # The blocks of two networks lie at other depths.
        "apart": "kind" in kind.published,
    }
    return found | {key: values[key] for key in kept}


def draw_overview_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Draw the published points of figures; add measured points and verdicts if there are any."""
    from vitscope.drawing.figure import literal
    from vitscope.drawing.overview import plot_overview
    from vitscope.drawing.saving import save, style

    shown = [
        _read_sketch_for_overview_job(name, each, inputs)
        for name, each in values["figures"].items()
    ]
    claims = None
    if "cut_points" in inputs:
        claims, *_ = count_claims_from_job_inputs(inputs, values["counting"])
    labels = {model: literal(label) for model, label in values["labels"].items()}
    with style(inputs["style"], values["style"]):
        figure = plot_overview(shown, claims, labels)
        for path in outputs.values():
            save(figure, path, "Paper against measured", {"Study": values["study"]})


def _read_sketch_for_overview_job(name: str, values: Values, inputs: Files) -> "OverviewFigure":
    from vitscope.buildup.figure import read_buildup_steps
    from vitscope.buildup.table import BUILDUP
    from vitscope.claims.points import at_snapshots, published_points_of_figure
    from vitscope.drawing.figure import escaped_member
    from vitscope.drawing.overview import OverviewFigure

    members = [escaped_member(each) for each in values["members"]]
    sketch, published = resolve_name(values["sketch"]), values["published"]
    if values["sketch"] == _BUILDUP_SKETCH:
        path = inputs.get(f"buildup_{name}")
        (file,) = (each for each in inputs["published"] if Path(each).name == published["file"])
        baseline = members[0].model
        table = BUILDUP.read(path).sort_values("step").assign(model=baseline) if path else None
        return OverviewFigure(name, sketch, members, {baseline: read_buildup_steps(file)}, table)
    table = None
    if paths := inputs.get(values["table"]):
        read = read_all(Table(**values["columns"]), paths)
        table = at_snapshots({"": read}, values["snapshots"])[""]
    curves = published_points_of_figure(
        published, set(values["published_columns"]), inputs["published"]
    )
    points = {model: curve.points for model, curve in curves.items()}
    return OverviewFigure(name, sketch, members, points, table, values["data"], values["apart"])


def _values_of_overview_job(study: Study, names: Names) -> Values:
    shown = figures_for_overview_job(study)
    figures = {name: _job_values_of_sketch(study, name) for name in shown}
    counting = job_values_to_count_claims(study, figures_counted_in_overview_job(study))
    sketches = sorted({each["sketch"] for each in figures.values()})
    return {
        "study": describing.title(study),
        "style": describing.style(study),
        "figures": figures,
        "labels": describing.labels(study),
        "counting": counting,
        "modules": [*sketches, *counting["modules"]],
    }


DRAW_OVERVIEW = Job(run=draw_overview_job, values=_values_of_overview_job)


KINDS_OF_PAGE = tuple(curve.kind for curve in CURVES.values())
# The kinds that have a second panel on the page of a network: the change over each block.
_WITH_CHANGES = {"feature_variance", "fourier_depth"}


def panels_of_page(kinds: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the panels of a network's page: a kind, and the keys that it is drawn with."""
    for kind in kinds:
        yield kind, {}
        if kind in _WITH_CHANGES:
            yield kind, {"change": True}


def kinds_for_network_page_job(study: Study, model: str) -> list[str]:
    """Return the kinds of figures on a network's page: kinds whose measure its figures need."""
    shown = [each for each in study.figures.values() if model in each.models]
    measured = {measure for figure in shown for measure in figure.measures}
    kinds = registry.of(study).kinds()
    return [kind for kind in KINDS_OF_PAGE if kinds[kind].measure in measured]


def models_counted_on_network_page(study: Study, kind: str, model: str) -> list[str]:
    """Return the trainings that a network's page counts the claims of a kind on.

    These are all of its recipe that figures of the study count the same claims on, so that page and
    study have one verdict.
    """
    claims = registry.of(study).kinds()[kind].claims
    figures = _figures_by_claims(study).get(claims, []) if claims else []
    shown = {each for name in figures for each in study.figures[name].models}
    same = next((group for group in study.repeats if model in group), [])
    others = [each for each in same if each in shown and each != model]
    return [model, *others] if model in shown else [model]


def _values_of_network_page_job(study: Study, names: Names) -> Values:
    known = registry.of(study).kinds()
    kinds = {name: known[name] for name in kinds_for_network_page_job(study, names["model"])}
    functions = [each for kind in kinds.values() for each in (kind.draw, kind.claims)]
    return {
        "study": describing.title(study),
        "style": describing.style(study, page=True),
        "member": describing.describe_member(study, names["model"]),
        "repeats": study.repeats,
        "seeds": {name: study.traits_of(name).get("training.seed") for name in study.models_of()},
        "kinds": {
            name: {
                "counted": models_counted_on_network_page(study, name, names["model"]),
                "draws": kind.draw,
                "tables": {table: columns_of(study, table) for table in kind.tables},
                "published": bool(kind.drawn_columns),
                "values": kind.values,
                "claims": kind.claims,
            }
            for name, kind in kinds.items()
        },
        "modules": [*filter(None, functions)],
    }


def draw_network_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Draw the page of a network: its blocks, what is measured by depth, and verdicts."""
    from vitscope.claims.counting import (
        count_by_recipe,
        count_claims,
        join_rows_of_figures,
        trainings,
    )
    from vitscope.drawing.figure import drawing_in, escaped_member
    from vitscope.drawing.from_tables import draw_from_tables
    from vitscope.drawing.network_page import plot_network_page
    from vitscope.drawing.saving import save, style

    def draw_panel_in(panel: Callable[[], object], axes: "Axes") -> None:
        with drawing_in(axes):
            panel()

    member = escaped_member(values["member"])
    all_blocks = read_all(BLOCKS, inputs["blocks"])
    blocks = all_blocks[all_blocks["model"] == member.model]
    paths = inputs["blocks"]
    own = next(each for each in paths if BLOCKS.read(each)["model"].eq(member.model).all())
    read = read_metadata(own)["read"]
    panels, counted = [], []
    for drawn, kind in values["kinds"].items():
        columns = kind["tables"]
        tables = {name: read_all(Table(**each), inputs[name]) for name, each in columns.items()}
        published: dict[str, PublishedCurve] | None = {} if kind["published"] else None
        for _, keys in panels_of_page([drawn]):
            said = kind["values"] | keys
            panel = partial(draw_from_tables, kind["draws"], tables, [member], published, (), said)
            panels.append(partial(draw_panel_in, panel))
        if kind["claims"]:
            evidence = resolve_name(kind["claims"])
            whole = tables | {"blocks": all_blocks}
            counted.append(count_claims(drawn, evidence, whole, kind["counted"], {}, {}))
    trained = trainings(values["repeats"], values["seeds"])
    every = count_by_recipe(join_rows_of_figures(CLAIMS, counted), trained)
    claims = every[every["model"] == member.model]
    with style(inputs["style"], values["style"]):
        figure = plot_network_page(member.label, blocks, panels, claims, read)
        for path in outputs.values():
            save(figure, path, f"The network {member.model} by depth", {"Study": values["study"]})


DRAW_NETWORK = Job(run=draw_network_job, values=_values_of_network_page_job)
