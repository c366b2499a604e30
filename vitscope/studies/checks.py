"""Check a study beyond its schema: files, figures, videos, build-ups, style, trainings."""

import csv
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from itertools import product
from math import ceil
from os.path import normpath
from pathlib import Path
from typing import Any

from vitscope.buildup.rule import BASELINES, FAMILY, stage_name
from vitscope.errors import VitscopeError, check_known, listed, nearest, quoted, unknown, wrong
from vitscope.image_size import height_and_width
from vitscope.measures import registry
from vitscope.networks.building.family import arch_schema, family_names
from vitscope.package_data import PUBLISHED_POINTS, ROOT
from vitscope.settings.keys import BuildUp, Figure, Model, Settings, Style, VideoSettings
from vitscope.settings.section import schema_of_section
from vitscope.settings.snapshots import END
from vitscope.settings.study import (
    MAY_DIFFER,
    PAGES_OF_MODEL,
    PAGES_OF_STUDY,
    TRAINING_SPLITS,
    Study,
)
from vitscope.studies.data_sets import check_data_sets

CHECKPOINTS = ROOT / "resources" / "checkpoints"
# The columns that published points of a build-up need.
OF_BUILDUP = {"branch", "msa_number", "accuracy"}
# For each view, the settings of a video that apply to no other view.
OF_VIEWS = {"heads": ("block", "heads", "query", "brightest"), "rollout": ("fusion",)}


def check_study(study: Study, results: str) -> None:
    """Refuse a study that cannot be made; `results` is the folder that the workflow writes to."""
    _check_files_of_models(study)
    _check_names_of_pages(study)
    for name, figure in study.figures.items():
        _check_models_of_figure(study, f"figures.{name}", figure)
        _check_figure_by_epoch(study, f"figures.{name}", figure)
        _check_snapshots_of_figure(study, f"figures.{name}", figure)
        _check_classes_of_figure(study, f"figures.{name}", figure)
        _check_published_of_figure(study, f"figures.{name}.published", figure)
    for name, video in study.videos.items():
        check_known(study.path, f"videos.{name}.model", video.model, study.own_models)
        check_view_of_video(f"{study.path}: videos.{name}", asdict(video))
        if study.models[video.model].interventions:
            allowed = "a model without interventions: videos show networks as they are."
            raise wrong(study.path, f"videos.{name}.model", video.model, allowed)
    _check_buildups(study)
    _check_style_of_study(study)
    check_data_sets(study)
    for measure in registry.names():
        registry.declared(measure).check(study)
    _check_recipes(study)
    _check_training(study, results)


def _check_names_of_pages(study: Study) -> None:
    """Refuse a figure with the name of a page of the whole study, or of one of its models."""
    models = [f"{page}{model}" for page in PAGES_OF_MODEL for model in study.models]
    for section in ("figures", "buildups", "videos"):
        for name in sorted(getattr(study, section)):
            where = study.path, section, name
            if name in PAGES_OF_STUDY:
                pages = f"{', '.join(PAGES_OF_STUDY)}, which are pages of the whole study."
                raise wrong(*where, f"any name but {pages}")
            if name in models:
                raise wrong(*where, "any other name: it is that of a page of a model.")


def _check_style_of_study(study: Study) -> None:
    for family in study.style.palette:
        check_known(study.path, "style.palette", family, family_names())
    # Do not check the default font, which is part of Matplotlib: searching for fonts takes long.
    if study.style.font != schema_of_section(Style)["properties"]["font"]["default"]:
        from vitscope.drawing.saving import check_font

        check_font(f"{study.path}: style.font", study.style.font)


