"""Draw augmented training images once, by the recipe that a model was trained by.

Where models are compared, as the name `alike` says, they share one draw by the study's own recipe.
"""

from dataclasses import asdict
from typing import Any

from vitscope.jobs.job import Files, Job, Names, Request, Resources, Study, Takes, Values
from vitscope.measures import registry

# How training images are augmented, and which of it decides which images a model has seen.
AUGMENTING = (
    "images",
    "seed",
    "batch_size",
    "label_smoothing",
    "mixup",
    "cutmix",
    "mixing_probability",
    "randaugment",
    "color_jitter",
    "erasing",
    "erased",
    "crop",
    "shift",
    "border",
    "flip",
)
TRAINED_ON = ("images", "seed")
# For a million pixels: by RandAugment at 32 pixels.
SECONDS_PER_MEGAPIXEL = 0.11


def images_seen(study: Study, model: str) -> Values:
    """Return which images a model has seen: all, if it was not trained here."""
    if study.training is None:
        return {"images": None, "seed": 0}
    recipe = _recipe(study, model)
    return {key: recipe[key] for key in TRAINED_ON}


def augmentation(study: Study, model: str) -> Values:
    """Return how the training images of a model are augmented."""
    if study.loss is None:
        recipe = _recipe(study, model)
        return {key: recipe[key] for key in AUGMENTING}
    augment = study.loss.augment
    return images_seen(study, model) | ({} if isinstance(augment, str) else augment)


def _recipe(study: Study, model: str) -> Values:
    study.check_trainable(model)
    return asdict(study.recipe(model))


def first_with_same_images(study: Study, model: str) -> str:
    """Return the model whose draw this one shares: the first that the same images fit."""

    def fitting(name: str) -> tuple[Any, ...]:
        entry, seen = study.models[name], images_seen(study, name)
        return entry.data, entry.mean, entry.std, *seen.values()

    return next(name for name in study.models if fitting(name) == fitting(model))


def _shared_augmentation(study: Study, model: str) -> Values:
    own = augmentation(study, model)
    shared = asdict(study.training) if study.training and study.loss is None else own
    return {key: own[key] if key in TRAINED_ON else shared[key] for key in own}


def _images(study: Study, names: Names) -> int:
    if "alike" not in names:
        return study.analysis.augmented.images
    readers = (each for each in map(registry.declared, registry.names()) if "alike" in each.reads)
    return max(measure.drawn_alike(study) for measure in readers)


def _values(study: Study, names: Names) -> Values:
    network = study.network(names["model"])
    recipe_of = _shared_augmentation if "alike" in names else augmentation
    images, seed = _images(study, names), study.analysis.augmented.seed
    return {
        "mean": network["mean"],
        "std": network["std"],
        "recipe": recipe_of(study, names["model"]),
        "drawing": {"images": images, "seed": seed, "clean": study.clean},
    }


def _seconds(request: Request) -> float:
    megapixels = request.dataset.pixels / 1e6
    return _images(request.study, request.names) * megapixels * SECONDS_PER_MEGAPIXEL


JOB = Job(values=_values, takes=Takes(torch=True, seconds=_seconds), batches="training.batch_size")


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.jobs.opening import open_images
    from vitscope.training.batches import augment_images

    augment_images(
        open_images(inputs["images"]),
        values["recipe"],
        path=outputs["images"],
        mean=values["mean"],
        std=values["std"],
        **values["drawing"],
    )
