import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, favoured, published, verdicts
from vitscope.package_data import PUBLISHED_POINTS

HIGH, LOW = "msa_withstands_high_frequency_noise", "conv_withstands_low_frequency_noise"


def noise(frequencies: list[float], **changes: list[float]) -> dict[str, pd.DataFrame]:
    table = pd.concat(
        pd.DataFrame({"model": model, "frequency": frequencies, "change": values})
        for model, values in changes.items()
    )
    return {"frequency_noise": table, "blocks": blocks(*changes)}


EXAMPLES = {"frequency_noise": noise([0.1, 0.2, 0.9], vit=[-1, -2, -3], resnet=[-2, -1, -4])}


def test_fig_2b_is_counted_as_by_hand():
    curves = pd.read_csv(PUBLISHED_POINTS / "fig2b.csv").pivot(
        index="frequency", columns="model", values="change"
    )
    vit_loses_less = (curves["ViT"] > curves["ResNet"]).tolist()
    assert vit_loses_less == [False] * 5 + [True] * 4
    frequencies = curves.index.tolist()
    tables = noise(frequencies, resnet=curves["ResNet"].tolist(), vit=curves["ViT"].tolist())
    theirs = published("frequency_noise", "fig2b.csv", {"resnet": "ResNet", "vit": "ViT"})
    claims = count("frequency_noise", tables, ["resnet", "vit"], theirs)
    expected = {(HIGH, "vit", "resnet"): (4, 4, True), (LOW, "vit", "resnet"): (4, 4, True)}
    assert verdicts(claims) == expected
    assert claims[["published_count", "published_total"]].to_numpy().tolist() == [[4, 4], [4, 4]]
    assert claims["published_series"].tolist() == ["ViT, ResNet"] * 2


def test_noise_is_counted_by_frequency():
    tables = noise(
        [0.2, 0.3, 0.5, 0.7, 0.8, 0.9],
        vit=[-1, -5, -9, -3, -2, -1],
        resnet=[-2, -4, -1, -3, -3, -2],
    )
    assert verdicts(count("frequency_noise", tables, ["vit", "resnet"])) == {
        (HIGH, "vit", "resnet"): (2, 3, True),
        (LOW, "vit", "resnet"): (1, 2, False),
    }


def test_noise_compares_every_model_that_attends_with_every_convolutional_one():
    models = ["mixer", "alternet", "resnet", "vit"]
    tables = noise([0.1, 0.9], **{model: [-1, -1] for model in models})
    assert list(verdicts(count("frequency_noise", tables, models))) == [
        (claim, model, "resnet") for model in ("alternet", "vit") for claim in (HIGH, LOW)
    ]


@pytest.mark.parametrize(
    ("frequencies", "vit"),
    [([0.5], [-1.0]), ([0.9, 0.1], [np.nan, np.nan])],
    ids=["the middle", "no value"],
)
def test_noise_that_says_nothing_has_no_verdict(frequencies, vit):
    tables = noise(frequencies, vit=vit, resnet=[-1.0] * len(frequencies))
    assert verdicts(count("frequency_noise", tables, ["vit", "resnet"])) == {
        (HIGH, "vit", "resnet"): (None, None, None),
        (LOW, "vit", "resnet"): (None, None, None),
    }


def test_both_published_curves_are_needed_for_a_comparison():
    tables = noise([0.1, 0.9], vit=[-2, -1], resnet=[-1, -2])
    theirs = published("frequency_noise", "fig2b.csv", {"vit": "ViT"})
    claims = count("frequency_noise", tables, ["vit", "resnet"], theirs)
    assert favoured(claims) == [True, True]
    assert claims[["published_series", "published_value"]].isna().all(axis=None)


@pytest.mark.parametrize("models", [["vit", "mixer"], ["resnet"], ["alternet", "vit"]])
def test_without_a_pair_there_is_no_comparison(models):
    assert count(
        "frequency_noise", noise([0.1, 0.9], **{model: [-1, -2] for model in models}), models
    ).empty


def with_resamples(tables, *counts):
    """Give each row the number of resamples in `counts`, all of them equal to what is measured."""
    table = tables["frequency_noise"]
    rows = zip(table["change"], counts, strict=True)
    lists = [np.full(count, change) if count else None for change, count in rows]
    return tables | {"frequency_noise": table.assign(change_resampled=lists)}


def test_two_models_are_compared_in_the_resamples_of_both_or_in_none():
    tables = noise([0.1, 0.9], vit=[-2.0, -1.0], resnet=[-1.0, -2.0])
    both, one = with_resamples(tables, 7, 7, 7, 7), with_resamples(tables, 7, 7, 0, 0)
    for known, holds in ((both, "yes, in this network"), (one, "yes, without an interval")):
        claims = count("frequency_noise", known, ["vit", "resnet"])
        assert claims["holds"].tolist() == [holds] * 2
    with pytest.raises(ValueError, match="resampled a different number of times"):
        count("frequency_noise", with_resamples(tables, 7, 7, 5, 5), ["vit", "resnet"])


CHANGES = {"occlusion": "dropped", "shuffling": "shuffled"}


def kept(**values: tuple[float, float]) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "change": change, "mean_kept": value}
        for model, (dropped, shuffled) in values.items()
        for change, value in (("none", 1), *[("dropped", dropped)] * 2, ("shuffled", shuffled))
    ]
    return {"occlusion": pd.DataFrame(rows), "blocks": blocks(*values)}


EXAMPLES |= {kind: kept(vit=(0.6, 0.3), resnet=(0.5, 0.4)) for kind in CHANGES}


@pytest.mark.parametrize(("kind", "value"), [("occlusion", 0.1), ("shuffling", -0.1)])
def test_the_accuracy_that_is_kept_is_compared(kind, value):
    tables = kept(resnet=(0.5, 0.4), vit=(0.6, 0.3), mixer=(0.9, 0.9))
    claims = count(kind, tables, ["resnet", "vit", "mixer"])
    name = f"msa_withstands_{kind}"
    assert verdicts(claims) == {(name, "vit", "resnet"): (None, None, value > 0)}
    assert claims["measured_value"].tolist() == [pytest.approx(value)]


def test_nothing_that_is_kept_has_no_verdict():
    tables = kept(resnet=(np.nan, np.nan), vit=(0.6, 0.3))
    assert verdicts(count("occlusion", tables, ["resnet", "vit"])) == {
        ("msa_withstands_occlusion", "vit", "resnet"): (None, None, None)
    }


def test_single_published_points_are_no_mean_over_all_shares():
    theirs = published("occlusion", "occlusion.csv", {"vit": "DeiT-S", "resnet": "ResNet-50"})
    (row,) = count("occlusion", EXAMPLES["occlusion"], ["vit", "resnet"], theirs).to_dict("records")
    assert row["measured_value"] == pytest.approx(0.1)
    assert pd.isna(row["published_value"])
