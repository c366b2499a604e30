from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import vitscope
from tests.helpers.refusals import refusal
from tests.scopes.networks import Convolutions, Transformer, looked_at, network, pixels
from vitscope.errors import VitscopeError
from vitscope.scopes.comparing import Comparison


@pytest.fixture(scope="module")
def both() -> Comparison:
    return vitscope.compare({"mine": looked_at(), "theirs": looked_at(network(Convolutions))})


def test_tables_have_the_rows_of_both(both: Comparison) -> None:
    table = both.feature_variance
    assert dict(table.groupby("model", sort=False).size()) == {"mine": 5, "theirs": 3}
    assert both.classification["model"].tolist() == ["mine", "theirs"]
    assert set(both.predictions["model"]) == {"mine", "theirs"}


def test_a_network_with_itself_is_as_similar_as_alone() -> None:
    scopes = [looked_at() for _ in range(2)]
    between = vitscope.compare(dict(zip("ab", scopes, strict=True))).cka_between
    assert set(between["model"]) == {"a"}
    assert set(between["other_model"]) == {"b"}
    np.testing.assert_array_equal(between["cka"], scopes[0].cka["cka"])


def test_every_kind_of_figure(both: Comparison) -> None:
    assert {"cka_between", "frequency_noise", "lesion", "fourier_depth"} < {*both.kinds()}
    for kind in both.kinds():
        assert isinstance(both.plot(kind), Figure), kind


def test_a_kind_that_not_all_have_is_drawn_of_the_others(
    both: Comparison, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "attention_distance" in both.kinds()
    assert "theirs" not in [axes.get_title() for axes in both.plot("attention_distance").axes]
    assert "attention_distance is left out for theirs" in capsys.readouterr().out
    assert set(both.claims("attention_distance", "feature_variance")["model"]) == {"mine", "theirs"}
    assert "has no relative position bias" in refusal(both.plot, "position_bias")


def largest(maps: Any, factor: float = 1) -> Any:
    return factor * maps.max((1, 2, 3))


def test_a_page_shows_the_first_whatever_the_others_lack(both: Comparison) -> None:
    alone = looked_at(name="mine").overview()
    assert len(both.overview().axes) == len(alone.axes)
    turned = vitscope.compare({"theirs": looked_at(network(Convolutions)), "mine": looked_at()})
    assert isinstance(turned.overview(), Figure)


def test_a_function_of_your_own_measures_all_that_are_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine, theirs = (looked_at(network(kind), name="net") for kind in (Transformer, Convolutions))
    compared = vitscope.compare({"mine": mine, "theirs": theirs})
    tables = [mine.measure(largest, factor=2)]
    compared.plot("largest")
    assert "left out" not in capsys.readouterr().out
    tables.append(theirs.measure(largest))
    with pytest.raises(VitscopeError, match="was not measured of theirs by the function and with"):
        compared.plot("largest")
    tables[0] = mine.measure(largest)
    assert "largest" in compared.kinds()
    panels = compared.plot("largest").axes
    assert [axes.get_title() for axes in panels] == ["mine", "theirs"]
    for axes, table in zip(panels, tables, strict=True):
        drawn = np.concatenate([line.get_ydata() for line in axes.lines])
        assert {*table["value"]} <= {*drawn}
    rows = compared.largest
    assert rows["value"].tolist() == pd.concat(tables)["value"].tolist()
    assert rows["model"].unique().tolist() == ["mine", "theirs"]
    assert compared.claims("largest").empty


def test_figures_and_claims_say_whose_they_are(both: Comparison) -> None:
    assert [axes.get_title() for axes in both.plot("feature_variance").axes] == ["mine", "theirs"]
    claims = both.claims("feature_variance")
    assert set(claims["model"]) == {"mine", "theirs"}
    assert not claims.duplicated().any()


def test_other_images_are_not_compared() -> None:
    scopes = {"a": looked_at(), "b": looked_at(images=pixels().flip(0))}
    with pytest.raises(VitscopeError, match="compares feature maps of the same images"):
        vitscope.compare(scopes).table("cka_between")


def test_what_is_no_scope() -> None:
    assert "mine is a Transformer, allowed: what" in refusal(vitscope.compare, {"mine": network()})
    assert "nothing to compare" in refusal(vitscope.compare, {})