def _check_files_of_models(study: Study) -> None:
    for name, model in study.models.items():
        if END in model.snapshots:
            raise VitscopeError(
                f"{study.path}: models.{name}.snapshots.{END}: the snapshot '{END}' is the "
                f"`checkpoint` of the model itself: remove the key."
            )
        unlike = model.pretraining.unlike if model.pretraining else []
        named = {"pretraining.unlike": unlike, "averages": [*filter(None, [model.averages])]}
        for key, other in ((key, other) for key, others in named.items() for other in others):
            if other not in study.models:
                raise unknown(study.path, f"models.{name}.{key}", other, study.own_models)
        for key, entry in model.files().items():
            if "made" in entry:
                _check_made_weights_of_model(
                    f"{study.path}: models.{name}.{key}", key, entry, model
                )
            if "bundled" in entry:
                file = _bundled_path(entry["bundled"])
                if file is None or not file.is_file():
                    there = [str(found.relative_to(ROOT)) for found in CHECKPOINTS.rglob("*.*")]
                    hint = nearest(entry["bundled"], there)
                    allowed = f"a file of this repository, relative to its root.{hint}"
                    at = f"models.{name}.{key}.bundled"
                    raise wrong(study.path, at, entry["bundled"], allowed)


def _check_made_weights_of_model(where: str, key: str, entry: Settings, model: Model) -> None:
    """Refuse `made` if no function of the user makes the weights, and keys that need a file."""
    if model.family != "python" or key != "checkpoint":
        raise VitscopeError(
            f"{where}.made: only the `checkpoint` of a model of the family python can be made by "
            f"its function: say where the file is."
        )
    for choice in entry.keys() & {"key", "ignore"}:
        raise VitscopeError(
            f"{where}.{choice}: weights that are made are in no file, of which this would choose "
            f"some: remove the key."
        )
    if len(entry) > 1:
        raise VitscopeError(f"{where}.sha256: weights that are made are no file: remove the key.")


def _bundled_path(path: str) -> Path | None:
    """Return the path of a bundled file or folder; None if it is outside the repository."""
    # Do not follow links: a folder of checkpoints may be a link to another disk.
    place = Path(normpath(ROOT / path))
    return place if place.is_relative_to(ROOT) else None


def _check_models_of_figure(study: Study, key: str, figure: Figure) -> None:
    wanted = Figure.EITHER[registry.of(study).declared(figure.measure).models - 1]
    if figure.named_by != wanted:
        allowed = f"'{wanted}', which figures of the kind '{figure.kind}' are of."
        raise wrong(study.path, key, figure.named_by, allowed)
    all_pairs = registry.of(study).kinds()[figure.kind].all_pairs
    given = "models" if all_pairs else figure.named_by
    for model in figure.models:
        if model not in study.models:
            raise unknown(study.path, f"{key}.{given}", model, study.own_models)
    for one, other in ((one, other) for one, *others in figure.groups for other in others):
        if study.settings_of_images(one) != study.settings_of_images(other):
            raise VitscopeError(
                f"{study.path}: {key}.{given}: found '{one}' on data.{study.models[one].data} and "
                f"'{other}' on data.{study.models[other].data}, allowed: two models on the same "
                f"images: data sets that differ in nothing but {listed(MAY_DIFFER)}."
            )


def _check_figure_by_epoch(study: Study, key: str, figure: Figure) -> None:
    beside = [each for each in ("change", "together") if figure.options.get(each)]
    if figure.options.get("by_epoch") and (beside or figure.published):
        other = beside[0] if beside else "published"
        raise VitscopeError(
            f"{study.path}: {key}.by_epoch: a figure by epoch shows nothing by its key '{other}': "
            f"remove one of the two."
        )


def _check_snapshots_of_figure(study: Study, key: str, figure: Figure) -> None:
    if figure.snapshots is not None and not figure.of_snapshots:
        shown = registry.kinds().items()
        *others, last = [f"'{name}'" for name, kind in shown if kind.snapshots or kind.by_epoch]
        raise VitscopeError(
            f"{study.path}: {key}.snapshots: figures of the kind '{figure.kind}' have no such key, "
            f"those of the kinds {', '.join(others)} and {last}, and those with `by_epoch: true`, "
            f"do: remove it."
        )
    for model in figure.models:
        moments = study.models[model].moments()
        for snapshot in figure.shown_snapshots():
            check_known(study.path, f"{key}.snapshots, for models.{model}", snapshot, moments)


