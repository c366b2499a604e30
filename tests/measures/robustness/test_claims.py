import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, published, verdicts


def errors(**of_models: tuple[float, float]) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "corruption": name, "images": 100, "clean_error": clean, "error": error}
        for model, (clean, mean) in of_models.items()
        for name, error in (("fog", 1 - mean), ("mean", mean))
    ]
    return {"corruption_error": pd.DataFrame(rows), "blocks": blocks(*of_models)}


def corrupted(**of_models: float) -> dict[str, pd.DataFrame]:
    return errors(**{model: (0.0, error) for model, error in of_models.items()})


EXAMPLES = {"robustness": corrupted(alternet=0.2, resnet=0.3)}


@pytest.mark.parametrize(
    ("error", "holds"), [(0.25, True), (0.3, False), (0.4, False), (np.nan, None)]
)
def test_hybrids_are_to_be_more_robust_than_convs_alone(error, holds):
    tables = corrupted(resnet=0.3, vit=0.1, alternet=error, mixer=0.1)
    claims = count("robustness", tables, ["resnet", "vit", "alternet", "mixer"])
    assert verdicts(claims) == {
        ("msa_makes_convs_robust", "alternet", "resnet"): (None, None, holds)
    }
    if holds is not None:
        assert claims["measured_value"].tolist() == [pytest.approx(0.3 - error)]


def test_averages_are_to_be_more_robust_than_what_is_averaged():
    traits = {"vit": {"averages": ["mixer"]}}
    claims = count("robustness", corrupted(mixer=0.3, vit=0.2), ["mixer", "vit"], traits_of=traits)
    found = verdicts(claims[claims["claim"] == "averaging_withstands_corruptions"])
    assert found == {("averaging_withstands_corruptions", "vit", "mixer"): (None, None, True)}


KIND, MODELS = "robustness_by_accuracy", ["alternet", "resnet"]
NETWORK = {"family": "alternet", "arch.width": 8}
BUILT = {
    "alternet": NETWORK | {"arch.attention": [0, 1, 0, 1]},
    "resnet": NETWORK | {"arch.attention": [0, 0, 0, 0]},
}
TRAITS = {KIND: BUILT}
BY_ACCURACY = errors(alternet=(0.1, 0.3), resnet=(0.4, 0.35))
EXAMPLES[KIND] = BY_ACCURACY


def test_alternet_is_compared_with_its_cnn() -> None:
    claims = count(KIND, BY_ACCURACY, MODELS, traits_of=BUILT).set_index("claim")
    assert claims[["model", "versus"]].to_numpy().tolist() == [MODELS]
    values = claims["measured_value"].to_dict()
    assert values == pytest.approx({"alternet_withstands_corruptions": 0.05})
    assert claims["holds"].tolist() == ["yes, without an interval"]


def test_another_cnn_is_not_its_own() -> None:
    others = ({"arch.width": 16}, {"family": "resnet"}, {"training.images": 5})
    for other in others:
        traits_of = BUILT | {"resnet": BUILT["resnet"] | other}
        assert count(KIND, BY_ACCURACY, MODELS, traits_of=traits_of).empty


def test_the_published_points_by_hand() -> None:
    theirs = published(KIND, "fig12b.csv", {"alternet": "Alter-ResNet", "resnet": "ResNet"})
    claims = count(KIND, BY_ACCURACY, MODELS, theirs, BUILT)
    values = claims["published_value"].tolist()
    assert values == pytest.approx([(66.673 - 64.978) / 100])
