import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from tests.helpers.claims import KINDS_OF, blocks, count, count_alone, evidence, published
from vitscope.claims.points import at_snapshots
from vitscope.claims.report import findings_as_table, sections_of_claims


def spectrum(
    model: str, *eigenvalues: float, snapshot: str = "end", top: int = 1, images: int = 100
) -> pd.DataFrame:
    batch = np.arange(len(eigenvalues)) // top
    table = pd.DataFrame({"batch": batch, "eigenvalue": np.array(eigenvalues, dtype=float)})
    known = {"images": images, "training_batch": 100, "residual": 1e-3}
    return table.assign(model=model, snapshot=snapshot, **known)


BOTH = pd.concat([spectrum("vit", -1, 2, 3), spectrum("resnet", 20, 30)])
EXAMPLES = {"hessian": {"hessian": BOTH, "blocks": blocks("vit", "resnet")}}


def test_eigenvalues_are_counted_by_sign_and_magnitude():
    table = pd.concat([spectrum("resnet", 1000, 100, 10), spectrum("vit", 10, 1, 10, -5)])
    claims = count_alone("hessian", table)
    values = claims["measured_value"].xs("vit", level="model")
    assert values["msa_has_negative_eigenvalues"] == pytest.approx(1 / 4)
    claim = claims.loc[("msa_has_negative_eigenvalues", "vit")]
    assert (claim["measured_count"], claim["measured_total"]) == (1, 4)
    # The medians of three pairs: of batch 3, the ResNet has no spectrum.
    assert values["msa_has_more_negative_eigenvalues"] == 0
    assert values["msa_has_smaller_positive_eigenvalues"] == pytest.approx(2)


def test_a_spectrum_without_positive_eigenvalues_has_no_magnitude():
    claims = count_alone("hessian", pd.concat([spectrum("resnet", 10), spectrum("vit", -10)]))
    claim = claims.loc[("msa_has_smaller_positive_eigenvalues", "vit")]
    assert pd.isna(claim["measured_value"])
    assert pd.isna(claim["holds"])
    assert claims.loc[("msa_has_more_negative_eigenvalues", "vit"), "measured_value"] == 1


def signs(model: str, negative: int, batches: int, top: int = 1, size: float = 1.0):
    """Return a spectrum whose eigenvalues are negative in the first `negative` batches only."""
    by_batch = np.where(np.arange(batches) < negative, -size, size)
    return spectrum(model, *np.repeat(by_batch, top), top=top)


def drawn(seed: int, size: float, batches: int = 24) -> np.ndarray:
    """Return three random eigenvalues for each batch; in batch 5, all of them are negative."""
    generator = np.random.default_rng(seed)
    magnitudes = 10 ** generator.normal(np.log10(size), 0.5, (batches, 3))
    signs = np.where(generator.random((batches, 3)) < 0.3, -1, 1)
    signs[5] = -1
    return magnitudes * signs


OURS, THEIRS = drawn(1, 1), drawn(2, 10)
DRAWN = pd.concat(
    [spectrum("resnet", *THEIRS.ravel(), top=3), spectrum("vit", *OURS.ravel(), top=3)]
)


def test_shares_are_compared_by_the_median_of_paired_batches():
    claim = count_alone("hessian", DRAWN).loc[("msa_has_more_negative_eigenvalues", "vit")]
    ours, theirs = ((each < 0).mean(axis=1) for each in (OURS, THEIRS))
    assert claim["measured_value"] == pytest.approx(np.median(ours - theirs))
    # Of 24 values, the seventh from each end.
    expected = np.sort(ours - theirs)[[6, 17]]
    assert (claim["measured_low"], claim["measured_high"]) == pytest.approx(tuple(expected))
    # Batches with as many negative ones say nothing.
    more, fewer = int((ours > theirs).sum()), int((ours < theirs).sum())
    assert more + fewer < 24
    assert claim["p"] == pytest.approx(binomtest(more, more + fewer).pvalue)
    assert claim["percent"]
    assert pd.isna(claim["measured_count"])
    assert (claim["batches"], claim["fewest_batches"]) == (24, 6)


