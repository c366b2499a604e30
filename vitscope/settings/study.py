"""The typed study: which data, which models, which figures, and how they are measured."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import Any, Literal, TypeVar

from vitscope.errors import VitscopeError, check_known, wrong
from vitscope.files.pairs import pair_name
from vitscope.settings import keys
from vitscope.settings.draws import images_of_a_draw
from vitscope.settings.keys import Settings
from vitscope.settings.section import optional, required, setting
from vitscope.typed import typed

# Joins the names of a model and its snapshot if the snapshot is measured as a model of its own.
AT = "@"
LOCK_SUFFIX = ".lock.yaml"
# Figures of a study as a whole; the first two need published points.
PAGES_WITH_PUBLISHED = ("overview", "published")
PAGES_OF_STUDY = ("claims", "claims_grid", *PAGES_WITH_PUBLISHED)
# Before the name of a model: figures of this model alone.
PAGES_OF_MODEL = ("blocks_", "network_")
# Networks are trained on the first split, and tested on the second after each epoch.
TRAINING_SPLITS = ("train", "test")
# Settings in which data sets may differ and still have the same images in the same order.
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

Section = TypeVar("Section")
NAMED: Settings = {"propertyNames": keys.NAME}


@dataclass(frozen=True, kw_only=True)
class Study:
    """A checked study, its defaults filled in.

    `sections` are the settings of measures, which `section` reads. `settings` is the whole file as
    plain values, which the record of a run repeats word for word.
    """

    name: str
    path: Path
    title: str = required(
        "One line; it stands in the report and in the metadata of every figure.", **keys.ONE_LINE
    )
    description: str = setting("", "What readers of the figures should know about this study.")
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto", "Where models run; `auto` takes a CUDA device if there is one."
    )
    data: dict[str, keys.Dataset] = required("The data sets, by name.", minProperties=1, **NAMED)
    models: dict[str, keys.Model] = required("The models, by name.", minProperties=1, **NAMED)
    analysis: keys.Analysis = setting({})
    training: keys.Recipe | None = optional()
    loss: keys.LossSettings | None = optional()
    style: keys.Style = setting({})
    figures: dict[str, keys.Figure] = required(
        "The figures, by name; `figures/{study}/{name}.pdf` is the target of each.",
        minProperties=1,
        **NAMED,
    )
    videos: dict[str, keys.VideoSettings] = setting(
        {},
        "Networks over videos, by name; `figures/{study}/{name}.webp` is the target of each, or "
        "`.gif`, `.mp4`.",
        **NAMED,
    )
    buildups: dict[str, keys.BuildUp] = setting(
        {},
        "How AlterNet is built up from a baseline, MSA by MSA, by name; "
        "`figures/{study}/{name}.pdf` is the target of each. Their networks are trained.",
        **NAMED,
    )
    sections: Mapping[str, Settings]
    own_measures: Mapping[str, Any] = field(default_factory=dict)
    settings: Settings = field(repr=False)

    @property
    def lock_path(self) -> Path:
        return self.path.with_name(self.path.stem + LOCK_SUFFIX)

    @property
    def own_models(self) -> list[str]:
        """The names of the models that the study lists, without those added for snapshots."""
        return [name for name in self.models if AT not in name]

    @cached_property
    def repeats(self) -> list[list[str]]:
        """Groups of models with the same network and recipe, trained with different seeds."""
        if self.training is None:
            return []
        groups: dict[str, list[str]] = {}
        for name in self.models_of():
            traits = self.traits_of(name) | {"training.seed": None}
            epoch = self.models[name].epoch
            facts = (traits, self.recipe(name).epochs if epoch is None else epoch)
            groups.setdefault(repr(facts), []).append(name)
        return [
            names
            for names in groups.values()
            if len({self.recipe(name).seed for name in names}) == len(names) > 1
        ]

    def traits_of(self, model: str) -> Settings:
        """Return the traits that tell a model from others: family, data, network and training."""
        entry = self.models[model]
        recipe = asdict(self.recipe(model)) if self.training else {}
        how = entry.pretraining
        return {
            "family": entry.family,
            "data": entry.data,
            **{f"arch.{key}": value for key, value in entry.arch.items()},
            **{f"training.{key}": value for key, value in recipe.items()},
            **({f"pretraining.{how.by}": how.unlike} if how else {}),
            **({"averages": [entry.averages]} if entry.averages else {}),
            **({"interventions": entry.interventions} if entry.interventions else {}),
            **({"control": True} if entry.control or entry.interventions else {}),
        }

    def section(self, name: str, kind: type[Section]) -> Section:
        """Return a measure's settings as the dataclass that the measure declares."""
        return typed(self.sections[name], kind)

    def dataset_of(self, model: str) -> keys.Dataset:
        return self.data[self.models[model].data]

    def settings_of_images(self, model: str) -> Settings:
        """Return what decides which images a model is measured on, and in which order."""
        data = asdict(self.dataset_of(model))
        kept = {name: value for name, value in data.items() if name not in MAY_DIFFER}
        return kept | {"splits": data["splits"][self.analysis.split]}

    def network(self, model: str) -> Settings:
        """Return the settings to build and feed a model, as plain values."""
        entry, data = self.models[model], self.dataset_of(model)
        further: Settings = {} if entry.output is None else {"output": entry.output}
        if entry.interventions:
            changes = [asdict(typed(each, keys.PassChange)) for each in entry.interventions]
            size = {"images": self.images(model), "batch_size": self.analysis.batch_size}
            further["interventions"] = {"changes": changes, "seed": self.analysis.seed, **size}
        return further | {
            "family": entry.family,
            "arch": entry.arch,
            "mean": list(entry.mean),
            "std": list(entry.std),
            "classes": entry.classes,
            "image_size": data.image_size,
        }

    def images(self, model: str) -> int:
        """Return how many images a model is measured on."""
        there = self.dataset_of(model).splits[self.analysis.split].images
        wanted = self.analysis.images
        return wanted if there is None else min(wanted, there)

    def shards(self, model: str) -> int:
        """Return the number of shards into which a model's images are cut."""
        return ceil(self.images(model) / self.analysis.shard_size)

    def selection(self, model: str) -> dict[str, Any]:
        """Return which images a model is measured on, and how they are cut into shards."""
        return {
            "images": self.images(model),
            "seed": self.analysis.seed,
            "shard_size": self.analysis.shard_size,
        }

    def recipe(self, model: str) -> keys.Recipe:
        """Return how a model is trained: the study's recipe, changed where the model says so."""
        if self.training is None:
            raise VitscopeError(
                f"{self.path}: top level: the key 'training' is missing: add it to train {model}."
            )
        return typed(asdict(self.training) | self.models[model].training, keys.Recipe)

    def recipe_of_steps(self, buildup: str) -> keys.Recipe:
        """Return the recipe of a build-up's networks: the baseline's, changed by its `training`."""
        entry = self.buildups[buildup]
        return typed(asdict(self.recipe(entry.baseline)) | entry.training, keys.Recipe)

    def check_trainable(self, model: str) -> None:
        """Refuse to train a model that does not tell the classes of its data set apart."""
        classes, data = self.models[model].classes, self.models[model].data
        if classes is None or classes != self.data[data].classes:
            allowed = (
                f"the classes of data.{data}, as a number: the model is trained to tell them apart."
            )
            raise wrong(self.path, f"models.{model}.classes", classes, allowed)

    def weight_decay(self, model: str) -> float:
        return self.loss.weight_decay if self.loss else self.recipe(model).weight_decay

    def training_batch(self, model: str) -> int | None:
        """Return the images of a batch in a model's training; None if the study does not say."""
        return self.recipe(model).batch_size if self.training else None

    def drawn_together(self, model: str) -> int:
        """Return how many augmented images share a draw of mixing; 1 if none are mixed."""
        if self.loss is None:
            return images_of_a_draw(asdict(self.recipe(model)))
        return 1 if isinstance(self.loss.augment, str) else images_of_a_draw(self.loss.augment)

    @property
    def clean(self) -> bool:
        """Whether the loss is measured on images without augmentation."""
        return self.loss is not None and self.loss.augment == "none"

    def snapshot(self, model: str, name: str) -> Settings:
        """Return where a snapshot of a model comes from."""
        entries = self.models[model].snapshots
        check_known(self.path, f"models.{model}.snapshots", name, entries)
        return entries[name]

    def figures_of(self, table: str) -> list[keys.Figure]:
        return [figure for figure in self.figures.values() if table in figure.tables]

    def tables(self) -> list[str]:
        """Return the tables that the figures need."""
        return sorted({table for figure in self.figures.values() for table in figure.tables})

    def measures(self) -> list[str]:
        """Return the measures that the figures need."""
        return sorted({name for figure in self.figures.values() for name in figure.measures})

    def models_of(self, table: str | None = None) -> list[str]:
        """Return the models of all figures, or of those that need `table`, in the study's order."""
        shown = self.figures.values() if table is None else self.figures_of(table)
        names = {model for figure in shown for model in figure.models}
        return [name for name in self.models if name in names]

    def models_shown(self) -> list[str]:
        """Return the models of all figures and videos, in the study's order."""
        names = {*self.models_of(), *(video.model for video in self.videos.values())}
        return [name for name in self.models if name in names]

    def subjects_of(self, table: str) -> list[str]:
        """Return the models, pairs or triples that a table has rows for, in the study's order."""
        shown = [name for figure in self.figures_of(table) for name in figure.subjects(table)]
        order = [name for name in self.models if name in shown]
        return [*dict.fromkeys([*order, *shown])]

    def groups(self) -> set[str]:
        """Return the names of all pairs and triples of models that figures show."""
        return {pair_name(group) for figure in self.figures.values() for group in figure.groups}

    def snapshots_of(self, table: str, model: str) -> list[str]:
        """Return a model's snapshots that figures of a table show, in the order of training."""
        figures = [figure for figure in self.figures_of(table) if model in figure.models]
        shown = {snapshot for figure in figures for snapshot in figure.shown_snapshots()}
        return [name for name in self.models[model].moments() if name in shown]