def _check_classes_of_figure(study: Study, key: str, figure: Figure) -> None:
    declared = registry.of(study).declared
    measured = [declared(declared(name).parts_of or name) for name in figure.measures]
    for name in figure.models if any(each.needs_classes for each in measured) else ():
        model, data = study.models[name], study.dataset_of(name)
        if model.classes is not None and model.classes == data.classes:
            continue
        known = "no" if data.classes is None else data.classes
        found = (
            "has no classifier (`classes: null`)"
            if model.classes is None
            else f"tells {model.classes} classes apart where data.{model.data} has {known} classes"
        )
        raise VitscopeError(
            f"{study.path}: {key}: a figure of the kind '{figure.kind}' needs what a model says of "
            f"classes, and models.{name} {found}: leave the model out of the figure, or give it a "
            f"checkpoint that tells the classes of its data set apart."
        )


def _check_published_of_figure(study: Study, key: str, figure: Figure) -> None:
    path, published = study.path, figure.published
    if published is None:
        return
    kind = registry.kinds().get(figure.kind)
    needed = kind.published if kind else frozenset()
    curves = {
        name: series
        for name, (columns, series) in _published_curves().items()
        if needed and {"model", *needed} <= columns
    }
    if not curves:
        raise VitscopeError(
            f"{path}: {key}: there are no published points for figures of the kind "
            f"'{figure.kind}': remove the key."
        )
    check_known(path, f"{key}.file", published.file, curves)
    if not published.series and not published.others:
        raise VitscopeError(f"{path}: {key}: the key 'series' is missing: add it.")
    if published.others and not (kind and kind.others):
        allowed = f"none for figures of the kind '{figure.kind}', which show the published series"
        raise wrong(path, f"{key}.others", published.others[0], f"{allowed} of their models.")
    for series in published.others:
        check_known(path, f"{key}.others", series, curves[published.file])
    for model, series in published.series.items():
        check_known(path, f"{key}.series", model, figure.models)
        check_known(path, f"{key}.series.{model}", series, curves[published.file])
        if published.same_models and study.dataset_of(model).source["kind"] == "sample":
            raise VitscopeError(
                f"{path}: {key}.same_models: found true, but models.{model} is measured on another "
                f"photograph than the published one: remove the key, or name the published image "
                f"in data.{study.models[model].data}.source."
            )


