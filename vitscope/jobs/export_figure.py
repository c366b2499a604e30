"""Write the points that a figure is drawn of as CSV."""

from vitscope.jobs import draw_figure
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    drawn = draw_figure.JOB.values(study, names)
    needed = ("tables", "members", "snapshots", "published", "published_columns")
    return {name: drawn[name] for name in needed}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.claims.points import at_snapshots
    from vitscope.drawing.figure import Member
    from vitscope.drawing.points import points_of
    from vitscope.files.tables import write_csv

    tables, published = draw_figure.read_points(inputs, values)
    members = [Member(**member) for member in values["members"]]
    shown = at_snapshots(tables, values["snapshots"])
    write_csv(points_of(shown, members, published or {}), outputs["csv"])
