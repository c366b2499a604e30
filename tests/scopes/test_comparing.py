from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

import vitscope
from tests.helpers.refusals import refusal
from tests.scopes.networks import Convolutions, Transformer, labels, looked_at, network, pixels
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
    with pytest.raises(VitscopeError, match="is of the same images for all networks"):
        vitscope.compare(scopes).table("cka_between")


def norms(seed: int) -> nn.Module:
    """A network with weights and running statistics of its own, which trains."""
    model = network(Convolutions)
    torch.manual_seed(seed)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each))
        model.train()(torch.randn(8, 3, 16, 16))
    return model


def test_between_two_networks_of_one_shape() -> None:
    pair = [norms(seed) for seed in (0, 1)]
    before = [deepcopy(each.state_dict()) for each in pair]
    clean = {"weight_decay": 0.0, "augment": "none"}
    mine, theirs = (looked_at(each, loss=clean) for each in pair)
    compared = vitscope.compare({"mine": mine, "theirs": theirs})
    table = compared.interpolation
    assert set(table["model"]) == {"mine"}
    assert set(table["other_model"]) == {"theirs"}
    assert dict(table.groupby("reset").size()) == {False: 11, True: 11}
    ends = table.loc[~table["reset"], "nll"].iloc[[0, -1]]
    measured = [scope.classification["nll"].item() for scope in (mine, theirs)]
    np.testing.assert_allclose(ends, measured, atol=1e-6)
    assert compared.plot("interpolation").axes[0].get_title() == "mine to theirs"
    for model, state in zip(pair, before, strict=True):
        assert all(module.training for module in model.modules())
        assert all(torch.equal(each, state[key]) for key, each in model.state_dict().items())
    # Another network of the same name has a table of its own.
    again = vitscope.compare({"mine": mine, "other": looked_at(norms(2), loss=clean)})
    assert again.interpolation["nll"].iloc[10] != pytest.approx(table["nll"].iloc[10])
    alone = vitscope.compare({"a": looked_at(pair[0]), "b": looked_at(pair[1])}).interpolation
    assert alone["reset"].tolist() == [False] * 11


def test_in_the_plane_of_three_networks_of_one_shape() -> None:
    scopes = dict(zip("abc", (looked_at(norms(seed)) for seed in range(3)), strict=True))
    compared = vitscope.compare(scopes)
    assert "plane" in compared.available()
    table = compared.plane
    assert len(table) == 3 + 11**2
    named = table[["model", "other_model", "third_model"]].drop_duplicates()
    assert named.to_numpy().tolist() == [["a", "b", "c"]]
    own = [scope.classification["nll"].item() for scope in scopes.values()]
    np.testing.assert_allclose(table.loc[table["network"] > 0, "nll"], own, atol=1e-12)
    names = {text.get_text() for text in compared.plot("plane").axes[0].texts}
    assert names >= {"a", "b", "c"}
    two = vitscope.compare({name: scopes[name] for name in "ab"})
    assert "plane" not in two.available()
    assert refusal(two.table, "plane") == "plane takes 3 networks: compare as many, or more."
    assert refusal(scopes["a"].table, "plane") == (
        "plane takes three networks: ask vitscope.compare for it."
    )
    twice = vitscope.compare({"a": scopes["a"], "b": scopes["a"], "c": scopes["c"]})
    assert "span a triangle" in refusal(twice.table, "plane")


def test_networks_without_a_line_between_them_have_no_such_figure(both: Comparison) -> None:
    assert "interpolation" not in both.kinds()
    assert "'patches.weight' has the shape 8x3x4x4 in the first and none" in refusal(
        both.table, "interpolation"
    )
    model = norms(0)
    whole = looked_at(model)
    without = whole.intervene("branches.0", "zero")
    pairs = {
        "in which no intervention is: compare networks without": without,
        "take images alike: give both one mean= and std=,": vitscope.look(
            norms(1), pixels(), labels(), 0.4, 0.25
        ),
    }
    for said, other in pairs.items():
        compared = vitscope.compare({"whole": whole, "other": other})
        assert "interpolation" not in compared.available()
        assert said in refusal(compared.table, "interpolation")
    scaled = {"mean": 0.5, "std": 0.25}
    pair = (vitscope.look(each, pixels(), **scaled) for each in (model, norms(1)))
    unlabelled = dict(zip("ab", pair, strict=True))
    said = refusal(vitscope.compare(unlabelled).table, "interpolation")
    assert said == "interpolation needs the classes of the images: give labels=."


def test_what_is_no_scope() -> None:
    assert refusal(vitscope.compare, [looked_at(), looked_at()]) == (
        "vitscope.compare takes a dict, which names the networks, and was given a list: write "
        "compare({'mine': scope, 'theirs': other})."
    )
    assert "mine is a Transformer, allowed: what" in refusal(vitscope.compare, {"mine": network()})
    assert "nothing to compare" in refusal(vitscope.compare, {})
