"""Claims about networks: what each says, what it is counted on, and which models it is about."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import pandas as pd

from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import subsamples
from vitscope.claims.statistics import Statistic, falls, rises


@dataclass(frozen=True)
class Traits:
    """What claims know of a model: the kinds of its cut points, and its settings in the study."""

    kinds: Collection[str]
    settings: Mapping[str, Any] = field(default_factory=dict)


# The models of a figure, in the order of the figure.
Models = Mapping[str, Traits]
# A claim is about one model, or about a model and another that it is compared with.
Subject = tuple[str, ...]

# Makes the points of one model from its rows in a table and its rows in the block table.
Measured = Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Claim:
    """A statement about networks, and how to count it.

    `about` chooses models, or pairs of models, by their traits; `why` tells readers what the
    `source` found. The statistic supplies the rest of the rule that readers see.
    """

    name: str
    statement: str
    source: str
    about: Callable[[Models], list[Subject]]
    statistic: Statistic
    why: str = ""

    @property
    def rule(self) -> str:
        """How the claim is counted, in words."""
        return " ".join(filter(None, (self.why, self.statistic.rule, self.statistic.bound)))


# A claim of a source: its name, its statement, and its statistic.
Row = tuple[str, str, Statistic]


def rows_of_blocks(name: str, value: str, what: str, log: bool = False) -> tuple[Row, ...]:
    """Return the claims that MSAs reduce a value and that Convs and MLPs increase it.

    `value` is its column, `what` names it in texts, and `name` in the names of the claims; `log`
    compares training runs by ratios.
    """
    convs, how = "Convs that do not subsample", (value, what, log)
    return (
        (f"msa_reduces_{name}", f"MSAs reduce the {what}", falls("msa", *how)),
        (f"conv_increases_{name}", f"{convs} increase the {what}", rises("conv", *how)),
        (f"mlp_increases_{name}", f"MLPs increase the {what}", rises("mlp", *how)),
    )


def make_claims(
    source: str, about: Callable[[Models], list[Subject]], why: str, *rows: Row
) -> tuple[Claim, ...]:
    """Make claims from `rows`; all have the same source and are about the same models."""
    return tuple(
        Claim(name, statement, source, about, statistic, why) for name, statement, statistic in rows
    )


@dataclass(frozen=True)
class ScoredCurve:
    """The columns of a curve, or of a curve for each value of `by`; `log` compares ratios."""

    x: str
    y: str
    by: str | None = None
    log: bool = False


@dataclass(frozen=True)
class Evidence:
    """Claims, and how to make the points that they are counted on.

    `measured` makes the points of a model from its rows in the `table` and in the block table,
    `published` makes points with the same columns from its published points. `curve` tells how the
    agreement of measured and published points is scored.
    """

    table: str
    claims: tuple[Claim, ...]
    measured: Measured
    published: Callable[[pd.DataFrame], pd.DataFrame] = lambda points: points
    curve: ScoredCurve | None = None


def with_subsampling(points: pd.DataFrame) -> pd.DataFrame:
    """Add the column `subsampling` to ordered points: whether the block before each subsamples."""
    return points.assign(subsampling=subsamples(points))


def in_order(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return the points of one model from a table with one row per cut point."""
    return with_subsampling(rows.sort_values("index", ignore_index=True))


