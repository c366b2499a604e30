"""The claim about the curvature of blocks, on blocks made for it."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from tests.helpers.claims import blocks, count_alone

CLAIM = ("msa_has_blocks_of_different_curvature", "vit")


# By how many decades the magnitudes of blocks scatter from batch to batch.
SIZES = {"vit": 0.8, "resnet": 0.3}


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
    # Fewer than twenty batches.
    assert claim["holds"] == "open"
    assert pd.isna(claim["measured_low"])


def test_the_interval_is_students_of_jackknife_values_by_hand():
    generator = np.random.default_rng(0)
    decades = {name: generator.normal(0, size, (25, 4)) for name, size in SIZES.items()}
    table = pd.concat(blocks_of(name, *10.0**each) for name, each in decades.items())
    claim = count_alone("curvature", table).loc[CLAIM]
    values = {}
    for name, each in decades.items():
        whole = each.mean(axis=0).std(ddof=1)
        rest = [np.delete(each, batch, 0).mean(axis=0).std(ddof=1) for batch in range(25)]
        values[name] = 25 * whole - 24 * np.array(rest)
    expected = ttest_rel(values["vit"], values["resnet"]).confidence_interval()
    assert (claim["measured_low"], claim["measured_high"]) == pytest.approx(tuple(expected))


def test_blocks_of_a_single_batch_have_no_interval():
    table = pd.concat([blocks_of("vit", (1, 100)), blocks_of("resnet", (1, 10))])
    claim = count_alone("curvature", table).loc[CLAIM]
    assert claim["measured_value"] == pytest.approx((2 - 1) / np.sqrt(2))
    assert pd.isna(claim["measured_low"])


def test_a_network_of_one_block_is_not_compared():
    table = pd.concat([blocks_of("vit", (1,)), blocks_of("resnet", (1, 10))])
    assert pd.isna(count_alone("curvature", table).loc[CLAIM, "measured_value"])
