import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, published, verdicts
from vitscope.package_data import PUBLISHED_POINTS


def lesion(
    units: list[tuple[str, int, float]], sizes: list[int] | None = None
) -> dict[str, pd.DataFrame]:
    """Make the table of a model `m` from the kind, stage and change of each unit.

    `sizes` are the sides of the maps after the stem and each unit, if they are not all the same.
    """
    sizes = sizes or [8] * (len(units) + 1)
    table = pd.DataFrame(units, columns=["kind", "stage", "change"])
    table = table.assign(model="m", index=range(1, len(units) + 1))
    cuts = pd.concat([pd.DataFrame([{"kind": "stem", "stage": 0, "index": 0}]), table])
    cuts = cuts.assign(model="m", height=sizes, width=sizes)
    return {"lesion": table, "blocks": cuts}


def stage(number: int, kind: str, *changes: float) -> list[tuple[str, int, float]]:
    return [(kind, number, change) for change in changes]


UNITS = [*stage(1, "conv", -2, -1), *stage(2, "conv", -2, -3), *stage(3, "msa", -2, -3)]
EXAMPLES = {"lesion": lesion(UNITS)}


def test_fig_10b_is_counted_as_by_hand():
    frame = pd.read_csv(PUBLISHED_POINTS / "fig10b_swin.csv").set_index("index")["change"]
    stages = [range(1, 4), range(5, 9), range(10, 22), range(23, 27)]
    assert sorted(unit for stage in stages for unit in stage) == frame.index.tolist()
    # Unit 0, the first MSA, is off the scale: the first stage has one MSA alone.
    mlps = [(1, 3), (6, 8), (11, 21), (24, 26)]
    msas = [(5, 7), (10, 20), (23, 25)]
    assert [frame[first] < frame[last] for first, last in mlps] == [True] * 4
    assert [frame[last] < frame[first] for first, last in msas] == [True] * 3
    theirs = published("lesion", "fig10b_swin.csv", {"m": "Swin"})
    claims = count("lesion", lesion([("mlp", 1, -1), ("mlp", 2, -1)]), ["m"], theirs)
    found = claims.set_index("claim")[["published_count", "published_total"]].to_numpy().tolist()
    assert claims["claim"].tolist() == ["first_mlp_of_stage_matters", "last_msa_of_stage_matters"]
    assert found == [[4, 4], [3, 3]]
    # Ours has one MLP in each stage: no first and last.
    assert claims["holds"].isna().all()


@pytest.mark.parametrize(
    ("units", "sizes", "expected"),
    [
        # The ends of stages decide.
        (
            [
                *stage(1, "mlp", -5, 0, -1),
                *stage(2, "mlp", -1, -9, -2),
                *stage(3, "mlp", -3, -1),
                *stage(1, "msa", -5, -6),
                *stage(2, "msa", -2, -1),
                *stage(3, "msa", -2, -2),
            ],
            None,
            {"first_mlp": (2, 3, True), "last_msa": (1, 3, False)},
        ),
        # Without units that subsample, later stages have a single one; then none is left, or one
        # stage of several.
        (
            [*stage(1, "conv", -5), *stage(2, "conv", -9, -1), *stage(3, "conv", -9, -3)],
            [32, 32, 16, 16, 8, 8],
            {},
        ),
        (
            [*stage(1, "conv", -5, -1), *stage(2, "conv", -9)],
            [32, 32, 32, 16],
            {"first_conv": (1, 1, True)},
        ),
        # There is a single stage.
        ([*stage(1, "msa", -1, -2), *stage(1, "mlp", -2, -1)], None, {}),
        # The end of a stage has no value.
        (
            [*stage(1, "mlp", np.nan, -2, -1), *stage(2, "mlp", -3, -2, -1)],
            None,
            {"first_mlp": (1, 1, True)},
        ),
        ([*stage(1, "mlp", np.nan, -2), *stage(2, "mlp", -3)], None, {}),
    ],
)
def test_stages_by_hand(units, sizes, expected):
    found = verdicts(count("lesion", lesion(units, sizes), ["m"]))
    assert found == {(f"{each}_of_stage_matters", "m"): row for each, row in expected.items()}


def test_units_that_subsample_do_not_count():
    # By hand: without the unit that begins it, the second stage has -1 and -2, the third -3 alone.
    units = [*stage(1, "conv", -5, -1), *stage(2, "conv", -9, -1, -2), *stage(3, "conv", -9, -3)]
    tables = lesion(units, [32, 32, 32, 16, 16, 16, 8, 8])
    found = verdicts(count("lesion", tables, ["m"]))
    assert found == {("first_conv_of_stage_matters", "m"): (1, 2, False)}
    # Where a pool, which cannot be removed, has subsampled already, the unit after it counts.
    merging = {"model": "m", "index": 2.5, "kind": "pool", "stage": 2, "height": 16, "width": 16}
    tables["blocks"] = pd.concat([tables["blocks"], pd.DataFrame([merging])])
    found = verdicts(count("lesion", tables, ["m"]))
    assert found == {("first_conv_of_stage_matters", "m"): (2, 2, True)}


def ratios(model: str, positions: list[float], class_token: list[float] | None = None):
    depth = np.linspace(0.25, 1, len(positions))
    kinds = {"positions": positions} | ({"class_token": class_token} if class_token else {})
    rows = [pd.DataFrame({"depth": depth, "ratio": v, "tokens": k}) for k, v in kinds.items()]
    return pd.concat(rows).assign(model=model)


def tables(*of_models: pd.DataFrame) -> dict[str, pd.DataFrame]:
    models = [each["model"].iloc[0] for each in of_models]
    return {"skip_ratio": pd.concat(of_models, ignore_index=True), "blocks": blocks(*models)}


VIT = ratios("vit", [2, 4, 8, 16], [16, 8, 4, 2])
EXAMPLES |= {"skip_ratio": tables(VIT, ratios("resnet", [1, 2, 1, 2]))}


def test_two_models_are_counted_as_by_hand() -> None:
    found = count("skip_ratio", EXAMPLES["skip_ratio"], ["vit", "resnet"]).set_index("claim")
    more = found.loc["shortcuts_of_attention_carry_more"]
    assert more["measured_value"] == pytest.approx(2 * np.log(2), rel=1e-12)
    assert found.loc["class_token_passes_first", "measured_value"] == 1


def test_without_a_class_token_there_is_one_claim() -> None:
    of = tables(ratios("vit", [2, 4, 8]), ratios("resnet", [3, 4, 9]))
    found = verdicts(count("skip_ratio", of, ["vit", "resnet"]))
    assert len(found) == 1


def test_a_branch_of_zeros_does_not_count() -> None:
    of = tables(ratios("vit", [2, 4, np.nan]), ratios("resnet", [1, 1, 1]))
    found = count("skip_ratio", of, ["vit", "resnet"])
    assert found["measured_value"].tolist() == pytest.approx([1.5 * np.log(2)], rel=1e-12)
