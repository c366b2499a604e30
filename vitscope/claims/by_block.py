"""Claims about kinds of blocks: the value after each falls, or rises. Fig. 8, 9, D.1 and D.2."""

from collections.abc import Callable

import pandas as pd

from vitscope.claims.basis import Basis, Curve, RowsOf
from vitscope.claims.claim import Claim, Finding, every_model, share
from vitscope.measures.depth_bands import subsamples
from vitscope.measures.fourier.claims import highest, spectra

_COUNTED = (
    "Counted are blocks of one kind: a block is in favour where the value after it is lower (or "
    "higher, as claimed) than the value before it. Blocks that subsample have a claim of their own "
    "and count in no other."
)
_VARIANCE_RULE = f"The paper's Fig. 9 and D.1; the value is the feature map variance. {_COUNTED}"
_FREQUENCY_RULE = (
    "The paper's Fig. 8 and D.2; the value is the high-frequency component: the log amplitude at "
    "the highest frequency of the diagonal, minus that at frequency 0. That subsampling raises it "
    f"is read off the ResNet of Fig. 2a. {_COUNTED}"
)


def falls(value: str, kind: str | None) -> Callable[[pd.DataFrame], Finding | None]:
    """Count the blocks of a kind, or those that subsample, after which a value is lower."""
    return lambda points: share(_changes(points, value, kind) < 0)


def rises(value: str, kind: str | None) -> Callable[[pd.DataFrame], Finding | None]:
    """Count the blocks of a kind, or those that subsample, after which a value is higher."""
    return lambda points: share(_changes(points, value, kind) > 0)


def _changes(points: pd.DataFrame, value: str, kind: str | None) -> pd.Series:
    subsampling = points["subsampling"]
    chosen = subsampling if kind is None else (points["kind"] == kind) & ~subsampling
    return points[value].diff()[chosen].dropna()


def _variance_claim(
    name: str, statement: str, blocks: str, find: Callable[[pd.DataFrame], Finding | None]
) -> Claim:
    measure = f"share of {blocks}"
    return Claim(name, statement, "Fig. 9", measure, _VARIANCE_RULE, every_model, find)


def _frequency_claim(
    name: str,
    statement: str,
    blocks: str,
    find: Callable[[pd.DataFrame], Finding | None],
    source: str = "Fig. 8",
) -> Claim:
    measure = f"share of {blocks}"
    return Claim(name, statement, source, measure, _FREQUENCY_RULE, every_model, find)


_VARIANCE_CLAIMS = (
    _variance_claim(
        "msa_reduces_variance",
        "MSAs reduce the feature map variance",
        "MSAs",
        falls("variance", "msa"),
    ),
    _variance_claim(
        "conv_increases_variance",
        "Convs that do not subsample increase the feature map variance",
        "Convs that do not subsample",
        rises("variance", "conv"),
    ),
    _variance_claim(
        "mlp_increases_variance",
        "MLPs increase the feature map variance",
        "MLPs",
        rises("variance", "mlp"),
    ),
    _variance_claim(
        "subsampling_reduces_variance",
        "Subsampling reduces the feature map variance",
        "blocks that subsample",
        falls("variance", None),
    ),
)

_COMPONENT = "delta_log_amplitude"
_FREQUENCY_CLAIMS = (
    _frequency_claim(
        "msa_reduces_high_frequency",
        "MSAs reduce the high-frequency component",
        "MSAs",
        falls(_COMPONENT, "msa"),
    ),
    _frequency_claim(
        "conv_increases_high_frequency",
        "Convs that do not subsample increase the high-frequency component",
        "Convs that do not subsample",
        rises(_COMPONENT, "conv"),
    ),
    _frequency_claim(
        "mlp_increases_high_frequency",
        "MLPs increase the high-frequency component",
        "MLPs",
        rises(_COMPONENT, "mlp"),
    ),
    _frequency_claim(
        "subsampling_increases_high_frequency",
        "Subsampling increases the high-frequency component",
        "blocks that subsample",
        rises(_COMPONENT, None),
        source="Fig. 2a",
    ),
)


def _with_subsampling(points: pd.DataFrame) -> pd.DataFrame:
    return points.assign(subsampling=subsamples(points))


def _variance(rows: RowsOf) -> pd.DataFrame:
    return _with_subsampling(rows("feature_variance").sort_values("index", ignore_index=True))


def _components(rows: RowsOf) -> pd.DataFrame:
    return _with_subsampling(highest(spectra(rows)))


VARIANCE = Basis("feature_variance", _VARIANCE_CLAIMS, _variance, curve=Curve("depth", "variance"))
HIGH_FREQUENCY = Basis(
    "fourier", _FREQUENCY_CLAIMS, _components, curve=Curve("depth", "delta_log_amplitude")
)
