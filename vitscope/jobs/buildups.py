"""Jobs of a build-up: decide what a step tries, measure it, tabulate and draw all steps."""

from pathlib import Path

from vitscope.buildup import rule
from vitscope.files.tables import read_metadata
from vitscope.files.whole import atomic_path, sha256_of, write_text
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Resources, Study, Takes, Values
from vitscope.measures.measure import passes
from vitscope.networks.building.family import module_of


def what_is_tried(study: Study, name: str) -> Values:
    """Return the baseline of a build-up as an AlterNet, and how far the build-up goes."""
    entry = study.buildups[name]
    baseline = study.network(entry.baseline)
    kept = ("block", "blocks", "width")
    arch = {key: value for key, value in baseline["arch"].items() if key in kept}
    own = {key: getattr(entry, key) for key in ("heads", "head_dim", "window")}
    return {
        "baseline": baseline | {"family": rule.FAMILY, "arch": arch | own},
        "blocks": arch["blocks"],
        "patience": entry.patience,
        "steps": entry.steps,
    }


def weights_of_steps(study: Study, name: str) -> str:
    """Return where a build-up's weights come from: `bundled`, or `trained` here."""
    return "trained" if study.buildups[name].weights is None else "bundled"


def bundled_step(study: Study, name: str, step: int) -> str | None:
    """Return the path of a step's bundled weights below the root; None if they are trained."""
    weights = study.buildups[name].weights
    return None if weights is None else f"{weights['bundled']}/step_{step}.safetensors"


def decide_step(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.table import RESULT, scores_of

    settings = values["settings"]
    scores = scores_of([RESULT.read(path) for path in inputs["results"]])
    rule.write_proposal(
        rule.decide(settings["baseline"], rule.plan_of(settings), scores), outputs["tried"]
    )


DECIDE_STEP = Job(
    run=decide_step,
    values=lambda study, names: {"settings": what_is_tried(study, names["buildup"])},
)


def measure_step(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.table import RESULT, measure, refuse_missing
    from vitscope.jobs.opening import open_device, open_images

    where, weights = values["where"], inputs["weights"]
    network = rule.network_to_try(inputs["tried"], where)
    if not weights:
        refuse_missing(network, where)
    images = open_images(inputs["images"])
    device, size = open_device(values["device"]), values["batch_size"]
    result = measure(Path(weights), network, images, where=where, batch_size=size, device=device)
    digests = {"data_sha256": images.digest, "checkpoint_sha256": sha256_of(weights)}
    RESULT.write(result, outputs["result"], digests)


MEASURE_STEP = Job(
    run=measure_step,
    values=lambda study, names: {
        "where": f"{study.path}: buildups.{names['buildup']}.weights",
        "batch_size": study.analysis.batch_size,
        "device": study.device,
        "modules": [module_of(rule.FAMILY)],
    },
    takes=Takes(
        torch=True,
        work=lambda request: passes(1, None, request.images, request.study.analysis.batch_size),
        split="test",
        builds=True,
    ),
    batches="analysis.batch_size",
)


def tabulate_buildup(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write a row for each step, and the best network; the rule says where `weights` are."""
    from vitscope.buildup.table import BUILDUP, RESULT, digests_of, scores_of, tabulate

    name, settings = values["name"], values["settings"]
    plan = rule.plan_of(settings)
    results = [RESULT.read(path) for path in inputs["results"]]
    digests = digests_of([read_metadata(path) for path in inputs["results"]])
    BUILDUP.write(tabulate(name, plan, results), outputs["table"], digests)
    said = {"baseline": settings["baseline"], "data": values["data"], "weights": values["weights"]}
    write_text(outputs["model"], rule.describe_model(name, plan, scores_of(results), **said))


TABULATE_BUILDUP = Job(
    run=tabulate_buildup,
    values=lambda study, names: {
        "name": names["buildup"],
        "settings": what_is_tried(study, names["buildup"]),
        "data": study.models[study.buildups[names["buildup"]].baseline].data,
    },
)


def _facts_of_buildup(study: Study, name: str) -> dict[str, str]:
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


def draw_buildup(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.figure import animate, plot, read_steps
    from vitscope.buildup.table import BUILDUP, label_digests
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style
    from vitscope.video.writing import describe, format_of, write_frames

    facts = values["facts"] | label_digests(read_metadata(inputs["table"]))
    published = [read_steps(path) for path in inputs["published"]]
    table, label = BUILDUP.read(inputs["table"]), literal(values["label"])
    with style(inputs["style"], values["style"]):
        if "video" in outputs:
            path, about = Path(outputs["video"]), describe(values["name"], facts)
            frames, kind = animate(table, label, *published), format_of(path)
            with atomic_path(path) as partial:
                write_frames(partial, kind, frames, about, lossless=True)
            return
        figure = plot(table, label, *published)
        for path in outputs.values():
            save(figure, path, f"How AlterNet is built up ({values['name']})", facts)


DRAW_BUILDUP = Job(
    run=draw_buildup,
    values=lambda study, names: {
        "name": names["buildup"],
        "facts": _facts_of_buildup(study, names["buildup"]),
        "style": describing.style(study),
        "label": study.models[study.buildups[names["buildup"]].baseline].label,
    },
)
