"""Studies: which data, which models, which figures, and how they are measured.

A study is checked completely before anything runs; what is wrong is told in one sentence that
names the file, the key, what was found and what is allowed.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, relevance

from vitscope import families, figures
from vitscope.errors import VitscopeError, nearest

ROOT = Path(__file__).parent.parent
SCHEMAS = ROOT / "config" / "schemas"
BUNDLED_STUDIES = ROOT / "config" / "studies"
LOCK_SUFFIX = ".lock.yaml"

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
        filled = {"label": name, "mean": data["mean"], "std": data["std"], "training": {}}
        return filled | entry

    def dataset(self, name: str) -> Settings:
        """Return the entry of a data set."""
        entry: Settings = self.settings["data"][name]
        return entry

    def images(self, model: str) -> int:
        """Return how many images a model is measured on."""
        analysis = self.settings["analysis"]
        split = self.dataset(self.model(model)["data"])["splits"][analysis["split"]]
        return min(analysis["images"], split["images"] or analysis["images"])

    def shards(self, model: str) -> int:
        """Return into how many shards these images are cut."""
        return ceil(self.images(model) / self.settings["analysis"]["shard_size"])

    def models(self, kind: str | None = None) -> list[str]:
        """Return the models that figures of a kind show, or any figure, in the study's order."""
        shown = {
            model
            for figure in self.settings["figures"].values()
            if kind in (None, figure["kind"])
            for model in figure["models"]
        }
        return [name for name in self.settings["models"] if name in shown]

    def recipe(self, model: str) -> Settings:
        """Return how a model is trained: the study's recipe, changed where the model says so."""
        recipe: Settings = self.settings.get("training", {})
        return recipe | self.model(model)["training"]

    def figure(self, name: str) -> Settings:
        """Return the entry of a figure."""
        entry: Settings = self.settings["figures"][name]
        return entry


