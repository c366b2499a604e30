"""How a measure declares itself: its inputs, its figures, and how jobs divide the work.

Each measure is declared in the `measure.py` of its folder, by plain values and, where these do not
suffice, functions. That module imports nothing heavy, since reading any study imports it: what
imports more is named as `module:name`, where a module without a dot is one of the folder.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from vitscope.errors import VitscopeError, unknown, wrong
from vitscope.files.tables import Table
from vitscope.measures.needs import NEEDS, READABLE, Input, MadeInput, Need
from vitscope.measures.work import Keeps, Work, work_for_images
from vitscope.settings.section import optional, result_settings, schema_of_section, setting
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
# Parameters of a job, as plain values; when they change, the job runs again.
Given = dict[str, Any]
# The values of the wildcards of a job, by their names in rules.
About = dict[str, str]
# The settings of a measure: the name of a section of `analysis`, and the section's dataclass.
Section = tuple[str, type]
# The columns that published points need in order to be drawn by depth.
BY_DEPTH = frozenset({"index", "normalized_depth", "kind", "subsampling"})


@dataclass(frozen=True)
class Multiples:
    """Says how the panels of one quantity, one for each model, are drawn."""

    scales: Literal["shared", "own"] | None = optional(
        "For kinds with a panel for each model: whether panels of one quantity share the scale of "
        "their y axes. If left out, they do where values of models compare, and not where these "
        "may differ by orders of magnitude. A panel with a scale of its own says so."
    )


@dataclass(frozen=True)
class ByEpoch:
    """Says whether models are shown after several epochs of their training."""

    by_epoch: bool | None = optional(
        "For the kinds that know `change`: whether each model is shown after several epochs of its "
        "training, by a curve for each of its snapshots whose epoch is known, or for those in "
        "`snapshots`, and below these by the share of blocks that change the value; claims are not "
        "counted on it. In `without_scale` each epoch has a column."
    )


@dataclass(frozen=True)
class ByBlock(ByEpoch, Multiples):
    """Says how a value is drawn that blocks raise or lower."""

    change: bool | None = optional(
        "For `feature_variance`, `normalized_variance`, `spatial_share`, `fourier_depth`, "
        "`token_similarity`, `mean_token`, `effective_rank` and measures of your own: whether a "
        "bar for each block shows by how much the value changes over it, with the interval that "
        "claims test; if left out, a curve shows the value by depth."
    )


@dataclass(frozen=True)
class ByDepth(ByBlock):
    """Says how a value by depth is drawn."""

    together: bool | None = optional(
        "For `feature_variance`, `normalized_variance`, `spatial_share`, `token_similarity`, "
        "`mean_token` and measures of your own: whether all models share one panel, as for "
        "several trainings of one network, or those of each recipe, where there are trainings of "
        "several; if left out, each has its own."
    )


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure."""

    # What draws it: a function or a `Chart`.
    draw: str
    # Its claims: an `Evidence`, or a function that makes one of the arguments `claims_from`.
    claims: str | None = None
    claims_from: Given | None = None
    # The tables that the figure needs besides the table of its measure.
    beside: tuple[str, ...] = ()
    # The columns of the published points that the figure can show; empty if it can show none.
    published: frozenset[str] = frozenset()
    # Whether published points are used for claims only, and are not drawn.
    for_claims: bool = False
    # Whether published points may be of models that the figure does not show.
    others: bool = False
    # The functions that sketch the figure on the page "Paper against measured", if it is there: as
    # a whole, and if `change` is set.
    sketch: str | None = None
    sketch_change: str | None = None
    # Whether a figure of this kind names the snapshots of training that it shows.
    snapshots: bool = False
    # Whether every figure of this kind shows models after several epochs, as separate models.
    by_epoch: bool = False
    # Whether a figure of a measure of pairs names models, and is of each two of them.
    all_pairs: bool = False
    # Keyword arguments for what draws it.
    values: Given = field(default_factory=dict)
    # A dataclass of further keys that such a figure may have in a study, which are keyword
    # arguments, too.
    options: type | None = None
    # The names of the measure and of the kind; the registry fills them in.
    measure: str = ""
    name: str = ""
    # The caption, if there is no caption file.
    text: str = ""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that the figure is drawn from; the table of its measure comes first."""
        return (self.measure, *self.beside)

    @property
    def drawn_columns(self) -> frozenset[str]:
        """The columns of published points that the figure shows."""
        return frozenset() if self.for_claims else self.published

    @property
    def option_keys(self) -> Given:
        """The JSON schemas of the further keys that a figure of this kind may have, by key."""
        return schema_of_section(self.options)["properties"] if self.options else {}

    @property
    def caption(self) -> str:
        """The name of the caption file, which is in the folder of the measure."""
        return f"caption_{self.name}.rst"


@dataclass(frozen=True)
class Case:
    """What a measure is computed for: a model of a study, and a part of the work.

    `images` is the number of images, if known, and `cut_points` the number of cut points. `others`
    are the second model and the third, for a measure of a pair or a triple.
    """

    measure: "Measure"
    study: "Study"
    model: str
    part: int = 0
    images: int | None = None
    cut_points: int = 0
    snapshot: str = END
    others: tuple[str, ...] = ()

    @property
    def settings(self) -> Any:
        return self.measure.read_settings(self.study)

    @property
    def steps(self) -> range:
        """The steps that this part measures, of all the steps that jobs divide among themselves."""
        steps, each = self.measure.steps(self.study)
        return range(steps)[self.part * each : (self.part + 1) * each]

    @property
    def batch_size(self) -> int:
        holder = self.settings if self.measure.batch_setting else self.study.analysis
        return holder.batch_size

    def names(self, made: MadeInput) -> About | list[About]:
        """Return the wildcards of the job that makes an input; for a list, those of each element.

        Without any job, the measure takes no such input.
        """
        if made.unless_zero and not getattr(self.settings, made.unless_zero):
            return []
        models = self.others if made.of_others else (self.model,)
        cases = (replace(self, model=model) for model in models)
        every = [{key: str(OF_CASE[key](case)) for key in made.about} for case in cases]
        if made.of_others:
            return every
        (names,) = every
        if not made.each:
            return names
        return [{**names, made.each: each} for each in OF_CASE[f"{made.each}s"](self)]

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Name the study and the model in errors."""
        try:
            yield
        except VitscopeError as error:
            raise VitscopeError(f"{self.study.path}: models.{self.model}: {error}") from error


