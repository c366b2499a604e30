"""Draw which claims of the paper hold, in every format."""

from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    return {"study": describing.title(study), "labels": describing.labels(study)}


def draw_claims(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.claims.tables import CLAIMS
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style
    from vitscope.drawing.verdicts import plot

    labels = {model: literal(label) for model, label in values["labels"].items()}
    with style(inputs["style"]):
        figure = plot(CLAIMS.read(inputs["claims"]), labels)
        for path in outputs.values():
            save(figure, path, "claims", {"Study": values["study"]})


DRAW_CLAIMS = Job(run=draw_claims, values=_values)
