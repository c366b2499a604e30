import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_ind

from tests.helpers.claims import blocks, count_alone, favoured, published
from vitscope.measures.landscape.claims import landscape_curvature, nll_spread
from vitscope.package_data import PUBLISHED_POINTS


def surface(
    model: str, a: float, b: float, points: int = 21, accuracy: float = 0.5, direction: int = 0
) -> pd.DataFrame:
    """Return the loss 3 + a x² + b y², with an NLL that is 2 less."""
    steps = np.linspace(-1, 1, points)
    x, y = (each.ravel() for each in np.meshgrid(steps, steps))
    nll = 1 + a * x**2 + b * y**2
    table = pd.DataFrame({"x": x, "y": y, "nll": nll, "loss": nll + 2})
    return table.assign(model=model, accuracy=accuracy, direction=direction)


def drawn(model: str, *heights: float) -> pd.DataFrame:
    """Return a landscape of a model for each of `heights`, along pairs of directions of its own."""
    return pd.concat(
        surface(model, height, height / 2, 5, direction=pair) for pair, height in enumerate(heights)
    )


BOTH = pd.concat([surface("vit", 2, 4, 5), surface("resnet", 3, 6, 5)])
EXAMPLES = {"landscape": {"landscape": BOTH, "blocks": blocks("vit", "resnet")}}


@pytest.mark.parametrize("points", [5, 21])
def test_the_curvature_of_a_paraboloid_is_known(points):
    grid = surface("vit", 3, 5, points)
    assert landscape_curvature(grid) == pytest.approx((2 * 3 + 2 * 5) / 2, rel=1e-9)


def test_the_curvature_is_that_of_the_loss_and_not_of_the_nll_alone():
    grid = surface("vit", 3, 5)
    grid["loss"] += grid["x"] ** 2 + grid["y"] ** 2
    assert landscape_curvature(grid) == pytest.approx(8 + 2, rel=1e-9)


def test_the_spread_is_taken_on_a_ring():
    # By hand, with steps of 0.5: four points lie at 0.5 from the middle, and four at 0.707, which
    # is less than half a step, 0.25, away from 0.5.
    assert nll_spread(surface("vit", 3, 5, 5)) == pytest.approx((3 + 5) * 0.25 - 3 * 0.25)
    # A round paraboloid has the same height all along a ring, except for the width of the ring.
    assert nll_spread(surface("vit", 4, 4)) < 4 * (0.55**2 - 0.45**2)


def test_a_loss_that_overflows_near_the_middle_has_no_claims():
    grid = surface("vit", 3, 5)
    near = np.hypot(grid["x"], grid["y"]) < 0.6
    grid.loc[near & (grid["x"] > 0), ["nll", "loss"]] = np.inf
    claims = count_alone("landscape", pd.concat([surface("resnet", 30, 50), grid]))
    assert claims["measured_value"].isna().all()
    assert claims["holds"].isna().all()


def test_the_flatter_landscape_wins():
    table = pd.concat([surface("resnet", 30, 50), surface("vit", 3, 5)])
    claims = count_alone("landscape", table).drop(index="flatter_is_more_accurate", level="claim")
    assert list(claims["versus"]) == ["resnet", "resnet"]
    found = claims["measured_value"].xs("vit", level="model")
    assert found["msa_flattens_loss_at_minimum"] == pytest.approx(80 - 8)
    assert found["msa_flattens_loss"] == pytest.approx(
        nll_spread(surface("resnet", 30, 50)) - nll_spread(surface("vit", 3, 5))
    )
    assert all(favoured(claims))
    # One pair of directions has no interval.
    assert claims["measured_low"].isna().all()
    assert set(claims["holds"]) == {"yes, without an interval"}
    steep = count_alone("landscape", pd.concat([surface("resnet", 3, 5), surface("vit", 30, 50)]))
    assert not any(favoured(steep))


@pytest.mark.parametrize(
    ("resnet", "holds"),
    [((30, 20, 31), "yes, in this network"), ((9, 3, 12, 8), "open"), ((1, 12), "open")],
)
def test_pairs_of_directions_are_compared_by_welchs_test(resnet, holds):
    vit = (5, 6, 8, 7, 6)
    claims = count_alone("landscape", pd.concat([drawn("vit", *vit), drawn("resnet", *resnet)]))
    of_one = surface("vit", 1, 0.5, 5)
    units = {
        "msa_flattens_loss_at_minimum": landscape_curvature(of_one),
        "msa_flattens_loss": nll_spread(of_one),
    }
    for name, unit in units.items():
        row = claims.loc[(name, "vit")]
        theirs, ours = (unit * np.array(each, float) for each in (resnet, vit))
        expected = ttest_ind(theirs, ours, equal_var=False)
        assert row["measured_value"] == pytest.approx(theirs.mean() - ours.mean())
        ends = row["measured_low"], row["measured_high"]
        assert ends == pytest.approx(tuple(expected.confidence_interval()))
        assert row["p"] == pytest.approx(expected.pvalue)
    assert claims.loc[("msa_flattens_loss", "vit"), "holds"] == holds


@pytest.mark.parametrize(
    ("of_flat", "of_steep", "holds"),
    [(0.9, 0.5, "yes, without an interval"), (0.5, 0.9, "no, without an interval")],
)
def test_the_flatter_is_to_be_the_more_accurate_whichever_comes_first(of_flat, of_steep, holds):
    flat = surface("vit", 3, 5, accuracy=of_flat)
    steep = surface("resnet", 30, 50, accuracy=of_steep)
    for table in (pd.concat([flat, steep]), pd.concat([steep, flat])):
        claims = count_alone("landscape", table).loc["flatter_is_more_accurate"]
        (claim,) = claims.to_dict("records")
        assert claim["measured_value"] == pytest.approx(of_flat - of_steep)
        assert claim["holds"] == holds


@pytest.mark.parametrize(("name", "alone"), [("ResNet", 25.2), ("ViT", 38.7)])
def test_published_values_are_those_of_the_authors_grids(grids, name, alone):
    grid = grids[grids["model"] == name.lower()]
    expected = pd.read_csv(PUBLISHED_POINTS / "fig1a.csv").query(f"model == '{name}'")
    expected = expected.set_index("measure")["value"]
    assert expected["curvature"] == pytest.approx(landscape_curvature(grid), rel=2e-6)
    assert expected["nll_spread"] == pytest.approx(nll_spread(grid), rel=2e-6)
    middle = grid[(grid["x"] == 0) & (grid["y"] == 0)]
    assert expected["accuracy"] == pytest.approx(middle["accuracy"].item(), abs=1e-6)
    # The page of claims states these values for the NLL alone.
    assert landscape_curvature(grid.assign(loss=grid["nll"])) == pytest.approx(alone, abs=0.05)


def test_published_landscapes_by_hand():
    theirs = published("landscape", "fig1a.csv", {"resnet": "ResNet", "vit": "ViT"})
    table = pd.concat([surface("resnet", 1, 1), surface("vit", 1, 1)])
    claims = count_alone("landscape", table, theirs)
    values = claims["published_value"].xs("vit", level="model")
    assert values["msa_flattens_loss_at_minimum"] == pytest.approx(64.7698 - 62.2860)
    assert values["msa_flattens_loss"] == pytest.approx(0.973713 - 0.539696)
    # Of two equal landscapes neither is flatter.
    assert not any(favoured(claims))
    # The flatter one of the paper's own models is the less accurate.
    assert claims["published_verdict"].isna().all()
    value = claims.loc["flatter_is_more_accurate", "published_value"].item()
    assert value == pytest.approx(0.6583 - 0.7238, abs=1e-4)
