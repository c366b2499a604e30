"""Build-ups of a study are checked beyond their schema, before anything is trained."""

import csv
from itertools import product
from math import ceil
from os.path import normpath
from pathlib import Path

from vitscope.buildup.rule import BASELINES, FAMILY, stage_name
from vitscope.errors import VitscopeError, listed, nearest, quoted, unknown
from vitscope.image_size import height_and_width
from vitscope.networks.building.family import arch_schema
from vitscope.package_data import PUBLISHED_POINTS, ROOT
from vitscope.settings.keys import BuildUp
from vitscope.settings.study import TRAINING_SPLITS, Study

# What a file of published points of a build-up has.
COLUMNS = {"branch", "msa_number", "accuracy"}


def check_buildups(study: Study) -> None:
    """Refuse build-ups of which not all steps can be made."""
    for name, entry in study.buildups.items():
        key = f"buildups.{name}"
        _check_name(study, name)
        _check_baseline(study, key, entry)
        _check_stages(study, key, entry)
        _check_recipe(study, name)
        _check_weights(study, key, entry)
        _check_published(study, key, entry)


def _check_name(study: Study, name: str) -> None:
    """Refuse a name that a figure has: both would be the same file."""
    if name in study.figures:
        raise VitscopeError(
            f"{study.path}: buildups.{name}: there is a figure '{name}', which would be the same "
            f"file: rename one of them."
        )


def _check_baseline(study: Study, key: str, entry: BuildUp) -> None:
    where = f"{study.path}: {key}.baseline"
    if entry.baseline not in study.own_models:
        raise unknown(study.path, f"{key}.baseline", entry.baseline, study.own_models)
    model = study.models[entry.baseline]
    if model.family not in BASELINES:
        raise VitscopeError(
            f"{where}: found a model of the family '{model.family}', allowed: {listed(BASELINES)}, "
            f"whose blocks become MSAs."
        )
    lacking = [key for key in model.arch if key not in arch_schema(FAMILY)["properties"]]
    if lacking:
        raise VitscopeError(
            f"{where}: found {listed(lacking)} in models.{entry.baseline}.arch, which no AlterNet "
            f"has: choose a baseline without."
        )
    if "depth" in model.arch:
        raise VitscopeError(
            f"{where}: found a `depth` in models.{entry.baseline}.arch, allowed: a `block`, and "
            f"`blocks` such as [3, 4, 6, 4] of the paper, whose last stage has room for two MSAs."
        )
    if any(model.arch.get("attention", ())):
        raise VitscopeError(
            f"{where}: models.{entry.baseline}.arch.attention: found "
            f"{quoted(model.arch['attention'])}, allowed: [0, 0, 0, 0], where the build-up begins."
        )


def _check_stages(study: Study, key: str, entry: BuildUp) -> None:
    """Refuse a baseline without room for an MSA, or with maps that windows do not fit in."""
    model, size = study.models[entry.baseline], study.dataset_of(entry.baseline).image_size
    roomy = [stage for stage, count in enumerate(model.arch["blocks"]) if count >= 2]
    if not roomy:
        raise VitscopeError(
            f"{study.path}: {key}.baseline: models.{entry.baseline}.arch.blocks: found "
            f"{quoted(model.arch['blocks'])}, allowed: two blocks at least in a stage, of which "
            f"the second becomes an MSA."
        )
    behind = 4 if model.arch.get("stem") else 1
    for stage, whole in product(roomy, height_and_width(size)):
        side = ceil(whole / behind / 2**stage)
        if side % entry.window:
            raise VitscopeError(
                f"{study.path}: {key}.window: found {entry.window}, allowed: a divisor of "
                f"{side}, the side of the maps of the stage {stage_name(stage)}."
            )


def _check_recipe(study: Study, name: str) -> None:
    entry = study.buildups[name]
    study.recipe_of_steps(name)
    study.check_trainable(entry.baseline)
    splits = study.dataset_of(entry.baseline).splits
    if not splits.keys() >= {*TRAINING_SPLITS}:
        raise VitscopeError(
            f"{study.path}: data.{study.models[entry.baseline].data}.splits: found "
            f"{listed(splits)}, allowed: {' and '.join(TRAINING_SPLITS)} among them: the networks "
            f"of buildups.{name} are trained on the one and compared on the other."
        )


def _check_weights(study: Study, key: str, entry: BuildUp) -> None:
    if entry.weights is None:
        return
    bundled = entry.weights["bundled"]
    # As it is written: a folder of checkpoints may be a link to another disk.
    folder = Path(normpath(ROOT / bundled))
    if not (folder.is_dir() and folder.is_relative_to(ROOT)):
        raise VitscopeError(
            f"{study.path}: {key}.weights.bundled: found {quoted(bundled)}, allowed: a folder of "
            f"this repository, relative to its root: correct it, or leave `weights` out to train."
        )


def _check_published(study: Study, key: str, entry: BuildUp) -> None:
    if entry.published is None:
        return
    files = [file.name for file in sorted(PUBLISHED_POINTS.glob("*.csv")) if _is_buildup(file.name)]
    if entry.published not in files:
        raise VitscopeError(
            f"{study.path}: {key}.published: found {quoted(entry.published)}, allowed: "
            f"{listed(files)}, which have accuracies by number of MSAs."
            f"{nearest(entry.published, files)}"
        )


def _is_buildup(file: str) -> bool:
    with (PUBLISHED_POINTS / file).open(encoding="utf-8", newline="") as lines:
        return set(csv.DictReader(lines).fieldnames or ()) >= COLUMNS
