"""What a measure is: it declares what it needs, how it is cut into parts, and what these cost.

Each measure declares itself in a `measure.py` of its folder: plain values, and a function where a
value cannot say it. That module imports nothing heavy: it is read wherever a study is.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from vitscope.errors import VitscopeError, unknown, wrong
from vitscope.files.tables import Table
from vitscope.measures.needs import NEEDS, READABLE, Input, Need
from vitscope.settings.section import optional, result_settings, schema_of
from vitscope.settings.snapshots import END

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# The report groups figures under these headings.
Question = Literal[
    "How networks train",
    "How networks classify",
    "How networks are built",
    "What blocks do to feature maps",
    "What becomes of tokens",
    "What the first layer and positions hold",
    "Where networks look",
    "Questions of your own",
]
# What stays in memory for each image of a batch.
Keeps = Literal["pass", "units", "gradient", "product"]
# Plain values passed to a job, which runs again when they change.
Given = dict[str, Any]
# The settings of a measure: their section of `analysis`, and their type.
Section = tuple[str, type]
# A file of published points needs these columns to be drawn by depth.
BY_DEPTH = frozenset({"index", "normalized_depth", "kind", "subsampling"})


@dataclass(frozen=True)
class Multiples:
    """Says how panels of one quantity are drawn, one for each model."""

    scales: Literal["shared", "own"] | None = optional(
        "For kinds with a panel for each model: whether panels of one quantity share the scale of "
        "their y axes. If left out, they do where values of models compare, and not where these "
        "may differ by orders of magnitude. A panel with a scale of its own says so."
    )


@dataclass(frozen=True)
class ByDepth(Multiples):
    """Says how a value by depth is drawn."""

    together: bool | None = optional(
        "For `feature_variance`, `spatial_share`, `token_similarity`, `mean_token` and measures of "
        "your own: whether all models share one panel, as for several trainings of one network; if "
        "left out, each has its own."
    )


@dataclass(frozen=True)
class FigureKind:
    """Describes a kind of figure, drawn by `plot_{kind}` in the folder of its measure.

    `values` are keywords of that function or chart, and so are `options`: a dataclass of further
    keys that a figure of this kind may have. `beside` are the tables it needs besides the measure's
    own. `published` are the columns of published points that it can show; if empty, it shows none.
    With `for_claims`, only claims are compared with these points; with `others`, the points may
    belong to none of its models. With `overview`, the page that shows all of the paper has a sketch
    of it, by `sketch_{kind}` in sketches.py. `snapshots` tells whether a figure of this kind says
    which moments of training it shows. A figure `by_epoch` shows each model at several moments, as
    separate models. The registry fills in `measure` and `name`. `text` is the caption if no file
    has it.
    """

    beside: tuple[str, ...] = ()
    published: frozenset[str] = frozenset()
    for_claims: bool = False
    others: bool = False
    overview: bool = False
    snapshots: bool = False
    by_epoch: bool = False
    values: Given = field(default_factory=dict)
    options: type | None = None
    measure: str = ""
    name: str = ""
    text: str = ""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the figure is drawn from, its measure's own first."""
        return (self.measure, *self.beside)

    @property
    def drawn_columns(self) -> frozenset[str]:
        """The columns of published points that the figure shows."""
        return frozenset() if self.for_claims else self.published

    @property
    def option_keys(self) -> Given:
        """The further keys that a figure of this kind may have, each with its JSON schema."""
        return schema_of(self.options)["properties"] if self.options else {}

    @property
    def caption(self) -> str:
        """The file of the caption, in the folder of the measure."""
        return f"caption_{self.name}.rst"


@dataclass(frozen=True)
class Work:
    """Says what a part costs: forward passes of one image each, and the memory they take.

    `batch` images are in memory at once. For each of them, memory `keeps` what one layer needs,
    what lesions use again, or all that one backward pass needs, or two. `vectors` counts copies of
    the weights. `most` tells that fewer passes may do: they end when a result has converged.
    `holds` counts images whose maps at all cut points are in memory.
    """

    passes: float
    batch: int
    keeps: Keeps = "pass"
    vectors: int = 0
    most: bool = False
    holds: int = 0


