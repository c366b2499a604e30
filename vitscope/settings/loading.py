"""Studies are read and checked completely before anything runs.

The first thing wrong ends in one sentence that names the file, the key, what was found and what is
allowed.
"""

import csv
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from functools import cache
from os.path import normpath
from pathlib import Path
from typing import Any

from vitscope.data import opening
from vitscope.errors import VitscopeError, listed, nearest, quoted, unknown
from vitscope.files.strict_yaml import load_yaml
from vitscope.measures import registry
from vitscope.networks.building.family import arch_schema, family_names, prepare
from vitscope.package_data import PUBLISHED_POINTS, ROOT
from vitscope.settings.buildups import check_buildups
from vitscope.settings.data_sets import check_data, read_class_names
from vitscope.settings.keys import (
    NAME,
    SOURCE_KEYS,
    Analysis,
    Config,
    Figure,
    Model,
    OwnMeasure,
    Recipe,
    Settings,
)
from vitscope.settings.moments import add_moments
from vitscope.settings.resolving import build_study
from vitscope.settings.schema import check, fill
from vitscope.settings.section import Schema, schema_of
from vitscope.settings.study import LOCK_SUFFIX, TRAINING_SPLITS, Study
from vitscope.training.snapshots import END

BUNDLED_STUDIES = ROOT / "config" / "studies"
CHECKPOINTS = ROOT / "resources" / "checkpoints"
SUFFIXES = (".yaml", ".yml")

# What two data sets may differ in and still have the same images, in the same order.
MAY_DIFFER = (
    "class_index",
    "class_names",
    "classes",
    "corrupted",
    "image_size",
    "interpolation",
    "mean",
    "resize",
    "std",
)


@cache
def analysis_schema() -> Schema:
    """Return the schema of an analysis, with a section for each measure that has settings."""
    own = schema_of(Analysis)
    measures = [registry.declared(name) for name in registry.names()]
    sections = {each.name: schema_of(each.settings) for each in measures if each.settings}
    defaults = {name: section | {"default": {}} for name, section in sections.items()}
    return own | {"properties": own["properties"] | defaults}


@cache
def study_schema() -> Schema:
    """Return the schema of a study, with what sources and measures declare of their settings."""
    schema = deepcopy(schema_of(Study))
    keys = schema["properties"]
    keys["analysis"] |= analysis_schema()
    own = schema_of(OwnMeasure)
    keys["measures"] = {
        "type": "object",
        "default": {},
        "description": own["description"],
        "propertyNames": NAME,
        "additionalProperties": own,
    }
    keys["data"]["additionalProperties"]["properties"]["source"] |= _source_schema()
    return schema


def _source_schema() -> Schema:
    """Return the schema of a source: its kind, and the keys that the module of the kind declares.

    A key of another kind is refused.
    """
    declared = {kind: opening.declared(kind) for kind in opening.names()}
    meanings = "; ".join(f"`{kind}`: {source.meaning}" for kind, source in declared.items())
    keys: Schema = {"kind": {"enum": list(declared), "description": f"{meanings}."}}
    kinds = {}
    for kind, source in declared.items():
        own = {key: SOURCE_KEYS[key] for key in source.shared} | source.keys
        keys |= own
        names = {"enum": ["kind", *own]}
        kinds[kind] = {"propertyNames": names, "required": [*source.required]}
    return {
        "additionalProperties": False,
        "required": ["kind"],
        "properties": keys,
        "kinds": kinds,
    }


def _check_models(path: Path, settings: Settings) -> None:
    # Of the recipe, a model gives only what differs, and a build-up too.
    recipe = schema_of(Recipe) | {"required": []}
    for name, model in settings["models"].items():
        key = f"models.{name}"
        if model["family"] not in family_names():
            raise unknown(path, f"{key}.family", model["family"], family_names())
        arch = arch_schema(model["family"])
        check(path, model["arch"], arch, within=("models", name, "arch"))
        if model["data"] not in settings["data"]:
            raise unknown(path, f"{key}.data", model["data"], settings["data"])
        split, splits = settings["analysis"]["split"], settings["data"][model["data"]]["splits"]
        if split not in splits:
            at = f"analysis.split, for {key} on data.{model['data']}"
            raise unknown(path, at, split, splits)
        check(path, model["training"], recipe, within=("models", name, "training"))
    for name, buildup in settings["buildups"].items():
        check(path, buildup["training"], recipe, within=("buildups", name, "training"))


def _prepare_archs(study: Study) -> Study:
    """Return a study whose models have the `arch` that jobs take, checked beyond its schema."""
    folder = study.path.parent
    models = {
        name: replace(
            model,
            arch=prepare(model.family, model.arch, folder, f"{study.path}: models.{name}.arch"),
        )
        for name, model in study.models.items()
    }
    return replace(study, models=models)


