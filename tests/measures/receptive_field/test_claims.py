import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import count, variances

VIT, RESNET = ["stem", "msa", "mlp"], ["stem", "conv", "conv", "conv"]


def areas(model: str, kinds: list[str], values: list[float]) -> pd.DataFrame:
    table = variances(model, kinds, [8] * len(kinds), values)
    return table.rename(columns={"variance": "area_50"})


BOTH = pd.concat([areas("vit", VIT, [0.1, 0.5, 0.4]), areas("resnet", RESNET, [0, 0.1, 0.2, 0.9])])
EXAMPLES = {"receptive_field": {"receptive_field": BOTH, "blocks": BOTH}}


def counted(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    tables = {"receptive_field": table, "blocks": BOTH}
    claims = count("receptive_field", tables, ["vit", "resnet"])
    return dict(claims.set_index(["claim", "model"])["measured_value"])


def test_by_hand() -> None:
    found = counted(BOTH)
    # Ranks 1 3 2: two are swapped, 1 - 6 * 2 / (3 * 8).
    assert found["receptive_field_grows", "vit"] == pytest.approx(0.5)
    assert found["receptive_field_grows", "resnet"] == pytest.approx(1)
    # At a quarter: halfway from 0.1 to 0.5, and three quarters of the way from 0 to 0.1.
    assert found["attention_sees_far_early", "vit"] == pytest.approx(0.3 - 0.075)


def test_two_cut_points_are_too_few_to_grow() -> None:
    few = BOTH[(BOTH["model"] == "resnet") | (BOTH["index"] != 1)]
    assert ("receptive_field_grows", "vit") not in counted(few)
    # What is between them is still known.
    assert counted(few)["attention_sees_far_early", "vit"] == pytest.approx(0.175 - 0.075)


def test_nothing_is_said_beyond_the_cut_points() -> None:
    late = BOTH[(BOTH["model"] == "resnet") | (BOTH["depth"] > 0.3)]
    assert np.isnan(counted(late)["attention_sees_far_early", "vit"])


def test_where_no_pixel_contributes_nothing_is_counted() -> None:
    none = BOTH.assign(area_50=np.nan)
    assert ("receptive_field_grows", "resnet") not in counted(none)