def load_yaml(path: Path) -> Settings:
    """Read a YAML file whose top level is a mapping."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise VitscopeError(f"Cannot read {path}: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = getattr(error, "problem_mark", None)
        line = f" at line {where.line + 1}" if where else ""
        raise VitscopeError(f"{path} is not valid YAML{line}: {_first_line(error)}.") from error
    if not isinstance(value, dict):
        raise VitscopeError(f"{path} must hold keys and values, and holds {_told(value)}.")
    return value


def _first_line(error: Exception) -> str:
    return str(getattr(error, "problem", None) or error).splitlines()[0].rstrip(".")


def _told(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@cache
def _schema(name: str) -> Settings:
    return load_yaml(SCHEMAS / f"{name}.schema.yaml")


def _key_path(parts: Iterable[object]) -> str:
    return ".".join(str(part) for part in parts)


def _names(allowed: Iterable[str]) -> str:
    return ", ".join(sorted(allowed)) or "nothing"


def _unknown(path: Path, key: str, found: object, allowed: Iterable[str]) -> VitscopeError:
    allowed = list(allowed)
    return VitscopeError(
        f"{path}: {key}: found '{found}', allowed: {_names(allowed)}."
        f"{nearest(str(found), allowed)}"
    )


def _unknown_key(path: Path, error: ValidationError) -> VitscopeError:
    allowed = error.schema.get("properties", {})
    extra = next(key for key in error.instance if key not in allowed)
    key = _key_path([*error.absolute_path, extra])
    return VitscopeError(
        f"{path}: {key}: unknown key, allowed: {_names(allowed)}.{nearest(str(extra), allowed)}"
    )


def _choice(error: ValidationError) -> str:
    """Say what was expected where several keys exclude each other."""
    names = [option["required"][0] for option in error.validator_value]
    given = [name for name in names if name in error.instance]
    found = " and ".join(given) if given else "none of them"
    return f"found {found}, allowed: exactly one of {_names(names)}"


_EXPECTED = {
    "type": lambda error: f"a value of type {error.validator_value}",
    "pattern": lambda error: f"text that matches {error.validator_value}",
    "minimum": lambda error: f"a number from {error.validator_value} on",
    "exclusiveMinimum": lambda error: f"a number above {error.validator_value}",
    "maximum": lambda error: f"a number up to {error.validator_value}",
    "minItems": lambda error: f"at least {error.validator_value} entries",
    "maxItems": lambda error: f"at most {error.validator_value} entries",
    "minProperties": lambda error: f"at least {error.validator_value} entry",
    "uniqueItems": lambda _: "entries that differ from each other",
}


def _as_sentence(path: Path, error: ValidationError) -> VitscopeError:
    key = _key_path(error.absolute_path) or "top level"
    if error.validator == "additionalProperties":
        return _unknown_key(path, error)
    if error.validator == "enum":
        return _unknown(path, key, error.instance, map(str, error.validator_value))
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        return VitscopeError(f"{path}: {key}: the key '{missing}' is missing.")
    if error.validator == "oneOf":
        return VitscopeError(f"{path}: {key}: {_choice(error)}.")
    told = _EXPECTED.get(str(error.validator))
    expected = told(error) if told else error.message
    return VitscopeError(f"{path}: {key}: found {_told(error.instance)}, allowed: {expected}.")


def _check(path: Path, settings: object, schema: Settings, within: Sequence[object] = ()) -> None:
    errors = list(Draft202012Validator(schema).iter_errors(settings))
    if errors:
        error = max(errors, key=relevance)
        error.path.extendleft(reversed(within))
        raise _as_sentence(path, error)


def _resolved(schema: Settings, root: Settings) -> Settings:
    if "$ref" not in schema:
        return schema
    target: Any = root
    for part in schema["$ref"].removeprefix("#/").split("/"):
        target = target[part]
    return target | {key: value for key, value in schema.items() if key != "$ref"}


def _fill(settings: Any, schema: Settings, root: Settings) -> None:
    """Put the defaults of the schema where the settings are silent."""
    schema = _resolved(schema, root)
    if not isinstance(settings, dict):
        return
    for key, inner in schema.get("properties", {}).items():
        inner = _resolved(inner, root)
        if "default" in inner:
            settings.setdefault(key, deepcopy(inner["default"]))
        if key in settings:
            _fill(settings[key], inner, root)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for key in settings.keys() - schema.get("properties", {}).keys():
            _fill(settings[key], others, root)


def _check_models(path: Path, settings: Settings) -> None:
    for name, model in settings["models"].items():
        key = f"models.{name}"
        if model["family"] not in families.names():
            raise _unknown(path, f"{key}.family", model["family"], families.names())
        schema = families.arch_schema(model["family"])
        _check(path, model["arch"], schema, within=("models", name, "arch"))
        if model["data"] not in settings["data"]:
            raise _unknown(path, f"{key}.data", model["data"], settings["data"])
        if "training" in model:
            training = {**_schema("study")["$defs"]["training"], "required": []}
            _check(path, model["training"], training, within=("models", name, "training"))
        splits = settings["data"][model["data"]]["splits"]
        if settings["analysis"]["split"] not in splits:
            raise _unknown(path, "analysis.split", settings["analysis"]["split"], splits)


def _check_files(path: Path, settings: Settings) -> None:
    for name, model in settings["models"].items():
        bundled = model["checkpoint"].get("bundled")
        if bundled is not None and not (ROOT / bundled).is_file():
            raise VitscopeError(
                f"{path}: models.{name}.checkpoint.bundled: the file {bundled} does not exist."
            )


def _check_figures(path: Path, settings: Settings) -> None:
    for name, figure in settings["figures"].items():
        key = f"figures.{name}"
        if figure["kind"] not in figures.KINDS:
            raise _unknown(path, f"{key}.kind", figure["kind"], figures.KINDS)
        series = figure.get("published", {}).get("series", {})
        for model in (*figure["models"], *series):
            if model not in settings["models"]:
                raise _unknown(path, f"{key}.models", model, settings["models"])
        if "published" in figure:
            _check_published(path, f"{key}.published", figure["published"])


def _check_published(path: Path, key: str, published: Settings) -> None:
    folder = ROOT / "resources" / "published"
    present = sorted(file.name for file in folder.glob("*.csv"))
    if published["file"] not in present:
        raise _unknown(path, f"{key}.file", published["file"], present)
    with (folder / published["file"]).open(encoding="utf-8", newline="") as file:
        series = {row.get("model", "") for row in csv.DictReader(file)}
    for model, name in published["series"].items():
        if name not in series:
            raise _unknown(path, f"{key}.series.{model}", name, series)


def load_study(path: Path) -> Study:
    """Read, check and complete one study."""
    settings = load_yaml(path)
    schema = _schema("study")
    _check(path, settings, schema)
    _fill(settings, schema, schema)
    _check_models(path, settings)
    _check_files(path, settings)
    _check_figures(path, settings)
    return Study(path.stem, path, settings)


def _study_files(places: Iterable[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_dir():
            found = sorted(file for file in place.glob("*.yaml") if not file.name.startswith("."))
            yield from (file for file in found if not file.name.endswith(LOCK_SUFFIX))
        elif place.is_file():
            yield place
        else:
            raise VitscopeError(f"studies_dir: there is no file or folder {place}.")


def load_config(config: Mapping[str, Any], source: Path) -> tuple[str, dict[str, Study]]:
    """Check the settings of the workflow; return the default study's name and all studies."""
    _check(source, dict(config), _schema("config"))
    places = config.get("studies_dir") or []
    extra = [Path(places)] if isinstance(places, str) else [Path(place) for place in places]
    studies: dict[str, Study] = {}
    for path in _study_files([BUNDLED_STUDIES, *extra]):
        study = load_study(path)
        _check(path, study.name, _schema("study")["$defs"]["name"], within=("file name",))
        if study.name in studies:
            raise VitscopeError(
                f"{path}: there is a study of this name already, {studies[study.name].path}."
            )
        studies[study.name] = study
    default = config["study"]
    if default not in studies:
        raise _unknown(source, "study", default, studies)
    return default, studies
