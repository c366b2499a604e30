"""The photograph that is always there."""

import numpy as np

from vitscope.data.opening import open_source


def test_the_photograph() -> None:
    photograph = open_source({"kind": "sample"}, "test")
    (sample,) = photograph.samples(np.array([0]))
    assert len(photograph) == 1
    assert min(sample.image.size) > 224
    assert sample.label == -1