# Functions that return what inputs and results can depend on, by name. A model with a history has
# no `snapshots` here, since its snapshots are not read.
OF_CASE: dict[str, Callable[[Case], Any]] = {
    "model": lambda case: case.model,
    "others": lambda case: [*case.others],
    "part": lambda case: case.part,
    "snapshot": lambda case: case.snapshot,
    "snapshots": lambda case: (
        [] if (model := case.study.models[case.model]).history else model.moments()
    ),
    "dataset": lambda case: case.study.models[case.model].data,
    "split": lambda case: case.measure.split(case.study),
    "alike": lambda case: "yes",
    "network": lambda case: case.study.network(case.model),
    # In a notebook, the other networks are of other studies.
    "other_networks": lambda case: [*map(case.study.network, case.others)],
    "device": lambda case: case.study.device,
    "images_at_once": lambda case: case.study.analysis.batch_size,
    "first_image": lambda case: case.part * case.study.analysis.shard_size,
    "by_label": lambda case: case.measure.by_label,
}

Arguments = Callable[[Case], Given]


def own_settings(case: Case) -> Given:
    """Return all settings of the measure, each as an argument."""
    return asdict(case.settings)


def whole_settings(case: Case) -> Given:
    """Return, as one argument, the settings that affect results; the others keep their defaults."""
    return {"settings": result_settings(case.settings)}


def bootstrap(case: Case) -> Given:
    return asdict(case.study.analysis.bootstrap)


def images_to_show(case: Case) -> Given:
    """Return how many images to show, how many are measured, and the seed that draws the latter."""
    shown, images = case.settings.images, case.study.images(case.model)
    return {"shown": shown, "images": images, "seed": case.study.analysis.seed}


