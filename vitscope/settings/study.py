"""Studies: which data, which models, which figures, and how they are measured.

A study is checked completely before anything runs; what is wrong is told in one sentence that
names the file, the key, what was found and what is allowed.
"""

import csv
from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import ceil
from os.path import normpath
from pathlib import Path
from typing import Any

from vitscope.drawing import kinds as figures
from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.files.strict_yaml import load_yaml
from vitscope.measures.frequency_noise.rings import sides
from vitscope.networks import families
from vitscope.networks.weight_sources import END
from vitscope.settings.schema import check, fill, listed, load, unknown

ROOT = Path(__file__).resolve().parents[2]
BUNDLED_STUDIES = ROOT / "config" / "studies"
CHECKPOINTS = ROOT / "resources" / "checkpoints"
PUBLISHED = ROOT / "resources" / "published"
SUFFIXES = (".yaml", ".yml")
LOCK_SUFFIX = ".lock.yaml"

# An unbiased HSIC divides by what is left of the images without three.
LEAST_CKA_BATCH = 4

# Of a trajectory, besides the end: the first weights, and some between.
LEAST_SNAPSHOTS = 2

# The splits that the rule train_model reads.
TRAINING_SPLITS = ("train", "test")

# The tables of the loss on augmented training images.
OF_LOSS = ("landscape", "hessian", "hessian_density", "fit")

# The tables that are of another split than analysis.split, and the settings that name it.
SPLIT_OF_TABLE = {
    "shape_texture": "shape_texture",
    "landscape": "augmented",
    "hessian": "augmented",
    "hessian_density": "augmented",
}

Settings = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """A checked study, its defaults filled in."""

    name: str
    path: Path
    settings: Settings

    @property
    def lock_path(self) -> Path:
        """Where digests of downloads are kept."""
        return self.path.with_name(self.path.stem + LOCK_SUFFIX)

    def model(self, name: str) -> Settings:
        """Return the entry of a model, its label and pixel statistics filled in."""
        entry: Settings = self.settings["models"][name]
        data = self.settings["data"][entry["data"]]
        filled = {"label": name, "mean": data["mean"], "std": data["std"]}
        return filled | entry

    def dataset(self, name: str) -> Settings:
        """Return the entry of a data set."""
        entry: Settings = self.settings["data"][name]
        return entry

    def images(self, model: str) -> int:
        """Return how many images a model is measured on."""
        analysis = self.settings["analysis"]
        split = self.dataset(self.model(model)["data"])["splits"][analysis["split"]]
        wanted, there = int(analysis["images"]), split["images"]
        return wanted if there is None else min(wanted, int(there))

    def shards(self, model: str) -> int:
        """Return into how many shards these images are cut."""
        return ceil(self.images(model) / int(self.settings["analysis"]["shard_size"]))

    def cka_batch(self, model: str) -> int:
        """Return how many images an estimate of the HSIC is of: all, if they fill no batch."""
        return min(int(self.settings["analysis"]["cka"]["batch_size"]), self.images(model))

    def split(self, table: str) -> str:
        """Return the split that a table is about."""
        analysis = self.settings["analysis"]
        section = SPLIT_OF_TABLE.get(table)
        return str(analysis[section]["split"] if section else analysis["split"])

    def splits(self, table: str) -> list[str]:
        """Return all splits whose images a table is made from; a trajectory is made from none."""
        if table == "trajectory":
            return []
        loss = [str(self.settings["analysis"]["augmented"]["split"])] if table == "fit" else []
        return [self.split(table), *loss]

    def models(self, table: str | None = None) -> list[str]:
        """Return the models of the figures that need a table, or of any, in the study's order."""
        shown = {
            model
            for figure in self.settings["figures"].values()
            if table is None or table in figures.KINDS[figure["kind"]].tables
            for model in figure["models"]
        }
        return [name for name in self.settings["models"] if name in shown]

    def snapshot(self, model: str, name: str) -> Settings:
        """Return the entry of a snapshot of a model."""
        entries: dict[str, Settings] = self.model(model)["snapshots"]
        if name not in entries:
            raise unknown(self.path, f"models.{model}.snapshots", name, entries)
        return entries[name]

    def snapshots(self, table: str, model: str) -> list[str]:
        """Return the snapshots of a model that figures of a table show, as training made them."""
        shown = {
            snapshot
            for figure in self.settings["figures"].values()
            if table in figures.KINDS[figure["kind"]].tables and model in figure["models"]
            for snapshot in shown_snapshots(figure)
        }
        return [name for name in snapshots_of(self.model(model)) if name in shown]

    def tables(self) -> list[str]:
        """Return the tables that the figures need."""
        kinds = {figure["kind"] for figure in self.settings["figures"].values()}
        return sorted({table for kind in kinds for table in figures.KINDS[kind].tables})

    def recipe(self, model: str) -> Settings:
        """Return how a model is trained: the study's recipe, changed where the model says so."""
        if "training" not in self.settings:
            raise VitscopeError(
                f"{self.path}: top level: the key 'training' is missing: add it to train {model}."
            )
        recipe: Settings = self.settings["training"] | self.model(model)["training"]
        return recipe

    def figure(self, name: str) -> Settings:
        """Return the entry of a figure."""
        entry: Settings = self.settings["figures"][name]
        return entry


