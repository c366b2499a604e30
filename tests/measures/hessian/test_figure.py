"""The figure of Hessian max eigenvalue spectra shows its table."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.helpers.drawing import RESNET, VIT
from tests.helpers.shown import flaws
from vitscope.claims.published import read_published
from vitscope.drawing.figure import Member
from vitscope.measures.captions import caption_of
from vitscope.measures.hessian.figure import KERNEL, density_per_decade
from vitscope.measures.registry import kinds

VIT_6 = Member("vit_6", "ViT (6 %)", "vit")
MEMBERS = (RESNET, VIT, VIT_6)
SERIES = {"resnet": "ResNet", "vit": "ViT", "vit_6": "ViT (6%)"}
MAGNITUDES = {"resnet": 300.0, "vit": 20.0, "vit_6": 35.0}
SHARES = {"resnet": 0.0, "vit": 0.3, "vit_6": 0.4}


def rows_of(model: str, snapshot: str, batches: int = 6) -> pd.DataFrame:
    """The spectra of a model: magnitudes of its own, and a share of negative eigenvalues."""
    random = np.random.default_rng([len(model), len(snapshot)])
    count = 5 * batches
    values = MAGNITUDES[model] * 10 ** random.normal(0, 0.3, count)
    values[: round(SHARES[model] * count)] *= -1
    return pd.DataFrame(
        {
            "model": model,
            "snapshot": snapshot,
            "batch": np.repeat(np.arange(batches), 5),
            "images": 32,
            "rank": np.tile(np.arange(1, 6), batches),
            "eigenvalue": values,
            "residual": 1e-4,
            "iterations": 20,
            "converged": True,
        }
    )


TABLE = pd.concat([rows_of(model, snapshot) for snapshot in ("warmup", "end") for model in SERIES])


@pytest.fixture
def drawn(laid_out):
    def draw_it(members=MEMBERS, published=None, table=TABLE, snapshots=("warmup", "end")):
        return laid_out("hessian", {"hessian": table}, members, published, snapshots)

    return draw_it


def of_moments(figure: Figure) -> dict[str, list[list[Axes]]]:
    """Return the two panels of each model, by the moment that they are at."""
    return {
        part.get_suptitle(): [part.axes[at : at + 2] for at in range(0, len(part.axes), 2)]
        for part in figure.subfigs
    }


def test_a_row_per_model_shows_every_eigenvalue_at_each_moment(drawn) -> None:
    found = of_moments(drawn(snapshots=("end", "warmup")))
    assert [*found] == ["end of training", "end of warm-up"]
    for snapshot, rows in zip(("end", "warmup"), found.values(), strict=True):
        for model, pair in zip(SERIES, rows, strict=True):
            of_model = TABLE.query(f"model == '{model}' and snapshot == '{snapshot}'")
            values = of_model["eigenvalue"].to_numpy()
            for axes, sign in zip(pair, (-1, 1), strict=True):
                curve, mark = axes.lines
                same = values[np.sign(values) == sign]
                np.testing.assert_array_equal(mark.get_xdata(), same)
                at = curve.get_xdata()
                np.testing.assert_array_equal(curve.get_ydata(), density_per_decade(values, at))
                assert (np.sign(at) == sign).all()
                low, high = axes.get_xlim()
                assert ((same > low) & (same < high)).all()


def test_no_model_is_told_by_its_colour_alone(drawn) -> None:
    """Of one family, or of two whose colours some people see as one: each has panels and a name."""
    ((_, rows),) = of_moments(drawn(snapshots=["warmup"])).items()
    names = [pair[0].get_title(loc="left").split(":")[0] for pair in rows]
    assert names == [member.label for member in MEMBERS]
    # On one scale, so that areas compare.
    assert len({axes.get_ylim() for pair in rows for axes in pair}) == 1
    assert len({axes.get_xlim() for axes, _ in rows}) == 1


def test_the_kernel_is_as_wide_as_stated() -> None:
    at = np.array([10.0, 10 ** (1 + KERNEL), 10 ** (1 - KERNEL)])
    density = density_per_decade(np.array([10.0, -3.0]), at)
    peak = 1 / (np.sqrt(2 * np.pi) * KERNEL) / 2
    np.testing.assert_allclose(density, peak * np.exp([0, -0.5, -0.5]))
    caption = " ".join(caption_of(kinds()["hessian"]).split())
    assert f"a Gaussian kernel of {KERNEL:g} decades" in caption


def test_a_row_tells_the_share_of_negative_eigenvalues(drawn) -> None:
    table = TABLE.copy()
    doubtful = (table["model"] == "vit") & (table["rank"] == 5) & (table["batch"] < 2)
    table.loc[doubtful & (table["snapshot"] == "end"), "converged"] = False
    warmup, end = of_moments(drawn(table=table)).values()
    said = [axes.get_title(loc="left") for axes, _ in warmup]
    assert said[1:] == ["ViT-Ti: 30 % negative", "ViT (6 %): 40 % negative"]
    doubted = end[1][0].get_title(loc="left")
    assert doubted == "ViT-Ti: 30 % negative (2 of 30 not converged)"


def test_a_panel_says_that_no_eigenvalue_is_negative(drawn) -> None:
    for members in ([RESNET], [RESNET, VIT]):
        (rows,) = of_moments(drawn(members=members, snapshots=["end"])).values()
        negative, positive = rows[0]
        assert [text.get_text() for text in negative.texts] == ["none"]
        assert not positive.texts
        assert len(positive.lines) == 2
        assert negative.get_title(loc="left") == "ResNet-50: 0 % negative"


def test_an_eigenvalue_of_zero_is_of_neither_sign(drawn) -> None:
    table = TABLE.copy()
    table.loc[table["rank"] == 5, "eigenvalue"] = 0.0
    ((negative, positive),) = of_moments(drawn([VIT], table=table))["end of warm-up"]
    values = table.query("model == 'vit' and snapshot == 'warmup'")["eigenvalue"]
    shown = [len(axes.lines[1].get_xdata()) for axes in (negative, positive)]
    assert shown == [(values < 0).sum(), (values > 0).sum()]


def test_published_densities_are_of_the_same_unit_and_on_the_same_scale(drawn, points_file) -> None:
    path = points_file.with_name("fig4_hessian.csv")
    published = read_published(path, kinds()["hessian"].published, SERIES)
    (rows,) = of_moments(drawn(published=published, snapshots=["warmup"])).values()
    file = pd.read_csv(path)
    for series, pair in zip(SERIES.values(), rows, strict=True):
        area = 0.0
        for axes, (panel, sign) in zip(pair, (("negative", -1), ("positive", 1)), strict=True):
            theirs = file[(file["model"] == series) & (file["panel"] == panel)]
            area += np.trapezoid(theirs["density"], theirs["eigenvalue"])
            theirs = theirs[np.sign(theirs["eigenvalue"]) == sign]
            # As ours: per decade of magnitude.
            expected = theirs["density"] * theirs["eigenvalue"].abs() * np.log(10)
            line = axes.lines[-1]
            np.testing.assert_allclose(line.get_xydata(), np.c_[theirs["eigenvalue"], expected])
            assert axes.get_ylim()[1] > expected.max()
        # As ours, they add up to 1, but for what lies beyond the published axis.
        assert 0.85 < area < 1.02


@pytest.mark.parametrize(
    ("magnitudes", "expected"),
    [
        # From 100 to 400, with the reach of the kernel: 50 to 800.
        ((1, 2e5), (["10^{5}", "10^{4}"], ["10^{0}", "10^{1}"])),
        ((100, 400), (["\N{MINUS SIGN}300", "\N{MINUS SIGN}100"], ["100", "300"])),
        (
            (1, 2000),
            ([f"\N{MINUS SIGN}{each}" for each in (1000, 100, 10, 1)], ["1", "10", "100", "1000"]),
        ),
    ],
)
def test_few_decades_have_labels_between_powers_of_ten(drawn, magnitudes, expected) -> None:
    values = np.geomspace(*magnitudes, 15)
    table = rows_of("vit", "end").assign(eigenvalue=np.concatenate([values, -values]))
    figure = drawn([VIT], table=table, snapshots=("end",))
    assert flaws(figure) == []
    for axes, labels in zip(figure.subfigs[0].axes, expected, strict=True):
        shown = [text.get_text() for text in axes.get_xticklabels()]
        assert all(label in text for label, text in zip(labels, shown, strict=False))
