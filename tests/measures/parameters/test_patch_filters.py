"""Filters and their principal components: the authors' scaling, scipy, and closed forms."""

import numpy as np
import pytest
import torch
from scipy.linalg import eigh
from torch import Tensor, nn

from tests.helpers.golden import Golden
from tests.helpers.refusals import refusal
from vitscope.errors import VitscopeError
from vitscope.measures.given import OnNetwork
from vitscope.measures.parameters.patch_filters import (
    measure_patch_filters,
    patch_filter_components,
    patch_filter_frequencies,
    scale_patch_filters,
)

RNG = np.random.default_rng(0)
FILTERS = RNG.normal(size=(40, 3, 4, 5))
SETTINGS = {"filters": 128, "components": 28}


def of(layer: nn.Module, classes: int = 4) -> OnNetwork:
    model = nn.Sequential(layer, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(classes))
    images = {"image_size": 16, "mean": [0.5] * layer.in_channels}
    model(torch.zeros(1, layer.in_channels, 16, 16))
    return OnNetwork("m", model, images)


def test_the_first_filter_of_the_golden_network(golden: Golden) -> None:
    expected = np.array(golden.attention["filter_0_scaled_hwc"])
    given = OnNetwork("vit_ti", golden.model("vit_ti"), {"image_size": 32, "mean": [0.5] * 3})
    table = measure_patch_filters(given, **SETTINGS)
    first = table.iloc[0]
    assert (first["module"], first["of"], first["number"]) == ("patch_embed.proj", "filter", 0)
    assert (first["count"], (table["of"] == "filter").sum()) == (192, 128)
    np.testing.assert_allclose(first["values"], expected.ravel(), rtol=1e-5, atol=1e-6)
    # Twelve weights differ along twelve directions.
    assert table.loc[table["of"] == "component", "share"].sum() == pytest.approx(1)
    assert (table["of"] == "component").sum() == 12


def test_scaling_is_over_all_pixels_and_channels() -> None:
    values, low, high = scale_patch_filters(FILTERS)
    assert values.shape == (40, 4, 5, 3)
    assert values.min(axis=(1, 2, 3)).tolist() == [0] * 40
    assert values.max(axis=(1, 2, 3)).tolist() == [1] * 40
    back = values * (high - low)[:, None, None, None] + low[:, None, None, None]
    np.testing.assert_allclose(back.transpose(0, 3, 1, 2), FILTERS, atol=1e-14)
    assert (
        scale_patch_filters(np.full((1, 1, 2, 2), 3.0))[0].tolist()
        == np.zeros((1, 2, 2, 1)).tolist()
    )


def test_components_are_directions_of_the_covariance() -> None:
    components, shares = patch_filter_components(FILTERS)
    flat = FILTERS.reshape(40, -1)
    values, vectors = eigh(np.cov(flat.T))
    # 40 filters of 60 values differ along 39 directions.
    assert components.shape == (39, 3, 4, 5)
    np.testing.assert_allclose(shares, values[::-1][:39] / values.sum(), rtol=1e-10)
    cosines = np.abs(np.einsum("ki,ik->k", components.reshape(39, -1), vectors[:, ::-1][:, :39]))
    np.testing.assert_allclose(cosines, 1, rtol=1e-10)
    assert (components.max(axis=(1, 2, 3)) >= -components.min(axis=(1, 2, 3))).all()


def test_directions_that_filters_do_not_differ_along_are_none() -> None:
    one, other = FILTERS[0], FILTERS[1]
    made = np.stack([one * a + other * b + 7 for a, b in RNG.normal(size=(20, 2))])
    components, shares = patch_filter_components(made)
    assert len(components) == 2
    assert shares.sum() == pytest.approx(1)
    span = np.stack([one.ravel(), other.ravel()])
    left = components.reshape(2, -1)
    inside = left @ np.linalg.pinv(span) @ span
    np.testing.assert_allclose(inside, left, atol=1e-10)
    assert patch_filter_components(np.ones((5, 1, 2, 2)))[0].shape == (0, 1, 2, 2)


def waves(*waves: tuple[float, float], size: int = 8) -> np.ndarray:
    rows, columns = np.indices((size, size))
    each = [np.cos(2 * np.pi * (v * rows + h * columns) / size) for v, h in waves]
    return np.stack(each)[None]


def test_frequencies_of_waves() -> None:
    # A wave of k periods over 8 pixels has the frequency k / 4, in units of pi.
    for vertical, horizontal in ((0, 0), (1, 0), (0, 3), (4, 4), (2, 1)):
        expected = np.hypot(vertical, horizontal) / 4
        found = patch_filter_frequencies(waves((vertical, horizontal)))
        assert found == pytest.approx(expected, abs=1e-12)
    # Two of the same power, in channels of their own.
    assert patch_filter_frequencies(waves((1, 0), (0, 3))) == pytest.approx(0.5)
    assert np.isnan(patch_filter_frequencies(np.zeros((1, 1, 3, 3)))).all()


def test_the_table_of_a_convolution() -> None:
    layer = nn.Conv2d(3, 6, 5, 2)
    table = measure_patch_filters(of(layer), filters=4, components=3)
    assert table["of"].tolist() == ["filter"] * 4 + ["component"] * 3
    assert table["count"].tolist() == [6] * 4 + [5] * 3
    assert set(table["module"]) == {"0"}
    for number, row in enumerate(table[:4].to_dict("records")):
        weights: Tensor = layer.weight[number].detach().double()
        values = np.reshape(row["values"], (5, 5, 3)) * (row["highest"] - row["lowest"])
        np.testing.assert_allclose(values + row["lowest"], weights.permute(1, 2, 0), atol=1e-12)
    assert table["share"].isna().tolist() == [True] * 4 + [False] * 3
    assert table["share"][4:].is_monotonic_decreasing


def test_one_filter_has_no_components() -> None:
    table = measure_patch_filters(of(nn.Conv2d(3, 1, 3)), **SETTINGS)
    assert table["of"].tolist() == ["filter"]


def test_gray_images_and_one_channel_of_each() -> None:
    gray = measure_patch_filters(of(nn.Conv2d(1, 4, 3)), **SETTINGS)
    each = measure_patch_filters(of(nn.Conv2d(3, 6, 3, groups=3)), **SETTINGS)
    assert {*gray["channels"], *each["channels"]} == {1}


def test_what_cannot_be_shown_is_told() -> None:
    assert refusal(measure_patch_filters, of(nn.Conv2d(5, 4, 3)), **SETTINGS) == (
        "models.m: the filters of the first layer, '0', have 5 channels, and can be shown where "
        "these are one or three."
    )
    spoiled = nn.Conv2d(3, 4, 3)
    spoiled.weight.data[1, 2, 0, 0] = torch.nan
    with pytest.raises(VitscopeError, match="'0', are not finite: check the checkpoint"):
        measure_patch_filters(of(spoiled), **SETTINGS)