def snapshots_of(model: Settings) -> list[str]:
    """Return the snapshots of a model, from first to last."""
    return [*model["snapshots"], END]


def shown_snapshots(figure: Settings) -> list[str]:
    """Return the snapshots that a figure shows, in its order; none if it is not about them."""
    shows = figures.KINDS[figure["kind"]].snapshots
    return list(figure.get("snapshots", [END])) if shows else []


def _check_models(path: Path, settings: Settings) -> None:
    for name, model in settings["models"].items():
        key = f"models.{name}"
        if model["family"] not in families.names():
            raise unknown(path, f"{key}.family", model["family"], families.names())
        arch = families.arch_schema(model["family"])
        check(path, model["arch"], arch, within=("models", name, "arch"))
        if model["data"] not in settings["data"]:
            raise unknown(path, f"{key}.data", model["data"], settings["data"])
        split, splits = settings["analysis"]["split"], settings["data"][model["data"]]["splits"]
        if split not in splits:
            at = f"analysis.split, for {key} on data.{model['data']}"
            raise unknown(path, at, split, splits)
        # Of the recipe, a model gives only what differs.
        recipe = {**load("study")["$defs"]["training"], "required": []}
        check(path, model["training"], recipe, within=("models", name, "training"))


def _files_of(name: str, model: Settings) -> dict[str, Settings]:
    """Return the entries of a model that name a file of its own, by their keys."""
    files = {f"models.{name}.checkpoint": model["checkpoint"]}
    for snapshot, entry in model["snapshots"].items():
        files[f"models.{name}.snapshots.{snapshot}"] = entry
    if "history" in model:
        files[f"models.{name}.history"] = model["history"]
    return files


def _check_files(path: Path, settings: Settings) -> None:
    for name, model in settings["models"].items():
        if END in model["snapshots"]:
            raise VitscopeError(
                f"{path}: models.{name}.snapshots.{END}: the snapshot '{END}' is the `checkpoint` "
                f"of the model itself: remove the key."
            )
        for key, entry in _files_of(name, model).items():
            if "bundled" in entry:
                _check_bundled(path, f"{key}.bundled", entry["bundled"])


def _check_bundled(path: Path, key: str, bundled: str) -> None:
    # As it is written: a folder of checkpoints may be a link to another disk.
    file = Path(normpath(ROOT / bundled))
    if not (file.is_file() and file.is_relative_to(ROOT)):
        there = [str(found.relative_to(ROOT)) for found in CHECKPOINTS.rglob("*.*")]
        raise VitscopeError(
            f"{path}: {key}: found '{bundled}', allowed: a file of this repository, relative to "
            f"its root.{nearest(bundled, there)}"
        )


def _check_figures(path: Path, settings: Settings) -> None:
    for name, figure in settings["figures"].items():
        key = f"figures.{name}"
        if figure["kind"] not in figures.KINDS:
            raise unknown(path, f"{key}.kind", figure["kind"], figures.KINDS)
        for model in figure["models"]:
            if model not in settings["models"]:
                raise unknown(path, f"{key}.models", model, settings["models"])
        _check_shown(path, key, figure, settings["models"])
        if "published" in figure:
            _check_published(path, f"{key}.published", figure)


