"""The claims about maps with gradients, on areas made for them."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, verdicts

KINDS = {"deletion": "deleted", "insertion": "inserted"}


def areas(**of_models: dict[str, float]) -> dict[str, pd.DataFrame]:
    """Tables of models whose methods have such areas, by both changes, in two rows each."""
    rows = [
        {"model": model, "method": method, "change": change, "share": share, "area": area}
        for model, of_methods in of_models.items()
        for method, area in of_methods.items()
        for change in KINDS.values()
        for share in (0, 1)
    ]
    table = pd.DataFrame(rows)
    table = table.assign(area_low=table["area"] - 0.03, area_high=table["area"] + 0.04)
    return {"faithfulness": table, "blocks": blocks(*of_models)}


OF_VIT = {"grad_cam": 0.1, "gradient_rollout": 0.3, "rollout": 0.5, "random": 0.7}
EXAMPLES = {kind: areas(vit=OF_VIT) for kind in KINDS}


@pytest.mark.parametrize(("kind", "value"), [("deletion", 0.2), ("insertion", -0.2)])
def test_the_areas_of_both_rollouts_are_compared(kind, value):
    tables = areas(resnet={"grad_cam": 0.2, "random": 0.4}, vit=OF_VIT)
    claims = count(kind, tables, ["resnet", "vit"])
    name = f"gradients_find_what_to_{'delete' if kind == 'deletion' else 'insert'}"
    assert verdicts(claims) == {(name, "vit"): (None, None, value > 0)}
    row = claims.iloc[0]
    assert row["measured_value"] == pytest.approx(value)
    # Newcombe's, of two intervals from 0.03 below to 0.04 above.
    ends = row[["ci_low", "ci_high"]].astype(float)
    np.testing.assert_allclose(ends, [value - 0.05, value + 0.05], atol=1e-12)


def test_a_model_without_gradient_rollout_has_no_verdict():
    tables = areas(vit={"grad_cam": 0.1, "rollout": 0.5, "random": 0.7})
    claims = count("deletion", tables, ["vit"])
    assert claims["measured_value"].isna().all()
