"""Claims about blocks: the value after a block of some kind is lower, or higher, than before it."""

from collections.abc import Callable

import pandas as pd

from vitscope.claims.claim import Claim, Find, Finding, every_model, rank_correlation, share
from vitscope.claims.depth_bands import subsamples

# The end of the rule of every such claim.
COUNTED = (
    "Blocks of one kind count: a block is in favour if the value after it is lower (or higher, as "
    "claimed) than the value before it. Blocks that subsample have a claim of their own and do "
    "not count in the others. Where blocks normalize the sum of stream and branch, values are read "
    "after that norm, unless `norms` of the model says before."
)
_BLOCKS = {
    "msa": "MSAs",
    "conv": "Convs that do not subsample",
    "mlp": "MLPs",
    None: "blocks that subsample",
}


def falls(value: str, kind: str | None) -> Find:
    """Count the blocks of a kind, or the blocks that subsample, after which a value is lower."""
    return lambda points: share(_changes(points, value, kind) < 0)


def rises(value: str, kind: str | None) -> Find:
    """Count the blocks of a kind, or the blocks that subsample, after which a value is higher."""
    return lambda points: share(_changes(points, value, kind) > 0)


def compare_kinds(changes: pd.Series, points: pd.DataFrame, more: str, less: str) -> Finding | None:
    """Find by how much the mean change over blocks of one kind exceeds the one over another."""
    means = changes.groupby(points["kind"]).mean()
    if not {more, less} <= {*means.dropna().index}:
        return None
    return Finding(float(means[more] - means[less]))


def follow_depth(points: pd.DataFrame, value: str) -> Finding | None:
    """Find the rank correlation of depth and a value, over all cut points that have it."""
    known = points.dropna(subset=value)
    return rank_correlation(known["depth"], known[value])


def compare_changes(points: pd.DataFrame, value: str, more: str, less: str) -> Finding | None:
    """Find by how much a value changes more over blocks of one kind; none of them subsamples."""
    changes = points[value].diff()[~points["subsampling"]]
    return compare_kinds(changes, points, more, less)


def _changes(points: pd.DataFrame, value: str, kind: str | None) -> pd.Series:
    subsampling = points["subsampling"]
    chosen = subsampling if kind is None else (points["kind"] == kind) & ~subsampling
    return points[value].diff()[chosen].dropna()


def with_subsampling(points: pd.DataFrame) -> pd.DataFrame:
    """Add to the points of one model, in order, whether the block before each subsamples."""
    return points.assign(subsampling=subsamples(points))


def in_order(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return the points of one model from a table of one row per cut point."""
    return with_subsampling(rows.sort_values("index", ignore_index=True))


def about_blocks(
    rule: str,
    name: str,
    statement: str,
    kind: str | None,
    change: Callable[[str, str | None], Find],
    *,
    source: str,
    value: str,
) -> Claim:
    """Make the claim that a value changes over the blocks of a kind, or where it is subsampled.

    `change` is `falls` or `rises`.
    """
    measure = f"share of {_BLOCKS[kind]}"
    return Claim(name, statement, source, measure, rule, every_model, change(value, kind))