def _check_shown(path: Path, key: str, figure: Settings, models: Settings) -> None:
    """Refuse snapshots that a model of the figure lacks, or a kind that shows none."""
    if "snapshots" in figure and not figures.KINDS[figure["kind"]].snapshots:
        kinds = (f"'{name}'" for name, kind in figures.KINDS.items() if kind.snapshots)
        raise VitscopeError(
            f"{path}: {key}.snapshots: figures of the kind '{figure['kind']}' have no such key, "
            f"those of the kinds {' and '.join(kinds)} do: remove it."
        )
    for model in figure["models"]:
        for snapshot in shown_snapshots(figure):
            if snapshot not in snapshots_of(models[model]):
                at = f"{key}.snapshots, for models.{model}"
                raise unknown(path, at, snapshot, snapshots_of(models[model]))


def _check_published(path: Path, key: str, figure: Settings) -> None:
    file = figure["published"]["file"]
    needed = figures.KINDS[figure["kind"]].published
    found = {file.name: _series(file, needed) for file in sorted(PUBLISHED.glob("*.csv"))}
    curves = {name: series for name, series in found.items() if series}
    if not curves:
        raise VitscopeError(
            f"{path}: {key}: there are no published points for figures of the kind "
            f"'{figure['kind']}': remove the key."
        )
    if file not in curves:
        raise unknown(path, f"{key}.file", file, curves)
    for model, series in figure["published"]["series"].items():
        if model not in figure["models"]:
            raise unknown(path, f"{key}.series", model, figure["models"])
        if series not in curves[file]:
            raise unknown(path, f"{key}.series.{model}", series, curves[file])


