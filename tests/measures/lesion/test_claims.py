import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import count, published, verdicts
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


def in_lesion(units: list[tuple[str, int, float]]) -> dict[tuple[str, ...], tuple]:
    return verdicts(count("lesion", lesion(units), ["m"]))


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


def test_the_ends_of_stages_decide():
    units = [
        *stage(1, "mlp", -5, 0, -1),
        *stage(2, "mlp", -1, -9, -2),
        *stage(3, "mlp", -3, -1),
        *stage(1, "msa", -5, -6),
        *stage(2, "msa", -2, -1),
        *stage(3, "msa", -2, -2),
    ]
    assert in_lesion(units) == {
        ("first_mlp_of_stage_matters", "m"): (2, 3, True),
        ("last_msa_of_stage_matters", "m"): (1, 3, False),
    }


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


def test_a_model_whose_stages_have_nothing_else_has_no_claim_about_stages():
    units = [*stage(1, "conv", -5), *stage(2, "conv", -9, -1), *stage(3, "conv", -9, -3)]
    assert verdicts(count("lesion", lesion(units, [32, 32, 16, 16, 8, 8]), ["m"])) == {}
    # Nor has one of a single stage.
    assert in_lesion([*stage(1, "msa", -1, -2), *stage(1, "mlp", -2, -1)]) == {}


def test_one_stage_of_several_counts_where_the_others_have_nothing_else():
    units = [*stage(1, "conv", -5, -1), *stage(2, "conv", -9)]
    found = verdicts(count("lesion", lesion(units, [32, 32, 32, 16]), ["m"]))
    assert found == {("first_conv_of_stage_matters", "m"): (1, 1, True)}


def test_a_stage_whose_end_has_no_value_is_not_counted():
    units = [*stage(1, "mlp", np.nan, -2, -1), *stage(2, "mlp", -3, -2, -1)]
    assert in_lesion(units) == {("first_mlp_of_stage_matters", "m"): (1, 1, True)}
    assert in_lesion([*stage(1, "mlp", np.nan, -2), *stage(2, "mlp", -3)]) == {}


def test_stages_are_counted_in_each_resample() -> None:
    units = [*stage(1, "msa", -2, -1, -3), *stage(2, "msa", -2, -3), *stage(3, "msa", -3, -2)]
    tables = lesion(units)
    generator = np.random.default_rng(0)
    drawn = tables["lesion"]["change"].to_numpy() + generator.normal(0, 0.8, (41, len(units)))
    tables["lesion"] = tables["lesion"].assign(change_resampled=[*drawn.T])
    (row,) = count("lesion", tables, ["m"]).to_dict("records")
    assert (row["measured_count"], row["measured_total"]) == (2, 3)
    assert row["margin"] == pytest.approx((1 + 1 - 1) / 3)
    costs = pd.DataFrame(drawn).set_axis([0, 1, 2, 3, 4, 5, 6], axis=1)
    in_favour = pd.DataFrame(
        {1: costs[2] < costs[0], 2: costs[4] < costs[3], 3: costs[6] < costs[5]}
    )
    ends = np.percentile(in_favour.mean(axis=1), [2.5, 97.5])
    assert [row["measured_low"], row["measured_high"]] == pytest.approx(ends, rel=1e-12)
    assert ends[0] < ends[1]
