"""Write the points that a figure is drawn of as CSV."""

from vitscope.jobs import draw_figure
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    drawn = draw_figure.DRAW_FIGURE.values(study, names)
    needed = ("tables", "members", "snapshots", "published", "published_columns")
    return {name: drawn[name] for name in needed}


def export_figure(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.claims.snapshots import at_snapshots
    from vitscope.drawing.figure import Member, points_of
    from vitscope.files.tables import write_csv

    tables, published = draw_figure.read_points(inputs, values)
    members = [Member(**member) for member in values["members"]]
    shown = at_snapshots(tables, values["snapshots"])
    write_csv(points_of(shown, members, published or {}), outputs["csv"])


EXPORT_FIGURE = Job(run=export_figure, values=_values)
