import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitscope.errors import VitscopeError
from vitscope.training import trajectory


def polar(moments: list[np.ndarray]) -> pd.DataFrame:
    return trajectory.polar_trajectory(len(moments), [moments])


@given(
    st.lists(st.tuples(st.floats(0.01, 5), st.floats(0, np.pi)), min_size=1, max_size=9),
    st.floats(0.01, 100),
)
def test_points_of_a_plane_come_back(points: list[tuple[float, float]], scale: float) -> None:
    generator = np.random.default_rng(0)
    end = generator.normal(size=50)
    x, y = np.linalg.qr(generator.normal(size=(50, 2)))[0].T
    placed = [end + scale * r * (np.cos(a) * x + np.sin(a) * y) for r, a in [(1, 0), *points]]
    found = polar([*placed, end])
    np.testing.assert_allclose(found["radius"], [1, *(r for r, _ in points), 0], atol=1e-9)
    # Near 0 and pi the arc cosine has half the digits.
    np.testing.assert_allclose(found["angle"], [0, *(a for _, a in points), 0], atol=1e-5)


def test_pieces_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = list(np.random.default_rng(1).normal(size=(4, 1000)).astype(np.float32))
    whole = polar(moments)
    monkeypatch.setattr(trajectory, "PIECE", 7)
    np.testing.assert_allclose(polar(moments), whole, rtol=1e-12, atol=1e-7)


def test_a_moment_that_is_the_end_has_the_angle_0() -> None:
    start, end = np.ones(3), np.zeros(3)
    assert polar([start, end, end])["angle"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("moments", "sentence"),
    [([1, 0], "needs 3 moments at least.*there are 2"), ([1, 0, 1], "are the same weights")],
)
def test_what_is_no_trajectory(moments: list[int], sentence: str) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        polar([np.full(3, moment) for moment in moments])
