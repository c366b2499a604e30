"""Claims about the training loss, on surfaces and spectra of known shape and on published data."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, bootstrap

from tests.helpers.claims import EVIDENCE
from vitscope.claims.counting import at_snapshots, count_claims
from vitscope.claims.published import read_published
from vitscope.claims.report import sections
from vitscope.measures.landscape.claims import curvature, spread
from vitscope.measures.rooms import kinds
from vitscope.settings.loading import PUBLISHED

KINDS_OF = {
    "resnet": ("stem", "conv"),
    "vit": ("stem", "msa", "mlp"),
    "alternet": ("stem", "conv", "msa"),
    "mixer": ("stem", "mlp"),
}
BLOCKS = pd.DataFrame(
    [{"model": model, "kind": kind} for model, kinds in KINDS_OF.items() for kind in kinds]
)


def count(kind: str, table: pd.DataFrame, theirs=None) -> pd.DataFrame:
    models = list(dict.fromkeys(table["model"]))
    tables = {kinds()[kind].tables[0]: table, "blocks": BLOCKS}
    claims = count_claims("fig", EVIDENCE[kind], tables, models, theirs or {})
    return claims.set_index(["claim", "model"])


def published(kind: str, file: str, **series: str):
    return read_published(PUBLISHED / file, kinds()[kind].published, series)


def surface(model: str, a: float, b: float, points: int = 21) -> pd.DataFrame:
    """Return the loss 3 + a x² + b y², with an NLL that is 2 less."""
    steps = np.linspace(-1, 1, points)
    x, y = (each.ravel() for each in np.meshgrid(steps, steps))
    nll = 1 + a * x**2 + b * y**2
    return pd.DataFrame({"model": model, "x": x, "y": y, "nll": nll, "loss": nll + 2})


@pytest.mark.parametrize("points", [5, 9, 17, 21])
def test_the_curvature_of_a_paraboloid_is_known(points):
    grid = surface("vit", 3, 5, points)
    assert curvature(grid) == pytest.approx((2 * 3 + 2 * 5) / 2, rel=1e-9)


def test_the_curvature_is_that_of_the_loss_and_not_of_the_nll_alone():
    grid = surface("vit", 3, 5)
    grid["loss"] += grid["x"] ** 2 + grid["y"] ** 2
    assert curvature(grid) == pytest.approx(8 + 2, rel=1e-9)


def test_the_spread_is_taken_on_a_ring():
    # By hand, with steps of 0.5: four points lie at 0.5 from the middle and four at 0.707, within
    # the quarter that half a step is.
    assert spread(surface("vit", 3, 5, 5)) == pytest.approx((3 + 5) * 0.25 - 3 * 0.25)
    # A paraboloid that is round is as high all along a ring, but for the width of the ring.
    assert spread(surface("vit", 4, 4)) < 4 * (0.55**2 - 0.45**2)


def test_a_loss_that_overflows_near_the_middle_has_no_claims():
    grid = surface("vit", 3, 5)
    near = np.hypot(grid["x"], grid["y"]) < 0.6
    grid.loc[near & (grid["x"] > 0), ["nll", "loss"]] = np.inf
    claims = count("landscape", pd.concat([surface("resnet", 30, 50), grid]))
    assert claims["measured_value"].isna().all()
    assert claims["holds"].isna().all()


def test_the_flatter_landscape_wins():
    table = pd.concat([surface("resnet", 30, 50), surface("vit", 3, 5)])
    claims = count("landscape", table)
    assert list(claims["versus"]) == ["resnet", "resnet"]
    found = claims["measured_value"].xs("vit", level="model")
    assert found["msa_flattens_loss_at_minimum"] == pytest.approx(80 - 8)
    assert found["msa_flattens_loss"] == pytest.approx(
        spread(surface("resnet", 30, 50)) - spread(surface("vit", 3, 5))
    )
    assert claims["holds"].all()
    steep = count("landscape", pd.concat([surface("resnet", 3, 5), surface("vit", 30, 50)]))
    assert not steep["holds"].any()


@pytest.mark.parametrize(
    ("name", "file"), [("ResNet", "landscape_resnet_50.csv"), ("ViT", "landscape_vit_ti.csv")]
)
def test_published_values_are_those_of_the_authors_grids(shared, name, file):
    if not (path := shared / "published" / file).exists():
        pytest.skip(f"needs the published grid {path}")
    grid = pd.read_csv(path, header=None).iloc[:, :5]
    grid.columns = ["x", "y", "l1", "l2", "nll"]
    grid = grid.round({"x": 6, "y": 6}).assign(loss=grid["nll"] + 0.05 * grid["l2"])
    printed = pd.read_csv(PUBLISHED / "fig1a.csv").query(f"model == '{name}'")
    printed = printed.set_index("measure")["value"]
    assert printed["curvature"] == pytest.approx(curvature(grid), rel=2e-6)
    assert printed["nll_spread"] == pytest.approx(spread(grid), rel=2e-6)
    # What the page of claims says of the NLL alone.
    alone = {"ResNet": 25.2, "ViT": 38.7}[name]
    assert curvature(grid.assign(loss=grid["nll"])) == pytest.approx(alone, abs=0.05)


def test_published_landscapes_by_hand():
    theirs = published("landscape", "fig1a.csv", resnet="ResNet", vit="ViT")
    claims = count("landscape", pd.concat([surface("resnet", 1, 1), surface("vit", 1, 1)]), theirs)
    values = claims["published_value"].xs("vit", level="model")
    assert values["msa_flattens_loss_at_minimum"] == pytest.approx(64.7698 - 62.2860)
    assert values["msa_flattens_loss"] == pytest.approx(0.973713 - 0.539696)
    # What is equal is not flatter.
    assert not claims["holds"].any()


def spectrum(model: str, *eigenvalues: float, snapshot: str = "end", top: int = 1) -> pd.DataFrame:
    """Return the `top` largest eigenvalues of each batch."""
    batch = np.arange(len(eigenvalues)) // top
    table = pd.DataFrame({"batch": batch, "eigenvalue": np.array(eigenvalues, dtype=float)})
    return table.assign(model=model, snapshot=snapshot)


def test_eigenvalues_are_counted_by_sign_and_magnitude():
    table = pd.concat([spectrum("resnet", 1000, 100, 10), spectrum("vit", 10, 1, 10, -5)])
    claims = count("hessian", table)
    values = claims["measured_value"].xs("vit", level="model")
    assert values["msa_has_negative_eigenvalues"] == pytest.approx(1 / 4)
    claim = claims.loc[("msa_has_negative_eigenvalues", "vit")]
    assert (claim["measured_count"], claim["measured_total"]) == (1, 4)
    assert values["msa_has_more_negative_eigenvalues"] == pytest.approx(1 / 4)
    claim = claims.loc[("msa_has_more_negative_eigenvalues", "vit")]
    assert (claim["measured_count"], claim["measured_total"]) == (1, 4)
    assert (claim["versus_count"], claim["versus_total"]) == (0, 3)
    assert values["msa_has_smaller_positive_eigenvalues"] == pytest.approx(2 - 2 / 3)
    assert claims["holds"].all()


def test_a_spectrum_without_positive_eigenvalues_has_no_magnitude():
    claims = count("hessian", pd.concat([spectrum("resnet", 10), spectrum("vit", -10)]))
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
    claims = count("hessian", signs("vit", 8, 20, top))
    claim = claims.loc[("msa_has_negative_eigenvalues", "vit")]
    # Batches that are all of one sign are drawn as by a binomial, whatever the number in each.
    low, high = quantiles(binom.pmf(range(21), 20, 8 / 20))
    assert (claim["ci_low"], claim["ci_high"]) == pytest.approx((low / 20, high / 20))


def test_the_interval_of_a_difference_of_shares_resamples_both_models():
    table = pd.concat([signs("resnet", 4, 16, size=100), signs("vit", 7, 16)])
    claim = count("hessian", table).loc[("msa_has_more_negative_eigenvalues", "vit")]
    ours, theirs = (binom.pmf(range(17), 16, count / 16) for count in (7, 4))
    low, high = quantiles(np.convolve(ours, theirs[::-1]))
    assert claim["ci_low"] == pytest.approx((low - 16) / 16)
    assert claim["ci_high"] == pytest.approx((high - 16) / 16)
    assert (claim["ci_low"] < 0, claim["holds"]) == (True, True)


def test_the_interval_of_a_difference_of_decades_is_that_of_another_library():
    generator = np.random.default_rng(5)
    ours, theirs = (10 ** generator.normal(size=12) for _ in range(2))
    table = pd.concat([spectrum("resnet", *theirs), spectrum("vit", *ours)])
    claim = count("hessian", table).loc[("msa_has_smaller_positive_eigenvalues", "vit")]
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
    assert count("hessian", alone)[["ci_low", "ci_high"]].isna().all(axis=None)
    # A resample of negative eigenvalues alone has no mean of positive ones.
    some = pd.concat([spectrum("resnet", 1, 2), spectrum("vit", -1, 2)])
    claims = count("hessian", some).xs("vit", level="model")["ci_low"].isna()
    assert claims.to_dict() == {
        "msa_has_negative_eigenvalues": False,
        "msa_has_more_negative_eigenvalues": False,
        "msa_has_smaller_positive_eigenvalues": True,
    }


def test_each_moment_is_counted_alone():
    table = pd.concat(
        [
            spectrum("resnet", -9, 9, snapshot="warmup"),
            spectrum("vit", 1, 1, snapshot="warmup"),
            spectrum("resnet", 9, 9),
            spectrum("vit", -1, 1),
        ]
    )
    shown = at_snapshots({"hessian": table, "blocks": BLOCKS}, ["warmup", "end"])
    claims = count_claims("fig", EVIDENCE["hessian"], shown, ["resnet", "vit"], {})
    more = claims[claims["claim"] == "msa_has_more_negative_eigenvalues"]
    # Counted together, one of four would stand against one of four.
    assert more[["snapshot", "measured_value", "holds"]].to_numpy().tolist() == [
        ["warmup", -0.5, False],
        ["end", 0.5, True],
    ]
    assert claims["snapshot"].tolist() == ["warmup"] * 3 + ["end"] * 3


def test_only_the_moments_that_a_figure_shows_are_counted():
    table = pd.concat(
        [spectrum("vit", -1, 1, snapshot="warmup"), spectrum("vit", 1, 1), spectrum("resnet", 1)]
    )
    tables = {"hessian": table, "blocks": BLOCKS}
    late = at_snapshots(tables, ["end"])
    assert list(late["hessian"]["eigenvalue"]) == [1, 1, 1]
    assert late["blocks"] is BLOCKS
    assert len(at_snapshots(tables, [])["hessian"]) == 5
    claims = count_claims("fig", EVIDENCE["hessian"], late, ["vit"], {}).set_index("claim")
    assert claims.loc["msa_has_negative_eigenvalues", "measured_value"] == 0
    assert not claims.loc["msa_has_negative_eigenvalues", "holds"]


def test_the_published_spectra_have_the_shares_of_the_paper():
    theirs = published("hessian", "fig4_hessian.csv", resnet="ResNet", vit="ViT")
    table = pd.concat([spectrum("resnet", 1.0), spectrum("vit", 1.0)])
    values = count("hessian", table, theirs)["published_value"].xs("vit", level="model")
    # About 9 % of ViT's are negative, and none of ResNet's.
    assert values["msa_has_negative_eigenvalues"] == pytest.approx(0.09, abs=0.005)
    assert values["msa_has_more_negative_eigenvalues"] == pytest.approx(0.09, abs=0.005)
    # ResNet's peak lies near 450, ViT's near 30: a decade apart.
    assert values["msa_has_smaller_positive_eigenvalues"] == pytest.approx(1.0, abs=0.1)
    few = published("hessian", "fig4_hessian.csv", vit="ViT (6%)")
    claims = count("hessian", spectrum("vit", 1.0), few)
    assert claims["published_value"].iloc[0] == pytest.approx(0.34, abs=0.005)
    assert pd.isna(claims["published_total"].iloc[0])
    labels = {"vit": "ViT (6 %)"}
    (section,) = sections(claims.reset_index(), pd.DataFrame(), labels, EVIDENCE.values())
    assert section.rows[0][2:4] == ("34 %", "0 of 1")
    assert section.rows[0][0] == "ViT (6 %), snapshot end"


def fit(model: str, error: float, nll: float, low: float, high: float) -> pd.DataFrame:
    rows = [("error_percent", error, low, high), ("nll_train", nll, np.nan, np.nan)]
    table = pd.DataFrame(rows, columns=["metric", "value", "ci_low", "ci_high"])
    return table.assign(model=model)


def test_models_without_convs_are_compared_with_those_of_convs_alone():
    table = pd.concat(
        [
            fit("resnet", 5, 1.0, 4, 6),
            fit("vit", 13, 1.3, 12, 14),
            fit("alternet", 5, 1.1, 4, 6),
            fit("mixer", 4.5, 0.9, 3.5, 5.5),
        ]
    )
    claims = count("fit", table)
    assert {model for _, model in claims.index} == {"vit", "mixer"}
    assert claims.loc[("weak_bias_fits_worse", "vit"), "measured_value"] == pytest.approx(0.3)
    assert claims.loc[("weak_bias_errs_more", "vit"), "measured_value"] == pytest.approx(8)
    assert claims.loc[("weak_bias_errs_more", "vit"), "apart"]
    assert claims.loc[("weak_bias_errs_more", "vit"), "holds"]
    assert not claims.loc[("weak_bias_errs_more", "mixer"), "holds"]
    assert not claims.loc[("weak_bias_errs_more", "mixer"), "apart"]
    assert claims.loc[("weak_bias_fits_worse", "mixer"), "measured_value"] == pytest.approx(-0.1)


def test_errors_without_intervals_are_neither_apart_nor_not():
    # A single image tells nothing of the spread.
    table = pd.concat([fit("resnet", 0, 1.0, np.nan, np.nan), fit("vit", 100, 1.3, 90, 100)])
    claims = count("fit", table)
    assert claims.loc[("weak_bias_errs_more", "vit"), "measured_value"] == 100
    assert claims["apart"].isna().all()


def test_published_errors_and_losses_by_hand():
    theirs = published("fit", "fig5.csv", resnet="R", vit="ViT")
    table = pd.concat([fit("resnet", 5, 1, 4, 6), fit("vit", 13, 2, 12, 14)])
    values = count("fit", table, theirs)["published_value"].xs("vit", level="model")
    assert values["weak_bias_fits_worse"] == pytest.approx(2.522 - 2.086)
    assert values["weak_bias_errs_more"] == pytest.approx(33.49 - 17.26)