def passes(
    views: float, wanted: int | None, there: int | None, batch: int, keeps: Keeps = "pass"
) -> Work | None:
    """Count passes of the wanted images, if there, in several views; None if none is known yet."""
    known = [count for count in (wanted, there) if count is not None]
    return Work(min(known) * views, batch, keeps) if known else None


@dataclass(frozen=True)
class Case:
    """Names a part of a model of a study that a measure is asked about.

    `images` is the number of images, if known, and `cut_points` the number that the model has.
    """

    measure: "Measure"
    study: "Study"
    model: str
    part: int = 0
    images: int | None = None
    cut_points: int = 0
    snapshot: str = END

    @property
    def settings(self) -> Any:
        return self.measure.read_settings(self.study)

    @property
    def steps(self) -> range:
        """The steps that this part measures, out of all the steps that jobs share."""
        steps, each = self.measure.steps(self.study)
        return range(steps)[self.part * each : (self.part + 1) * each]

    @property
    def batch_size(self) -> int:
        holder = self.settings if self.measure.batch_setting else self.study.analysis
        return holder.batch_size

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name the study and the model in errors."""
        try:
            yield
        except VitscopeError as error:
            raise VitscopeError(f"{self.study.path}: models.{self.model}: {error}") from error


Arguments = Callable[[Case], Given]


def own_settings(case: Case) -> Given:
    """Return all settings of the measure, each as an argument."""
    return asdict(case.settings)


def whole_settings(case: Case) -> Given:
    """Return the settings that change a result as one argument; others have defaults in it."""
    return {"settings": result_settings(case.settings)}


def bootstrap(case: Case) -> Given:
    return asdict(case.study.analysis.bootstrap)


def images_to_show(case: Case) -> Given:
    """Return which images to show, out of those that are measured."""
    shown, images = case.settings.images, case.study.images(case.model)
    return {"shown": shown, "images": images, "seed": case.study.analysis.seed}


def images_to_classify(case: Case) -> Given:
    """Return how many images of the split to classify, and the seed that draws them."""
    return {"images": case.settings.images, "seed": case.study.analysis.seed}


def selection(case: Case) -> Given:
    """Return the shard to measure, and how the images are cut into shards."""
    return {"shard": case.part, "selection": case.study.selection(case.model)}


def only(*keys: str) -> Arguments:
    """Make a function that returns some settings of the measure, each as an argument."""
    return lambda case: {key: getattr(case.settings, key) for key in keys}


def together(*arguments: Arguments) -> Arguments:
    """Make a function that returns the arguments of all these together."""
    return lambda case: {key: value for each in arguments for key, value in each(case).items()}


def named(**arguments: Arguments) -> Arguments:
    """Make a function that passes the result of each of these as one argument, by its name."""
    return lambda case: {name: each(case) for name, each in arguments.items()}


def passes_of(
    views: float | Callable[[Case], float] = 1, batch: int | None = None, keeps: Keeps = "pass"
) -> Callable[[Case], Work | None]:
    """Count passes of the images of a shard, or of the setting `images`, each in several views."""

    def count(case: Case) -> Work | None:
        if case.measure.shares == "shards":
            wanted = min(case.study.analysis.shard_size, case.study.images(case.model))
        else:
            wanted = case.settings.images
        each = views(case) if callable(views) else views
        return passes(each, wanted, case.images, batch or case.batch_size, keeps)

    return count


@dataclass(frozen=True)
class Merge:
    """Says how parts are merged: by `merge_{measure}`, or stacked below each other without it.

    `function`, given as `module:name`, is a shared function that merges instead, and `arguments`
    are its arguments. Parts merged `at_cut_points` get the cut points from the block table.
    """

    arguments: Arguments = lambda case: {}
    at_cut_points: bool = False
    function: str | None = None


def mean_over_images(column: str) -> Merge:
    """Merge values for each cut point and image into means with bootstrap intervals."""
    merges = "vitscope.measures.per_image:merge_means"
    return Merge(lambda case: {"column": column} | bootstrap(case), True, merges)


@dataclass(frozen=True, eq=False)
class Measure:
    """Declares a measure; the registry fills in its name."""

    # A name in vitscope.measures.needs.
    needs: str
    # The columns of the measure, and those of its parts if they differ.
    table: Table
    part: Table | None = None
    # The kinds of figures that show the measure.
    figures: Mapping[str, FigureKind] = field(default_factory=dict)
    # The dataclass of its own settings, if any: the section of its name in `analysis`.
    settings: type | None = None
    # The settings of another measure, if it follows those.
    settings_of: Section | None = None
    # The settings that say how many images are classified, if they are not its own.
    predictions_of: Section | None = None
    # What a part depends on: the arguments of `measure_{name}`, besides what it measures.
    arguments: Arguments = lambda case: {}
    # What a part costs, for a measure that runs a network.
    takes: Callable[[Case], Work | None] | None = None
    # What jobs divide among themselves, for a measure of the model or of its loss: shards of
    # images, or steps. Of two settings, the first counts the steps and the second those of a job.
    shares: Literal["shards"] | tuple[str, str] | None = None
    merge: Merge = Merge()
    # Whether its table is about pairs of models: each pair merges the parts of both models.
    of_pairs: bool = False
    # The measure whose parts are merged, if not its own.
    parts_of: str | None = None
    # What else it reads, by the names in vitscope.measures.needs.
    reads: tuple[str, ...] = ()
    # Whether it reads attention, and is refused for a network without any.
    reads_attention: bool = False
    # Whether it is about features although it runs a model, and so needs no classes.
    about_features: bool = False
    # Whether it compares predictions with labels, and is refused for images without.
    by_label: bool = True
    # Whether it is about features and needs the labels of images, but no predictions.
    needs_labels: bool = False
    # Whether its settings say the split of its images.
    own_split: bool = False
    # Seconds for each GB of latents, if it measures latents; docs/scale.md lists them.
    seconds_per_gb: float = 0.0
    # Refuses a model of its figures that it cannot measure, in one sentence.
    refuse: Callable[[Case], None] | None = None
    # Refuses settings that it can measure on no model; the case names no model.
    refuse_settings: Callable[[Case], None] | None = None
    # Makes settings for a number of images, if a caller gives none and the defaults do not fit.
    fit: Callable[[int], Given] | None = None
    # The heading of its figures in the report.
    question: Question = "Questions of your own"
    name: str = ""

    @property
    def part_table(self) -> Table:
        return self.part or self.table

    @property
    def need(self) -> Need:
        return NEEDS[self.needs]

    @property
    def inputs(self) -> dict[str, Input]:
        """The inputs made for the measure, by name."""
        return {**self.need.inputs, **{name: READABLE[name] for name in self.reads}}

    @property
    def in_parts(self) -> bool:
        """Whether jobs measure it in parts, which are then merged into its table."""
        return self.need.in_parts or self.shares is not None

    @property
    def reads_predictions(self) -> bool:
        """Whether a model has to classify images for the measure."""
        return "predictions" in self.inputs

    @property
    def needs_classes(self) -> bool:
        """Whether it is about predicted classes, and not about features or weights."""
        about_features = self.about_features or self.reads_attention
        return self.need.of_classes and not about_features

    @property
    def _section(self) -> Section | None:
        return (self.name, self.settings) if self.settings else self.settings_of

    @property
    def batch_setting(self) -> str | None:
        """The setting for the number of images in memory at once, if the measure has its own."""
        section, kind = self._section or ("", object)
        own = "batch_size" in getattr(kind, "__annotations__", ())
        return f"analysis.{section}.batch_size" if own else None

    def read_settings(self, study: "Study") -> Any:
        return _read_section(study, self._section)

    def split(self, study: "Study") -> str:
        """Return the split whose images are measured."""
        if self.need.of_training:
            return study.analysis.augmented.split
        return self.read_settings(study).split if self.own_split else study.analysis.split

    def splits(self, study: "Study") -> list[str]:
        """Return all splits whose images it uses; none for a network or weights alone."""
        if not self.need.of_images:
            return []
        alike = [study.analysis.augmented.split] if "alike" in self.reads else []
        return [self.split(study), *alike]

    def predicted(self, study: "Study") -> int | None:
        """Return how many images a measure of predictions classifies; None for all."""
        images: int | None = _read_section(study, self.predictions_of or self._section).images
        return images

    def corrupted(self, study: "Study", part: int) -> Given:
        """Return which corrupted images exist for a part, for a measure of them."""
        settings = self.read_settings(study)
        corruptions = self.arguments(Case(self, study, "", part))["corruptions"]
        wanted = {"images": settings.images, "severities": settings.severities}
        return wanted | {"corruptions": corruptions}

    def steps(self, study: "Study") -> tuple[int, int]:
        """Return how many steps jobs share, and how many of them each job measures."""
        assert isinstance(self.shares, tuple), f"jobs of {self.name} share no steps"
        settings = self.read_settings(study)
        steps, each = (getattr(settings, key) for key in self.shares)
        return steps if isinstance(steps, int) else len(steps), each

    def parts(self, study: "Study", model: str) -> int:
        """Return how many parts jobs measure: steps over steps for each job, or shards."""
        if isinstance(self.shares, tuple):
            steps, each = self.steps(study)
            return ceil(steps / each)
        return study.shards(model)

    def snapshots(self, study: "Study", model: str) -> list[str]:
        """Return the moments of training whose loss is measured."""
        shown = any(kind.snapshots for kind in self.figures.values())
        return study.snapshots_of(self.name, model) if shown else [END]

    def measuring(self, study: "Study", model: str, part: int) -> Given:
        """Return what a part or the whole depends on: the arguments of `measure_{name}`."""
        return self.arguments(Case(self, study, model, part))

    def merging(self, study: "Study", model: str) -> Given:
        """Return what merging the parts of a model, or of a pair, depends on."""
        return self.merge.arguments(Case(self, study, model))

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Return what a part costs; None if it runs no network, or if the cost is not known yet."""
        case = Case(self, study, model, part, images, cut_points)
        return self.takes(case) if self.takes else None

    def check(self, study: "Study") -> None:
        """Refuse settings that cannot be measured, in one sentence."""
        if self.need.of_training:
            _check_augmented(study, self.name)
        if "alike" in self.reads:
            _check_augmented(study, self.name, self.read_settings(study).images)
        if self.refuse_settings:
            self.refuse_settings(Case(self, study, model=""))
        for model in study.models_of(self.name):
            if self.refuse:
                self.refuse(Case(self, study, model))


