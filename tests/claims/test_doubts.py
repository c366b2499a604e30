import math

import pandas as pd
import pytest

from vitscope.claims.doubts import doubt_claims
from vitscope.claims.tables import COUNTED

CHANCE, UNKNOWN = "accuracy of chance", "accuracy not measured"


def claims_about(*subjects: tuple[str, str | None]) -> pd.DataFrame:
    rows = [{"model": model, "versus": versus} for model, versus in subjects]
    return pd.DataFrame(rows, columns=[*COUNTED])


def fits(**errors: tuple[float, int]) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "metric": metric, "value": value, "images": images}
        for model, (percent, images) in errors.items()
        for metric, value in (("error_percent", percent), ("nll_train", 1.5))
    ]
    return {"fit": pd.DataFrame(rows)}


def doubts_of(tables: dict[str, pd.DataFrame], *subjects: tuple[str, str | None]) -> list[object]:
    found = doubt_claims(claims_about(*subjects), tables, dict.fromkeys("abc", 10))
    return found["doubt"].to_list()


def test_a_network_is_doubted_for_chance_or_for_what_nobody_measured() -> None:
    tables = fits(a=(40.0, 2000), b=(89.5, 2000))
    assert doubts_of(tables, ("a", None), ("b", None), ("c", None)) == [None, CHANCE, UNKNOWN]


def test_the_worse_of_two_networks_decides() -> None:
    tables = fits(a=(40.0, 2000), b=(89.5, 2000))
    subjects = ("a", "b"), ("b", "a"), ("a", "c"), ("c", "b"), ("a", "a")
    assert doubts_of(tables, *subjects) == [CHANCE, CHANCE, UNKNOWN, CHANCE, None]


def wilson_low(share: float, images: int) -> float:
    """Return the lower end of Wilson's 95 % interval, by his formula."""
    z = 1.959963984540054
    middle = share + z**2 / (2 * images)
    half = z * math.sqrt(share * (1 - share) / images + z**2 / (4 * images**2))
    return (middle - half) / (1 + z**2 / images)


@pytest.mark.parametrize("images", [100, 2000])
def test_chance_is_left_where_the_interval_leaves_it(images: int) -> None:
    shares = [right / images for right in range(images // 4)]
    found = [doubts_of(fits(a=(100 * (1 - each), images)), ("a", None)) for each in shares]
    assert found == [[None if wilson_low(each, images) > 0.1 else CHANCE] for each in shares]


def test_the_table_of_most_images_is_believed() -> None:
    corrupted = pd.DataFrame(
        {"model": "a", "corruption": ["fog", "mean"], "clean_error": [0.2, 0.2], "images": 50}
    )
    classified = pd.DataFrame({"model": ["a"], "accuracy": [0.8], "images": [64]})
    assert doubts_of({"corruption_error": corrupted}, ("a", None)) == [None]
    assert doubts_of({"classification": classified}, ("a", None)) == [None]
    tables = {"corruption_error": corrupted, "classification": classified, **fits(a=(90, 2000))}
    assert doubts_of(tables, ("a", None)) == [CHANCE]


def test_without_a_number_of_classes_nothing_is_chance() -> None:
    found = doubt_claims(claims_about(("a", None)), fits(a=(99.0, 100)), {"a": None})
    assert found["doubt"].to_list() == [None]
