"""Descriptions of the study, models and data that figures, videos and pages are made from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.data.class_numbers import list_classes
from vitscope.jobs.job import Study, Values
from vitscope.measures import registry
from vitscope.measures.captions import title_of

if TYPE_CHECKING:
    from vitscope.settings.keys import Figure, Model

# The maximum number of classes that a figure's caption lists; the record of the run lists all.
SHOWN_CLASSES = 20


def title(study: Study) -> str:
    return f"{study.name} ({study.title})"


def labels(study: Study) -> dict[str, str]:
    return {name: study.models[name].label for name in study.models_of()}


def title_of_figure(study: Study, name: str) -> str:
    """Return what a figure shows: the title of its kind, and its models if another has that title.

    Of more than three models the first two are named.
    """
    kinds = registry.of(study).kinds()
    titles = {
        each: title_of(kinds[shown.kind]) + _what_else_in_title(shown)
        for each, shown in study.figures.items()
    }
    models = [study.models[each].label for each in study.figures[name].models]
    if [*titles.values()].count(titles[name]) == 1 or not models:
        return titles[name]
    listed = models if len(models) < 4 else [*models[:2], f"{len(models) - 2} more"]
    return f"{titles[name]}: {'; '.join(listed)}"


def _what_else_in_title(figure: "Figure") -> str:
    said = {"change": ", changes", "by_epoch": ", by epoch"}
    return "".join(words for key, words in said.items() if figure.options.get(key))


def describe_member(study: Study, name: str) -> Values:
    """Return the facts about a model that figures need.

    `nth` numbers the different networks of the model's family. `recipe` names the first of the
    models that were trained with the same recipe and different seeds, or else the model itself.
    """
    entry = study.models[name]
    built = [each.arch for each in study.models.values() if each.family == entry.family]
    distinct = [arch for place, arch in enumerate(built) if arch not in built[:place]]
    # An AlterNet without attention is the ResNet that it was built from.
    convolutions = entry.family == "alternet" and not any(entry.arch.get("attention", (1,)))
    return {
        "model": name,
        "label": entry.label,
        "family": "preresnet" if convolutions else entry.family,
        "epoch": entry.epoch,
        # Number networks only in families whose names do not tell how a network is built.
        "nth": distinct.index(entry.arch) if entry.family in ("hf", "python", "timm") else 0,
        "recipe": next((group[0] for group in study.repeats if name in group), name),
    }


def style(study: Study, page: bool = False) -> Values:
    """Return the style of a study's figures; a `page` keeps its own width and font sizes."""
    own = study.style
    fitting = {} if page else {"width": own.width, "font_size": own.font_size}
    kept = {"font": own.font, "palette": own.palette, "background": own.background}
    return {**fitting, **kept}


# The metadata key for the number of images that a figure was measured on.
MEASURED_ON = "Measured on"


@dataclass(frozen=True)
class MeasuredOn:
    """The number of images that a figure was measured on, read from its SVG only when printed."""

    svg: str | None

    def __str__(self) -> str:
        if self.svg is None:
            return ""
        from vitscope.drawing.saving import read_facts

        return read_facts(self.svg).get(MEASURED_ON, "")


def describe_classes(study: Study, dataset: str, splits: list[str]) -> dict[str, str]:
    """List numbers and names of classes if folders or the study name the classes; else {}."""
    from vitscope.studies.data_sets import class_names_in_data_set

    entry = study.data[dataset]
    for name in splits:
        found = class_names_in_data_set(entry, name) if name in entry.splits else {}
        if found:
            return {f"Classes of {dataset}": list_classes(found, SHOWN_CLASSES)}
    return {}


def describe_weights(model: "Model") -> dict[str, str]:
    from vitscope.networks.checkpoints import weight_sources

    return {f"Checkpoint of {model.label}": weight_sources.describe_source(model.checkpoint)}


def describe_trajectory(model: "Model") -> dict[str, str]:
    """Describe the source of the weights that a model had during its training."""
    from vitscope.networks.checkpoints import weight_sources

    what = f"Trajectory of {model.label}"
    if model.history is not None:
        return {what: f"recorded in training, {weight_sources.describe_source(model.history)}"}
    return describe_weights(model) | {what: f"its snapshots {', '.join(model.moments())}"}