@dataclass(frozen=True)
class ImagesToClassify:
    """The settings of measures that classify images of the split."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )


def images_to_classify(case: Case) -> Given:
    """Return how many images of the split to classify, and the seed that draws them."""
    return {"images": case.settings.images, "seed": case.study.analysis.seed}


def selection(case: Case) -> Given:
    """Return the index of the shard to measure, and how the images are cut into shards."""
    return {"shard": case.part, "selection": case.study.selection(case.model)}


def only(*keys: str) -> Arguments:
    """Make a function that returns the settings `keys` of the measure, each as an argument."""
    return lambda case: {key: getattr(case.settings, key) for key in keys}


def together(*arguments: Arguments) -> Arguments:
    """Make a function that calls each given function and returns all arguments together."""
    return lambda case: {key: value for each in arguments for key, value in each(case).items()}


def named(**arguments: Arguments) -> Arguments:
    """Make a function that calls each given function and returns the results by keyword."""
    return lambda case: {name: each(case) for name, each in arguments.items()}


def passes_of_measure(
    views: float | Callable[[Case], float] = 1, batch: int | None = None, keeps: Keeps = "pass"
) -> Callable[[Case], Work | None]:
    """Make a function that returns the work for `views` passes of each measured image.

    The measured images are those of a shard or, for a measure without shards, as many as its
    setting `images` says.
    """

    def work_of_measure(case: Case) -> Work | None:
        if case.measure.shares == "shards":
            wanted = min(case.study.analysis.shard_size, case.study.images(case.model))
        else:
            wanted = case.settings.images
        each = views(case) if callable(views) else views
        return work_for_images(each, wanted, case.images, batch or case.batch_size, keeps)

    return work_of_measure


@dataclass(frozen=True)
class Merge:
    """Says how parts are merged: by `function`; without one, they are stacked.

    `arguments` returns the arguments of the function. With `at_cut_points`, it also gets the cut
    points, from the block table.
    """

    function: str | None = None
    arguments: Arguments = lambda case: {}
    at_cut_points: bool = False


def mean_over_images(column: str) -> Merge:
    """Return the `Merge` that averages `column` over images, with intervals, at each cut point."""
    merges = "vitscope.measures.per_image:merge_means"
    return Merge(merges, lambda case: {"column": column} | bootstrap(case), True)


@dataclass(frozen=True, eq=False)
class Measure:
    """Declares a measure, which is named like its table."""

    # Its main input: a key of `NEEDS` in vitscope.measures.needs.
    needs: str
    # The table of the measure, and the table of its parts if the two differ.
    table: Table
    part: Table | None = None
    # The function that measures, or measures a part; none if it merges the parts of another.
    measure: str = ""
    # The kinds of figures that show the measure.
    figures: Mapping[str, FigureKind] = field(default_factory=dict)
    # The dataclass of the section `analysis.{name}`, if the measure has settings of its own.
    settings: type | None = None
    # The settings of another measure, if it uses them in place of its own.
    settings_of: Section | None = None
    # The settings that say how many images are classified, if its own settings do not.
    predictions_of: Section | None = None
    # Returns the arguments of `measure` besides its inputs; a part depends on them.
    arguments: Arguments = lambda case: {}
    # Returns what a part costs, for a measure that runs a network.
    takes: Callable[[Case], Work | None] | None = None
    # What jobs divide among themselves, for a measure of the model or of its loss: shards of
    # images, or steps. Steps are declared by the names of two settings: the steps (or how many),
    # and the number of steps per job.
    shares: Literal["shards"] | tuple[str, str] | None = None
    merge: Merge = Merge()
    # How many models its table is about at once: 2 for pairs, 3 for triples. A merge then gets the
    # parts of all of them, and a measure without parts needs a "line".
    models: int = 1
    # The measure whose parts are merged, if it has no parts of its own.
    parts_of: str | None = None
    # Its further inputs: keys of `READABLE` in vitscope.measures.needs.
    reads: tuple[str, ...] = ()
    # Whether the measure reads attention; it is then refused for a network without attention.
    reads_attention: bool = False
    # Whether it needs no classes although it runs a model, because it is about features.
    about_features: bool = False
    # Whether it compares predictions with labels; it is then refused for images without labels.
    by_label: bool = True
    # Whether it needs the labels of images although it is about features, not predictions.
    needs_labels: bool = False
    # Whether its settings name the split of its images.
    own_split: bool = False
    # Seconds for each GB of latents, if it measures latents; docs/scale.md lists them.
    seconds_per_gb: float = 0.0
    # The numbers that a part has of a map besides one, for each row or column, whichever are more.
    numbers_per_side: int = 0
    # Raises an error of one sentence for a model that it cannot measure.
    refuse: Callable[[Case], None] | None = None
    # Raises an error for settings that do not work with any model; the case names no model.
    refuse_settings: Callable[[Case], None] | None = None
    # Raises an error of one sentence for settings that leave each claim of its figures undecided.
    decides: Callable[[Case], None] | None = None
    # Returns settings that suit a number of images; called if a caller gives no settings and the
    # defaults do not suit.
    fit: Callable[[int], Given] | None = None
    # The heading of its figures in the report.
    question: Question = "Questions of your own"
    # The folder of the measure, as a module name; the registry fills it in.
    package: str = ""

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def part_table(self) -> Table:
        return self.part or self.table

    @property
    def need(self) -> Need:
        return NEEDS[self.needs]

    @property
    def inputs(self) -> dict[str, Input]:
        """All inputs of the measure, by name."""
        return {**self.need.inputs, **{name: READABLE[name] for name in self.reads}}

    @property
    def in_parts(self) -> bool:
        """Whether jobs measure parts, which are then merged into its table."""
        return self.need.in_parts or self.shares is not None

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
        """The key of its own setting for the number of images in memory at once, if it has one."""
        section, kind = self._section or ("", object)
        known = getattr(kind, "__annotations__", ())
        own = next((key for key in ("batch_size", "sizes") if key in known), None)
        return own and f"analysis.{section}.{own}"

    def read_settings(self, study: "Study") -> Any:
        return _read_section(study, self._section)

    def split(self, study: "Study") -> str:
        """Return the split whose images are measured."""
        if self.need.of_training:
            return study.analysis.augmented.split
        return self.read_settings(study).split if self.own_split else study.analysis.split

    def splits(self, study: "Study") -> list[str]:
        """Return all splits whose images are used; empty for a measure of a network or weights."""
        if not self.need.of_images:
            return []
        augmented = {"alike", "augmented"} & self.inputs.keys()
        return [self.split(study), *([study.analysis.augmented.split] if augmented else [])]

    def predicted(self, study: "Study") -> int | None:
        """Return how many images are classified for a measure of predictions; None for all."""
        images: int | None = _read_section(study, self.predictions_of or self._section).images
        return images

    def corrupted(self, study: "Study", part: int) -> Given:
        """Return which corrupted images a part needs, for a measure of corrupted images."""
        settings = self.read_settings(study)
        corruptions = self.arguments(Case(self, study, "", part))["corruptions"]
        wanted = {"images": settings.images, "severities": settings.severities}
        return wanted | {"corruptions": corruptions}

    def steps(self, study: "Study") -> tuple[int, int]:
        """Return how many steps all jobs measure together, and how many each job measures."""
        assert isinstance(self.shares, tuple), f"jobs of {self.name} share no steps"
        settings = self.read_settings(study)
        steps, each = (getattr(settings, key) for key in self.shares)
        return steps if isinstance(steps, int) else len(steps), each

    def parts(self, study: "Study", model: str) -> int:
        """Return the number of parts: groups of steps, or shards."""
        if isinstance(self.shares, tuple):
            steps, each = self.steps(study)
            return ceil(steps / each)
        return study.shards(model)

    def snapshots(self, study: "Study", model: str) -> list[str]:
        """Return the snapshots to measure: the end of training, unless figures show others."""
        shown = any(kind.snapshots for kind in self.figures.values())
        return study.snapshots_of(self.name, model) if shown else [END]

    def measuring(self, study: "Study", model: str, part: int) -> Given:
        """Return the arguments that a part is measured with, on which its result depends."""
        return self.arguments(Case(self, study, model, part))

    def merging(self, study: "Study", model: str) -> Given:
        """Return the arguments of the merge for a model or a pair; its result depends on them."""
        return self.merge.arguments(Case(self, study, model))

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Return what a part costs; None if it runs no network or the cost is not known yet."""
        case = Case(self, study, model, part, images, cut_points)
        return self.takes(case) if self.takes else None

    def takes_gradients(self, study: "Study", model: str) -> bool:
        work = self.work(study, model, 0, 1, 1)
        keeps = work.keeps if work else ""
        return self.need.of_training or keeps in ("gradient", "product")

    def check(self, study: "Study") -> None:
        """Refuse settings and models that cannot be measured, with an error of one sentence."""
        if self.need.of_training:
            check_measure_of_augmented(study, self.name)
        if "alike" in self.reads:
            check_measure_of_augmented(study, self.name, self.read_settings(study).images)
        if self.refuse_settings:
            self.refuse_settings(Case(self, study, model=""))
        for model in study.models_of(self.name):
            if study.models[model].interventions and self.takes_gradients(study, model):
                raise VitscopeError(
                    f"{study.path}: models.{model}.interventions: '{self.name}' takes gradients, "
                    f"and none passes through an intervention: leave the model out of its figures."
                )
            if self.refuse:
                self.refuse(Case(self, study, model))


