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
    return {"faithfulness": pd.DataFrame(rows), "blocks": blocks(*of_models)}


OF_VIT = {"grad_cam": 0.1, "gradient_rollout": 0.3, "rollout": 0.5, "random": 0.7}
EXAMPLES = {kind: areas(vit=OF_VIT) for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "gain", "of_gradients"), [("deletion", 0.6, 0.2), ("insertion", -0.6, -0.2)]
)
def test_areas_are_compared(kind, gain, of_gradients):
    of_resnet = {"grad_cam": 0.9, "random": 0.3}
    claims = count(kind, areas(resnet=of_resnet, vit=OF_VIT), ["resnet", "vit"])
    verb = {"deletion": "delete", "insertion": "insert"}[kind]
    of_cam, of_rollout = (
        f"{each}_to_{verb}" for each in ("grad_cam_finds_what", "gradients_find_what")
    )
    assert verdicts(claims) == {
        (of_cam, "resnet"): (None, None, gain < 0),
        (of_cam, "vit"): (None, None, gain > 0),
        (of_rollout, "vit"): (None, None, of_gradients > 0),
    }
    values = claims.set_index(["claim", "model"])
    assert values.loc[(of_rollout, "vit"), "measured_value"] == pytest.approx(of_gradients)


def test_a_model_without_gradient_rollout_has_no_verdict_of_it():
    tables = areas(vit={"grad_cam": 0.1, "rollout": 0.5, "random": 0.7})
    (row,) = count("deletion", tables, ["vit"]).to_dict("records")
    assert row["claim"] == "grad_cam_finds_what_to_delete"
    assert row["measured_value"] == pytest.approx(0.6)
