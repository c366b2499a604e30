import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from tests.helpers.claims import count, evidence, favoured
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found
from vitscope.measures.cka.chance import PERMUTATIONS
from vitscope.measures.cka.compute import merge_cka
from vitscope.measures.given import Parts


def similarity(stages: list[int], cka) -> dict[str, pd.DataFrame]:
    size = len(stages)
    pairs = [(i, j, cka(i, j)) for i in range(size) for j in range(size)]
    table = pd.DataFrame(pairs, columns=["index", "other_index", "cka"])
    table = table.assign(model="m", p=0.005)
    cuts = pd.DataFrame({"model": "m", "index": range(size), "kind": "conv", "stage": stages})
    return {"cka": table, "blocks": cuts}


STAGES = [0, 1, 1, 1, 2, 2, 2, 2]
EXAMPLES = {"cka": similarity(STAGES, lambda i, j: (i * j) / 64)}


@pytest.mark.parametrize(
    ("within", "across", "unknown"), [(1.0, 0.25, None), (0.2, 0.3, None), (1.0, 0.25, 7)]
)
def test_stages_are_blocks_if_their_maps_are_alike(within, across, unknown):
    tables = similarity(STAGES, lambda i, j: within if STAGES[i] == STAGES[j] else across)
    # Pairs without a value are left out.
    tables["cka"].loc[tables["cka"]["index"] == unknown, "cka"] = np.nan
    tables["cka"].loc[tables["cka"]["other_index"] == unknown, "cka"] = np.nan
    claims = count("cka", tables, ["m"])
    assert claims["measured_value"].tolist() == [pytest.approx(within - across)]
    assert favoured(claims) == [within > across]
    assert claims["measured_total"].isna().all()
    # Nothing is known of its batches.
    assert claims["holds"].tolist() == ["open"]


def test_the_statement_says_how_many_pairs_are_above_chance():
    tables = similarity(STAGES, lambda i, j: float(STAGES[i] == STAGES[j]))
    # Of the 21 pairs of seven cut points, nine begin at cut point 2 or 3.
    tables["cka"].loc[tables["cka"]["index"].isin([2, 3]), "p"] = 0.05
    (statement,) = count("cka", tables, ["m"])["statement"]
    assert statement.endswith("(12 of 21 pairs of cut points are more similar than by chance)")


def test_likeness_of_what_is_near_makes_no_block():
    claims = count("cka", similarity(STAGES, lambda i, j: 0.5 ** abs(i - j)), ["m"])
    assert claims["measured_value"].tolist() == [pytest.approx(0, abs=1e-12)]


@pytest.mark.parametrize(
    "stages", [[0, 1, 1, 1], [0, 1, 2, 3]], ids=["one stage", "no pairs within"]
)
def test_without_pairs_of_both_sorts_there_is_no_claim(stages):
    assert count("cka", similarity(stages, lambda i, j: 1.0), ["m"]).empty


def of_batches(count: int) -> np.ndarray:
    """Return the HSIC of batches, (batches, K, K), of cut points whose stages are alike."""
    maps = np.random.default_rng(4).normal(size=(count, 8, 40))
    for stage in (1, 2):
        shared = np.random.default_rng(stage).normal(size=(count, 1, 40))
        maps[:, np.array(STAGES) == stage] += 0.5 * shared
    return maps @ maps.transpose(0, 2, 1) / 40


def by_hand(hsic: np.ndarray) -> float:
    """The excess within stages of the CKA of mean HSIC, with loops over distances and pairs."""
    cka = hsic / np.sqrt(np.outer(hsic.diagonal(), hsic.diagonal()))
    differences = []
    for distance in range(1, 7):
        pairs = [(i, i + distance) for i in range(1, 8 - distance)]
        within = [cka[i, j] for i, j in pairs if STAGES[i] == STAGES[j]]
        across = [cka[i, j] for i, j in pairs if STAGES[i] != STAGES[j]]
        if within and across:
            differences.append(np.mean(within) - np.mean(across))
    return float(np.mean(differences))


def merged(hsic: np.ndarray) -> Found:
    """Merge parts of these HSIC, as they are stored, and find the excess."""
    index, other = np.triu_indices(8)
    shared = {"images": 4, "null": np.zeros(PERMUTATIONS), "vectors": np.zeros(4)}
    rows = [
        {"index": i, "other_index": j, "first_image": 4 * number, "hsic": each[i, j], **shared}
        for number, each in enumerate(hsic)
        for i, j in zip(index, other, strict=True)
    ]
    table = merge_cka(Parts("m", iter([pd.DataFrame(rows)]), pd.DataFrame()))
    blocks = pd.DataFrame({"index": range(8), "stage": STAGES})
    of = evidence("cka")
    found = of.claims[0].statistic.find(Points(of.measured(table, blocks)))
    assert found is not None
    return found


def test_the_interval_is_that_of_pseudo_values() -> None:
    hsic = of_batches(24)
    found = merged(hsic)
    whole = by_hand(hsic.mean(axis=0))
    left = [by_hand(np.delete(hsic, number, axis=0).mean(axis=0)) for number in range(24)]
    pseudo = 24 * whole - 23 * np.array(left)
    half = t.ppf(0.975, 23) * pseudo.std(ddof=1) / np.sqrt(24)
    assert found.value == pytest.approx(whole, rel=1e-12)
    # They are kept in float32, and 24 times their errors are left.
    np.testing.assert_allclose(found.batches, pseudo, atol=24 * 1e-7)
    assert found.interval == pytest.approx((pseudo.mean() - half, pseudo.mean() + half), abs=1e-6)
    assert found.verdict(0) == "yes"


def test_the_interval_is_as_wide_as_that_of_resampled_batches() -> None:
    hsic = of_batches(400)
    low, high = merged(hsic).interval or (0, 0)
    drawn = np.random.default_rng(5).integers(400, size=(4000, 400))
    ends = np.percentile([by_hand(hsic[rows].mean(axis=0)) for rows in drawn], [2.5, 97.5])
    # An end of 4,000 resamples is off by some 2 % of the width.
    assert (low, high) == pytest.approx(ends, abs=0.04 * (high - low))


@pytest.mark.parametrize("count", [1, 2, 19])
def test_of_few_batches_nothing_is_said(count: int) -> None:
    found = merged(of_batches(count))
    assert found.interval is None
    assert found.verdict(0) == "open"