def refuse_few_measured_images(case: Case, least: int) -> None:
    """Refuse a model that is measured on fewer than `least` images."""
    images = case.study.images(case.model)
    if images < least:
        raise VitscopeError(
            f"{case.study.path}: models.{case.model} is measured on too few images for a figure of "
            f"the kind '{case.measure.name}': found {images}, allowed: {least} or more."
        )


def refuse_too_few_to_decide(case: Case, key: str, batches: int, least: int) -> None:
    """Refuse fewer batches than a claim about them needs to be decided, whatever they are like."""
    if batches < least:
        raise VitscopeError(
            f"{case.study.path}: analysis.{key}: {batches} of {least} batches: too few to decide "
            f"any claim of the figures of '{case.measure.name}': raise it to {least} or more."
        )


def _read_section(study: "Study", section: Section | None) -> Any:
    assert section, "the measure has no settings"
    return study.section(*section)


def _advise_on_augmented(study: "Study", table: str, model: str, images: int | None) -> str:
    """Return settings for data without the split that is augmented, or '' if there is one."""
    augmented, splits = study.analysis.augmented, study.dataset_of(model).splits
    if augmented.split in splits:
        return ""
    # Prefer images that are not measured.
    split = next((name for name in splits if name != study.analysis.split), study.analysis.split)
    there, inside, beside = splits[split].images, f"split: {split}", ""
    clean = study.clean or not (study.training or study.loss)
    if clean and there is not None and (images or augmented.images) > there:
        few = f"images: {there}"
        inside, beside = (inside, f", {table}: {{{few}}}") if images else (f"{inside}, {few}", "")
    return (
        f" Declare a split '{augmented.split}' in data.{study.models[model].data}, or write "
        f"`analysis: {{augmented: {{{inside}}}{beside}}}`."
    )


