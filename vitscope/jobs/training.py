"""Jobs of training: train models, copy snapshots and weights, and augment training images."""

import json
import os
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.buildup.rule import FAMILY, buildup_network_to_try
from vitscope.errors import VitscopeError, unknown
from vitscope.files.whole import copy_file, sha256_of, write_text
from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.jobs.networks import with_network
from vitscope.measures import registry
from vitscope.measures.work import Work, work_for_images
from vitscope.networks.building.family import module_of
from vitscope.settings.snapshots import END, INIT, WARMUP, after_epoch, epochs_of

if TYPE_CHECKING:
    from vitscope.settings.keys import Recipe


# The time of a training step for one image, in forward passes: the backward pass takes two.
PASSES = 3
# Sharpness-aware minimization goes forward and backward twice.
PASSES_UPHILL = 6
# The folder where torch.compile caches compiled code.
COMPILED = ".compiled"


def _values_of_training_job(study: Study, names: Names) -> Values:
    recipe = {"recipe": asdict(_recipe_of(study, names)), "device": study.device}
    if "buildup" in names:
        # The network is known only after the step is decided.
        where = f"buildups.{names['buildup']}"
        return recipe | {"where": where, "modules": [module_of(FAMILY)]}
    study.check_trainable(names["model"])
    return recipe | with_network(study, names["model"])


def _recipe_of(study: Study, names: Names) -> "Recipe":
    if "buildup" in names:
        return study.recipe_of_steps(names["buildup"])
    return study.recipe(names["model"])


def _passes_of_training_job(request: Request) -> Work | None:
    recipe = _recipe_of(request.study, request.names)
    uphill = recipe.sam is not None
    views = recipe.epochs * (PASSES_UPHILL if uphill else PASSES)
    work = work_for_images(views, recipe.images, request.images, recipe.batch_size, "gradient")
    # Sharpness-aware minimization keeps a copy of the weights while it goes uphill.
    return work and replace(work, vectors=int(uphill))


def train_model_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Train the network; make the folder of epochs, which stays empty if no epochs are kept."""
    # Read this before importing torch, which sets it to a default.
    own_cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    from vitscope.jobs.opening import open_images, open_job_device
    from vitscope.networks.building.networks import build_family_network
    from vitscope.training.batches import seeded
    from vitscope.training.loop import train

    network = values.get("network") or buildup_network_to_try(inputs["tried"], values["where"])[1]
    recipe, place = values["recipe"], Path(outputs["end"]).parent
    Path(outputs["epochs"]).mkdir(exist_ok=True)
    with seeded(recipe["seed"]):
        model = build_family_network(network)
    train(
        model.to(open_job_device(values["device"])),
        open_images(inputs["train"]),
        open_images(inputs["test"]),
        recipe,
        recipe["seed"],
        place,
        mean=network["mean"],
        std=network["std"],
        made_of={"network": json.dumps(network, sort_keys=True)},
        say=resources.say_of_it,
        # If the run is killed before it records the outputs, the next run restores them from the
        # folder `unfinished`.
        keep_unfinished=True,
        # Put the cache beside the training runs of the study, so that all runs use it.
        compiler_cache=None if own_cache else place.parent / COMPILED,
    )


TRAIN_MODEL = Job(
    run=train_model_job,
    values=_values_of_training_job,
    # `beside` is the memory of the process that augments images, including what it shares with the
    # process that trains.
    takes=Takes(torch=True, work=_passes_of_training_job, split="train", builds=True, beside=520),
    batches="training.batch_size",
)


def _values_of_snapshot_job(study: Study, names: Names) -> Values:
    model, epoch = names["model"], int(names["epoch"])
    kept = epochs_of(asdict(study.recipe(model)))
    if after_epoch(epoch) not in kept:
        allowed = [name for name in kept if name not in (INIT, WARMUP, END)]
        where = f"training.snapshots, for models.{model}"
        raise unknown(study.path, where, after_epoch(epoch), allowed)
    return {"epoch": epoch}


def take_snapshot_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    target = Path(outputs["weights"])
    copy_file(Path(inputs["epochs"]) / target.name, target)


TAKE_SNAPSHOT = Job(run=take_snapshot_job, values=_values_of_snapshot_job)


def bundle_weights_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Copy trained files to `folder`, and write the digests of all files in its subfolders."""
    folder = Path(values["folder"])
    for source in map(Path, inputs["trained"]):
        # The folder of a training run is named after its model, or after a step of a build-up.
        own = source.parent.name
        name = (
            f"buildup/{own}{source.suffix}" if own.startswith("step_") else f"{own}/{source.name}"
        )
        copy_file(source, folder / name)
    names = sorted(str(path.relative_to(folder)) for path in folder.glob("*/*"))
    sums = (f"{sha256_of(folder / name)}  {name}\n" for name in names)
    write_text(folder / "SHA256SUMS", "".join(sums))
    write_text(outputs["done"], "")


