"""The claim that stages are blocks of similar maps, on similarities made for it."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import count, favoured
from vitscope.measures.cka.claims import stages_are_blocks


def similarity(stages: list[int], cka) -> dict[str, pd.DataFrame]:
    size = len(stages)
    pairs = [(i, j, cka(i, j)) for i in range(size) for j in range(size)]
    table = pd.DataFrame(pairs, columns=["index", "other_index", "cka"]).assign(model="m")
    cuts = pd.DataFrame({"model": "m", "index": range(size), "kind": "conv", "stage": stages})
    return {"cka": table, "blocks": cuts}


STAGES = [0, 1, 1, 1, 2, 2, 2, 2]
EXAMPLES = {"cka": similarity(STAGES, lambda i, j: (i * j) / 64)}


def test_stages_of_similar_maps_are_blocks():
    tables = similarity(STAGES, lambda i, j: 1.0 if STAGES[i] == STAGES[j] else 0.25)
    claims = count("cka", tables, ["m"])
    assert claims["measured_value"].tolist() == [pytest.approx(0.75)]
    assert favoured(claims) == [True]
    assert claims["measured_total"].isna().all()


def test_likeness_of_what_is_near_makes_no_block():
    tables = similarity(STAGES, lambda i, j: 0.5 ** abs(i - j))
    claims = count("cka", tables, ["m"])
    assert claims["measured_value"].tolist() == [pytest.approx(0, abs=1e-12)]


def test_stages_of_unlike_maps_are_no_blocks():
    tables = similarity(STAGES, lambda i, j: 0.2 if STAGES[i] == STAGES[j] else 0.3)
    assert favoured(count("cka", tables, ["m"])) == [False]


def test_similarity_is_averaged_over_distances_as_by_hand():
    pairs = pd.DataFrame(
        [
            (1, True, 0.9),
            (1, True, 0.7),
            (1, False, 0.5),
            (2, True, 0.6),
            (2, False, 0.5),
            (3, False, 0.1),
        ],
        columns=["distance", "within", "cka"],
    )
    found = stages_are_blocks.find(pairs)
    assert found is not None
    assert found.value == pytest.approx(((0.8 - 0.5) + (0.6 - 0.5)) / 2)


@pytest.mark.parametrize(
    "stages", [[0, 1, 1, 1], [0, 1, 2, 3]], ids=["one stage", "no pairs within"]
)
def test_without_pairs_of_both_sorts_there_is_no_claim(stages):
    assert count("cka", similarity(stages, lambda i, j: 1.0), ["m"]).empty


def test_pairs_without_a_value_are_left_out():
    def cka(i, j):
        return np.nan if 7 in (i, j) else 1.0 if STAGES[i] == STAGES[j] else 0.25

    assert count("cka", similarity(STAGES, cka), ["m"])["measured_value"].tolist() == [0.75]
