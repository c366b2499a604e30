"""Claims about AlterNet and its CNN, on tables made for them and on published points."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from tests.helpers.claims import blocks, count, published

KIND, MODELS = "robustness_by_accuracy", ["alternet", "resnet"]
NETWORK = {"family": "alternet", "arch.width": 8}
BUILT = {
    "alternet": NETWORK | {"arch.attention": [0, 1, 0, 1]},
    "resnet": NETWORK | {"arch.attention": [0, 0, 0, 0]},
}
TRAITS = {KIND: BUILT}


def wilson(share: float, images: int = 100) -> tuple[float, float]:
    return tuple(binomtest(round(share * images), images).proportion_ci(method="wilson"))


def errors(**of_models: tuple[float, float]) -> dict[str, pd.DataFrame]:
    """Return tables of models with an error on images as they are, and a mean corruption error."""
    rows = [
        {"model": model, "corruption": name, "images": 100, "clean_error": clean, "error": error}
        | dict(zip(("ci_low", "ci_high"), wilson(error), strict=True))
        for model, (clean, mean) in of_models.items()
        for name, error in (("fog", 1 - mean), ("mean", mean))
    ]
    return {"corruption_error": pd.DataFrame(rows), "blocks": blocks(*of_models)}


EXAMPLES = {KIND: errors(alternet=(0.1, 0.3), resnet=(0.4, 0.35))}


def test_alternet_is_compared_with_its_cnn_in_both_errors() -> None:
    claims = count(KIND, EXAMPLES[KIND], MODELS, traits_of=BUILT).set_index("claim")
    assert claims[["model", "versus"]].to_numpy().tolist() == [MODELS] * 2
    values = claims["measured_value"].to_dict()
    assert values == pytest.approx(
        {"alternet_errs_less": 0.3, "alternet_withstands_corruptions": 0.05}
    )
    assert claims["holds"].tolist() == ["yes", "undecided"]
    # Newcombe's interval, of Wilson's as another library has them.
    low, high = wilson(0.4)[0], wilson(0.1)[1]
    down = np.hypot(0.4 - low, high - 0.1)
    assert claims.loc["alternet_errs_less", "ci_low"] == pytest.approx(0.3 - down)


def test_another_cnn_is_not_its_own() -> None:
    others = ({"arch.width": 16}, {"family": "resnet"}, {"training.images": 5})
    for other in others:
        traits_of = BUILT | {"resnet": BUILT["resnet"] | other}
        assert count(KIND, EXAMPLES[KIND], MODELS, traits_of=traits_of).empty


def test_the_published_points_by_hand() -> None:
    theirs = published(KIND, "fig12b.csv", {"alternet": "Alter-ResNet", "resnet": "ResNet"})
    claims = count(KIND, EXAMPLES[KIND], MODELS, theirs, BUILT)
    values = claims["published_value"].tolist()
    assert values == pytest.approx([(84.02 - 82.48) / 100, (66.673 - 64.978) / 100])
