"""Claims about the similarity of tokens, counted by hand."""

import pandas as pd
import pytest

from tests.helpers.claims import count, in_favour, variances

KINDS = ["stem", "msa", "mlp", "msa", "mlp"]


def similarities(values: list[float], sizes: list[int] | None = None) -> pd.DataFrame:
    table = variances("m", KINDS, sizes or [8] * 5, values)
    return table.rename(columns={"variance": "similarity"})


TABLE_ = similarities([0.1, 0.4, 0.3, 0.5, 0.6])
EXAMPLES = {"token_similarity": {"token_similarity": TABLE_, "blocks": TABLE_}}


def counted(table: pd.DataFrame) -> dict[str, tuple[float, bool]]:
    claims = count("token_similarity", {"token_similarity": table, "blocks": table}, ["m"])
    return {
        row["claim"]: (row["measured_value"], in_favour(row)) for row in claims.to_dict("records")
    }


def test_by_hand() -> None:
    found = counted(TABLE_)
    # Ranks 1 3 2 4 5: two neighbours are swapped, 1 - 6 * 2 / (5 * 24).
    assert found["tokens_become_alike"] == (pytest.approx(0.9), True)
    # MSAs add 0.3 and 0.2, MLPs -0.1 and 0.1.
    assert found["msas_make_tokens_alike"] == (pytest.approx(0.25), True)


def test_the_other_way_round() -> None:
    found = counted(similarities([0.6, 0.3, 0.5, 0.1, 0.2]))
    assert {holds for _, holds in found.values()} == {False}


def test_blocks_that_subsample_are_left_out() -> None:
    found = counted(similarities([0.1, 0.4, 0.3, 0.9, 0.6], [8, 8, 8, 4, 4]))
    # The second MSA subsamples: 0.3 less the mean of -0.1 and -0.3.
    assert found["msas_make_tokens_alike"][0] == pytest.approx(0.5)


def test_values_that_do_not_change_tell_nothing() -> None:
    assert "tokens_become_alike" not in counted(similarities([0.5] * 5))
