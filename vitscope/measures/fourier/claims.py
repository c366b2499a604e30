"""Claims about high frequencies: over the depth of a model, and block by block. Fig. 2a, 8, D.2."""

from functools import partial

import numpy as np
import pandas as pd

from vitscope.claims.alike import AVERAGED, averaging, lower_at_cut_points
from vitscope.claims.by_block import COUNTED, about_blocks, falls, rises, with_subsampling
from vitscope.claims.claim import Claim, Curve, Evidence, Finding, claim, convolutional, share

_COMPONENT = "delta_log_amplitude"
_BLOCKS_RULE = (
    "The paper's Fig. 8 and D.2; the value is the high-frequency component: the log amplitude at "
    "the highest frequency of the diagonal minus the log amplitude at frequency 0. The claim that "
    "subsampling raises it comes from the ResNet of Fig. 2a. "
    f"{COUNTED}"
)


def _curves(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return the log amplitudes along the diagonal, in the order of cut points and frequencies."""
    diagonal = rows[rows["measure"] == "diagonal"]
    return diagonal.sort_values(["index", "frequency"], ignore_index=True)


def _components(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the point of the highest frequency of each cut point.

    A map of one position has frequency 0 alone, and no high-frequency component.
    """
    last = curves.groupby("index").tail(1).reset_index(drop=True)
    component = last[_COMPONENT].where(last["frequency"] > 0)
    return last.assign(**{_COMPONENT: component})


@claim(
    "The high-frequency component of a convolutional model rises with depth",
    "Fig. 2a",
    "share of pairs of cut points",
    convolutional,
)
def conv_model_raises_high_frequency(curves: pd.DataFrame) -> Finding | None:
    """The paper's Fig. 2a. All pairs of cut points of a convolutional model count: a pair is in
    favour if the deeper cut point has the larger high-frequency component, which is the log
    amplitude at the highest frequency of the diagonal minus the log amplitude at frequency 0.
    """
    components = _components(curves)[_COMPONENT].dropna().to_numpy()
    first, second = np.triu_indices(len(components), k=1)
    return share(pd.Series(components[second] > components[first], dtype=bool))


@claim(
    "Convs at the ends of stages reduce the high-frequency component",
    "the authors, of ConvNeXt",
    "share of ends of stages",
    convolutional,
)
def stage_end_reduces_high_frequency(points: pd.DataFrame) -> Finding | None:
    """Not in the paper: in issue 7 of their code its authors say, with a figure, that the layers at
    the ends of stages reduce high frequencies in ConvNeXt and not in ResNet. The last blocks of the
    stages of a convolutional model count (the block before one that subsamples, and the last block)
    if they do not subsample: a block is in favour if the high-frequency component is lower after it
    than before it.
    """
    ends = points["subsampling"].shift(-1, fill_value=True)
    chosen = ends & (points["kind"] == "conv") & ~points["subsampling"]
    return share(points[_COMPONENT].diff()[chosen].dropna() < 0)


_claim = partial(about_blocks, _BLOCKS_RULE, source="Fig. 8", value=_COMPONENT)

_CURVES = Evidence(
    "fourier",
    (conv_model_raises_high_frequency,),
    _curves,
    curve=Curve("frequency", _COMPONENT, by="index"),
)
_BLOCKS = Evidence(
    "fourier",
    (
        _claim(
            "msa_reduces_high_frequency", "MSAs reduce the high-frequency component", "msa", falls
        ),
        _claim(
            "conv_increases_high_frequency",
            "Convs that do not subsample increase the high-frequency component",
            "conv",
            rises,
        ),
        _claim(
            "mlp_increases_high_frequency",
            "MLPs increase the high-frequency component",
            "mlp",
            rises,
        ),
        _claim(
            "subsampling_increases_high_frequency",
            "Subsampling increases the high-frequency component",
            None,
            rises,
            source="Fig. 2a",
        ),
        stage_end_reduces_high_frequency,
    ),
    lambda rows, blocks: with_subsampling(_components(_curves(rows, blocks))),
    curve=Curve("depth", _COMPONENT),
)

_AVERAGING = Evidence(
    "fourier",
    (
        Claim(
            "averaging_reduces_high_frequency",
            "Averaging reduces the high-frequency component",
            "Park and Kim 2022",
            "share of cut points",
            f"{AVERAGED.format('remove high frequencies')} A cut point is in favour if the "
            "high-frequency component of the first model is lower there.",
            averaging,
            lower_at_cut_points(_COMPONENT),
        ),
    ),
    lambda rows, blocks: _components(_curves(rows, blocks)),
)

CLAIMS = {
    "fourier_curves": _CURVES,
    "fourier_depth": _BLOCKS,
    "fourier": _BLOCKS,
    "averaging": _AVERAGING,
}