def test_a_batch_without_positive_eigenvalues_is_left_out_of_their_magnitudes():
    assert (OURS[5] < 0).all()
    claim = count_alone("hessian", DRAWN).loc[("msa_has_smaller_positive_eigenvalues", "vit")]
    some = (OURS > 0).any(axis=1) & (THEIRS > 0).any(axis=1)
    assert not some[5]
    decades = [
        np.array([np.log10(batch[batch > 0]).mean() for batch in each[some]])
        for each in (THEIRS, OURS)
    ]
    differences = decades[0] - decades[1]
    assert claim["measured_value"] == pytest.approx(np.median(differences))
    ends = claim["measured_low"], claim["measured_high"]
    below, above = (int(sum(differences < ends[0])), int(sum(differences > ends[1])))
    assert below == above
    # As many values lie outside as the sign test allows.
    count = int(sum(some))
    assert binomtest(below, count).pvalue <= 0.05 < binomtest(below + 1, count).pvalue
    assert claim["batches"] == sum(some)
    assert claim["holds"] == "yes, in this network"


def test_six_batches_decide_and_five_do_not():
    for batches, holds in ((5, "open"), (6, "yes, in this network")):
        table = pd.concat([signs("resnet", 0, batches), signs("vit", batches, batches)])
        claims = count_alone("hessian", table)
        for name in ("msa_has_more_negative_eigenvalues", "msa_has_negative_eigenvalues"):
            assert claims.loc[(name, "vit"), "holds"] == holds
        said = findings_as_table(claims.reset_index(), {"vit": "ViT", "resnet": "R"})["holds"]
        few = "open: too few batches to decide (5 of 6)"
        assert (said == few).any() == (batches == 5)


def test_networks_without_negative_eigenvalues_do_not_tell_which_has_more():
    """One more or less is a fifth of the five largest: much smaller differences are published."""
    table = pd.concat([signs("resnet", 0, 6), signs("vit", 0, 6)])
    claims = count_alone("hessian", table)
    has, more = "msa_has_negative_eigenvalues", "msa_has_more_negative_eigenvalues"
    assert claims.loc[(has, "vit"), "holds"] == "no, in this network"
    assert claims.loc[(more, "vit"), "holds"] == "open"
    assert claims.loc[(more, "vit"), "p"] == 1
    # Four of six have neither more nor fewer: nothing is known of most batches.
    table = pd.concat([signs("resnet", 0, 6), signs("vit", 2, 6)])
    claim = count_alone("hessian", table).loc[("msa_has_more_negative_eigenvalues", "vit")]
    assert claim["holds"] == "open"


@pytest.mark.parametrize(
    ("smallest", "residual", "count", "holds"),
    [
        (-1.0, 0.001, 6, "yes, in this network"),
        # The largest eigenvalue of the batch is 100: within 2, this one may as well be positive.
        (-1.0, 0.02, 0, "no, in this network"),
        (1.0, 0.001, 0, "no, in this network"),
    ],
)
def test_a_batch_counts_whose_eigenvalue_is_below_zero_by_more_than_its_residual(
    smallest, residual, count, holds
):
    table = spectrum("vit", *[100, smallest] * 6, top=2).assign(residual=residual)
    claim = count_alone("hessian", table).loc[("msa_has_negative_eigenvalues", "vit")]
    assert claim["holds"] == holds
    assert (claim["measured_count"], claim["measured_total"]) == (count, 6)
    # Clopper and Pearson, of none or all of six.
    ends = claim["measured_low"], claim["measured_high"]
    far = 1 - 0.025 ** (1 / 6)
    assert ends == pytest.approx((1 - far, 1) if count else (0, far))
    assert claim["p"] == pytest.approx(2 * 0.5**6)