def refuse_fewer(case: Case, least: int) -> None:
    """Refuse a model that is measured on fewer than `least` images."""
    images = case.study.images(case.model)
    if images < least:
        raise VitscopeError(
            f"{case.study.path}: models.{case.model} is measured on too few images for a figure of "
            f"the kind '{case.measure.name}': found {images}, allowed: {least} or more."
        )


def _read_section(study: "Study", section: Section | None) -> Any:
    assert section, "the measure has no settings"
    return study.section(*section)


def _check_augmented(study: "Study", table: str, images: int | None = None) -> None:
    """Refuse a study that does not say what the loss is, or has too few images for it."""
    augmented, figures = study.analysis.augmented, study.figures_of(table)
    named = (f"figures.{name}" for name, each in study.figures.items() if each in figures)
    asking = next(named, "")
    if asking and study.training is None and study.loss is None:
        raise VitscopeError(
            f"{study.path}: {asking} shows a loss, and nothing says of what training: add "
            f"`loss: {{weight_decay: ..., augment: none}}` for networks that were trained "
            f"elsewhere, or the key 'training'."
        )
    for model in study.models_of(table):
        splits, data = study.dataset_of(model).splits, study.models[model].data
        if augmented.split not in splits:
            at = f"analysis.augmented.split, for models.{model} on data.{data} in {asking}"
            raise unknown(study.path, at, augmented.split, splits)
        there, wanted = splits[augmented.split].images, images or augmented.images
        if study.clean and there is not None and wanted > there:
            key = f"{table}.images" if images else "augmented.images"
            at = f"analysis.{key}, for models.{model} in {asking}"
            allowed = (
                f"at most {there}, the images of data.{data}.splits.{augmented.split}: without "
                f"augmentation each is taken once."
            )
            raise wrong(study.path, at, wanted, allowed)