def _check_files(study: Study) -> None:
    for name, model in study.models.items():
        if END in model.snapshots:
            raise VitscopeError(
                f"{study.path}: models.{name}.snapshots.{END}: the snapshot '{END}' is the "
                f"`checkpoint` of the model itself: remove the key."
            )
        for key, entry in model.files().items():
            if "made" in entry:
                _check_made(f"{study.path}: models.{name}.{key}", key, entry, model)
            if "bundled" in entry:
                _check_bundled(study.path, f"models.{name}.{key}.bundled", entry["bundled"])


def _check_made(where: str, key: str, entry: Settings, model: Model) -> None:
    """Refuse weights that are made, where there is no function of the user's to make them."""
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


def _check_bundled(path: Path, key: str, bundled: str) -> None:
    # As it is written: a folder of checkpoints may be a link to another disk.
    file = Path(normpath(ROOT / bundled))
    if not (file.is_file() and file.is_relative_to(ROOT)):
        there = [str(found.relative_to(ROOT)) for found in CHECKPOINTS.rglob("*.*")]
        raise VitscopeError(
            f"{path}: {key}: found '{bundled}', allowed: a file of this repository, relative to "
            f"its root.{nearest(bundled, there)}"
        )


def _check_figures(study: Study) -> None:
    for name, figure in study.figures.items():
        key = f"figures.{name}"
        _check_members(study, key, figure)
        _check_shown(study, key, figure)
        _check_classes(study, key, figure)
        if figure.published is not None:
            _check_published(study.path, f"{key}.published", figure)


def _check_members(study: Study, key: str, figure: Figure) -> None:
    """Refuse models that there are not, pairs where models are shown, and the other way round."""
    of_pairs = registry.of(study).declared(figure.measure).of_pairs
    given, wanted = ("pairs", "models") if figure.pairs else ("models", "pairs")
    if of_pairs != bool(figure.pairs):
        raise VitscopeError(
            f"{study.path}: {key}: found '{given}', allowed: '{wanted}', which figures of the kind "
            f"'{figure.kind}' are of."
        )
    for model in figure.models:
        if model not in study.models:
            raise unknown(study.path, f"{key}.{given}", model, study.own_models)
    for one, other in figure.pairs:
        if _images_of(study, one) != _images_of(study, other):
            raise VitscopeError(
                f"{study.path}: {key}.pairs: found '{one}' on data.{study.models[one].data} and "
                f"'{other}' on data.{study.models[other].data}, allowed: two models on the same "
                f"images: data sets that differ in nothing but {listed(MAY_DIFFER)}."
            )


def _images_of(study: Study, model: str) -> Settings:
    """Return what decides which images a model is measured on, in which order."""
    data, split = asdict(study.dataset_of(model)), study.analysis.split
    kept = {name: value for name, value in data.items() if name not in MAY_DIFFER}
    return kept | {"splits": data["splits"][split]}


def _check_shown(study: Study, key: str, figure: Figure) -> None:
    """Refuse snapshots that a model of the figure lacks, or a kind that shows none."""
    if figure.snapshots is not None and not figure.of_snapshots:
        shown = registry.kinds().items()
        *others, last = [f"'{name}'" for name, kind in shown if kind.snapshots or kind.by_epoch]
        raise VitscopeError(
            f"{study.path}: {key}.snapshots: figures of the kind '{figure.kind}' have no such key, "
            f"those of the kinds {', '.join(others)} and {last} do: remove it."
        )
    for model in figure.models:
        moments = study.models[model].moments()
        for snapshot in figure.shown_snapshots():
            if snapshot not in moments:
                at = f"{key}.snapshots, for models.{model}"
                raise unknown(study.path, at, snapshot, moments)


def _check_classes(study: Study, key: str, figure: Figure) -> None:
    """Refuse a model that says nothing of the classes of its data, where a figure is about that."""
    needing = [name for name in figure.measures if _needs_classes(study, name)]
    for name in figure.models if needing else ():
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


def _needs_classes(study: Study, name: str) -> bool:
    """Tell whether a measure is about what models say of classes."""
    measures = registry.of(study)
    return measures.declared(measures.declared(name).parts_of or name).needs_classes


def _check_published(path: Path, key: str, figure: Figure) -> None:
    kind = registry.kinds().get(figure.kind)
    published, needed = figure.published, kind.published if kind else frozenset()
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
    if published is None:
        return
    if published.file not in curves:
        raise unknown(path, f"{key}.file", published.file, curves)
    for model, series in published.series.items():
        if model not in figure.models:
            raise unknown(path, f"{key}.series", model, figure.models)
        if series not in curves[published.file]:
            raise unknown(path, f"{key}.series.{model}", series, curves[published.file])


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


