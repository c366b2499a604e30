"""The claim about corrupted images, on tables made for it."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, verdicts


def corrupted(**errors: float) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "corruption": name, "error": value}
        for model, error in errors.items()
        for name, value in (("fog", 1 - error), ("mean", error))
    ]
    return {"corruption_error": pd.DataFrame(rows), "blocks": blocks(*errors)}


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
