"""Numbers of attention against those of others: golden values, and a computation by hand."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn

from tests.helpers.golden import Golden
from tests.helpers.networks import described
from tests.helpers.tiers import some_of
from tests.measures.attention.by_hand import seen
from vitscope.measures.attention.compute import numbers_of
from vitscope.measures.attention.measure import VALUES
from vitscope.networks.attention.finding import find_attention
from vitscope.networks.attention.reading import Attention, Weights, attending

# As the golden values call them.
NAMES = {"distance_renormalized": "distance_renormalised"}
ATTENTIONS = {"vit_ti": 12, "pit_ti": 12, "swin_ti": 12, "alternet_50": 6}


@torch.inference_mode()
def measured(
    model: nn.Module, images: torch.Tensor
) -> tuple[list[Attention], dict[str, list[npt.NDArray[np.float64]]]]:
    """Return the attention of a network, and each number of each head by attention."""
    found = find_attention(model, described(), [])
    assert not found.refused
    computing = numbers_of(found.attentions, (32, 32))
    numbers: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in VALUES}

    def read(position: int, weights: Weights) -> None:
        means = computing[position].of(weights).mean(0)
        for name, values in zip(VALUES, means.T, strict=True):
            numbers[name].append(values)

    with attending(model, found.attentions, read):
        model(images)
    return found.attentions, numbers


def test_golden_values_in_single_precision(golden: Golden) -> None:
    attentions, numbers = measured(golden.model("vit_ti"), golden.images(4)[0])
    tokens = [each.queries.shape[1] for each in attentions]
    assert tokens == golden.attention["tokens"]
    for name, values in numbers.items():
        expected = golden.attention[NAMES.get(name, name)]
        np.testing.assert_allclose(values, expected, rtol=1e-5, err_msg=name)


@pytest.mark.nightly
def test_golden_values_in_double_precision(golden: Golden) -> None:
    """And so are those by hand, which other networks are held to."""
    model, images = golden.model("vit_ti").double(), golden.images(4)[0].double()
    _, numbers = measured(model, images)
    by_hand = [each.numbers() for each in seen("vit_ti", model, images)]
    for name, values in numbers.items():
        expected = golden.attention[NAMES.get(name, name)]
        # The images were normalized in single precision.
        np.testing.assert_allclose(values, expected, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose([each[name] for each in by_hand], expected, rtol=1e-6)


@pytest.mark.parametrize("name", some_of(ATTENTIONS, "alternet_50"))
def test_numbers_by_hand(golden: Golden, name: str) -> None:
    model, images = golden.model(name), golden.images(2)[0]
    attentions, numbers = measured(model, images)
    by_hand = seen(name, model, images)
    assert len(attentions) == len(by_hand) == ATTENTIONS[name]
    for number, (attention, expected) in enumerate(zip(attentions, by_hand, strict=True)):
        apart = 32 * attention.queries[:, expected.prefix :] - expected.places
        # The same but for where the first position is.
        assert np.ptp(apart.reshape(-1, 2), axis=0) == pytest.approx(0, abs=1e-4)
        assert np.isnan(attention.queries[:, : expected.prefix]).all()
        for value, of_heads in expected.numbers().items():
            np.testing.assert_allclose(
                numbers[value][number], of_heads, rtol=1e-5, err_msg=f"{value} {attention.name}"
            )
