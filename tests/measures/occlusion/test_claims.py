import numpy as np
import pandas as pd
import pytest

from tests.helpers.claims import blocks, count, published, verdicts

CHANGES = {"occlusion": "dropped", "shuffling": "shuffled"}


def kept(**values: tuple[float, float]) -> dict[str, pd.DataFrame]:
    rows = [
        {"model": model, "change": change, "mean_kept": value}
        for model, (dropped, shuffled) in values.items()
        for change, value in (("none", 1), *[("dropped", dropped)] * 2, ("shuffled", shuffled))
    ]
    return {"occlusion": pd.DataFrame(rows), "blocks": blocks(*values)}


EXAMPLES = {kind: kept(vit=(0.6, 0.3), resnet=(0.5, 0.4)) for kind in CHANGES}


@pytest.mark.parametrize(("kind", "value"), [("occlusion", 0.1), ("shuffling", -0.1)])
def test_the_accuracy_that_is_kept_is_compared(kind, value):
    tables = kept(resnet=(0.5, 0.4), vit=(0.6, 0.3), mixer=(0.9, 0.9))
    claims = count(kind, tables, ["resnet", "vit", "mixer"])
    name = f"msa_withstands_{kind}"
    assert verdicts(claims) == {(name, "vit", "resnet"): (None, None, value > 0)}
    assert claims["measured_value"].tolist() == [pytest.approx(value)]


@pytest.mark.parametrize(("kind", "change"), CHANGES.items())
def test_it_is_compared_in_each_resample(kind, change):
    tables = kept(resnet=(0.5, 0.4), vit=(0.6, 0.3))
    of_rows = np.random.default_rng(0).random((len(tables["occlusion"]), 11))
    # Of both rows of what is dropped, what is kept is the same.
    of_rows[[2, 6]] = of_rows[[1, 5]]
    tables["occlusion"] = tables["occlusion"].assign(mean_kept_resampled=[*of_rows])
    (row,) = count(kind, tables, ["resnet", "vit"]).to_dict("records")
    first, second = {"dropped": (5, 1), "shuffled": (7, 3)}[change]
    expected = np.percentile(of_rows[first] - of_rows[second], [2.5, 97.5])
    assert [row["measured_low"], row["measured_high"]] == pytest.approx(expected, rel=1e-12)


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
