"""What a measure is: it says what it needs, how it is cut into parts, and what these cost.

Each measure is a folder beside this file, and declares itself in its `measure.py`. That module
imports nothing heavy: it is read wherever a study is.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from vitscope.settings.study import Study

# Latents on disk; what a model says of images; the model itself, on images; its loss, on augmented
# training images; its network with its weights, and no images; its weights at several moments of
# training; or the parts of another measure.
Needs = Literal["latents", "predictions", "model", "loss", "network", "weights", "parts"]
# What is in memory of each image of a batch.
Keeps = Literal["pass", "units", "gradient", "product"]
# Plain values that a job is given: when they change, it runs again.
Given = dict[str, Any]
# The columns of published points that are drawn by depth.
BY_DEPTH = frozenset({"index", "normalized_depth", "kind", "subsampling"})


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure: which module draws it, and from which tables.

    `published` are the columns of a file of published points that it can show, or that its claims
    are compared with; none if empty. `snapshots` tells whether a figure of this kind says which
    moments of training it shows. A figure `by_epoch` shows each model at several of them, as models
    of their own.
    """

    measure: str
    module: str
    tables: tuple[str, ...]
    caption: str
    published: frozenset[str] = frozenset()
    snapshots: bool = False
    by_epoch: bool = False


@dataclass(frozen=True)
class Work:
    """What a part takes: forward passes of one image each, and what is in memory meanwhile.

    `batch` images are in memory at once, and of each `keeps`: what one layer needs, what lesions
    use again, or all that one pass back needs, or two. `vectors` are copies of the weights. `most`
    tells that the passes may be fewer: they end when a result has converged.
    """

    passes: float
    batch: int
    keeps: Keeps = "pass"
    vectors: int = 0
    most: bool = False


def passes(
    views: float,
    wanted: int | None,
    there: int | None,
    batch: int,
    keeps: Keeps = "pass",
) -> Work | None:
    """Count passes of as many images as are wanted and there, each in several views.

    None if nobody knows yet how many images there are.
    """
    known = [count for count in (wanted, there) if count is not None]
    return Work(min(known) * views, batch, keeps) if known else None


class Measure:
    """A measure; the values here are those of most. Each room has a class of its own."""

    needs: ClassVar[Needs]
    # Whether it is measured in parts, each a job, that are merged to its table.
    in_parts: ClassVar[bool] = False
    # Whether its table is of pairs of models: the parts, of each model, are merged for each pair.
    of_pairs: ClassVar[bool] = False
    # The measure whose parts are merged, if it is another one.
    parts_of: ClassVar[str | None] = None
    # What a job of a measure of the model reads besides, by the names of the workflow's inputs.
    reads: ClassVar[tuple[str, ...]] = ()
    # Whether it reads attention, and is refused for a network that has none.
    reads_attention: ClassVar[bool] = False
    # Whether merging needs the cut points, which it gets from the block table.
    merges_blocks: ClassVar[bool] = False
    # The dataclass of its own settings, if it has any: the section of its name in `analysis`.
    settings: ClassVar[type | None] = None
    # Seconds for a GB of latents, for a measure of these: docs/scale.md has them.
    seconds_per_gb: ClassVar[float] = 0.0
    # The setting that says how many images are in memory at once.
    batch_setting: ClassVar[str | None] = None

    @property
    def name(self) -> str:
        """The name of the measure, of its folder and of its table."""
        return type(self).__module__.split(".")[-2]

    @property
    def reads_predictions(self) -> bool:
        """Whether a model has to classify images for it."""
        return self.needs == "predictions" or "predictions" in self.reads

    @property
    def needs_classes(self) -> bool:
        """Whether it is about what a model says of classes, and not of its features or weights."""
        return self.needs in ("predictions", "model", "loss") and not self.reads_attention

    def figures(self) -> dict[str, FigureKind]:
        """Return the kinds of figures that are drawn of it."""
        return {}

    def kind(
        self,
        suffix: str = "",
        *,
        tables: tuple[str, ...] = (),
        published: frozenset[str] = frozenset(),
        snapshots: bool = False,
        by_epoch: bool = False,
    ) -> FigureKind:
        """Return a kind of figure that the module `figure`, or `figure_suffix`, draws.

        `tables` are those that it needs beside the measure's own.
        """
        end = f"_{suffix}" if suffix else ""
        return FigureKind(
            self.name,
            f"figure{end}",
            (self.name, *tables),
            f"caption{end}.rst",
            published,
            snapshots,
            by_epoch,
        )

    def split(self, study: "Study") -> str:
        """Return the split whose images it measures."""
        return study.analysis.split

    def splits(self, study: "Study") -> list[str]:
        """Return all splits whose images it is made from: none, of a network alone."""
        return [] if self.needs == "network" else [self.split(study)]

    def predicted(self, study: "Study") -> int | None:
        """Return how many images are classified, for a measure of predictions; None for all."""
        raise NotImplementedError(f"{self.name} needs no predictions")

    def corrupted(self, study: "Study") -> Given:
        """Return which corrupted images there are, for a measure of these."""
        raise NotImplementedError(f"{self.name} reads no corrupted images")

    def drawn_alike(self, study: "Study") -> int:
        """Return how many images are augmented alike for all models, for a measure of these."""
        raise NotImplementedError(f"{self.name} reads no images that are augmented alike")

    def parts(self, study: "Study", model: str) -> int:
        """Return how many parts there are."""
        return study.shards(model)

    def snapshots(self, study: "Study", model: str) -> list[str]:
        """Return the moments of training whose loss is measured."""
        return study.snapshots_of(self.name, model)

    def part(self, study: "Study", model: str, part: int) -> Given:
        """Return what a part depends on, or the whole: arguments of `measure` in compute.py."""
        return {}

    def merging(self, study: "Study", model: str) -> Given:
        """Return what merging depends on: arguments of `merge` in merge.py.

        For a measure of pairs, `model` is the name of a pair.
        """
        return {}

    def work(
        self, study: "Study", model: str, part: int, images: int | None, cut_points: int
    ) -> Work | None:
        """Return what a part takes of a network; None if it runs none, or if nobody knows yet.

        `images` is how many images there are, if that is known, `cut_points` how many the model
        has.
        """
        return None

    def fitting(self, images: int) -> Given:
        """Return settings for so many images, where a caller gives none and defaults do not fit."""
        return {}

    def check(self, study: "Study") -> None:
        """Refuse settings that cannot be measured, in one sentence."""
