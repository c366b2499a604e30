"""Draw how accurate the networks of a build-up are, in every format, or step by step as a video."""

from pathlib import Path

from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _facts(study: Study, name: str) -> dict[str, str]:
    """Return what the figure is made from, for its caption and its metadata."""
    entry = study.buildups[name]
    recipe, baseline = study.recipe_of_steps(name), study.models[entry.baseline]
    images = "all" if recipe.images is None else str(recipe.images)
    weights = "trained by this workflow" if entry.weights is None else entry.weights["bundled"]
    return {
        "Study": describing.title(study),
        "Data": f"{baseline.data}, test images",
        "Baseline": f"{baseline.label}, as an AlterNet without attention",
        "Training": f"{recipe.epochs} epochs of {images} training images, seed {recipe.seed}",
        "Weights": weights,
    }


def _values(study: Study, names: Names) -> Values:
    name = names["buildup"]
    return {
        "name": name,
        "facts": _facts(study, name),
        "label": study.models[study.buildups[name].baseline].label,
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.figure import animate, plot, read_steps
    from vitscope.buildup.table import BUILDUP, label_digests
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style
    from vitscope.files.tables import read_metadata
    from vitscope.files.whole import atomic_path
    from vitscope.video.writing import describe, format_of, write_frames

    facts = values["facts"] | label_digests(read_metadata(inputs["table"]))
    published = [read_steps(path) for path in inputs["published"]]
    table, label = BUILDUP.read(inputs["table"]), literal(values["label"])
    with style(inputs["style"]):
        if "video" in outputs:
            path, about = Path(outputs["video"]), describe(values["name"], facts)
            frames, kind = animate(table, label, *published), format_of(path)
            with atomic_path(path) as partial:
                write_frames(partial, kind, frames, about, lossless=True)
            return
        figure = plot(table, label, *published)
        for path in outputs.values():
            save(figure, path, values["name"], facts)