def test_one_batch_of_many_with_a_negative_eigenvalue_is_no_proof():
    claim = count_alone("hessian", signs("vit", 1, 20)).loc[("msa_has_negative_eigenvalues", "vit")]
    assert claim["holds"] == "no, in this network"


def test_the_verdict_is_that_of_the_training_batch_and_says_where_others_differ():
    few = [signs("vit", 6, 6).assign(images=6), signs("resnet", 0, 6).assign(images=6)]
    between = [signs("vit", 3, 6).assign(images=16), signs("resnet", 0, 6).assign(images=16)]
    many = [signs("vit", 0, 6), signs("resnet", 0, 6)]
    larger = [signs("vit", 6, 6).assign(images=400), signs("resnet", 0, 6).assign(images=400)]
    table = pd.concat(few + between + many + larger)
    for trained, holds, said in (
        (100, "no", "in batches of 100 images; of 6: yes; of 16: open"),
        (250, "no", "in batches of 100 images (250 in training); of 6: yes; of 16: open"),
        (50, "open", "in batches of 16 images (50 in training); of 6: yes"),
        (4, "yes", "in batches of 6 images (4 in training)"),
        (pd.NA, "yes", "in batches of 400 images; of 16: open; of 100: no"),
    ):
        claims = count_alone("hessian", table.assign(training_batch=trained))
        claim = claims.loc[("msa_has_negative_eigenvalues", "vit")]
        assert claim["statement"].endswith(f", {said}"), (trained, claim["statement"])
        assert claim["measured_verdict"] == holds
        # Where no batch of either has one, it is open which has more.
        claim = claims.loc[("msa_has_more_negative_eigenvalues", "vit")]
        more = said.replace("; of 16: open", "") if holds == "no" else said.replace("no", "open")
        assert claim["statement"].endswith(f", {more}"), (trained, claim["statement"])
        assert claim["measured_verdict"] == holds.replace("no", "open")


def test_two_trainings_are_compared_in_batches_that_both_have():
    ours = pd.concat([signs("vit", 6, 6).assign(images=each) for each in (6, 100)])
    theirs = pd.concat([signs("resnet", 0, 6).assign(images=each) for each in (6, 50)])
    table = pd.concat([ours, theirs.assign(training_batch=50)])
    claim = count_alone("hessian", table).loc[("msa_has_more_negative_eigenvalues", "vit")]
    assert claim["statement"].endswith(", in batches of 6 images (50 and 100 in training)")


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
    # If snapshots were counted together, each model would have one negative of four.
    assert more[["snapshot", "measured_value", "holds"]].to_numpy().tolist() == [
        ["warmup", -0.5, "open"],
        ["end", 0.5, "open"],
    ]
    assert claims["snapshot"].tolist() == ["warmup"] * 3 + ["end"] * 3
    # Only the snapshots that a figure names are counted, or all if it names none.
    counts = [len(at_snapshots(shown, chosen)["hessian"]) for chosen in (["end"], [])]
    assert counts == [4, 8]


