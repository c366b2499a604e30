"""The figure of Hessian max eigenvalue spectra shows its table."""

import numpy as np
import pandas as pd
import pytest
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


def of_rows(figure: Figure) -> list[tuple[str, list, list[str]]]:
    """Return the title, the two panels and the legend of each row."""
    return [
        (
            part.legends[0].get_title().get_text(),
            part.axes[:2],
            [text.get_text() for text in part.legends[0].get_texts()],
        )
        for part in figure.subfigs
    ]


def test_a_row_per_snapshot_shows_every_eigenvalue(drawn) -> None:
    rows = of_rows(drawn(snapshots=("end", "warmup")))
    assert [title for title, _, _ in rows] == ["end", "warmup"]
    for snapshot, panels, _ in rows:
        for axes, sign in zip(panels, (-1, 1), strict=True):
            curves, marks = axes.lines[::2], axes.lines[1::2]
            assert len(curves) == len(marks) == 3
            for model, curve, mark in zip(SERIES, curves, marks, strict=True):
                of_model = TABLE.query(f"model == '{model}' and snapshot == '{snapshot}'")
                values = of_model["eigenvalue"].to_numpy()
                same = values[np.sign(values) == sign]
                np.testing.assert_array_equal(mark.get_xdata(), same)
                at = curve.get_xdata()
                np.testing.assert_array_equal(curve.get_ydata(), density_per_decade(values, at))
                assert (np.sign(at) == sign).all()
                low, high = axes.get_xlim()
                assert ((same > low) & (same < high)).all()


def test_the_kernel_is_as_wide_as_stated() -> None:
    at = np.array([10.0, 10 ** (1 + KERNEL), 10 ** (1 - KERNEL)])
    density = density_per_decade(np.array([10.0, -3.0]), at)
    peak = 1 / (np.sqrt(2 * np.pi) * KERNEL) / 2
    np.testing.assert_allclose(density, peak * np.exp([0, -0.5, -0.5]))
    caption = " ".join(caption_of(kinds()["hessian"]).split())
    assert f"a Gaussian kernel of {KERNEL:g} decades" in caption


def test_the_legend_tells_the_share_of_negative_eigenvalues(drawn) -> None:
    table = TABLE.copy()
    doubtful = (table["model"] == "vit") & (table["rank"] == 5) & (table["batch"] < 2)
    table.loc[doubtful & (table["snapshot"] == "end"), "converged"] = False
    warmup, end = of_rows(drawn(table=table))
    assert warmup[2][1:] == ["ViT-Ti: 30 % negative", "ViT (6 %): 40 % negative"]
    assert end[2][1] == "ViT-Ti: 30 % negative (2 of 30 not converged)"


def test_a_panel_says_that_no_eigenvalue_is_negative(drawn) -> None:
    ((_, (negative, positive), legend),) = of_rows(drawn(members=[RESNET], snapshots=["end"]))
    assert [text.get_text() for text in negative.texts] == ["none"]
    assert (len(negative.lines), len(positive.lines)) == (0, 2)
    assert legend == ["ResNet-50: 0 % negative"]


def test_an_eigenvalue_of_zero_is_of_neither_sign(drawn) -> None:
    table = TABLE.copy()
    table.loc[table["rank"] == 5, "eigenvalue"] = 0.0
    (_, (negative, positive), _), _ = of_rows(drawn([VIT], table=table))
    values = table.query("model == 'vit' and snapshot == 'warmup'")["eigenvalue"]
    shown = [len(axes.lines[1].get_xdata()) for axes in (negative, positive)]
    assert shown == [(values < 0).sum(), (values > 0).sum()]


def test_published_curves_have_an_axis_of_their_own(drawn, points_file) -> None:
    path = points_file.with_name("fig4_hessian.csv")
    published = read_published(path, kinds()["hessian"].published, SERIES)
    figure = drawn(published=published, snapshots=["warmup"])
    ((_, panels, _),) = of_rows(figure)
    backs, file = figure.subfigs[0].axes[2:], pd.read_csv(path)
    for axes, back, (panel, sign) in zip(
        panels, backs, (("negative", -1), ("positive", 1)), strict=True
    ):
        assert axes.get_xlim() == back.get_xlim()
        for series, line in zip(SERIES.values(), back.lines, strict=True):
            theirs = file[(file["model"] == series) & (file["panel"] == panel)]
            theirs = theirs[np.sign(theirs["eigenvalue"]) == sign]
            # As ours: per decade of magnitude.
            expected = theirs["density"] * theirs["eigenvalue"].abs() * np.log(10)
            np.testing.assert_allclose(line.get_xydata(), np.c_[theirs["eigenvalue"], expected])


@pytest.mark.parametrize(
    ("magnitudes", "expected"),
    [
        # From 100 to 400, with the reach of the kernel: 50 to 800.
        ((100, 400), (["\N{MINUS SIGN}300", "\N{MINUS SIGN}100"], ["100", "300"])),
        (
            (1, 2000),
            (["10^{3}", "10^{2}", "10^{1}", "10^{0}"], ["10^{0}", "10^{1}", "10^{2}", "10^{3}"]),
        ),
    ],
)
def test_few_decades_have_labels_between_powers_of_ten(drawn, magnitudes, expected) -> None:
    values = np.geomspace(*magnitudes, 15)
    table = rows_of("vit", "end").assign(eigenvalue=np.concatenate([values, -values]))
    figure = drawn([VIT], table=table, snapshots=("end",))
    assert flaws(figure) == []
    for axes, labels in zip(of_rows(figure)[0][1], expected, strict=True):
        shown = [text.get_text() for text in axes.get_xticklabels()]
        assert len(shown) == len(labels)
        assert all(label in text for label, text in zip(labels, shown, strict=True))