def _series(file: Path, needed: Set[str]) -> set[str]:
    """Return the names of the curves in a file of published points, if it has the columns."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines)
        if not needed or not {"model", *needed} <= set(rows.fieldnames or ()):
            return set()
        return {row["model"] for row in rows}


def _check_shape_texture(study: Study) -> None:
    """Refuse a split that a data set lacks, or one that is classified in two ways."""
    analysis = study.settings["analysis"]
    ours, theirs = analysis["shape_texture"], analysis["classification"]
    key = "analysis.shape_texture"
    for name in study.models("shape_texture"):
        data = study.model(name)["data"]
        splits = study.dataset(data)["splits"]
        if ours["split"] not in splits:
            at = f"{key}.split, for models.{name} on data.{data}"
            raise unknown(study.path, at, ours["split"], splits)
    if ours["split"] == analysis["split"] and ours["images"] != theirs["images"]:
        raise VitscopeError(
            f"{study.path}: {key}.images: found {quoted(ours['images'])}, allowed: the same as "
            f"analysis.classification.images, which is {quoted(theirs['images'])}: both are of the "
            f"split '{ours['split']}'."
        )


def _check_augmented(study: Study) -> None:
    """Refuse a model without a recipe, and a data set without images to augment."""
    split = study.settings["analysis"]["augmented"]["split"]
    for model in dict.fromkeys(name for table in OF_LOSS for name in study.models(table)):
        study.recipe(model)
        data = study.model(model)["data"]
        splits = study.dataset(data)["splits"]
        if split not in splits:
            at = f"analysis.augmented.split, for models.{model} on data.{data}"
            raise unknown(study.path, at, split, splits)


def _check_hessian(study: Study) -> None:
    """Refuse more batches than there are augmented images for."""
    analysis = study.settings["analysis"]
    hessian, images = analysis["hessian"], analysis["augmented"]["images"]
    measured = not {"hessian", "hessian_density"}.isdisjoint(study.tables())
    if measured and hessian["batches"] * hessian["batch_size"] > images:
        raise VitscopeError(
            f"{study.path}: analysis.hessian.batches: found {hessian['batches']} of "
            f"{hessian['batch_size']} images each, allowed: at most "
            f"{images // hessian['batch_size']}: analysis.augmented.images is {images}."
        )


def _check_trajectories(study: Study) -> None:
    """Refuse a model of which nothing is known between its first and its last weights."""
    for name in study.models("trajectory"):
        model = study.model(name)
        if "history" not in model and len(model["snapshots"]) < LEAST_SNAPSHOTS:
            raise VitscopeError(
                f"{study.path}: models.{name}.snapshots: found {listed(model['snapshots'])}, "
                f"allowed: {LEAST_SNAPSHOTS} or more, or a `history`: a figure of the kind "
                f"'trajectory' shows the model."
            )


def _check_training(study: Study, results: str) -> None:
    """Refuse to train a model, whose files another or the same names, without the splits for it."""
    models = study.settings["models"]
    files = [entry for name in models for entry in _files_of(name, models[name]).values()]
    for name, model in models.items():
        folder = f"{results}/{study.name}/training/{name}/"
        splits = study.dataset(model["data"])["splits"]
        trained = any(entry.get("path", "").startswith(folder) for entry in files)
        if trained and not splits.keys() >= {*TRAINING_SPLITS}:
            raise VitscopeError(
                f"{study.path}: data.{model['data']}.splits: found {listed(splits)}, allowed: "
                f"{' and '.join(TRAINING_SPLITS)} among them: models.{name} is trained by this "
                f"workflow, which {folder} says, on the one and tested on the other."
            )


def _check_cka(study: Study) -> None:
    """Refuse batches whose bounds would depend on the shards, or of too few images."""
    analysis = study.settings["analysis"]
    wanted, shard_size = analysis["cka"]["batch_size"], analysis["shard_size"]
    for model in study.models("cka"):
        images = study.images(model)
        if images < LEAST_CKA_BATCH:
            raise VitscopeError(
                f"{study.path}: models.{model} is measured on too few images for a figure of the "
                f"kind 'cka': found {images}, allowed: {LEAST_CKA_BATCH} or more."
            )
        if study.shards(model) > 1 and shard_size % study.cka_batch(model):
            raise VitscopeError(
                f"{study.path}: analysis.cka.batch_size: found {wanted}, allowed: a divisor of "
                f"analysis.shard_size, which is {shard_size}."
            )


def _check_rings(study: Study) -> None:
    """Refuse frequencies of noise that images of a figure do not have."""
    noise = study.settings["analysis"]["frequency_noise"]
    for model in study.models("frequency_noise"):
        size = study.dataset(study.model(model)["data"])["image_size"]
        for frequency in noise["frequencies"]:
            try:
                sides(frequency, noise["width"], size)
            except VitscopeError as error:
                raise VitscopeError(f"{study.path}: models.{model}: {error}") from error


def _check_edges(study: Study) -> None:
    """Refuse a middle band that ends before it begins."""
    begin, end = study.settings["analysis"]["spectrum"]["edges"]
    if begin >= end:
        raise VitscopeError(
            f"{study.path}: analysis.spectrum.edges: found [{begin}, {end}], allowed: two numbers "
            f"of which the second is larger."
        )


def load_study(path: Path, results: str = "results") -> Study:
    """Read, check and complete one study; `results` is the folder that the workflow writes to."""
    settings = load_yaml(path)
    schema = load("study")
    check(path, settings, schema)
    fill(settings, schema, schema)
    _check_models(path, settings)
    _check_files(path, settings)
    _check_figures(path, settings)
    check(path, path.stem, schema["$defs"]["name"], within=("name of the file",))
    study = Study(path.stem, path, settings)
    _check_cka(study)
    _check_edges(study)
    _check_augmented(study)
    _check_hessian(study)
    _check_rings(study)
    _check_shape_texture(study)
    _check_training(study, results)
    _check_trajectories(study)
    return study


def _study_files(where: str, place: Path) -> list[Path]:
    """Return the studies of a folder, or the one that is a file."""
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise VitscopeError(
            f"{where}: studies_dir: found '{place}', allowed: a folder or file that exists."
        )
    files = [file for file in sorted(place.iterdir()) if _is_study(file)]
    if not files:
        raise VitscopeError(
            f"{where}: studies_dir: found '{place}', which holds no study, allowed: a folder "
            f"with files NAME.yaml."
        )
    return files


def _is_study(file: Path) -> bool:
    hidden = file.name.startswith(".")
    return file.suffix in SUFFIXES and not hidden and not file.name.endswith(LOCK_SUFFIX)


def load_config(config: Mapping[str, Any], where: str) -> tuple[str, dict[str, Study]]:
    """Check the settings of the workflow; return the default study's name and all studies.

    `where` says in messages where these settings come from.
    """
    settings = dict(config)
    schema = load("config")
    check(where, settings, schema)
    fill(settings, schema, schema)
    extra = settings["studies_dir"]
    places = [BUNDLED_STUDIES, *map(Path, [extra] if isinstance(extra, str) else extra)]
    files = [file for place in places for file in _study_files(where, place.expanduser())]
    studies: dict[str, Study] = {}
    for path in {file.resolve(): file for file in files}.values():
        study = load_study(path, settings["pathvars"].get("results", "results"))
        if study.name in studies:
            raise VitscopeError(
                f"{path}: there is a study '{study.name}' already, {studies[study.name].path}: "
                f"rename one of the files."
            )
        studies[study.name] = study
    default = settings["study"]
    if default not in studies:
        raise unknown(where, "study", default, studies)
    return default, studies
