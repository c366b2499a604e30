"""Find studies, read each, and check it completely before anything runs."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from vitscope.data import opening
from vitscope.errors import VitscopeError, check_known
from vitscope.files.strict_yaml import load_yaml
from vitscope.measures import registry
from vitscope.networks.building.family import arch_schema, family_names, prepare_family_arch
from vitscope.package_data import ROOT
from vitscope.settings.faults import check_section
from vitscope.settings.keys import NAME, SOURCE_KEYS, Analysis, Config, OwnMeasure, Recipe, Settings
from vitscope.settings.section import Schema, fill_section, schema_of_section
from vitscope.settings.study import LOCK_SUFFIX, Study
from vitscope.studies.checks import check_study
from vitscope.studies.data_sets import read_class_names_of_data_set
from vitscope.studies.resolving import resolve_moments, resolve_study

BUNDLED_STUDIES = ROOT / "config" / "studies"
SUFFIXES = (".yaml", ".yml")


@cache
def analysis_schema() -> Schema:
    """Return the schema of an analysis, with a section for each measure that has settings."""
    own = schema_of_section(Analysis)
    measures = [registry.declared(name) for name in registry.names()]
    sections = {each.name: schema_of_section(each.settings) for each in measures if each.settings}
    defaults = {name: section | {"default": {}} for name, section in sections.items()}
    return own | {"properties": own["properties"] | defaults}


@cache
def study_schema() -> Schema:
    """Return the schema of a study, with the settings that sources and measures declare."""
    schema = deepcopy(schema_of_section(Study))
    keys = schema["properties"]
    keys["analysis"] |= analysis_schema()
    own = schema_of_section(OwnMeasure)
    keys["measures"] = {
        "type": "object",
        "default": {},
        "description": own["description"],
        "propertyNames": NAME,
        "additionalProperties": own,
    }
    figure = keys["figures"]["additionalProperties"]["properties"]
    for name, kind in registry.kinds().items():
        for key, rules in kind.option_keys.items():
            if figure.setdefault(key, rules) != rules:
                raise VitscopeError(
                    f"The kind of figure '{name}' has the option '{key}', which means something "
                    f"else in other figures: give it another name."
                )
    keys["data"]["additionalProperties"]["properties"]["source"] |= _source_schema()
    return schema


def _source_schema() -> Schema:
    declared = {kind: opening.declared(kind) for kind in opening.source_kinds()}
    meanings = "; ".join(f"`{kind}`: {source.meaning}" for kind, source in declared.items())
    keys: Schema = {"kind": {"enum": list(declared), "description": f"{meanings}."}}
    kinds = {}
    for kind, source in declared.items():
        own = {key: SOURCE_KEYS[key] for key in source.shared} | source.keys
        keys |= own
        names = {"enum": ["kind", *own]}
        kinds[kind] = {"propertyNames": names, "required": [*source.required]}
    rules = {"additionalProperties": False, "required": ["kind"]}
    return {**rules, "properties": keys, "kinds": kinds}


def _check_loaded_models(path: Path, settings: Settings) -> None:
    # Models and build-ups give only those keys of the recipe that they change.
    recipe = schema_of_section(Recipe) | {"required": []}
    for name, model in settings["models"].items():
        key = f"models.{name}"
        check_known(path, f"{key}.family", model["family"], family_names())
        arch = arch_schema(model["family"])
        check_section(path, model["arch"], arch, within=("models", name, "arch"))
        check_known(path, f"{key}.data", model["data"], settings["data"])
        split, splits = settings["analysis"]["split"], settings["data"][model["data"]]["splits"]
        check_known(path, f"analysis.split, for {key} on data.{model['data']}", split, splits)
        check_section(path, model["training"], recipe, within=("models", name, "training"))
    for name, buildup in settings["buildups"].items():
        check_section(path, buildup["training"], recipe, within=("buildups", name, "training"))


def load_study(path: Path, results: str = "results") -> Study:
    """Read, check and complete one study; `results` is the folder that the workflow writes to."""
    try:
        settings, schema = load_yaml(path), study_schema()
        check_section(path, settings, schema)
        fill_section(settings, schema)
        _check_loaded_models(path, settings)
        for name, entry in settings["data"].items():
            entry["class_names"] = read_class_names_of_data_set(path, f"{path}: data.{name}", entry)
        study = resolve_study(path.stem, path, settings)
        # Check `arch` beyond its schema, and keep what the check returns for jobs.
        models = {}
        for name, each in study.models.items():
            where = f"{path}: models.{name}.arch"
            models[name] = replace(
                each, arch=prepare_family_arch(each.family, each.arch, path.parent, where)
            )
        study = resolve_moments(replace(study, models=models))
        check_section(path, path.stem, NAME, within=("name of the file",))
        check_study(study, results)
    except VitscopeError as error:
        # An unknown name may belong to a package whose measures are left out.
        if left_out := registry.installed().left_out:
            raise VitscopeError(f"{error}{left_out}") from error
        raise
    return study


def _study_files(where: str, place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise VitscopeError(
            f"{where}: studies_dir: found '{place}', allowed: a folder or file that exists."
        )
    files = [
        file
        for file in sorted(place.glob("[!.]*"))
        if file.suffix in SUFFIXES and not file.name.endswith(LOCK_SUFFIX)
    ]
    if not files:
        raise VitscopeError(
            f"{where}: studies_dir: found '{place}', which holds no study, allowed: a folder "
            f"with files NAME.yaml."
        )
    return files


class StudyFiles(Mapping[str, Study]):
    """All studies by name; a study is read on first access, which may raise its error."""

    def __init__(
        self, default: str, files: Mapping[str, Path], results: str, keep_latents_gb: float
    ) -> None:
        self.default = default
        self.keep_latents_gb = keep_latents_gb
        self.files = dict(files)
        self.broken: dict[str, VitscopeError] = {}
        self._results = results
        self._loaded: dict[str, Study] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __contains__(self, name: object) -> bool:
        # Answer without reading the file.
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

    def refuse_unread(self, name: str) -> NoReturn:
        """Raise the error of a study, or the one that nothing has named it."""
        self[name]
        raise VitscopeError(
            f"The study '{name}' was not read, since no word of the command names it: add it, as "
            f"in --config study={name}."
        )

    def reached_from(self, words: Collection[str]) -> list[str]:
        """Return the default study, those in words of a command, and those that their files name.

        The file of a study names another by the path of what that trains or makes.
        """
        found = [
            name for name in self if name == self.default or any(name in word for word in words)
        ]
        for each in found:
            text = ""
            # The error of a study that cannot be read is raised where it is.
            with suppress(OSError):
                text = self.files[each].read_text(encoding="utf-8", errors="replace")
            found += [name for name in self if name not in found and f"/{name}/" in text]
        return found


def find_studies(config: Mapping[str, Any], where: str) -> StudyFiles:
    """Check settings and return all studies; read those that the settings name as files.

    `where` says, in errors, where the settings are from.
    """
    settings = dict(config)
    check_section(where, settings, schema_of_section(Config))
    fill_section(settings, schema_of_section(Config))
    extra = settings["studies_dir"]
    asked = [Path(each).expanduser() for each in ([extra] if isinstance(extra, str) else extra)]
    # A package without the folder of the workflow has no bundled studies.
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
    studies = StudyFiles(settings["study"], files, results, settings["keep_latents_gb"])
    studies.broken |= clashes
    check_known(where, "study", studies.default, studies)
    for name, path in files.items():
        if path in asked:
            studies[name]
    return studies