@cache
def _published_curves() -> dict[str, tuple[set[str], set[str]]]:
    """Return the columns of each file of published points, and the names of its curves."""
    found = {}
    for file in sorted(PUBLISHED_POINTS.glob("*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            rows = csv.DictReader(lines)
            columns = {*(rows.fieldnames or ())}
            found[file.name] = columns, {row["model"] for row in rows if "model" in columns}
    return found


def check_view_of_video(where: str, video: Mapping[str, Any]) -> None:
    """Refuse video settings about things that the video does not show."""
    schemas = schema_of_section(VideoSettings)["properties"]
    for view, keys in OF_VIEWS.items():
        for key in keys:
            default = schemas[key]["default"]
            if view != video["shows"] and video[key] != default:
                raise VitscopeError(
                    f"{where}.{key}: found {quoted(video[key])}, which is about `shows: {view}`, "
                    f"allowed: {quoted(default)} where it shows {video['shows']}: remove the key."
                )


def _check_buildups(study: Study) -> None:
    for name, entry in study.buildups.items():
        key = f"buildups.{name}"
        if name in study.figures:
            raise VitscopeError(
                f"{study.path}: {key}: there is a figure '{name}', which would be the same file: "
                f"rename one of them."
            )
        _check_baseline_of_buildup(study, f"{key}.baseline", entry.baseline)
        _check_stages_of_buildup(study, key, entry)
        study.recipe_of_steps(name)
        how = f"the networks of {key} are trained on the one and compared on the other."
        _check_trainable(study, entry.baseline, how)
        _check_files_of_buildup(study, key, entry)


def _check_baseline_of_buildup(study: Study, key: str, baseline: str) -> None:
    where = f"{study.path}: {key}"
    check_known(study.path, key, baseline, study.own_models)
    model = study.models[baseline]
    if model.family not in BASELINES:
        raise VitscopeError(
            f"{where}: found a model of the family '{model.family}', allowed: {listed(BASELINES)}, "
            f"whose blocks become MSAs."
        )
    lacking = model.arch.keys() - arch_schema(FAMILY)["properties"].keys()
    if lacking:
        raise VitscopeError(
            f"{where}: found {listed(lacking)} in models.{baseline}.arch, which no AlterNet has: "
            f"choose a baseline without."
        )
    if "depth" in model.arch:
        raise VitscopeError(
            f"{where}: found a `depth` in models.{baseline}.arch, allowed: a `block`, and "
            f"`blocks` such as [3, 4, 6, 4] of the paper, whose last stage has room for two MSAs."
        )
    if any(given := model.arch.get("attention", ())):
        allowed = "[0, 0, 0, 0], where the build-up begins."
        raise wrong(where, f"models.{baseline}.arch.attention", given, allowed)


def _check_stages_of_buildup(study: Study, key: str, entry: BuildUp) -> None:
    """Refuse a baseline without room for an MSA, or with maps that windows do not divide."""
    model, size = study.models[entry.baseline], study.dataset_of(entry.baseline).image_size
    roomy = [stage for stage, count in enumerate(model.arch["blocks"]) if count >= 2]
    if not roomy:
        blocks = f"{key}.baseline: models.{entry.baseline}.arch.blocks"
        allowed = "two blocks at least in a stage, of which the second becomes an MSA."
        raise wrong(study.path, blocks, model.arch["blocks"], allowed)
    behind = 4 if model.arch.get("stem") else 1
    for stage, whole in product(roomy, height_and_width(size)):
        side = ceil(whole / behind / 2**stage)
        if side % entry.window:
            allowed = f"a divisor of {side}, the side of the maps of the stage {stage_name(stage)}."
            raise wrong(study.path, f"{key}.window", entry.window, allowed)


def _check_files_of_buildup(study: Study, key: str, entry: BuildUp) -> None:
    if entry.weights is not None:
        bundled = entry.weights["bundled"]
        folder = _bundled_path(bundled)
        if folder is None or not folder.is_dir():
            allowed = "a folder of this repository, relative to its root: correct it, or leave "
            allowed += "`weights` out to train."
            raise wrong(study.path, f"{key}.weights.bundled", bundled, allowed)
    files = [name for name, (columns, _) in _published_curves().items() if columns >= OF_BUILDUP]
    if entry.published is not None and entry.published not in files:
        hint = nearest(entry.published, files)
        allowed = f"{listed(files)}, which have accuracies by number of MSAs.{hint}"
        raise wrong(study.path, f"{key}.published", entry.published, allowed)


def _check_recipes(study: Study) -> None:
    """Refuse recipes whose settings do not go together, each of which is allowed alone."""
    if study.training is None:
        return
    recipes = {f"models.{name}.training": study.recipe(name) for name in study.own_models}
    recipes |= {f"buildups.{name}.training": study.recipe_of_steps(name) for name in study.buildups}
    for key, recipe in {"training": study.training, **recipes}.items():
        if recipe.crop and recipe.crop[0] > recipe.crop[1]:
            allowed = "the smaller share first."
            raise wrong(study.path, f"{key}.crop", recipe.crop, allowed)
        if recipe.warmup_epochs > recipe.epochs:
            allowed = f"at most {recipe.epochs}, which is `epochs`."
            raise wrong(study.path, f"{key}.warmup_epochs", recipe.warmup_epochs, allowed)


def _check_training(study: Study, results: str) -> None:
    """Refuse models that this workflow cannot train, although their paths say that it does."""
    files = [entry for model in study.models.values() for entry in model.files().values()]
    for name in study.models:
        folder = f"{results}/{study.name}/training/{name}/"
        if any(entry.get("path", "").startswith(folder) for entry in files):
            where = f"models.{name} is trained by this workflow, which {folder} says,"
            _check_trainable(study, name, f"{where} on the one and tested on the other.")


def _check_trainable(study: Study, model: str, how: str) -> None:
    study.check_trainable(model)
    splits, data = study.dataset_of(model).splits, study.models[model].data
    if not splits.keys() >= {*TRAINING_SPLITS}:
        raise VitscopeError(
            f"{study.path}: data.{data}.splits: found {listed(splits)}, allowed: "
            f"{' and '.join(TRAINING_SPLITS)} among them: {how}"
        )