BUNDLE_WEIGHTS = Job(run=bundle_weights_job)


# Keys of a recipe that decide which images a model has seen.
TRAINED_ON = ("images", "seed")
# Seconds to augment a million pixels with RandAugment, measured at 32x32.
SECONDS_TO_AUGMENT = 0.11


def augmentation_recipe_of_job(study: Study, model: str) -> Values:
    from vitscope.settings.keys import NOT_AUGMENTED

    # A model that was not trained here has seen all images.
    recipe: Values = {"images": None, "seed": 0}
    if study.training or study.loss is None:
        study.check_trainable(model)
        recipe = asdict(study.recipe(model))
    if study.loss is None:
        return {key: recipe[key] for key in (*TRAINED_ON, *NOT_AUGMENTED)}
    augment = {} if isinstance(study.loss.augment, str) else study.loss.augment
    return {key: recipe[key] for key in TRAINED_ON} | augment


def _shared_augmentation(study: Study, model: str) -> Values:
    own = augmentation_recipe_of_job(study, model)
    shared = asdict(study.training) if study.training and study.loss is None else own
    return {key: own[key] if key in TRAINED_ON else shared[key] for key in own}


def _count_images_to_augment(study: Study, names: Names) -> int:
    if "alike" not in names:
        return study.analysis.augmented.images
    readers = (each for each in map(registry.declared, registry.names()) if "alike" in each.reads)
    return max(int(measure.read_settings(study).images) for measure in readers)


def _values_of_augmentation_job(study: Study, names: Names) -> Values:
    network = study.network(names["model"])
    recipe_of = _shared_augmentation if "alike" in names else augmentation_recipe_of_job
    images, seed = _count_images_to_augment(study, names), study.analysis.augmented.seed
    return {
        "mean": network["mean"],
        "std": network["std"],
        "recipe": recipe_of(study, names["model"]),
        "drawing": {"images": images, "seed": seed, "clean": study.clean},
    }


def first_of_shared_augmentation_job(study: Study, names: Names) -> str:
    """Return the first trainable model that has the same augmented images as the job's model.

    Models with the same augmented images share a file.
    """
    data, drawn = study.models[names["model"]].data, _values_of_augmentation_job(study, names)
    for name in study.models:
        if study.models[name].data == data:
            with suppress(VitscopeError):
                if _values_of_augmentation_job(study, {**names, "model": name}) == drawn:
                    return name
    raise AssertionError("a model shares at least its own images")


def _seconds_to_augment(request: Request) -> float:
    megapixels = request.dataset.pixels / 1e6
    return _count_images_to_augment(request.study, request.names) * megapixels * SECONDS_TO_AUGMENT


def augment_images_job(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.jobs.opening import open_images
    from vitscope.training.batches import write_augmented_batches

    given = {key: values[key] for key in ("recipe", "mean", "std")} | values["drawing"]
    write_augmented_batches(open_images(inputs["images"]), path=outputs["images"], **given)


AUGMENT_IMAGES = Job(
    run=augment_images_job,
    values=_values_of_augmentation_job,
    takes=Takes(torch=True, seconds=_seconds_to_augment),
    batches="training.batch_size",
)
