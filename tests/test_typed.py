import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitscope.typed import call_typed, typed


@dataclass(frozen=True)
class Point:
    x: float
    place: tuple[int, int] | None = None


@dataclass(frozen=True)
class Everything:
    count: int
    share: float | None
    size: int | list[int] | str
    alike: tuple[str, int, float]
    points: tuple[Point, ...]
    named: dict[str, Point]
    which: Literal["auto", True, False] | list[float]
    any: dict[str, Any] | str
    best: Point | None = None


NUMBERS = st.floats(allow_nan=False)
INTS = st.integers(-(2**53), 2**53)
POINTS = st.builds(Point, NUMBERS, st.none() | st.tuples(INTS, INTS))


@given(
    st.builds(
        Everything,
        count=INTS,
        share=st.none() | NUMBERS,
        size=INTS | st.lists(INTS) | st.text(),
        alike=st.tuples(st.text(), INTS, NUMBERS),
        points=st.lists(POINTS).map(tuple),
        named=st.dictionaries(st.text(), POINTS),
        which=st.sampled_from(["auto", True, False]) | st.lists(NUMBERS),
        any=st.dictionaries(st.text(), st.lists(INTS)) | st.text(),
        best=st.none() | POINTS,
    )
)
def test_what_json_holds_of_a_dataclass_becomes_the_same(value: Everything) -> None:
    assert typed(json.loads(json.dumps(asdict(value))), Everything) == value


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (1, float, 1.0),
        ([1, 2], list[float], [1.0, 2.0]),
        (1, float | None, 1.0),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
        (3, int | str | None, 3),
        ({"x": 1, "gone": 2}, Point, Point(1.0)),
    ],
)
def test_numbers_and_keys_are_those_of_the_type(value: object, kind: Any, wanted: object) -> None:
    found = typed(value, kind)
    assert repr(found) == repr(wanted)


def test_a_function_gets_the_dataclass_that_it_is_annotated_with() -> None:
    def shown(given: int, point: Point, places: list[int], **others: Any) -> str:
        return repr((given, point, places, others))

    values = {"point": {"x": 1, "place": [2, 3]}, "places": [4], "seed": 5}
    assert call_typed(shown, 0, values=values) == repr((0, Point(1.0, (2, 3)), [4], {"seed": 5}))
