"""By how much one number exceeds another."""

from vitscope.claims.claim import Finding
from vitscope.claims.comparing import difference


def test_numbers_that_differ_by_rounding_are_equal() -> None:
    assert 0.1 + 0.2 > 0.3
    assert difference(0.1 + 0.2, 0.3) == Finding(0)
    found = difference(0.3 + 1e-6, 0.3)
    assert found is not None
    assert found.value > 0
    assert difference(0.3, None) is None
