"""What each job depends on of a study: plain values, and no more than the job's result needs.

A workflow that compares these values knows when a job has to run again.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from vitscope.buildup import tried
from vitscope.data.class_numbers import listed
from vitscope.data.opening import declared, local_path
from vitscope.data.source_files import listing_digest
from vitscope.errors import VitscopeError, unknown
from vitscope.measures import registry
from vitscope.measures.captions import caption_of
from vitscope.networks.checkpoints import weight_sources
from vitscope.settings.data_sets import named_classes
from vitscope.settings.keys import Dataset, Model
from vitscope.settings.study import Study
from vitscope.training.snapshots import END, INIT, WARMUP, after_epoch, epochs_of

Values = dict[str, Any]

# How training images are augmented, and what of it decides which images a model has seen.
AUGMENTING = (
    "images",
    "seed",
    "batch_size",
    "label_smoothing",
    "mixup",
    "cutmix",
    "mixing_probability",
    "randaugment",
    "erasing",
    "shift",
    "flip",
)
TRAINED_ON = ("images", "seed")

# How many classes the caption of a figure lists; the record of the run has all.
SHOWN_CLASSES = 20


def split(study: Study, dataset: str, name: str) -> Values:
    """Return what the artefact of a split is made by."""
    data = study.data[dataset]
    keys = (
        "source",
        "classes",
        "class_names",
        "class_index",
        "channels",
        "image_size",
        "resize",
        "interpolation",
    )
    splits = {name: asdict(data.splits[name])}
    return {key: getattr(data, key) for key in keys} | {"splits": splits}


def archive(study: Study, dataset: str) -> Values | None:
    """Return the official archive of a data set, if it has one."""
    return declared(study.data[dataset].source["kind"]).archive


def listing(study: Study, dataset: str, name: str) -> str | None:
    """Return a digest of the folder that a split is read from, if it is; its date does not tell."""
    path = local_path(study.data[dataset].source, name)
    return None if path is None else listing_digest(path)


def classified(study: Study, name: str) -> Values:
    """Return which images of a split are classified, for the measures of predictions."""
    wanted = {
        measure.predicted(study)
        for measure in map(registry.declared, registry.names())
        if measure.reads_predictions and measure.split(study) == name
    }
    if len(wanted) != 1:
        raise VitscopeError(f"{study.path}: nothing says which images of '{name}' are classified.")
    return {"wanted": wanted.pop(), "seed": study.analysis.seed}


def labels_are_truth(study: Study, name: str) -> bool:
    """Return whether a model should find the labels of a split: where cues conflict, it may not."""
    return name == study.analysis.split


def download(study: Study, model: str) -> Values:
    """Return the checkpoint of a model as a file that is fetched."""
    return weight_sources.fetched(study.models[model].checkpoint)


def snapshot_download(study: Study, model: str, snapshot: str) -> Values:
    """Return a snapshot of a model as a file that is fetched."""
    return weight_sources.fetched(study.snapshot(model, snapshot))


def recipe(study: Study, model: str) -> Values:
    """Return the recipe that a model is trained by."""
    study.check_trainable(model)
    return asdict(study.recipe(model))


def snapshot(study: Study, model: str, epoch: str) -> Values:
    """Return after which epoch the recipe of a model keeps its weights; refuse any other."""
    names = epochs_of(recipe(study, model))
    if after_epoch(int(epoch)) not in names:
        listed = [name for name in names if name not in (INIT, WARMUP, END)]
        where = f"training.snapshots, for models.{model}"
        raise unknown(study.path, where, after_epoch(int(epoch)), listed)
    return {"epoch": int(epoch)}


def trained_on(study: Study, model: str) -> Values:
    """Return which images a model has seen: all, if it was not trained here."""
    if study.training is None:
        return {"images": None, "seed": 0}
    own = recipe(study, model)
    return {key: own[key] for key in TRAINED_ON}


def augmentation(study: Study, model: str) -> Values:
    """Return how the training images of a model are augmented."""
    if study.loss is None:
        own = recipe(study, model)
        return {key: own[key] for key in AUGMENTING}
    augment = study.loss.augment
    return trained_on(study, model) | ({} if isinstance(augment, str) else augment)


def alike(study: Study, model: str) -> Values:
    """Return how images are augmented where models are compared: by the study's own recipe."""
    own = augmentation(study, model)
    shared = asdict(study.training) if study.training and study.loss is None else own
    return {key: own[key] if key in TRAINED_ON else shared[key] for key in own}


def drawing(study: Study) -> Values:
    """Return which training images are drawn, once for all that measures the loss of a model."""
    augmented = study.analysis.augmented
    return {"images": augmented.images, "seed": augmented.seed, "clean": study.clean}


