import numpy as np

from vitscope.claims.claim import (
    AVERAGED,
    OTHER_MIXING,
    SPECIFIC,
    Claim,
    Evidence,
    ScoredCurve,
    attention_against_other_mixing,
    averaging,
    convolutional,
    every_model,
    make_claims,
)
from vitscope.claims.points import Points
from vitscope.claims.statistics import falls_more, lower_at_cut_points, rises, share
from vitscope.files.arrays import Array
from vitscope.measures.components import (
    COMPONENT,
    OF_BLOCKS,
    components_of_blocks,
    diagonals,
    ends_of_curves,
)

_VALUE = COMPONENT, "high-frequency component"
_WHAT = (
    "The high-frequency component is the log amplitude at the highest frequency of the diagonal "
    "minus the log amplitude at frequency 0."
)
_WHY = (
    f"The paper's Fig. 8 and D.2. {_WHAT} The claim that subsampling raises it comes from the "
    "ResNet of Fig. 2a."
)


def _rises_between_cut_points(curves: Points) -> Array:
    last = curves.frame["index"].duplicated(keep="last")
    components = curves.where(~last & (curves.frame["frequency"] > 0))[COMPONENT]
    first, second = np.triu_indices(components.shape[1], k=1)
    return np.subtract(components[:, second], components[:, first])


def _falls_at_stage_ends(points: Points) -> Array:
    ends = points.frame["subsampling"].shift(-1, fill_value=True)
    chosen = ends & (points.frame["kind"] == "conv") & ~points.frame["subsampling"]
    return np.negative(np.diff(points[COMPONENT], axis=1)[:, chosen.to_numpy()[1:]])


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
                _rises_between_cut_points,
            ),
            f"The paper's Fig. 2a. {_WHAT}",
        ),
    ),
    diagonals,
    curve=ScoredCurve("frequency", COMPONENT, by="index"),
)
CLAIMS_FOURIER = CLAIMS_FOURIER_DEPTH = Evidence(
    "fourier",
    (
        *make_claims(
            "Fig. 8",
            every_model,
            _WHY,
            *OF_BLOCKS,
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
            attention_against_other_mixing,
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
                _falls_at_stage_ends,
            ),
            "Not in the paper: in issue 7 of their code its authors say, with a figure, that the "
            "layers at the ends of stages reduce high frequencies in ConvNeXt and not in ResNet.",
        ),
    ),
    components_of_blocks,
    curve=ScoredCurve("depth", COMPONENT),
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
    lambda rows, _: ends_of_curves(diagonals(rows)),
)
