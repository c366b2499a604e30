import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.helpers.claims import evidence, in_favour_by_claim, variances
from vitscope.claims.points import Points

KINDS = ["stem", "msa", "mlp", "msa", "mlp"]


def ranks(values: list[float], sizes: list[int] | None = None) -> pd.DataFrame:
    table = variances("m", KINDS, sizes or [8] * 5, values)
    tokens = table.rename(columns={"variance": "effective_rank"}).assign(channels=16, of="tokens")
    # What images have does not count.
    images = tokens.assign(of="images", effective_rank=range(5))
    return pd.concat([tokens, images], ignore_index=True)


TABLE_ = ranks([9, 6, 7, 5, 5.5])
EXAMPLES = {"effective_rank": {"singular_values": TABLE_, "blocks": TABLE_}}


def counted(table: pd.DataFrame) -> dict[str, tuple[float, bool | None]]:
    return in_favour_by_claim("effective_rank", table)


def test_by_hand() -> None:
    found = counted(TABLE_)
    # Ranks 5 3 4 1 2 against 1 to 5: squares of differences 16, 1, 1, 9, 9.
    assert found["rank_of_tokens_falls"] == (pytest.approx(6 * 36 / 120 - 1), True)
    # MLPs add 1 and 0.5, MSAs -3 and -2.
    assert found["msas_lower_the_rank"] == (pytest.approx(0.75 + 2.5), True)


def test_the_other_way_round() -> None:
    found = counted(ranks([1, 3, 2, 5, 4]))
    assert {holds for _, holds in found.values()} == {False}


def test_networks_whose_maps_change_have_one_claim_of_two() -> None:
    found = counted(ranks([9, 6, 7, 1, 2], [8, 8, 8, 4, 4]))
    # The second MSA subsamples: the mean of 1 and 1, less -3.
    assert found == {"msas_lower_the_rank": (pytest.approx(4), True)}


def test_blocks_that_widen_are_left_out() -> None:
    wider = ranks([9, 6, 7, 1, 2])
    wider.loc[wider["index"] > 2, "channels"] = 32
    assert counted(wider) == {"msas_lower_the_rank": (pytest.approx(4), True)}


def test_each_resample_is_found_as_the_values_are() -> None:
    values = np.random.default_rng(1).normal(size=(31, 5))
    table = ranks([*values[0]])
    # Images have no resamples.
    table["effective_rank_resampled"] = [*values[1:].T, *[None] * 5]
    of = evidence("effective_rank")
    points = Points(of.measured(table, table))
    falls, lowers = (claim.find(points).values for claim in of.claims)
    expected = [spearmanr(range(5), -each).statistic for each in values]
    np.testing.assert_allclose(falls, expected, atol=1e-12)
    changes = np.diff(values, axis=1)
    expected = changes[:, [1, 3]].mean(1) - changes[:, [0, 2]].mean(1)
    np.testing.assert_allclose(lowers, expected, atol=1e-12)
