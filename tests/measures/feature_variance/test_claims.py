import pandas as pd
import pytest

from tests.helpers.claims import (
    agreement,
    count,
    count_variances,
    in_favour_by_claim,
    published,
    variances,
    verdicts,
)
from vitscope.package_data import PUBLISHED_POINTS

KINDS = ["stem", "conv", "conv", "msa", "mlp"]
TABLE = variances("m", KINDS, [8, 8, 8, 4, 4], [1, 2, 5, 4, 3])
EXAMPLES = {"feature_variance": {"feature_variance": TABLE, "blocks": TABLE}}


def test_the_published_figure_is_counted_as_by_hand():
    curves = pd.read_csv(PUBLISHED_POINTS / "fig9.csv").groupby("model")["variance"]
    vit, resnet = (curves.get_group(name).tolist() for name in ("ViT", "ResNet"))
    falls = sum(vit[i] < vit[i - 1] for i in range(1, 25, 2))
    rises = sum(vit[i] > vit[i - 1] for i in range(2, 25, 2))
    convs = [i for i in range(1, 17) if i not in (4, 8, 14)]
    grows = sum(resnet[i] > resnet[i - 1] for i in convs)
    assert (falls, rises, grows) == (12, 8, 12)

    sizes = [32] * 4 + [16] * 4 + [8] * 6 + [4] * 3
    of_vit = variances("vit", ["stem"] + ["msa", "mlp"] * 12, [16] * 25, vit)
    table = pd.concat([of_vit, variances("resnet", ["stem"] + ["conv"] * 16, sizes, resnet)])
    series = {"vit": "ViT", "resnet": "ResNet"}
    theirs = published("feature_variance", "fig9.csv", series, same_models=True)
    claims = count_variances(table, theirs)
    assert verdicts(claims) == {
        ("conv_increases_variance", "resnet"): (12, 13, True),
        ("subsampling_reduces_variance", "resnet"): (3, 3, True),
        ("msa_reduces_variance", "vit"): (12, 12, True),
        ("mlp_increases_variance", "vit"): (8, 12, True),
    }
    for what in ("count", "total"):
        assert claims[f"published_{what}"].eq(claims[f"measured_{what}"]).all()
    scores = agreement("feature_variance", table, theirs)
    assert scores["sign_share"].tolist() == [1, 1]
    assert scores["change_correlation"].tolist() == pytest.approx([1, 1])
    assert scores["error"].tolist() == pytest.approx([0, 0], abs=1e-6)
    assert scores["published_points"].tolist() == [25, 17]


def test_subsampling_blocks_count_for_subsampling_only():
    kinds = ["stem", "conv", "conv", "msa", "pool", "msa"]
    table = variances("m", kinds, [8, 8, 4, 4, 2, 1], [1, 2, 1, 3, 2, 5])
    assert verdicts(count_variances(table)) == {
        ("conv_increases_variance", "m"): (1, 1, True),
        ("msa_reduces_variance", "m"): (0, 1, False),
        ("subsampling_reduces_variance", "m"): (2, 3, True),
    }


def test_averages_are_compared_with_what_is_averaged():
    both = pd.concat(
        variances(model, ["stem", "conv", "conv"], [8] * 3, values)
        for model, values in (("m", [3, 2, 1]), ("n", [4, 1, 2]))
    )
    tables = {"feature_variance": both, "blocks": both}
    traits = {"m": {"averages": ["n"]}}
    claims = count("feature_variance", tables, ["m", "n"], traits_of=traits)
    found = verdicts(claims[claims["versus"].notna()])
    assert found == {("averaging_reduces_variance", "m", "n"): (2, 3, True)}


TABLE_ = variances("m", ["stem", "msa", "mlp", "msa", "mlp"], [8] * 5, [0.8, 0.7, 0.9, 0.6, 0.5])
TABLE_ = TABLE_.rename(columns={"variance": "share"})
TABLES = {"spatial_share": TABLE_, "blocks": TABLE_}
EXAMPLES |= {"spatial_share": TABLES, "variance_and_share": TABLES}


def test_shares_by_hand() -> None:
    found = in_favour_by_claim("spatial_share", TABLE_)
    assert found == {"msa_reduces_share": (1, True), "mlp_increases_share": (0.5, False)}


NORMALIZED = TABLE_.rename(columns={"share": "normalized_variance"})
EXAMPLES |= {"normalized_variance": {"normalized_variance": NORMALIZED, "blocks": NORMALIZED}}


def test_normalized_variances_by_hand() -> None:
    found = in_favour_by_claim("normalized_variance", NORMALIZED)
    assert found == {
        "msa_reduces_normalized_variance": (1, True),
        "mlp_increases_normalized_variance": (0.5, False),
    }