def check_measure_of_augmented(study: "Study", table: str, images: int | None = None) -> None:
    """Refuse a study that does not define the loss, or has too few images to augment.

    `images` is the number of augmented images; None for `analysis.augmented.images`.
    """
    augmented, figures = study.analysis.augmented, study.figures_of(table)
    advise = partial(_advise_on_augmented, study, table, images=images)
    named = (f"figures.{name}" for name, each in study.figures.items() if each in figures)
    asking = next(named, "")
    if asking and study.training is None and study.loss is None:
        raise VitscopeError(
            f"{study.path}: {asking} shows a loss, and nothing says of what training: add "
            f"`loss: {{weight_decay: ..., augment: none}}` for networks that were trained "
            f"elsewhere, or the key 'training'."
            f"{next(filter(None, map(advise, study.models_of(table))), '')}"
        )
    for model in study.models_of(table):
        splits, data = study.dataset_of(model).splits, study.models[model].data
        if augmented.split not in splits:
            at = f"analysis.augmented.split, for models.{model} on data.{data} in {asking}"
            raise VitscopeError(
                f"{unknown(study.path, at, augmented.split, splits)}{advise(model)}"
            )
        there, wanted = splits[augmented.split].images, images or augmented.images
        if study.clean and there is not None and wanted > there:
            key = f"{table}.images" if images else "augmented.images"
            at = f"analysis.{key}, for models.{model} in {asking}"
            allowed = (
                f"at most {there}, the images of data.{data}.splits.{augmented.split}: without "
                f"augmentation each is taken once."
            )
            raise wrong(study.path, at, wanted, allowed)