def drawing_alike(study: Study) -> Values:
    """Return which are drawn where models are compared."""
    readers = (each for each in map(registry.declared, registry.names()) if "alike" in each.reads)
    images = max(measure.drawn_alike(study) for measure in readers)
    return {"images": images, "seed": study.analysis.augmented.seed, "clean": study.clean}


def draws_alike(study: Study, model: str) -> str:
    """Return the model whose draw this one shares: the first that the same images fit."""

    def fitting(name: str) -> tuple[Any, ...]:
        entry, seen = study.models[name], trained_on(study, name)
        return entry.data, entry.mean, entry.std, *seen.values()

    return next(name for name in study.models if fitting(name) == fitting(model))


def corrupted(study: Study) -> Values:
    """Return which images are corrupted, and how severely."""
    (measure,) = (m for m in map(registry.declared, registry.names()) if "corrupted" in m.reads)
    return measure.corrupted(study)


def part(study: Study, measure: str, model: str, number: str = "0") -> Values:
    """Return what a part of a measure depends on."""
    return registry.declared(measure).part(study, model, int(number))


def merging(study: Study, measure: str, model: str) -> Values:
    """Return what merging the parts of a measure depends on."""
    return registry.declared(measure).merging(study, model)


def members(study: Study, figure: str) -> list[Values]:
    """Return the models of a figure: their names, labels, families and epochs of training."""
    entries = {name: study.models[name] for name in study.figures[figure].models}
    return [
        {"model": name, "label": entry.label, "family": entry.family, "epoch": entry.epoch}
        for name, entry in entries.items()
    ]


def labels(study: Study) -> dict[str, str]:
    """Return what to call each model that is shown."""
    return {name: study.models[name].label for name in study.models_of()}


def title(study: Study) -> str:
    """Return what to call a study."""
    return f"{study.name} ({study.title})"


def facts(study: Study, figure: str) -> dict[str, str]:
    """Return what a figure is made from, for its caption and its metadata."""
    entry = study.figures[figure]
    models = [study.models[name] for name in entry.models]
    measure = registry.declared(registry.kinds()[entry.kind].measure)
    data = sorted({model.data for model in models})
    splits = " and ".join(measure.splits(study))
    made_from = [*data, f"{splits} images"] if splits else data
    found = {"Study": title(study), "Data": ", ".join(made_from)}
    for name in data:
        found |= _classes_of(study, name, measure.splits(study))
    for model in models:
        found |= _weights_behind(measure.needs, model)
    return found


def _classes_of(study: Study, dataset: str, splits: list[str]) -> dict[str, str]:
    """Return which class has which number, where the order of folders or the study decides it."""
    entry = study.data[dataset]
    for name in splits:
        classes = named_classes(entry, name) if name in entry.splits else {}
        if classes:
            return {f"Classes of {dataset}": listed(classes, SHOWN_CLASSES)}
    return {}


def _weights_behind(needs: str, model: Model) -> dict[str, str]:
    """Return where the weights come from that a figure is about."""
    if needs == "weights" and model.history is not None:
        history = weight_sources.described(model.history)
        return {f"Trajectory of {model.label}": f"recorded in training, {history}"}
    found = {f"Checkpoint of {model.label}": weight_sources.described(model.checkpoint)}
    if needs == "weights":
        found[f"Trajectory of {model.label}"] = f"its snapshots {', '.join(model.moments())}"
    return found


def buildup(study: Study, name: str) -> Values:
    """Return what a build-up tries: its baseline as an AlterNet, and how far it goes."""
    entry = study.buildups[name]
    baseline = study.network(entry.baseline)
    kept = ("block", "blocks", "width")
    arch = {key: value for key, value in baseline["arch"].items() if key in kept}
    own = {key: getattr(entry, key) for key in ("heads", "head_dim", "window")}
    return {
        "baseline": baseline | {"family": tried.FAMILY, "arch": arch | own},
        "blocks": arch["blocks"],
        "patience": entry.patience,
        "steps": entry.steps,
    }


def recipe_of_steps(study: Study, name: str) -> Values:
    """Return the recipe that all networks of a build-up are trained by."""
    return asdict(study.recipe_of_steps(name))


def weights_of_steps(study: Study, name: str) -> str:
    """Return whose weights the networks of a build-up have: `bundled`, or `trained` here."""
    return "trained" if study.buildups[name].weights is None else "bundled"


def bundled_step(study: Study, name: str, step: int) -> str | None:
    """Return where the bundled weights of a step are, below the root; None if they are trained."""
    weights = study.buildups[name].weights
    return None if weights is None else f"{weights['bundled']}/step_{step}.safetensors"


