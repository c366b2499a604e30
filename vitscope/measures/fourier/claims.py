import numpy as np
import pandas as pd

from vitscope.claims.claim import (
    AVERAGED,
    OTHER_MIXING,
    SPECIFIC,
    Claim,
    Curve,
    Evidence,
    attention_against_fixed_weights,
    averaging,
    claims_of,
    convolutional,
    every_model,
    with_subsampling,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import falls, falls_more, lower_at_cut_points, rises, share
from vitscope.files.arrays import Array

_COMPONENT = "delta_log_amplitude"
_VALUE = _COMPONENT, "high-frequency component"
_WHAT = (
    "The high-frequency component is the log amplitude at the highest frequency of the diagonal "
    "minus the log amplitude at frequency 0."
)
_WHY = (
    f"The paper's Fig. 8 and D.2. {_WHAT} The claim that subsampling raises it comes from the "
    "ResNet of Fig. 2a."
)


def _curves(rows: pd.DataFrame, _blocks: pd.DataFrame) -> pd.DataFrame:
    """Return the log amplitudes along the diagonal, in the order of cut points and frequencies."""
    diagonal = rows[rows["measure"] == "diagonal"]
    return diagonal.sort_values(["index", "frequency"], ignore_index=True)


def _components(curves: pd.DataFrame) -> pd.DataFrame:
    """Return the highest frequency of each cut point, null for a map of one position."""
    last = curves.groupby("index").tail(1).reset_index(drop=True)
    component = last[_COMPONENT].where(last["frequency"] > 0)
    return last.assign(**{_COMPONENT: component})


def _rises_between(curves: Points) -> Array:
    last = curves.frame["index"].duplicated(keep="last")
    components = curves.where(~last & (curves.frame["frequency"] > 0))[_COMPONENT]
    first, second = np.triu_indices(components.shape[1], k=1)
    return np.subtract(components[:, second], components[:, first])


def _falls_at_ends(points: Points) -> Array:
    ends = points.frame["subsampling"].shift(-1, fill_value=True)
    chosen = ends & (points.frame["kind"] == "conv") & ~points.frame["subsampling"]
    return np.negative(np.diff(points[_COMPONENT], axis=1)[:, chosen.to_numpy()[1:]])


CLAIMS_FOURIER_CURVES = Evidence(
    "fourier",
    (
        Claim(
            "conv_model_raises_high_frequency",
            "The high-frequency component of a convolutional model rises with depth",
            "Fig. 2a",
            convolutional,
            share(
                "share of pairs of cut points",
                "All pairs of cut points count: one is in favour if the deeper cut point has the "
                "larger high-frequency component.",
                _rises_between,
            ),
            f"The paper's Fig. 2a. {_WHAT}",
        ),
    ),
    _curves,
    curve=Curve("frequency", _COMPONENT, by="index"),
)
CLAIMS_FOURIER = CLAIMS_FOURIER_DEPTH = Evidence(
    "fourier",
    (
        *claims_of(
            "Fig. 8",
            every_model,
            _WHY,
            (
                "msa_reduces_high_frequency",
                "MSAs reduce the high-frequency component",
                falls("msa", *_VALUE),
            ),
            (
                "conv_increases_high_frequency",
                "Convs that do not subsample increase the high-frequency component",
                rises("conv", *_VALUE),
            ),
            (
                "mlp_increases_high_frequency",
                "MLPs increase the high-frequency component",
                rises("mlp", *_VALUE),
            ),
        ),
        Claim(
            "subsampling_increases_high_frequency",
            "Subsampling increases the high-frequency component",
            "Fig. 2a",
            every_model,
            rises(None, *_VALUE),
            _WHY,
        ),
        Claim(
            "msa_reduces_high_frequency_more",
            f"MSAs reduce the high-frequency component more than {OTHER_MIXING}",
            "after Fig. 8",
            attention_against_fixed_weights,
            falls_more("msa", *_VALUE),
            f"{SPECIFIC} {_WHAT}",
        ),
        Claim(
            "stage_end_reduces_high_frequency",
            "Convs at the ends of stages reduce the high-frequency component",
            "the authors, of ConvNeXt",
            convolutional,
            share(
                "share of ends of stages",
                "The last blocks of stages count (those before one that subsamples, and the last "
                "of all) if they do not subsample: one is in favour if the high-frequency "
                "component is lower after it than before it.",
                _falls_at_ends,
            ),
            "Not in the paper: in issue 7 of their code its authors say, with a figure, that the "
            "layers at the ends of stages reduce high frequencies in ConvNeXt and not in ResNet.",
        ),
    ),
    lambda rows, blocks: with_subsampling(_components(_curves(rows, blocks))),
    curve=Curve("depth", _COMPONENT),
)
CLAIMS_AVERAGING = Evidence(
    "fourier",
    (
        Claim(
            "averaging_reduces_high_frequency",
            "Averaging reduces the high-frequency component",
            "Park and Kim 2022",
            averaging,
            lower_at_cut_points(*_VALUE),
            AVERAGED.format("remove high frequencies"),
        ),
    ),
    lambda rows, blocks: _components(_curves(rows, blocks)),
)
