"""Jobs of figures: draw one from its tables, write its points as CSV, draw the cut points."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.files.pairs import by_prefix, split_prefix
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Takes, Values
from vitscope.jobs.networks import find_blocks, values_of_blocks
from vitscope.jobs.tables import columns_of
from vitscope.measures import registry
from vitscope.measures.registry import caption_of

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.claims.points import Published


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
        found |= describing.classes(study, name, splits)
    for model in models:
        found |= describing.norms(model)
        way = "history" in measure.inputs
        found |= describing.trajectory(model) if way else describing.weights(model)
    return found


def _values_of_figure(study: Study, names: Names) -> Values:
    name = names["figure"]
    entry = study.figures[name]
    measures = registry.of(study)
    kind = measures.kinds()[entry.kind]
    return {
        "name": name,
        "tables": {table: columns_of(study, table) for table in kind.tables},
        "published_columns": sorted(kind.drawn_columns),
        "members": describing.members(study, name),
        "published": None if entry.published is None else asdict(entry.published),
        "snapshots": entry.shown_snapshots(),
        "facts": facts_of_figure(study, name),
        "caption": caption_of(kind),
        "values": kind.values | entry.options,
        "modules": [measures.drawing(kind)],
    }


def draw_figure(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.drawing.figure import Member, draw, literal
    from vitscope.drawing.saving import save, style

    tables, published = read_points(inputs, values)
    members = [
        Member(**{**member, "label": literal(member["label"])}) for member in values["members"]
    ]
    (plot,) = values["modules"]
    made_from = values["facts"] | _digests(inputs, values)
    with style(inputs["style"]):
        figure = draw(
            plot,
            tables,
            members,
            published,
            values["snapshots"],
            values["values"],
        )
        for path in outputs.values():
            save(figure, path, values["name"], made_from)


DRAW_FIGURE = Job(run=draw_figure, values=_values_of_figure)


def read_points(
    inputs: Files, values: Values
) -> "tuple[dict[str, pd.DataFrame], dict[str, Published] | None]":
    """Return the tables of a figure and its published points; None if its kind shows none."""
    import pandas as pd

    from vitscope.claims.points import read_published_of
    from vitscope.files.tables import Table

    tables = {
        name: pd.concat([Table(**columns).read(path) for path in inputs[name]])
        for name, columns in values["tables"].items()
    }
    columns = set(values["published_columns"])
    if not columns:
        return tables, None
    return tables, read_published_of(values["published"], columns, inputs["published"])


def _digests(inputs: Files, values: Values) -> dict[str, str]:
    """Return the digests of data and checkpoints that the first table names."""
    from vitscope.files.tables import read_metadata

    found = {}
    labels = {member["model"]: member["label"] for member in values["members"]}
    for path in inputs[next(iter(values["tables"]))]:
        # A table is named after its model or its pair of models.
        models = by_prefix(Path(path).stem)
        for key, digest in read_metadata(path).items():
            if key.endswith("_sha256"):
                prefix, what = split_prefix(key.removesuffix("_sha256"))
                found[f"{what.capitalize()} SHA-256 of {labels[models[prefix]]}"] = digest
    return found


def _values_of_points(study: Study, names: Names) -> Values:
    drawn = DRAW_FIGURE.values(study, names)
    needed = ("tables", "members", "snapshots", "published", "published_columns")
    return {name: drawn[name] for name in needed}


def export_figure(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.claims.points import at_snapshots
    from vitscope.drawing.figure import Member, points_of
    from vitscope.files.tables import write_csv

    tables, published = read_points(inputs, values)
    members = [Member(**member) for member in values["members"]]
    shown = at_snapshots(tables, values["snapshots"])
    write_csv(points_of(shown, members, published or {}), outputs["csv"])


EXPORT_FIGURE = Job(run=export_figure, values=_values_of_points)


def draw_blocks(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.drawing.figure import literal
    from vitscope.drawing.network import plot
    from vitscope.drawing.saving import save, style

    with style(inputs["style"]):
        figure = plot(find_blocks(values).table, literal(values["label"]))
        for path in outputs.values():
            save(figure, path, f"blocks of {values['model']}", {"Study": values["study"]})


DRAW_BLOCKS = Job(
    run=draw_blocks,
    values=lambda study, names: {
        **values_of_blocks(study, names),
        "study": describing.title(study),
        "label": study.models[names["model"]].label,
    },
    takes=Takes(torch=True),
)
