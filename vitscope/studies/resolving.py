"""Checked settings become a typed study, whose figures know of their kinds."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import get_type_hints

import msgspec

from vitscope.errors import VitscopeError, unknown
from vitscope.measures.own.declaring import declare_own
from vitscope.measures.registry import BUILT_IN, Registry
from vitscope.settings.keys import Analysis, Figure, Settings
from vitscope.settings.section import schema_of
from vitscope.settings.study import Study


def build_study(name: str, path: Path, settings: Settings) -> Study:
    """Return a study from settings that follow the schema, whose defaults are filled in."""
    models = {}
    for key, model in settings["models"].items():
        data = settings["data"][model["data"]]
        # What a model has of its data set where it says nothing else.
        of_data = {each: data[each] for each in ("classes", "mean", "std")}
        models[key] = {"label": key, **of_data, **model}
    figures = {key: _with_defaults(figure) for key, figure in settings["figures"].items()}
    given = settings | {"models": models, "figures": figures}
    types = get_type_hints(Study)
    # Records of runs may be older than a section that has a default.
    keys = schema_of(Study)["properties"].keys() & given.keys()
    values = {key: msgspec.convert(given[key], types[key]) for key in keys}
    own_measures = {
        key: declare_own(key, entry, path.parent, f"{path}: measures.{key}")
        for key, entry in settings.get("measures", {}).items()
    }
    measures = Registry(own_measures)
    values["figures"] = {
        key: look_up_kind(figure, path, f"figures.{key}", measures)
        for key, figure in values["figures"].items()
    }
    shared = schema_of(Analysis)["properties"]
    return Study(
        name=name,
        path=path,
        own_measures=own_measures,
        sections={key: each for key, each in settings["analysis"].items() if key not in shared},
        settings=settings,
        **values,
    )


def _with_defaults(figure: Settings) -> Settings:
    """Return a figure whose models are those of its pairs, its options by themselves."""
    shared = schema_of(Figure)["properties"]
    options = {key: value for key, value in figure.items() if key not in shared}
    models = [*dict.fromkeys(chain(*figure.get("pairs", [])))]
    return {"models": models, "pairs": [], **figure, "options": options}


def look_up_kind(figure: Figure, where: object, key: str, measures: Registry = BUILT_IN) -> Figure:
    """Return a figure with what its kind says of it; `where` and `key` are its place."""
    kinds = measures.kinds()
    if figure.kind not in kinds:
        raise unknown(where, f"{key}.kind", figure.kind, kinds)
    kind = kinds[figure.kind]
    for option in figure.options.keys() - kind.option_keys.keys():
        those = [f"'{name}'" for name, each in kinds.items() if option in each.option_keys]
        raise VitscopeError(
            f"{where}: {key}.{option}: figures of the kind '{figure.kind}' have no such key, those "
            f"of the kind {' or '.join(those)} do: remove it."
        )
    return replace(
        figure,
        measure=kind.measure,
        tables=kind.tables,
        measures=tuple(name for name in kind.tables if name in measures.names()),
        of_snapshots=kind.snapshots,
        by_epoch=kind.by_epoch,
    )
