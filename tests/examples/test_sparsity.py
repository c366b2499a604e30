"""The example of a package of measures, against a closed form and zeros that were planted."""

import numpy as np
import pytest
from scipy.special import erf
from vitscope_sparsity.compute import share_of_small


@pytest.mark.parametrize("threshold", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("scale", [1e-3, 40.0])
def test_normal_values_have_the_share_of_the_normal_distribution(
    threshold: float, scale: float
) -> None:
    maps = scale * np.random.default_rng(0).standard_normal((3, 64, 40, 40))
    expected = erf(threshold / np.sqrt(2))
    # Four standard errors of a share of 102,400 values.
    tolerance = 4 * np.sqrt(expected * (1 - expected) / maps[0].size)
    np.testing.assert_allclose(share_of_small(maps, threshold), expected, rtol=0, atol=tolerance)


def test_each_image_has_the_share_of_its_zeros() -> None:
    maps = np.ones((3, 4, 5, 5), np.float32)
    maps[1, 0] = maps[2] = 0
    maps[2, 0, 0, 0] = -7
    np.testing.assert_array_equal(share_of_small(maps, 0.1), [[0], [0.25], [0.99]])
