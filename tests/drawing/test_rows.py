import pandas as pd

from vitscope.drawing.figure import rows_of

ROWS = pd.DataFrame(
    {
        "model": ["b", "a", "a", "a"],
        "snapshot": ["end", "end", "init", "end"],
        "index": [0, 2, 0, 1],
    }
)


def test_rows_are_those_of_the_model_in_order():
    found = rows_of(ROWS, "a", ["index"])
    assert found["index"].tolist() == found.index.tolist() == [0, 1, 2]
    assert rows_of(ROWS, "a", snapshot="end")["index"].tolist() == [2, 1]


def test_rows_that_are_alike_keep_their_order():
    many = pd.DataFrame({"model": "a", "image": [1, 0] * 50, "number": range(100)})
    found = rows_of(many, "a", ["image"])
    assert found["number"].tolist() == [*range(1, 100, 2), *range(0, 100, 2)]
