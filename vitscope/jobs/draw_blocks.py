"""Draw a network as the row of its cut points, in every format."""

from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    model = names["model"]
    return {
        "study": describing.title(study),
        "model": model,
        "label": study.models[model].label,
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.drawing.figure import literal
    from vitscope.drawing.network import plot
    from vitscope.drawing.saving import save, style
    from vitscope.networks.finding.cut_points import BLOCKS

    blocks = BLOCKS.read(inputs["blocks"])
    with style(inputs["style"]):
        figure = plot(blocks, literal(values["label"]))
        for path in outputs.values():
            save(figure, path, f"blocks of {values['model']}", {"Study": values["study"]})
