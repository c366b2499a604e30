"""The typed study: which data, which models, which figures, and how they are measured."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from vitscope.errors import VitscopeError, quoted
from vitscope.files.pairs import pair_name
from vitscope.measures import registry
from vitscope.settings.schema import unknown
from vitscope.training.snapshots import END

# Between the name of a model and that of a snapshot, where that is measured as a model of its own.
AT = "@"
LOCK_SUFFIX = ".lock.yaml"
# The splits that networks are trained on, and tested on meanwhile.
TRAINING_SPLITS = ("train", "test")

Settings = dict[str, Any]
# Of each channel: one of grey images, three of others.
Channels = tuple[float, ...]
Section = TypeVar("Section")


@dataclass(frozen=True)
class Selection:
    """Which images of a split are taken."""

    images: int | None
    seed: int | None


@dataclass(frozen=True)
class Dataset:
    """A data set; what its `source` holds is the affair of the source."""

    source: Settings
    classes: int | None
    class_names: list[str] | None
    class_index: dict[str, int] | None
    image_size: int
    resize: int | None
    interpolation: Literal["bilinear", "bicubic"]
    mean: Channels
    std: Channels
    corrupted: str | None
    splits: dict[str, Selection]

    @property
    def channels(self) -> int:
        """How many channels its images have."""
        return len(self.mean)


@dataclass(frozen=True)
class Published:
    """Points of a published figure that are drawn over the measured ones."""

    file: str
    series: dict[str, str]
    same_models: bool


@dataclass(frozen=True)
class Figure:
    """A figure: its kind, its models, and what else it shows.

    `pairs` are those of its models that it shows, if its kind is of pairs.
    """

    kind: str
    models: list[str]
    pairs: list[tuple[str, str]] = field(default_factory=list)
    snapshots: list[str] | None = None
    published: Published | None = None

    def subjects(self, table: str) -> list[str]:
        """Return what it shows of a table: models, or pairs of them by their names."""
        of_pairs = table in registry.names() and registry.declared(table).of_pairs
        return [*map(pair_name, self.pairs)] if of_pairs else self.models

    def shown_snapshots(self) -> list[str]:
        """Return the snapshots that it shows, in its order; none if it is not about them."""
        return list(self.snapshots or [END]) if registry.kinds()[self.kind].snapshots else []


@dataclass(frozen=True)
class Video:
    """Attention over a video: of which model, over which frames, and what of it is shown."""

    model: str
    source: Settings
    shows: Literal["heads", "rollout"]
    block: str | int | None
    heads: list[int] | None
    query: list[float] | None
    brightest: float | None
    fusion: Literal["mean", "max", "min"]
    frames: int | None
    frames_per_second: float | None
    lossless: bool


@dataclass(frozen=True)
class BuildUp:
    """How AlterNet is built up from a baseline; `weights` are those of steps trained before."""

    baseline: str
    heads: list[int]
    head_dim: int
    window: int
    steps: int
    patience: int
    training: Settings
    weights: Settings | None = None
    published: str | None = None


@dataclass(frozen=True)
class Model:
    """A model; `checkpoint`, each of `snapshots` and `history` say where a file comes from.

    Without `classes` it has no classifier. `epoch` is after how many epochs of training it is as it
    is, where a figure is about that.
    """

    family: str
    arch: Settings
    data: str
    classes: int | None
    mean: Channels
    std: Channels
    label: str
    checkpoint: Settings
    training: Settings
    snapshots: dict[str, Settings]
    history: Settings | None = None
    points: list[Settings] | None = None
    epoch: int | None = None

    def moments(self) -> list[str]:
        """Return the names of the snapshots and of the end, from first to last."""
        return [*self.snapshots, END]

    def files(self) -> dict[str, Settings]:
        """Return the entries that name a file of its own, by their keys."""
        history = {} if self.history is None else {"history": self.history}
        snapshots = {f"snapshots.{name}": entry for name, entry in self.snapshots.items()}
        return {"checkpoint": self.checkpoint, **snapshots, **history}


@dataclass(frozen=True)
class Bootstrap:
    """The 95 % intervals."""

    resamples: int
    seed: int


@dataclass(frozen=True)
class Augmented:
    """Augmented training images, drawn once for all that measures the loss."""

    split: str
    images: int
    seed: int


@dataclass(frozen=True)
class Analysis:
    """How feature maps are measured; each measure has sections of its own besides."""

    split: str
    images: int
    seed: int | None
    shard_size: int
    batch_size: int
    latents_dtype: Literal["float32", "bfloat16"]
    keep_latents: bool
    bootstrap: Bootstrap
    augmented: Augmented


@dataclass(frozen=True)
class Recipe:
    """How a model is trained."""

    seed: int
    epochs: int
    images: int | None
    batch_size: int
    learning_rate: float
    final_learning_rate: float
    warmup_epochs: int
    weight_decay: float
    label_smoothing: float
    mixup: float
    cutmix: float
    mixing_probability: float
    randaugment: str | None
    erasing: float
    shift: int
    flip: bool
    clip_gradient: float
    bfloat16: bool
    trajectory: bool
    snapshots: list[int]
    snapshot_dtype: Literal["float32", "float16"]


@dataclass(frozen=True)
class Loss:
    """How the loss is measured of networks that were trained elsewhere."""

    weight_decay: float
    augment: Settings | Literal["none"]


@dataclass(frozen=True)
class Study:
    """A checked study, its defaults filled in.

    `sections` are the settings of measures, read by `section`. `settings` is the whole file as
    plain values, for one purpose: a record of a run says them word for word.
    """

    name: str
    path: Path
    title: str
    description: str
    device: Literal["auto", "cpu", "cuda"]
    data: dict[str, Dataset]
    models: dict[str, Model]
    figures: dict[str, Figure]
    videos: dict[str, Video]
    buildups: dict[str, BuildUp]
    analysis: Analysis
    sections: Mapping[str, Settings]
    training: Recipe | None
    loss: Loss | None
    settings: Settings = field(repr=False)

    @property
    def lock_path(self) -> Path:
        """Where digests of downloads are kept."""
        return self.path.with_name(self.path.stem + LOCK_SUFFIX)

    @property
    def own_models(self) -> list[str]:
        """The names of the models that the study lists, without those of single snapshots."""
        return [name for name in self.models if AT not in name]

    def repeats(self) -> list[list[str]]:
        """Return the models that are one network, trained by one recipe with several seeds."""
        if self.training is None:
            return []
        groups: dict[str, list[str]] = {}
        for name in self.models_of():
            model, recipe = self.models[name], asdict(self.recipe(name))
            facts = (recipe | {"seed": None}, model.family, model.arch, model.data, model.epoch)
            groups.setdefault(repr(facts), []).append(name)
        return [
            names
            for names in groups.values()
            if len({self.recipe(name).seed for name in names}) == len(names) > 1
        ]

    def section(self, name: str, kind: type[Section]) -> Section:
        """Return a measure's own settings of the analysis, as the type that the measure gives."""
        return msgspec.convert(self.sections[name], kind)

    def dataset_of(self, model: str) -> Dataset:
        """Return the data set that a model is measured on."""
        return self.data[self.models[model].data]

    def network(self, model: str) -> Settings:
        """Return what it takes to build and feed a model, as plain values."""
        entry, data = self.models[model], self.dataset_of(model)
        return {
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
        """Return into how many shards these images are cut."""
        return ceil(self.images(model) / self.analysis.shard_size)

    def selection(self, model: str) -> dict[str, Any]:
        """Return which images a model is measured on, and how they are cut into shards."""
        return {
            "images": self.images(model),
            "seed": self.analysis.seed,
            "shard_size": self.analysis.shard_size,
        }

    def recipe(self, model: str) -> Recipe:
        """Return how a model is trained: the study's recipe, changed where the model says so."""
        if self.training is None:
            raise VitscopeError(
                f"{self.path}: top level: the key 'training' is missing: add it to train {model}."
            )
        return msgspec.convert(asdict(self.training) | self.models[model].training, Recipe)

    def recipe_of_steps(self, buildup: str) -> Recipe:
        """Return how all networks of a build-up are trained: its baseline's recipe, and changes."""
        entry = self.buildups[buildup]
        own = asdict(self.recipe(entry.baseline)) | entry.training
        return msgspec.convert(own, Recipe)

    def check_trainable(self, model: str) -> None:
        """Refuse to train a model that does not tell the classes of its data set apart."""
        classes, data = self.models[model].classes, self.models[model].data
        if classes is None or classes != self.data[data].classes:
            raise VitscopeError(
                f"{self.path}: models.{model}.classes: found {quoted(classes)}, allowed: the "
                f"classes of data.{data}, as a number: the model is trained to tell them apart."
            )

    def weight_decay(self, model: str) -> float:
        """Return the weight decay in the loss of a model."""
        return self.loss.weight_decay if self.loss else self.recipe(model).weight_decay

    @property
    def clean(self) -> bool:
        """Whether the loss is that of images as they are, which nothing augments."""
        return self.loss is not None and self.loss.augment == "none"

    def snapshot(self, model: str, name: str) -> Settings:
        """Return where a snapshot of a model comes from."""
        entries = self.models[model].snapshots
        if name not in entries:
            raise unknown(self.path, f"models.{model}.snapshots", name, entries)
        return entries[name]

    def figures_of(self, table: str) -> list[Figure]:
        """Return the figures that are drawn from a table."""
        shown = self.figures.values()
        return [figure for figure in shown if table in registry.kinds()[figure.kind].tables]

    def tables(self) -> list[str]:
        """Return the tables that the figures need."""
        kinds = {figure.kind for figure in self.figures.values()}
        return sorted({table for kind in kinds for table in registry.kinds()[kind].tables})

    def measures(self) -> list[str]:
        """Return the measures that the figures need."""
        return [name for name in self.tables() if name in registry.names()]

    def models_of(self, table: str | None = None) -> list[str]:
        """Return the models of the figures that need a table, or of any, in the study's order."""
        shown = self.figures.values() if table is None else self.figures_of(table)
        names = {model for figure in shown for model in figure.models}
        return [name for name in self.models if name in names]

    def models_shown(self) -> list[str]:
        """Return the models of all figures and videos, in the study's order."""
        names = {*self.models_of(), *(video.model for video in self.videos.values())}
        return [name for name in self.models if name in names]

    def subjects_of(self, table: str) -> list[str]:
        """Return what a table has rows of: models in the study's order, or pairs of them."""
        shown = [name for figure in self.figures_of(table) for name in figure.subjects(table)]
        order = [name for name in self.models if name in shown]
        return [*dict.fromkeys([*order, *shown])]

    def pairs(self) -> set[str]:
        """Return the names of all pairs of models that figures show."""
        return {pair_name(pair) for figure in self.figures.values() for pair in figure.pairs}

    def snapshots_of(self, table: str, model: str) -> list[str]:
        """Return the snapshots of a model that figures of a table show, as training made them."""
        figures = [figure for figure in self.figures_of(table) if model in figure.models]
        shown = {snapshot for figure in figures for snapshot in figure.shown_snapshots()}
        return [name for name in self.models[model].moments() if name in shown]


def _of_data(dataset: Settings) -> Settings:
    """Return what a model has of its data set where it says nothing else."""
    return {key: dataset[key] for key in ("classes", "mean", "std")}


def typed(name: str, path: Path, settings: Settings) -> Study:
    """Return a study from settings that follow the schema, whose defaults are filled in."""
    models = {
        key: {"label": key, **_of_data(settings["data"][model["data"]]), **model}
        for key, model in settings["models"].items()
    }
    figures = {
        key: {"models": [*dict.fromkeys(chain(*f.get("pairs", [])))], **f}
        for key, f in settings["figures"].items()
    }
    own = Analysis.__dataclass_fields__
    analysis = settings["analysis"]
    return Study(
        name=name,
        path=path,
        title=settings["title"],
        description=settings["description"],
        device=settings["device"],
        data=msgspec.convert(settings["data"], dict[str, Dataset]),
        models=msgspec.convert(models, dict[str, Model]),
        figures=msgspec.convert(figures, dict[str, Figure]),
        # Records of runs may be older than videos and build-ups.
        videos=msgspec.convert(settings.get("videos", {}), dict[str, Video]),
        buildups=msgspec.convert(settings.get("buildups", {}), dict[str, BuildUp]),
        analysis=msgspec.convert({key: analysis[key] for key in own}, Analysis),
        sections={key: value for key, value in analysis.items() if key not in own},
        training=msgspec.convert(settings.get("training"), Recipe | None),
        loss=msgspec.convert(settings.get("loss"), Loss | None),
        settings=settings,
    )