def test_the_published_spectra_have_the_shares_of_the_paper():
    theirs = published("hessian", "fig4_hessian.csv", {"resnet": "ResNet", "vit": "ViT"})
    table = pd.concat([spectrum("resnet", 1.0), spectrum("vit", 1.0)])
    values = count_alone("hessian", table, theirs)["published_value"].xs("vit", level="model")
    # About 9 % of the ViT's eigenvalues are negative, and none of the ResNet's.
    assert values["msa_has_negative_eigenvalues"] == pytest.approx(0.09, abs=0.005)
    assert values["msa_has_more_negative_eigenvalues"] == pytest.approx(0.09, abs=0.005)
    # ResNet's peak lies near 450, ViT's near 30: a decade apart.
    assert values["msa_has_smaller_positive_eigenvalues"] == pytest.approx(1.0, abs=0.1)
    # Values that were read off a curve are shown, but not judged.
    assert count_alone("hessian", table, theirs)["published_verdict"].isna().all()
    few = published("hessian", "fig4_hessian.csv", {"vit": "ViT (6%)"})
    claims = count_alone("hessian", spectrum("vit", 1.0), few)
    assert claims["published_value"].iloc[0] == pytest.approx(0.34, abs=0.005)
    assert pd.isna(claims["published_total"].iloc[0])
    _, section = sections_of_claims(
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
        # Batches 2 to 5 of eight differ.
        assert claim["measured_value"] == sign / 2


@pytest.mark.parametrize(("series", "share"), [("3x3", 0.071), ("5x5", 0.038)])
def test_published_spectra_say_of_windows_what_the_paper_says(series, share):
    theirs = published("hessian", "fig7b_hessian.csv", {"vit": "8x8", "alternet": series})
    traits_of = {"vit": {}, "alternet": {"arch.attention_window": 3}}
    table = pd.concat([spectrum("vit", 1.0), spectrum("alternet", 1.0)])
    tables = {"hessian": table, "blocks": blocks("vit", "alternet")}
    claims = count("hessian", tables, ["vit", "alternet"], theirs, traits_of).set_index("claim")
    value = claims["published_value"]["global_attention_has_more_negative_eigenvalues"]
    # By hand: with global attention, 7.4 % of the eigenvalues are negative.
    assert value == pytest.approx(0.074 - share, abs=1e-3)


CURVED = ("msa_has_blocks_of_different_curvature", "vit")


def blocks_of(model: str, *batches: tuple[float, ...]) -> pd.DataFrame:
    rows = [
        {"batch": batch, "of": "block", "index": index, "eigenvalue": value}
        for batch, values in enumerate(batches)
        for index, value in enumerate(values)
    ]
    of_layers = [{"batch": 0, "of": "layer", "index": 0, "eigenvalue": 1e9}]
    return pd.DataFrame(rows + of_layers).assign(model=model, snapshot="end")


def curvature(vit: list[tuple[float, ...]], resnet: list[tuple[float, ...]]) -> pd.DataFrame:
    return pd.concat([blocks_of("vit", *vit), blocks_of("resnet", *resnet)])


CURVATURE = curvature([(1, 10, -100)] * 2, [(1, 1, 10), (10, 1, 10), (10, 10, 10)])
EXAMPLES["curvature"] = {"curvature": CURVATURE, "blocks": blocks("vit", "resnet")}


@pytest.mark.parametrize(
    ("table", "value", "holds"),
    [
        # Fewer than six batches; those of the ResNet that the ViT has not are left out.
        (CURVATURE, 1 - np.sqrt(1 / 3), "open"),
        (curvature([(1, 100)], [(1, 10)]), (2 - 1) / np.sqrt(2), "open"),
        # A network of one block is not compared.
        (curvature([(1,)], [(1, 10)]), None, None),
    ],
)
def test_blocks_are_compared_by_the_spread_of_their_magnitudes(table, value, holds):
    claim = count_alone("curvature", table).loc[CURVED]
    assert claim["measured_value"] == pytest.approx(value)
    assert claim["holds"] == holds
    assert pd.isna(claim["measured_low"])


def test_the_interval_of_curvature_is_that_of_the_median():
    generator = np.random.default_rng(0)
    # Magnitudes of four blocks in 25 batches, in decades, for each of two models.
    decades = [generator.normal(0, size, (25, 4)) for size in (0.8, 0.3)]
    claim = count_alone("curvature", curvature(*(10.0**each for each in decades))).loc[CURVED]
    ours, theirs = (each.std(axis=1, ddof=1) for each in decades)
    differences = np.sort(ours - theirs)
    assert claim["measured_value"] == pytest.approx(differences[12])
    ends = claim["measured_low"], claim["measured_high"]
    assert ends == pytest.approx((differences[7], differences[17]))
