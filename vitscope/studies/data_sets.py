"""Check data sets of a study against the content of their folders, before any job opens a file."""

from pathlib import Path
from typing import Any

from vitscope.data import class_numbers, opening
from vitscope.data.opening import check_image_count, check_measured, check_scaling
from vitscope.errors import VitscopeError, not_there, wrong
from vitscope.measures import registry
from vitscope.settings.keys import Dataset, Model, Settings
from vitscope.settings.study import TRAINING_SPLITS, Study


def read_class_names_of_data_set(path: Path, where: str, entry: Settings) -> list[str] | None:
    """Return the class names of a data set: from its list, from a file, or ImageNet's."""
    names: list[str] | str | None = entry["class_names"]
    for key in ("class_names", "class_index"):
        if entry["classes"] is None and entry[key] is not None:
            raise VitscopeError(
                f"{where}.{key}: found names of classes, allowed: null where `classes` is: say how "
                f"many classes there are, or remove the key."
            )
    if names is not None and entry["class_index"] is not None:
        raise VitscopeError(
            f"{where}: found 'class_names' and 'class_index', allowed: one of them: the first "
            f"where every class of the network has a name, the second where some have."
        )
    if names == class_numbers.IMAGENET:
        return class_numbers.imagenet_class_names()
    if not isinstance(names, str):
        return names
    file = Path(names).expanduser()
    if not file.exists():
        raise not_there(f"{where}.class_names", "file", file, path)
    return class_numbers.read_class_names(f"{where}.class_names", file)


def check_data_sets(study: Study) -> None:
    """Refuse data sets that differ from what the study says, as far as a quick look tells."""
    for name, dataset in study.data.items():
        where = f"{study.path}: data.{name}"
        _check_mean_and_std(where, dataset)
        if dataset.corrupted is not None and dataset.channels != 3:
            allowed = "null where `mean` is of one channel: the official images have three; "
            allowed += "vitscope corrupts grey ones itself."
            raise wrong(study.path, f"data.{name}.corrupted", dataset.corrupted, allowed)
        if dataset.class_names is not None:
            class_numbers.check_distinct_class_names(where, dataset.class_names)
            class_numbers.number_classes(where, [], _settings_of_classes(dataset))
        if dataset.class_index is not None and dataset.classes is not None:
            class_numbers.check_class_index(where, dataset.classes, dataset.class_index)
        for split in dataset.splits:
            _check_split_of_data_set(study, name, split)
    for name, model in study.models.items():
        where, channels = f"{study.path}: models.{name}", study.dataset_of(name).channels
        if len(model.mean) != channels:
            raise VitscopeError(
                f"{where}.mean: found {len(model.mean)} numbers, allowed: {channels}, one for each "
                f"channel of the images of data.{model.data}: give the model a data set of its own."
            )
        _check_mean_and_std(where, model)


def _check_mean_and_std(where: str, entry: Dataset | Model) -> None:
    if len(entry.std) != len(entry.mean):
        raise VitscopeError(
            f"{where}.std: found {len(entry.std)} numbers, allowed: {len(entry.mean)}, as many as "
            f"`mean` has: one for each channel."
        )
    check_scaling(f"{where}.mean", entry.mean)
    check_scaling(f"{where}.std", entry.std)


def _settings_of_classes(dataset: Dataset) -> dict[str, Any]:
    keys = ("classes", "class_names", "class_index")
    return {key: getattr(dataset, key) for key in keys}


def _check_split_of_data_set(study: Study, name: str, split: str) -> None:
    dataset, of_training = study.data[name], TRAINING_SPLITS[0]
    # Only images of a folder that are for training, not for measuring, may be left unstored.
    trained_on = split == of_training != study.analysis.split
    if not dataset.splits[split].stored and (dataset.source["kind"] != "folder" or not trained_on):
        allowed = f"true, but for the split '{of_training}' of a `folder`, where it is not "
        allowed += "`analysis.split`."
        raise wrong(study.path, f"data.{name}.splits.{split}.stored", False, allowed)
    declared, measured = (
        dataset.splits[split].images,
        _count_measured_in_data_set(study, name, split),
    )
    seen = opening.glance(dataset.source, split, max(declared or 1, measured))
    if seen is None:
        return
    key = f"data.{name}.splits.{split}"
    class_numbers.number_classes(
        f"{study.path}: {key}", seen.classes, _settings_of_classes(dataset), seen.empty
    )
    check_image_count(f"{study.path}: {key}", declared, seen.images)
    if declared is None:
        check_measured(f"{study.path}: analysis.images", measured, seen.images, key)


def _count_measured_in_data_set(study: Study, name: str, split: str) -> int:
    declared = registry.of(study).declared
    measured = {each: declared(declared(each).parts_of or each) for each in study.measures()}
    of_maps = (each for each, measure in measured.items() if measure.needs == "latents")
    models = {model for measure in of_maps for model in study.models_of(measure)}
    shown = any(study.models[model].data == name for model in models)
    return study.analysis.images if shown and split == study.analysis.split else 0


def class_names_in_data_set(dataset: Dataset, split: str) -> dict[int, str]:
    """Return a split's class names by class number; empty if they are not known yet."""
    seen = opening.glance(dataset.source, split, 0)
    found = seen.classes if seen and dataset.classes is not None else []
    if not found:
        return dict(enumerate(dataset.class_names or []))
    numbers = class_numbers.number_classes(
        f"the split '{split}'", found, _settings_of_classes(dataset)
    ).numbers
    return dict(sorted(zip(numbers or range(len(found)), found, strict=True)))
