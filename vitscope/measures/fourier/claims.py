"""Claims about the relative log amplitude over frequency, a curve for each cut point. Fig. 2a."""

import numpy as np
import pandas as pd

from vitscope.claims.basis import Basis, Curve, RowsOf
from vitscope.claims.claim import Claim, Finding, convolutional, share

_RULE = (
    "The paper's Fig. 2a. Counted are all pairs of cut points of a convolutional model: a pair is "
    "in favour where the deeper one has the higher high-frequency component, which is the log "
    "amplitude at the highest frequency of the diagonal, minus that at frequency 0."
)


def spectra(rows: RowsOf) -> pd.DataFrame:
    """Return a model's curves along the diagonal, in the order of cut points and frequencies."""
    table = rows("fourier")
    diagonal = table[table["measure"] == "diagonal"]
    return diagonal.sort_values(["index", "frequency"], ignore_index=True)


def highest(points: pd.DataFrame) -> pd.DataFrame:
    """Return the point of the highest frequency of each cut point.

    A map of one position has frequency 0 alone, and no high-frequency component.
    """
    last = points.groupby("index").tail(1).reset_index(drop=True)
    component = last["delta_log_amplitude"].where(last["frequency"] > 0)
    return last.assign(delta_log_amplitude=component)


def rises_with_depth(points: pd.DataFrame) -> Finding | None:
    """Count the pairs of cut points of which the deeper has the higher high-frequency component."""
    components = highest(points)["delta_log_amplitude"].dropna().to_numpy()
    first, second = np.triu_indices(len(components), k=1)
    return share(pd.Series(components[second] > components[first], dtype=bool))


SPECTRA = Basis(
    "fourier",
    (
        Claim(
            "conv_model_raises_high_frequency",
            "The high-frequency component of a convolutional model rises with depth",
            "Fig. 2a",
            "share of pairs of cut points",
            _RULE,
            convolutional,
            rises_with_depth,
        ),
    ),
    spectra,
    curve=Curve("frequency", "delta_log_amplitude", by="index"),
)