# The settings of a video that are about heads, and about the rollout, with their defaults.
OF_HEADS = {"block": None, "heads": None, "query": None, "brightest": None}
OF_ROLLOUT = {"fusion": "mean"}


def _check_videos(study: Study) -> None:
    for name, video in study.videos.items():
        key = f"videos.{name}"
        if video.model not in study.own_models:
            raise unknown(study.path, f"{key}.model", video.model, study.own_models)
        check_view(f"{study.path}: {key}", asdict(video))


def check_view(where: str, video: Mapping[str, Any]) -> None:
    """Refuse settings of a video that are about what it does not show."""
    shows, other, of_other = (
        ("rollout", "heads", OF_HEADS)
        if video["shows"] == "rollout"
        else ("heads", "rollout", OF_ROLLOUT)
    )
    for key, default in of_other.items():
        if video[key] != default:
            raise VitscopeError(
                f"{where}.{key}: found {quoted(video[key])}, which is about `shows: {other}`, "
                f"allowed: {quoted(default)} where it shows {shows}: remove the key."
            )


def _check_training(study: Study, results: str) -> None:
    """Refuse a model that is trained here, on a data set without the splits for training."""
    files = [entry for model in study.models.values() for entry in model.files().values()]
    for name, model in study.models.items():
        folder = f"{results}/{study.name}/training/{name}/"
        splits = study.dataset_of(name).splits
        trained = any(entry.get("path", "").startswith(folder) for entry in files)
        if trained:
            study.check_trainable(name)
        if trained and not splits.keys() >= {*TRAINING_SPLITS}:
            raise VitscopeError(
                f"{study.path}: data.{model.data}.splits: found {listed(splits)}, allowed: "
                f"{' and '.join(TRAINING_SPLITS)} among them: models.{name} is trained by this "
                f"workflow, which {folder} says, on the one and tested on the other."
            )


def load_study(path: Path, results: str = "results") -> Study:
    """Read, check and complete one study; `results` is the folder that the workflow writes to."""
    settings = load_yaml(path)
    schema = study_schema()
    check(path, settings, schema)
    fill(settings, schema)
    _check_models(path, settings)
    settings["data"] = read_class_names(path, settings["data"])
    study = add_moments(_prepare_archs(build_study(path.stem, path, settings)))
    _check_files(study)
    _check_figures(study)
    _check_videos(study)
    check_buildups(study)
    check_data(study)
    check(path, path.stem, NAME, within=("name of the file",))
    for measure in registry.names():
        registry.declared(measure).check(study)
    _check_training(study, results)
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


class StudyFiles(Mapping[str, Study]):
    """The studies that there are, by name; each file is read when its study is first asked for.

    A name whose file is wrong is among the names, and asking for it raises what is wrong.
    """

    def __init__(self, default: str, files: Mapping[str, Path], results: str) -> None:
        self.default = default
        self.files = dict(files)
        self.broken: dict[str, VitscopeError] = {}
        self._results = results
        self._loaded: dict[str, Study] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __contains__(self, name: object) -> bool:
        return name in self.files

    def __getitem__(self, name: str) -> Study:
        if name in self.broken:
            raise self.broken[name]
        if name not in self._loaded:
            try:
                self._loaded[name] = load_study(self.files[name], self._results)
            except VitscopeError as error:
                self.broken[name] = error
                raise
        return self._loaded[name]


def find_studies(config: Mapping[str, Any], where: str) -> StudyFiles:
    """Check the settings of the workflow; return the studies that there are, most of them unread.

    Only a file that the settings name is read at once, and what is wrong with it is raised; what is
    wrong with another study is raised when that is asked for. `where` says in messages where these
    settings come from.
    """
    settings = dict(config)
    check(where, settings, schema_of(Config))
    fill(settings, schema_of(Config))
    extra = settings["studies_dir"]
    asked = [Path(each).expanduser() for each in ([extra] if isinstance(extra, str) else extra)]
    # Those of a clone, if vitscope is installed from one.
    bundled = [BUNDLED_STUDIES] if BUNDLED_STUDIES.is_dir() else []
    found = [file for place in (*bundled, *asked) for file in _study_files(where, place)]
    files: dict[str, Path] = {}
    clashes: dict[str, VitscopeError] = {}
    for path in {file.resolve(): file for file in found}.values():
        if files.setdefault(path.stem, path) != path:
            clashes[path.stem] = VitscopeError(
                f"{path}: there is a study '{path.stem}' already, {files[path.stem]}: rename one "
                f"of the files."
            )
            if path in asked:
                raise clashes[path.stem]
    results = settings["pathvars"].get("results", "results")
    studies = StudyFiles(settings["study"], files, results)
    studies.broken |= clashes
    if studies.default not in studies:
        raise unknown(where, "study", studies.default, studies)
    for name, path in files.items():
        if path in asked:
            studies[name]
    return studies
