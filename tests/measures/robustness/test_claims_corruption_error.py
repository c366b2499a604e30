"""Claims about AlterNet and its CNN, on tables made for them and on published points."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, published

KIND, MODELS = "robustness_by_accuracy", ["alternet", "resnet"]
NETWORK = {"family": "alternet", "arch.width": 8}
BUILT = {
    "alternet": NETWORK | {"arch.attention": [0, 1, 0, 1]},
    "resnet": NETWORK | {"arch.attention": [0, 0, 0, 0]},
}
TRAITS = {KIND: BUILT}


def errors(**of_models: tuple[float, float]) -> dict[str, pd.DataFrame]:
    """Return tables of models with an error on images as they are, and a mean corruption error."""
    rows = [
        {"model": model, "corruption": name, "images": 100, "clean_error": clean, "error": error}
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
    assert claims["holds"].tolist() == ["yes, without an interval"] * 2


def test_errors_are_compared_in_each_resample() -> None:
    table = EXAMPLES[KIND]["corruption_error"]
    generator = np.random.default_rng(0)
    columns = ("clean_error", "error")
    drawn = {each: generator.normal(table[each], 0.05, (11, len(table))) for each in columns}
    lists = {f"{each}_resampled": [*of_rows.T] for each, of_rows in drawn.items()}
    tables = EXAMPLES[KIND] | {"corruption_error": table.assign(**lists)}
    claims = count(KIND, tables, MODELS, traits_of=BUILT).set_index("claim")
    names = ("alternet_errs_less", "alternet_withstands_corruptions")
    for claim, each in zip(names, columns, strict=True):
        # The rows of means: the second of each model.
        ends = np.percentile(drawn[each][:, 3] - drawn[each][:, 1], [2.5, 97.5])
        row = claims.loc[claim]
        assert [row["measured_low"], row["measured_high"]] == pytest.approx(ends, rel=1e-12)
    assert claims["holds"].tolist() == ["yes, in this network", "open"]


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
