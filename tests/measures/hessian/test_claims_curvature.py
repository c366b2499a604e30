"""The claim about the curvature of blocks, on blocks made for it."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count_alone

CLAIM = ("msa_has_blocks_of_different_curvature", "vit")


def blocks_of(model: str, *batches: tuple[float, ...]) -> pd.DataFrame:
    """Return the largest eigenvalues of blocks, batch by batch."""
    rows = [
        {"batch": batch, "of": "block", "index": index, "eigenvalue": value}
        for batch, values in enumerate(batches)
        for index, value in enumerate(values)
    ]
    of_layers = [{"batch": 0, "of": "layer", "index": 0, "eigenvalue": 1e9}]
    return pd.DataFrame(rows + of_layers).assign(model=model, snapshot="end")


TABLE = pd.concat(
    [
        blocks_of("vit", (1, 10, -100), (1, 10, -100)),
        blocks_of("resnet", (1, 1, 10), (10, 1, 10), (10, 10, 10)),
    ]
)
EXAMPLES = {"curvature": {"curvature": TABLE, "blocks": blocks("vit", "resnet")}}


def test_blocks_are_compared_by_the_spread_of_their_magnitudes():
    claim = count_alone("curvature", TABLE).loc[CLAIM]
    theirs = np.array([[0, 0, 1], [1, 0, 1], [1, 1, 1]])
    assert claim["measured_value"] == pytest.approx(1 - theirs.mean(axis=0).std(ddof=1))
    # All draws of three of their batches; those of the first model are all alike.
    drawn = np.stack(np.meshgrid(*[range(3)] * 3), -1).reshape(-1, 3)
    spreads = theirs[drawn].mean(axis=1).std(axis=1, ddof=1)
    low, high = np.percentile(1 - spreads, [2.5, 97.5], method="inverted_cdf")
    assert (claim["ci_low"], claim["ci_high"]) == pytest.approx((low, high), abs=1e-6)


def test_blocks_of_a_single_batch_have_no_interval():
    table = pd.concat([blocks_of("vit", (1, 100)), blocks_of("resnet", (1, 10))])
    claim = count_alone("curvature", table).loc[CLAIM]
    assert claim["measured_value"] == pytest.approx((2 - 1) / np.sqrt(2))
    assert pd.isna(claim["ci_low"])


def test_a_network_of_one_block_is_not_compared():
    table = pd.concat([blocks_of("vit", (1,)), blocks_of("resnet", (1, 10))])
    assert pd.isna(count_alone("curvature", table).loc[CLAIM, "measured_value"])
