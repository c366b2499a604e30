import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tests.helpers.attending import found_in, weights_of
from tests.scopes.networks import SIZE, Convolutions, looked_at, network, pixels
from vitscope.errors import VitscopeError
from vitscope.measures import registry
from vitscope.scopes.looking import Scope

KINDS = [
    name
    for name, kind in registry.kinds().items()
    if registry.declared(kind.measure).reads_attention
]


@pytest.fixture(scope="module")
def scope() -> Scope:
    return looked_at(name="mine")


def test_tables_are_of_what_is_read(scope: Scope) -> None:
    """Two heads in each of two blocks, against a pass of the images as the network takes them."""
    model = network().eval()
    attentions = found_in(model, SIZE).attentions
    images = (pixels().float() / 255 - 0.5) / 0.25
    table = scope.attention
    heads = table[table["head"].notna()]
    for number, read in enumerate(weights_of(model, attentions, images)):
        logs = read.clamp_min(1e-30).log()
        expected = -(read * logs).sum(-1).mean((0, 1, 3))
        found = heads[heads["attention"] == number]["entropy"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (table["images"] == len(images)).all()
    assert scope.attention_rollout["of"].unique() == ["mean of queries"]
    assert {*scope.attention_maps["shows"]} == {"heads", "queries"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_figure_is_drawn(scope: Scope, kind: str) -> None:
    figure = scope.plot(kind)
    assert isinstance(figure, Figure)
    plt.close(figure)


def test_maps_take_a_figure_of_their_own(scope: Scope) -> None:
    figure, axes = plt.subplots()
    try:
        for kind in ("attention_heads", "attention_query", "attention_rollout"):
            with pytest.raises(VitscopeError, match=r"axes that are given|laid out as a whole"):
                scope.plot(kind, ax=axes)
        assert scope.plot("attention_nmi", ax=axes) is figure
    finally:
        plt.close(figure)


def test_a_network_without_attention() -> None:
    scope = looked_at(Convolutions())
    assert not {"attention", "attention_rollout", "attention_maps"} & {*scope.available()}
    with pytest.raises(VitscopeError, match=r"takes a network that attends: no attention was fou"):
        _ = scope.attention
