"""Make a typed study from checked settings; look up what figures take from their kinds."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

from vitscope.errors import VitscopeError, check_known, wrong
from vitscope.measures.own.declaring import declare_own
from vitscope.measures.registry import SHARED, Registry
from vitscope.settings.keys import Analysis, Figure, Model, Settings
from vitscope.settings.section import schema_of_section
from vitscope.settings.snapshots import END, epoch_of_snapshot
from vitscope.settings.study import AT, Study
from vitscope.typed import typed


def resolve_study(name: str, path: Path, settings: Settings) -> Study:
    """Return a study from settings that follow the schema, whose defaults are filled in."""
    models = {}
    for key, model in settings["models"].items():
        data = settings["data"][model["data"]]
        # A model takes these from its data set unless it sets them itself.
        of_data = {each: data[each] for each in ("classes", "mean", "std")}
        # Nothing tells whether the function of a network loads weights; `label` can.
        doubt = " (untrained?)" if "made" in model.get("checkpoint", {}) else ""
        models[key] = {"label": f"{key}{doubt}", **of_data, **model}
    own_measures = {
        key: declare_own(key, entry, path.parent, f"{path}: measures.{key}")
        for key, entry in settings.get("measures", {}).items()
    }
    shared = schema_of_section(Analysis)["properties"]
    given = settings | {
        "name": name,
        "path": path,
        "models": models,
        "figures": {key: _resolve_options(figure) for key, figure in settings["figures"].items()},
        "own_measures": own_measures,
        "sections": {key: each for key, each in settings["analysis"].items() if key not in shared},
        "settings": settings,
    }
    study = typed(given, Study)
    measures = Registry(own_measures)
    figures = {
        key: resolve_kind_of_figure(figure, path, f"figures.{key}", measures)
        for key, figure in study.figures.items()
    }
    return replace(study, figures=figures)


def _resolve_options(figure: Settings) -> Settings:
    """Add the models of pairs and triples, and move the keys of a figure's kind to `options`."""
    shared = schema_of_section(Figure)["properties"]
    options = {key: value for key, value in figure.items() if key not in shared}
    several: Settings = {"pairs": [], "triples": []} | figure
    models = [*dict.fromkeys(chain(*several["pairs"], *several["triples"]))]
    return {"models": models, **several, "options": options}


def resolve_kind_of_figure(
    figure: Figure, where: object, key: str, measures: Registry = SHARED
) -> Figure:
    """Refuse an unknown kind or option of a figure; fill in the tables and measures of its kind."""
    kinds = measures.kinds()
    check_known(where, f"{key}.kind", figure.kind, kinds)
    kind = kinds[figure.kind]
    for option in figure.options.keys() - kind.option_keys.keys():
        those = [f"'{name}'" for name, each in kinds.items() if option in each.option_keys]
        raise VitscopeError(
            f"{where}: {key}.{option}: figures of the kind '{figure.kind}' have no such key, those "
            f"of the kind {' or '.join(those)} do: remove it."
        )
    pairs = figure.pairs
    if kind.all_pairs:
        pairs = [*combinations(figure.models, 2)]
        if figure.groups or not pairs:
            found = figure.named_by if figure.groups else "one model"
            allowed = f"'models', two or more, each two of which figures of '{figure.kind}' show."
            raise wrong(where, key, found, allowed)
    return replace(
        figure,
        pairs=pairs,
        measure=kind.measure,
        tables=kind.tables,
        measures=tuple(name for name in kind.tables if name in measures.names()),
        of_snapshots=kind.snapshots,
        by_epoch=kind.by_epoch or bool(figure.options.get("by_epoch")),
    )


def resolve_moments(study: Study) -> Study:
    """Add a model to a study for each snapshot that its figures by epoch show."""
    models, figures = dict(study.models), dict(study.figures)
    for name, figure in study.figures.items():
        if figure.by_epoch:
            shown = dict(_resolve_models_by_epoch(study, figure, f"figures.{name}"))
            models |= shown
            figures[name] = replace(figure, models=[*shown], snapshots=None)
    return replace(study, models=models, figures=figures)


def _resolve_models_by_epoch(study: Study, figure: Figure, key: str) -> Iterator[tuple[str, Model]]:
    for name in figure.models:
        check_known(study.path, f"{key}.models", name, study.models)
        model, epochs = study.models[name], _resolve_epochs(study, name)
        wanted = epochs if figure.snapshots is None else figure.snapshots
        for snapshot in wanted:
            check_known(study.path, f"{key}.snapshots", snapshot, epochs)
        if len({*wanted}) < 2:
            raise VitscopeError(
                f"{study.path}: {key}: models.{name} has no snapshot of which it is "
                f"known after how many epochs it was taken: name some epoch_N in its `snapshots`, "
                f"for a figure by epoch."
            )
        for snapshot in sorted(wanted, key=epochs.__getitem__):
            epoch = epochs[snapshot]
            if snapshot == END:
                yield name, replace(model, epoch=epoch)
                continue
            taken = replace(model, checkpoint=model.snapshots[snapshot], snapshots={}, history=None)
            moment = replace(taken, label=f"{model.label}, epoch {epoch}", epoch=epoch)
            yield f"{name}{AT}{snapshot}", moment


def _resolve_epochs(study: Study, name: str) -> dict[str, int]:
    """Return the known epochs of a model's snapshots; of two at the same epoch, only the first."""
    recipe = study.recipe(name)
    found = {
        each: epoch_of_snapshot(each, recipe.warmup_epochs) for each in study.models[name].snapshots
    }
    found[END] = recipe.epochs
    known: dict[int, str] = {}
    for snapshot, epoch in found.items():
        if epoch is not None:
            known.setdefault(epoch, snapshot)
    return {snapshot: epoch for epoch, snapshot in known.items()}
