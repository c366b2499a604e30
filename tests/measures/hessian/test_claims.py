"""Claims about spectra of the Hessian, on spectra made for it and on published ones."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest, bootstrap

from tests.helpers.claims import KINDS_OF, blocks, count, count_alone, evidence, favoured, published
from vitscope.claims.report import sections
from vitscope.claims.snapshots import at_snapshots


def spectrum(model: str, *eigenvalues: float, snapshot: str = "end", top: int = 1) -> pd.DataFrame:
    """Return the `top` largest eigenvalues of each batch."""
    batch = np.arange(len(eigenvalues)) // top
    table = pd.DataFrame({"batch": batch, "eigenvalue": np.array(eigenvalues, dtype=float)})
    return table.assign(model=model, snapshot=snapshot)


EXAMPLES = {
    "hessian": {
        "hessian": pd.concat([spectrum("vit", -1, 2, 3), spectrum("resnet", 20, 30)]),
        "blocks": blocks("vit", "resnet"),
    }
}


def test_eigenvalues_are_counted_by_sign_and_magnitude():
    table = pd.concat([spectrum("resnet", 1000, 100, 10), spectrum("vit", 10, 1, 10, -5)])
    claims = count_alone("hessian", table)
    values = claims["measured_value"].xs("vit", level="model")
    assert values["msa_has_negative_eigenvalues"] == pytest.approx(1 / 4)
    claim = claims.loc[("msa_has_negative_eigenvalues", "vit")]
    assert (claim["measured_count"], claim["measured_total"]) == (1, 4)
    assert values["msa_has_more_negative_eigenvalues"] == pytest.approx(1 / 4)
    claim = claims.loc[("msa_has_more_negative_eigenvalues", "vit")]
    assert (claim["measured_count"], claim["measured_total"]) == (1, 4)
    assert (claim["versus_count"], claim["versus_total"]) == (0, 3)
    assert values["msa_has_smaller_positive_eigenvalues"] == pytest.approx(2 - 2 / 3)
    assert all(favoured(claims))


def test_a_spectrum_without_positive_eigenvalues_has_no_magnitude():
    claims = count_alone("hessian", pd.concat([spectrum("resnet", 10), spectrum("vit", -10)]))
    claim = claims.loc[("msa_has_smaller_positive_eigenvalues", "vit")]
    assert pd.isna(claim["measured_value"])
    assert pd.isna(claim["holds"])
    assert claims.loc[("msa_has_more_negative_eigenvalues", "vit"), "measured_value"] == 1


def signs(model: str, negative: int, batches: int, top: int = 1, size: float = 1.0):
    """Return a spectrum of batches in which all eigenvalues are negative, or none."""
    by_batch = np.where(np.arange(batches) < negative, -size, size)
    return spectrum(model, *np.repeat(by_batch, top), top=top)


def quantiles(masses: np.ndarray) -> tuple[int, int]:
    low, high = np.searchsorted(np.cumsum(masses), [0.025, 0.975])
    return int(low), int(high)


@pytest.mark.parametrize("top", [1, 5])
def test_the_interval_of_a_share_is_that_of_whole_batches(top):
    claims = count_alone("hessian", signs("vit", 8, 20, top))
    claim = claims.loc[("msa_has_negative_eigenvalues", "vit")]
    # Batches that are all of one sign are drawn as by a binomial, whatever the number in each.
    low, high = quantiles(binom.pmf(range(21), 20, 8 / 20))
    assert (claim["ci_low"], claim["ci_high"]) == pytest.approx((low / 20, high / 20))


def test_the_interval_of_a_difference_of_shares_resamples_both_models():
    table = pd.concat([signs("resnet", 4, 16, size=100), signs("vit", 7, 16)])
    claim = count_alone("hessian", table).loc[("msa_has_more_negative_eigenvalues", "vit")]
    ours, theirs = (binom.pmf(range(17), 16, count / 16) for count in (7, 4))
    low, high = quantiles(np.convolve(ours, theirs[::-1]))
    assert claim["ci_low"] == pytest.approx((low - 16) / 16)
    assert claim["ci_high"] == pytest.approx((high - 16) / 16)
    assert (claim["ci_low"] < 0, claim["holds"]) == (True, "undecided")


def test_the_interval_of_a_difference_of_decades_is_that_of_another_library():
    generator = np.random.default_rng(5)
    ours, theirs = (10 ** generator.normal(size=12) for _ in range(2))
    table = pd.concat([spectrum("resnet", *theirs), spectrum("vit", *ours)])
    claim = count_alone("hessian", table).loc[("msa_has_smaller_positive_eigenvalues", "vit")]
    expected = bootstrap(
        (np.log10(theirs), np.log10(ours)),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(6),
    ).confidence_interval
    assert (claim["ci_low"], claim["ci_high"]) == pytest.approx(tuple(expected), abs=0.06)
    assert claim["ci_low"] < claim["measured_value"] < claim["ci_high"]


def test_a_single_batch_and_one_that_has_no_ratio_have_no_interval():
    alone = pd.concat([spectrum("resnet", 1, 2, top=2), spectrum("vit", -1, 2, top=2)])
    assert count_alone("hessian", alone)[["ci_low", "ci_high"]].isna().all(axis=None)
    # A resample of negative eigenvalues alone has no mean of positive ones.
    some = pd.concat([spectrum("resnet", 1, 2), spectrum("vit", -1, 2)])
    claims = count_alone("hessian", some).xs("vit", level="model")["ci_low"].isna()
    assert claims.to_dict() == {
        "msa_has_negative_eigenvalues": False,
        "msa_has_more_negative_eigenvalues": False,
        "msa_has_smaller_positive_eigenvalues": True,
    }


@pytest.mark.parametrize("negative", [0, 6])
def test_a_bootstrap_of_equal_resamples_has_wilsons_interval(negative):
    """Of the share, and Newcombe's of its difference from another model's."""
    table = pd.concat([signs("resnet", 3, 6), signs("vit", negative, 6)])
    claims = count_alone("hessian", table).xs("vit", level="model")
    share = claims.loc["msa_has_negative_eigenvalues"]
    wilson = binomtest(negative, 6).proportion_ci(method="wilson")
    assert (share["ci_low"], share["ci_high"]) == pytest.approx((wilson.low, wilson.high))
    assert share["holds"] == ("yes" if negative else "undecided")
    more = claims.loc["msa_has_more_negative_eigenvalues"]
    # The bootstrap of 3 of 6 batches reaches from 1 to 5 of them.
    near, far = abs(negative / 6 - wilson.low), abs(negative / 6 - wilson.high)
    below, above = np.hypot(near, 1 / 3), np.hypot(far, 1 / 3)
    ends = (more["measured_value"] - below, more["measured_value"] + above)
    assert (more["ci_low"], more["ci_high"]) == pytest.approx(ends)


def test_each_snapshot_is_counted_alone():
    table = pd.concat(
        [
            spectrum("resnet", -9, 9, snapshot="warmup"),
            spectrum("vit", 1, 1, snapshot="warmup"),
            spectrum("resnet", 9, 9),
            spectrum("vit", -1, 1),
        ]
    )
    shown = at_snapshots({"hessian": table, "blocks": blocks(*KINDS_OF)}, ["warmup", "end"])
    claims = count("hessian", shown, ["resnet", "vit"])
    more = claims[claims["claim"] == "msa_has_more_negative_eigenvalues"]
    # Counted together, one of four would stand against one of four.
    assert more[["snapshot", "measured_value", "holds"]].to_numpy().tolist() == [
        ["warmup", -0.5, "undecided"],
        ["end", 0.5, "undecided"],
    ]
    assert claims["snapshot"].tolist() == ["warmup"] * 3 + ["end"] * 3
    # Only those that a figure shows are counted, and all where it names none.
    counts = [len(at_snapshots(shown, chosen)["hessian"]) for chosen in (["end"], [])]
    assert counts == [4, 8]


def test_the_published_spectra_have_the_shares_of_the_paper():
    theirs = published("hessian", "fig4_hessian.csv", {"resnet": "ResNet", "vit": "ViT"})
    table = pd.concat([spectrum("resnet", 1.0), spectrum("vit", 1.0)])
    values = count_alone("hessian", table, theirs)["published_value"].xs("vit", level="model")
    # About 9 % of ViT's are negative, and none of ResNet's.
    assert values["msa_has_negative_eigenvalues"] == pytest.approx(0.09, abs=0.005)
    assert values["msa_has_more_negative_eigenvalues"] == pytest.approx(0.09, abs=0.005)
    # ResNet's peak lies near 450, ViT's near 30: a decade apart.
    assert values["msa_has_smaller_positive_eigenvalues"] == pytest.approx(1.0, abs=0.1)
    few = published("hessian", "fig4_hessian.csv", {"vit": "ViT (6%)"})
    claims = count_alone("hessian", spectrum("vit", 1.0), few)
    assert claims["published_value"].iloc[0] == pytest.approx(0.34, abs=0.005)
    assert pd.isna(claims["published_total"].iloc[0])
    _, section = sections(
        claims.reset_index(), pd.DataFrame(), {"vit": "ViT (6 %)"}, [evidence("hessian")]
    )
    assert section.rows[0][2:4] == ("34 %", "0 of 1")
    assert section.rows[0][0] == "ViT (6 %), snapshot end"


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("less_data", {"training.images": 60}, {"training.images": None}),
        ("class_token", {}, {"arch.class_token": False}),
        ("global_attention", {}, {"arch.attention_window": 3}),
    ],
)
def test_two_that_are_alike_but_for_one_thing_are_compared(name, ours, theirs):
    table = pd.concat([signs("vit", 6, 8), signs("alternet", 2, 8)])
    tables = {"hessian": table, "blocks": blocks("vit", "alternet")}
    for first, traits in (("vit", (ours, theirs)), ("alternet", (theirs, ours))):
        traits_of = dict(zip(("vit", "alternet"), traits, strict=True))
        claims = count("hessian", tables, ["vit", "alternet"], traits_of=traits_of)
        (claim,) = claims[claims["versus"].notna()].to_dict("records")
        assert claim["claim"] == f"{name}_has_more_negative_eigenvalues"
        assert claim["model"] == first
        sign = 1 if first == "vit" else -1
        assert claim["measured_value"] == sign * (6 - 2) / 8
        assert (claim["measured_count"], claim["versus_count"]) == ((6, 2)[::sign])


def test_published_spectra_say_of_windows_and_data_what_the_paper_says():
    shares = {}
    for file, series in (("fig7b_hessian.csv", "3x3"), ("fig7b_hessian.csv", "5x5")):
        theirs = published("hessian", file, {"vit": "8x8", "alternet": series})
        traits_of = {"vit": {}, "alternet": {"arch.attention_window": 3}}
        table = pd.concat([spectrum("vit", 1.0), spectrum("alternet", 1.0)])
        tables = {"hessian": table, "blocks": blocks("vit", "alternet")}
        claims = count("hessian", tables, ["vit", "alternet"], theirs, traits_of)
        shares[series] = claims.set_index("claim")["published_value"]
    name = "global_attention_has_more_negative_eigenvalues"
    # By hand: 7.4 % of global attention, 7.1 and 3.8 % of windows.
    assert shares["3x3"][name] == pytest.approx(0.074 - 0.071, abs=1e-3)
    assert shares["5x5"][name] == pytest.approx(0.074 - 0.038, abs=1e-3)
