"""Jobs of a build-up: decide which network a step tries, measure it, tabulate and draw steps."""

from collections.abc import Callable
from itertools import count, takewhile
from pathlib import Path

from vitscope.buildup import rule
from vitscope.files.tables import read_metadata
from vitscope.files.whole import atomic_path, sha256_of, write_text
from vitscope.jobs import describing
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.tables import read_all
from vitscope.measures.work import Work, work_for_images
from vitscope.networks.building.family import module_of
from vitscope.package_data import ROOT


def settings_of_buildup(study: Study, name: str) -> Values:
    """Return the settings that decide a build-up, with its baseline as an AlterNet."""
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


def is_trained(study: Study, name: str) -> bool:
    """Tell whether the workflow trains a build-up's networks; otherwise weights are bundled."""
    return study.buildups[name].weights is None


def bundled_buildup_steps(study: Study, name: str) -> list[Path]:
    """Return the files of bundled weights, one per step; [] if the workflow trains the networks."""
    weights = study.buildups[name].weights
    if weights is None:
        return []
    folder = ROOT / weights["bundled"]
    return list(takewhile(Path.is_file, (folder / f"step_{n}.safetensors" for n in count())))


def decide_step_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.table import RESULT, scores_of

    settings = values["settings"]
    scores = scores_of(read_all(RESULT, inputs["results"])) if inputs["results"] else []
    rule.write_buildup_proposal(
        rule.propose_step(settings["baseline"], rule.plan_of(settings), scores), outputs["tried"]
    )


DECIDE_STEP = Job(
    run=decide_step_job,
    values=lambda study, names: {"settings": settings_of_buildup(study, names["buildup"])},
)


def measure_step_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.table import DATA, RESULT, digest_of_step, score_buildup_network
    from vitscope.jobs.opening import open_images, open_job_device

    step, network = rule.buildup_network_to_try(inputs["tried"], values["where"])
    images, device = open_images(inputs["images"]), open_job_device(values["device"])
    weights = Path(inputs["weights"])
    result = score_buildup_network(
        weights, network, images, values["where"], values["batch_size"], device
    )
    digests = {DATA: images.digest, digest_of_step(step): sha256_of(weights)}
    RESULT.write(result, outputs["result"], digests)


def measure_bundled_job(
    inputs: Files, outputs: Files, values: Values, resources: Resources
) -> None:
    """Measure networks with bundled weights, step by step, until the build-up ends."""
    import pandas as pd

    from vitscope.buildup.table import (
        DATA,
        RESULT,
        digest_of_step,
        refuse_missing_buildup_weights,
        score_buildup_network,
        scores_of,
    )
    from vitscope.jobs.opening import open_images, open_job_device

    where, settings = values["where"], values["settings"]
    images, device = open_images(inputs["images"]), open_job_device(values["device"])
    results, digests = pd.DataFrame(columns=[*RESULT.columns]), {DATA: images.digest}
    plan, files = rule.plan_of(settings), [*map(Path, inputs.get("weights", ()))]
    while network := rule.propose_step(settings["baseline"], plan, scores_of(results)).network:
        step = len(results)
        if step == len(files):
            refuse_missing_buildup_weights(network, where)
        result = score_buildup_network(
            files[step], network, images, where, values["batch_size"], device
        )
        results = pd.concat([results, result], ignore_index=True)
        digests[digest_of_step(step)] = sha256_of(files[step])
    RESULT.write(results, outputs["result"], digests)


def _values_of_buildup_step_job(study: Study, names: Names) -> Values:
    return {
        "where": f"{study.path}: buildups.{names['buildup']}.weights",
        "batch_size": study.analysis.batch_size,
        "device": study.device,
        "modules": [module_of(rule.FAMILY)],
    }


def _takes_of_buildup_job(count_networks: Callable[[Request], int]) -> Takes:
    def work_of_networks(request: Request) -> Work | None:
        count, size = count_networks(request), request.study.analysis.batch_size
        return work_for_images(count, None, request.images, size)

    return Takes(torch=True, work=work_of_networks, split="test", builds=True)


MEASURE_STEP = Job(
    run=measure_step_job,
    values=_values_of_buildup_step_job,
    takes=_takes_of_buildup_job(lambda request: 1),
    batches="analysis.batch_size",
)
MEASURE_BUNDLED = Job(
    run=measure_bundled_job,
    values=lambda study, names: (
        _values_of_buildup_step_job(study, names)
        | {"settings": settings_of_buildup(study, names["buildup"])}
    ),
    takes=_takes_of_buildup_job(
        lambda request: len(bundled_buildup_steps(request.study, request.names["buildup"]))
    ),
    batches="analysis.batch_size",
)


def tabulate_buildup_job(
    inputs: Files, outputs: Files, values: Values, resources: Resources
) -> None:
    """Write a table with a row for each step, and the best network as a model of a study.

    The rule adds `weights` to `values`.
    """
    from vitscope.buildup.table import BUILDUP, RESULT, scores_of, tabulate_buildup

    name, settings = values["name"], values["settings"]
    plan, results = rule.plan_of(settings), read_all(RESULT, inputs["results"])
    digests: dict[str, str] = {}
    for path in inputs["results"]:
        digests |= read_metadata(path)
    BUILDUP.write(tabulate_buildup(name, plan, results), outputs["table"], digests)
    said = {"baseline": settings["baseline"], "data": values["data"], "weights": values["weights"]}
    write_text(
        outputs["model"], rule.describe_best_of_buildup(name, plan, scores_of(results), **said)
    )


TABULATE_BUILDUP = Job(
    run=tabulate_buildup_job,
    values=lambda study, names: {
        "name": names["buildup"],
        "settings": settings_of_buildup(study, names["buildup"]),
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


def draw_buildup_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.figure import animate_buildup, plot_buildup, read_buildup_steps
    from vitscope.buildup.table import BUILDUP, label_buildup_digests
    from vitscope.drawing.figure import literal
    from vitscope.drawing.saving import save, style
    from vitscope.video.writing import title_and_description, video_format, write_frames

    facts = values["facts"] | label_buildup_digests(read_metadata(inputs["table"]))
    published = [read_buildup_steps(path) for path in inputs["published"]]
    table, label = BUILDUP.read(inputs["table"]), literal(values["label"])
    with style(inputs["style"], values["style"]):
        if "video" in outputs:
            path, about = Path(outputs["video"]), title_and_description(values["name"], facts)
            frames, kind = animate_buildup(table, label, *published), video_format(path)
            with atomic_path(path) as partial:
                write_frames(partial, kind, frames, about, lossless=True)
            return
        figure = plot_buildup(table, label, *published)
        for path in outputs.values():
            save(figure, path, f"How AlterNet is built up ({values['name']})", facts)


DRAW_BUILDUP = Job(
    run=draw_buildup_job,
    values=lambda study, names: {
        "name": names["buildup"],
        "facts": _facts_of_buildup(study, names["buildup"]),
        "style": describing.style(study),
        "label": study.models[study.buildups[names["buildup"]].baseline].label,
    },
)
