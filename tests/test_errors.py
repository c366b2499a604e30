import pytest

from vitscope.errors import quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "nothing"), (True, "true"), ("a\nb", r"'a\nb'"), (1.5, "1.5"), (1, "1"), (0, "0")],
)
def test_values_in_messages(value: object, text: str) -> None:
    assert quoted(value) == text


def test_values_in_messages_are_short() -> None:
    assert quoted("x" * 1000) == "'" + "x" * 56 + "..."