def value_in_row(value: str, column: str, name: str) -> Measured:
    """Return a function that makes a model's point from the row whose `column` is `name`."""

    def point_in_row(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
        row = rows[rows[column] == name]
        resampled = row.get(f"{value}{RESAMPLED}")
        return row.assign(measure=value, value=row[value], **{f"value{RESAMPLED}": resampled})

    return point_in_row


def without_controls(models: Models) -> Models:
    """Leave out the models that a study declares as controls: they are evidence of nothing."""
    return {name: each for name, each in models.items() if not each.settings.get("control")}


def every_model(models: Models) -> list[Subject]:
    return [(model,) for model in without_controls(models)]


def every_pair(models: Models) -> list[Subject]:
    return [*combinations(without_controls(models), 2)]


def convolutional(models: Models) -> list[Subject]:
    """Choose the models that have Convs and no MSAs."""
    having = {model: traits.kinds for model, traits in without_controls(models).items()}
    return [(model,) for model, kinds in having.items() if "conv" in kinds and "msa" not in kinds]


def attending(models: Models) -> list[Subject]:
    """Choose the models that have MSAs."""
    found = without_controls(models).items()
    return [(model,) for model, traits in found if "msa" in traits.kinds]


def attention_against_convolution(models: Models) -> list[Subject]:
    """Pair each model that has MSAs with each convolutional model."""
    pairs = product(attending(models), convolutional(models))
    return [(*ours, *theirs) for ours, theirs in pairs]


# What decides how training images differ from test images, and how many they are.
_AUGMENTED = (
    *("images", "label_smoothing", "mixup", "cutmix", "mixing_probability", "randaugment"),
    *("color_jitter", "erasing", "erased", "crop", "shift", "border", "flip"),
)


def attention_against_convolution_alike(models: Models) -> list[Subject]:
    """Pair as `attention_against_convolution` does, if both were trained on images made alike."""
    made = {
        model: [traits.settings.get(f"training.{key}") for key in _AUGMENTED]
        for model, traits in models.items()
    }
    pairs = attention_against_convolution(models)
    return [(ours, theirs) for ours, theirs in pairs if made[ours] == made[theirs]]


def hybrid_against_convolution(models: Models) -> list[Subject]:
    """Pair each model that has both MSAs and Convs with each convolutional model."""
    pairs = attention_against_convolution(models)
    return [pair for pair in pairs if "conv" in models[pair[0]].kinds]


# Differences in these settings are ignored: models still count as alike.
_INDIFFERENT = ("training.seed", "training.trajectory", "training.snapshot", "control")


def alike_but_for(
    *keys: str, when: Callable[[Any, Any], bool]
) -> Callable[[Models], list[Subject]]:
    """Return a function that pairs each model that has MSAs with models that differ only in `keys`.

    `when` is called with the values of the first key in both models (None if a model lacks it), and
    tells whether the two are a pair in this order.
    """

    def pairs_alike(models: Models) -> list[Subject]:
        rest = {
            model: {
                key: value
                for key, value in traits.settings.items()
                if key not in keys and not key.startswith(_INDIFFERENT)
            }
            for model, traits in models.items()
        }
        first = {model: traits.settings.get(keys[0]) for model, traits in models.items()}
        return [
            (ours, theirs)
            for (ours,), theirs in product(attending(models), models)
            if when(first[ours], first[theirs]) and rest[ours] == rest[theirs]
        ]

    return pairs_alike


def named_in(key: str) -> Callable[[Models], list[Subject]]:
    """Return a function that pairs each model with the models that its study names under `key`."""

    def named_pairs(models: Models) -> list[Subject]:
        named = {name: each.settings.get(key) or () for name, each in models.items()}
        return [(ours, theirs) for ours in models for theirs in named[ours] if theirs in models]

    return named_pairs


AVERAGED = (
    'Not in the paper: its authors find in "Blurs Behave Like Ensembles" (2022) that blurs and '
    "ensembles {}. `averages` of a model names the one of which it averages, which the second "
    "model is."
)


# Why claims compare a model that has MSAs with a model that mixes tokens by other weights.
SPECIFIC = (
    "The paper's abstract says that what MSAs improve is due to data specificity, not to "
    "long-range dependency. The second model mixes tokens by weights that no image changes, "
    "learned ones of their positions (`mixing: fixed`), equal ones (`uniform`) or those of a "
    "convolution (`depthwise`), or attends to learned keys of positions (`static_key`). Nothing "
    "else differs."
)
# Why claims compare a training with sharpness-aware minimization with one without.
SAM = (
    "The paper says that methods that smooth the loss help ViTs, and has no figure of it. Networks "
    "and trainings differ in `sam` alone."
)
# Why claims compare an AlterNet with a CNN.
OWN_CNN = (
    "The paper's Fig. 12. The second model is the first one without its MSAs (`attention`), of the "
    "same training."
)
# What these claims compare MSAs with.
OTHER_MIXING = "mixing by weights or keys that no image changes"


averaging = named_in("averages")


# The first model classifies the class token, the second the mean of all tokens.
token_against_mean = alike_but_for(
    "arch.class_token",
    "arch.global_pool",
    when=lambda ours, theirs: ours is not False and theirs is False,
)
local_against_global = alike_but_for(
    "arch.attention_window", when=lambda ours, theirs: ours is not None and theirs is None
)
global_against_local = alike_but_for(
    "arch.attention_window", when=lambda ours, theirs: ours is None and theirs is not None
)
small_against_large_patches = alike_but_for(
    "arch.patch_size",
    when=lambda ours, theirs: ours is not None and theirs is not None and ours < theirs,
)
# Epochs may differ with the size of the data: as many steps take more epochs on less data.
less_against_more_data = alike_but_for(
    "training.images",
    "training.epochs",
    "training.warmup_epochs",
    when=lambda ours, theirs: ours is not None and (theirs is None or ours < theirs),
)
attention_against_other_mixing = alike_but_for(
    "arch.mixing",
    when=lambda ours, theirs: (
        ours in (None, "attention") and theirs in ("static_key", "fixed", "depthwise", "uniform")
    ),
)
sam_against_none = alike_but_for(
    "training.sam", when=lambda ours, theirs: ours is not None and theirs is None
)
alternet_against_its_cnn = alike_but_for(
    "arch.attention",
    "arch.heads",
    "arch.head_dim",
    "arch.window",
    when=lambda ours, theirs: any(ours or ()) and theirs is not None and not any(theirs),
)