def buildup_facts(study: Study, name: str) -> dict[str, str]:
    """Return what the figure of a build-up is made from, for its caption and its metadata."""
    entry = study.buildups[name]
    recipe = study.recipe_of_steps(name)
    images = "all" if recipe.images is None else str(recipe.images)
    weights = "trained by this workflow" if entry.weights is None else entry.weights["bundled"]
    return {
        "Study": title(study),
        "Data": f"{study.models[entry.baseline].data}, test images",
        "Baseline": f"{study.models[entry.baseline].label}, as an AlterNet without attention",
        "Training": f"{recipe.epochs} epochs of {images} training images, seed {recipe.seed}",
        "Weights": weights,
    }


def video(study: Study, name: str) -> Values:
    """Return what a video shows, and how its frames are taken: as the pictures of its data set."""
    entry = study.videos[name]
    return asdict(entry) | {
        "label": study.models[entry.model].label,
        "taking": taking(study.dataset_of(entry.model)),
    }


def taking(data: Dataset) -> Values:
    """Return how frames are brought to the size of images; where nothing says it, by the side."""
    return {
        "channels": data.channels,
        "image_size": data.image_size,
        "resize": data.resize or data.image_size,
        "interpolation": data.interpolation,
    }


def network_of_video(study: Study, name: str) -> Values:
    """Return what it takes to build and feed the model of a video."""
    return study.network(study.videos[name].model)


def video_path(study: Study, name: str) -> Path | None:
    """Return where the frames of a video lie, if they are not generated."""
    source = study.videos[name].source
    return Path(source["path"]).expanduser() if "path" in source else None


def frames_listing(study: Study, name: str) -> str | None:
    """Return a digest of the folder of the frames, if it is one; its date does not tell."""
    path = video_path(study, name)
    return None if path is None else listing_digest(path)


def video_facts(study: Study, name: str) -> dict[str, str]:
    """Return what a video is made from, for its caption and its metadata."""
    path, model = video_path(study, name), study.models[study.videos[name].model]
    frames = path.name if path else f"generated, {study.videos[name].source['generated']}"
    found = {"Study": title(study), "Frames": frames}
    return found | {f"Checkpoint of {model.label}": weight_sources.described(model.checkpoint)}


def published(study: Study, figure: str) -> Values | None:
    """Return which published points a figure shows, if any."""
    shown = study.figures[figure].published
    return None if shown is None else asdict(shown)


def snapshots(study: Study, figure: str) -> list[str]:
    """Return the moments of training that a figure shows, if it is about any."""
    return study.figures[figure].shown_snapshots()


def shown_data(study: Study) -> list[tuple[str, str]]:
    """Return the data sets and splits that the figures of a study are made from."""
    shown = {
        (study.models[model].data, name)
        for measure in study.measures()
        for model in study.models_of(measure)
        for name in registry.declared(measure).splits(study)
    }
    return sorted(shown)


def figure_module(study: Study, figure: str) -> str:
    """Return the module that draws a figure."""
    shown = registry.kinds()[study.figures[figure].kind]
    return registry.module(shown.measure, shown.module)


def figure_tables(study: Study, figure: str) -> dict[str, str]:
    """Return the tables that a figure is drawn from, each with the module of its columns."""
    shown = registry.kinds()[study.figures[figure].kind]
    return {table: columns_of(table) for table in shown.tables}


def published_columns(study: Study, figure: str) -> list[str]:
    """Return the columns of published points that a figure shows, or its claims compare."""
    return sorted(registry.kinds()[study.figures[figure].kind].published)


def claimed_figures(study: Study) -> dict[str, Values]:
    """Return the figures that the paper may claim something of, and who counts it."""
    found = {}
    for name, figure in study.figures.items():
        measure = registry.kinds()[figure.kind].measure
        if registry.has(measure, "claims"):
            found[name] = {
                "kind": figure.kind,
                "module": registry.module(measure, "claims"),
                "models": figure.models,
                "published": published(study, name),
                "columns": published_columns(study, name),
                "snapshots": figure.shown_snapshots(),
            }
    return found


def claim_modules(study: Study) -> list[str]:
    """Return the modules by which the claims of a study are counted."""
    return sorted({figure["module"] for figure in claimed_figures(study).values()})


def columns_of(table: str) -> str:
    """Return the module that says the columns of a table."""
    return (
        "vitscope.networks.finding.block_table"
        if table == "blocks"
        else registry.module(table, "table")
    )


def caption(study: Study, figure: str) -> str:
    """Return what a figure of its kind shows, and how to read it."""
    return caption_of(registry.kinds()[study.figures[figure].kind])
